"""A store that 0.1.0 wrote before the rebuild opens unchanged and answers as it did, with one of everything in it."""

from __future__ import annotations

import gzip
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from trivet import Trivet

WRITTEN = Path(__file__).parents[1] / "support" / "store_0_1"
CALLS: list[dict[str, Any]] = json.loads((WRITTEN / "answers.json").read_text(encoding="utf-8"))
# What has come since: noise is left out, a reranker reads where the first look is unsure, and long memories no longer
# come first; of two hits on one matter the later stands first, so the hits are compared and not their order.
WEIGHTS = (
    "convex(norm=spread, norm.graph=raw, lexical=1, dense=8, graph=8) | chance(0) | walk(even=0)"
)
AS_THEN: dict[str, Any] = {"relevance_at_least": 0.0, "rerank": "off", "recipe": WEIGHTS}
FIRST = 3
UNANSWERABLE = "how tall is the Eiffel tower"
# Full seconds were written with their microseconds, once.
WITHOUT_FRACTION = re.compile(r"\.000000Z")


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Trivet]:
    (tmp_path / "memory.db").write_bytes(gzip.decompress((WRITTEN / "memory.db.gz").read_bytes()))
    shutil.copy(WRITTEN / "secret-keys.json", tmp_path)
    (tmp_path / "secret-keys.json").chmod(0o600)
    monkeypatch.setenv(
        "TRIVET_CONFIG", str(tmp_path / "trivet.toml")
    )  # the keys of its secrets lie beside it
    with Trivet.open(tmp_path / "memory.db", background=False, secrets_keyring=False) as opened:
        yield opened


def test_it_answers_as_it_did(memory: Trivet) -> None:
    """In the order of the calls as they were recorded: some count what was shown or revealed before."""
    for call in CALLS:
        as_then = AS_THEN if call["verb"] in ("recall", "why_not") else {}
        answer = msgspec.to_builtins(
            getattr(memory, call["verb"])(**{**as_then, **call["arguments"]})
        )
        if call["arguments"].get("query") == UNANSWERABLE:
            continue
        if call["verb"] == "recall":
            assert_found(call, answer)
        else:
            assert comparable(call["verb"], answer) == expected(call), call["arguments"]


def assert_found(call: dict[str, Any], answer: Any) -> None:
    """Its vectors are of a model that is gone, so it is read by words until it has moved: some of the first come."""
    hits = {(hit["id"], hit["content"]) for hit in answer["hits"]}
    first = {(hit["id"], hit["content"]) for hit in call["answer"][:FIRST]}
    assert bool(hits & first) is bool(first), call["arguments"]


def comparable(verb: str, answer: Any) -> Any:
    if verb == "why_not":
        return answer["returned"]
    return json.loads(WITHOUT_FRACTION.sub("Z", msgspec.json.encode(answer).decode()))


def expected(call: dict[str, Any]) -> Any:
    if call["verb"] == "why_not":
        return call["answer"]["returned"]
    return json.loads(WITHOUT_FRACTION.sub("Z", json.dumps(call["answer"])))
