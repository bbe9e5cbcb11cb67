"""Every cache is bounded in bytes, including its overhead."""

from __future__ import annotations

import ast
import random
import tracemalloc
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import trivet
from trivet.analyse import analyse, terms
from trivet.common.bounded_cache import KIB, BoundedCache, cached, size_of
from trivet.graph.concepts import _canonical, _form
from trivet.memory.supersession.statement import _senses_of, _statement
from trivet.search.recipe import _parsed, _printed

BOUND = 256 * KIB


def test_many_unknown_words_stay_within_bound() -> None:
    cache: BoundedCache[str, tuple[()]] = BoundedCache(BOUND)
    for number in range(100_000):
        cache.put(f"{number * 0x9E3779B97F4A7C15 % 2**64:x}", ())
    assert BOUND // 3 < cache.bytes <= BOUND
    assert len(cache) < BOUND // 100


def _random_words(cache: BoundedCache[Any, Any]) -> None:
    for _ in range(1_500):
        cache.put((random.randbytes(16).hex(), random.random()), ())


def _growing_texts(cache: BoundedCache[Any, Any]) -> None:
    for number in range(300):
        cache.put(str(number), (f"{number:0{number * 10}}",))


def _arrays(cache: BoundedCache[Any, Any]) -> None:
    for number in range(1_000):
        cache.put(number, np.zeros(number % 300))


@pytest.mark.parametrize("fill", [_random_words, _growing_texts, _arrays])
def test_bound_matches_measured_memory(
    fill: Callable[[BoundedCache[Any, Any]], None],
) -> None:
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        cache: BoundedCache[Any, Any] = BoundedCache(BOUND)
        fill(cache)
        taken = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert BOUND // 3 < cache.bytes <= BOUND
    assert cache.bytes / 3 < taken <= BOUND


def test_least_recently_used_entries_are_dropped() -> None:
    cache: BoundedCache[str, str] = BoundedCache(64 * KIB)
    cache.put("used", "kept")
    cache.put("unused", "dropped")
    for number in range(1_000):
        cache.put(f"other {number}", "x" * 100)
        assert cache.get("used") == "kept"
    assert cache.get("unused") is None


def test_oversized_entry_is_kept_alone() -> None:
    cache: BoundedCache[int, str] = BoundedCache(10 * KIB)
    for number in range(20):
        cache.put(number, "x" * 20 * KIB)
        assert cache.get(number)
        assert len(cache) <= 2


def test_replaced_and_dropped_entries_do_not_count() -> None:
    cache: BoundedCache[str, str] = BoundedCache(100 * KIB)
    for _ in range(100):
        cache.put("one", "x" * 10 * KIB)
    assert cache.bytes < 12 * KIB
    cache.drop("one")
    assert (cache.bytes, cache.get("one")) == (0, None)


def test_results_are_cached_but_not_exceptions() -> None:
    asked: Counter[str] = Counter()

    @cached(KIB)
    def length(text: str) -> int:
        asked[text] += 1
        if not text:
            raise ValueError
        return len(text)

    assert [length("four"), length("four")] == [4, 4]
    for _ in range(2):
        with pytest.raises(ValueError, match=r"^$"):
            length("")
    assert asked == {"four": 1, "": 2}


def test_size_includes_contents() -> None:
    text = "x" * 10_000
    for holding in (
        (text,),
        [text],
        {text: 1},
        {1: text},
        frozenset((text,)),
        Counter((text,)),
        ((text, 1), 2),
    ):
        assert size_of(holding) > 10_000
    assert size_of(np.zeros(1_000)[:500]) > 4_000


@pytest.mark.parametrize(
    "function",
    [
        terms._english_terms,
        terms._other_terms,
        _form,
        _canonical,
        _statement,
        _senses_of,
        _parsed,
        _printed,
    ],
)
def test_text_functions_use_bounded_cache(function: Any) -> None:
    assert 0 < function.cache.most_bytes <= 16 * 1024 * KIB


def test_stemmers_do_not_keep_long_query_words() -> None:
    analyse("warm up")
    tracemalloc.start()
    try:
        for number in range(100):
            analyse("z" * 100_000 + chr(0x61 + number % 26) * (1 + number // 26))
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert taken < terms.TERMS_BYTES  # 10 MB were processed


# Keyed by constants of the code (request types, languages, pattern names, bundled models) or by the
# process, never by a caller's input.
KEYED_BY_CODE = {
    "analyse/terms.py": {"terms_in", "function_words"},
    "cli/options.py": {"fields_of"},
    "code/encoder.py": {"bundled"},
    "contract/parameters.py": {"id_fields", "json_schema"},
    "contract/verb.py": {"_defaults"},
    "dates/forms.py": {"form"},
    "models/embed/onnx.py": {"_shared"},
    "models/rerank/local.py": {"_shared", "_pool"},
    "serve/http/endpoints/endpoint.py": {"shapes_of"},
    "serve/mcp/results.py": {"_defaults"},
    "serve/mcp/tools.py": {"_without"},
    "store/postgres/connections.py": {"_row_class"},
}


def test_no_other_function_caches_without_byte_bound() -> None:
    package = Path(trivet.__file__).parent
    kept: dict[str, set[str]] = {}
    for file in package.rglob("*.py"):
        text = file.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if "cache" in text else ():
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.args.args:
                if any(
                    _name(decorator) in ("cache", "lru_cache") for decorator in node.decorator_list
                ):
                    kept.setdefault(str(file.relative_to(package)), set()).add(node.name)
            elif (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Call)
                and _name(node.func) == "lru_cache"
            ):
                kept.setdefault(str(file.relative_to(package)), set()).add(
                    "a function made by lru_cache"
                )
    assert kept == KEYED_BY_CODE


def _name(node: ast.expr) -> str:
    node = node.func if isinstance(node, ast.Call) else node
    return (
        node.id
        if isinstance(node, ast.Name)
        else node.attr
        if isinstance(node, ast.Attribute)
        else ""
    )
