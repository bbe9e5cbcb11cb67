"""Field limits are checked before anything is written, and the error names the field."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from trivet import InvalidInput, NotFound, Trivet
from trivet.common.ids import new_id

KNOWN = "0199c2f4-7d1e-7a3b-9c55-2f6f0f6c1a2b"

REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("empty content", {"content": ""}, "content"),
    ("blank content", {"content": " \n\t "}, "content"),
    ("NUL in content", {"content": "a\x00b"}, "NUL"),
    ("lone surrogate", {"content": "a\ud800b"}, "Unicode"),
    ("content of 32 KiB and a byte", {"content": "x" * (32 * 1024 + 1)}, "32,768"),
    (
        "content too long in bytes, not characters",
        {"content": "\u00e4" * (16 * 1024 + 1)},
        "32,768",
    ),
    ("content of another type", {"content": 7}, "content"),
    ("title too long", {"title": "x" * 301}, "title"),
    ("NUL in title", {"title": "a\x00"}, "NUL"),
    ("unknown category", {"category": "nonsense"}, "category"),
    ("empty category", {"category": ""}, "category"),
    ("51 tags", {"tags": [f"t{number}" for number in range(51)]}, "tags"),
    ("empty tag", {"tags": [""]}, "tags"),
    ("long tag", {"tags": ["x" * 65]}, "tags"),
    ("NUL in a tag", {"tags": ["a\x00"]}, "NUL"),
    ("tags are text", {"tags": "prod"}, "tags"),
    ("NaN importance", {"importance": math.nan}, "importance"),
    ("infinite importance", {"importance": math.inf}, "importance"),
    ("importance above 1", {"importance": 1.01}, "importance"),
    ("importance below 0", {"importance": -0.01}, "importance"),
    ("importance is text", {"importance": "high"}, "importance"),
    ("NaN confidence", {"confidence": math.nan}, "confidence"),
    ("confidence above 1", {"confidence": 2}, "confidence"),
    (
        "51 keywords",
        {"expanded_keywords": [f"k{number}" for number in range(51)]},
        "expanded_keywords",
    ),
    ("scope with a space", {"scope": "my team"}, "scope"),
    ("scope with a line end", {"scope": "team\n"}, "scope"),
    ("scope that starts with /", {"scope": "/team"}, "scope"),
    ("scope with an empty part", {"scope": "a//b"}, "scope"),
    ("empty source", {"source": ""}, "source"),
    ("lines without a source", {"start_line": 3}, "source"),
    ("line 0", {"source": "a.py", "start_line": 0}, "start_line"),
    ("line beyond any file", {"source": "a.py", "start_line": 2**63}, "start_line"),
    ("reversed lines", {"source": "a.py", "start_line": 9, "end_line": 3}, "start_line"),
    ("invalid time", {"created_at": "someday"}, "created_at"),
    ("time out of range", {"created_at": "0001-01-01T00:00:00+14:00"}, "created_at"),
    ("empty validity range", {"valid_from": "2026-02-01", "valid_to": "2026-01-01"}, "valid_from"),
    ("invalid id", {"id": "not-an-id"}, "id"),
    ("invalid id of the right length", {"id": "z" * 36}, "id"),
]


@pytest.mark.parametrize(
    ("given", "names"), [entry[1:] for entry in REFUSED], ids=[entry[0] for entry in REFUSED]
)
def test_remember_rejects_invalid_input_and_writes_nothing(
    trivet: Trivet, given: dict[str, Any], names: str
) -> None:
    with pytest.raises(InvalidInput, match=names):
        trivet.remember(**({"content": "The relay listens on port 7001."} | given))
    assert trivet.list().total == 0
    assert trivet.stats().revisions == 0


EDITS = [entry for entry in REFUSED if not {"id", "created_at"} & set(entry[1])]


@pytest.mark.parametrize(
    ("given", "names"), [entry[1:] for entry in EDITS], ids=[entry[0] for entry in EDITS]
)
def test_edit_rejects_invalid_input(trivet: Trivet, given: dict[str, Any], names: str) -> None:
    id = trivet.remember("The relay listens on port 7001.").id
    before = trivet.get(id)
    with pytest.raises(InvalidInput, match=names):
        trivet.edit(id, **given)
    assert trivet.get(id) == before
    assert len(trivet.history(id)) == 1


def test_one_invalid_memory_of_many_writes_none(trivet: Trivet) -> None:
    with pytest.raises(InvalidInput):
        trivet.remember_many([{"content": "good"}, {"content": "bad", "importance": 7}])
    assert trivet.list().total == 0


def test_exact_limits_are_allowed(trivet: Trivet) -> None:
    kept = trivet.remember(
        "x" * (32 * 1024),
        title="t" * 300,
        tags=[f"{number:064}" for number in range(50)],
        importance=1,
        confidence=0,
        scope="a.b-c_d/e",
        source="a.py",
        start_line=3,
        end_line=3,
    )
    memory = trivet.get(kept.id)
    assert len(memory.content) == 32 * 1024
    assert (memory.importance, memory.confidence, len(memory.tags)) == (1.0, 0.0, 50)


def test_misspelled_field_is_named(trivet: Trivet) -> None:
    with pytest.raises(InvalidInput, match="importence"):
        trivet.remember_many([{"content": "good", "importence": 0.9}])


QUERIES: list[tuple[str, dict[str, Any], str]] = [
    ("empty query", {"query": ""}, "query"),
    ("blank query", {"query": "  "}, "query"),
    ("NUL query", {"query": "a\x00b"}, "NUL"),
    ("long query", {"query": "x" * 8_001}, "query"),
    ("limit 0", {"limit": 0}, "limit"),
    ("limit 101", {"limit": 101}, "limit"),
    ("fractional limit", {"limit": 1.5}, "limit"),
    ("unknown sort", {"sort": "newest"}, "sort"),
    ("unknown state", {"state": ["lost"]}, "state"),
    ("unknown category", {"category": ["nonsense"]}, "category"),
    ("invalid scope", {"scope": "my team"}, "scope"),
    ("invalid time", {"created_after": "soon"}, "created_after"),
    ("invalid as_of", {"as_of": "2026-13-01"}, "as_of"),
    (
        "empty range",
        {"created_after": "2026-02-01", "created_before": "2026-01-01"},
        "created_after",
    ),
    ("NaN minimum", {"minimum_score": math.nan}, "minimum_score"),
    ("minimum above 1", {"minimum_score": 1.1}, "minimum_score"),
    ("tiny budget", {"token_budget": 49}, "token_budget"),
    ("zero hits per source", {"per_source": 0}, "per_source"),
    ("unknown recipe", {"recipe": "magic()"}, "magic"),
    ("recipe with two depths", {"recipe": "depth(5) | depth(6)"}, "depth"),
]


@pytest.mark.parametrize(
    ("given", "names"), [entry[1:] for entry in QUERIES], ids=[entry[0] for entry in QUERIES]
)
def test_recall_rejects_invalid_input(trivet: Trivet, given: dict[str, Any], names: str) -> None:
    id = trivet.remember("The relay listens on port 7001.").id
    with pytest.raises(InvalidInput, match=names):
        trivet.recall(**({"query": "relay"} | given))
    with pytest.raises(InvalidInput, match=names):
        trivet.why_not(**({"query": "relay", "id": id} | given))


@pytest.mark.parametrize(
    "given",
    [
        {"limit": 1_001},
        {"offset": -1},
        {"offset": 2**63},
        {"category": ["nonsense"]},
        {"sort": "newest"},
    ],
)
def test_list_rejects_invalid_input(trivet: Trivet, given: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=next(iter(given))):
        trivet.list(**given)


def test_verbs_reject_invalid_and_missing_ids(trivet: Trivet) -> None:
    missing = new_id()
    kept = trivet.remember("known").id
    verbs: list[Callable[[str], object]] = [
        trivet.get,
        trivet.forget,
        trivet.restore,
        trivet.purge,
        trivet.history,
        trivet.links,
        lambda id: trivet.edit(id, importance=0.1),
        lambda id: trivet.why_not("known", id),
        lambda id: trivet.link(kept, "see-also", id),
        lambda id: trivet.link(id, "see-also", kept),
        lambda id: trivet.unlink(kept, "see-also", id),
        lambda id: trivet.diff(id, 1, 1),
    ]
    for verb in verbs:
        with pytest.raises(InvalidInput):
            verb("nonsense")
        with pytest.raises(InvalidInput, match="UUID"):
            verb("x" * 36)
        with pytest.raises(NotFound):
            verb(missing)


def test_uppercase_id_is_accepted(trivet: Trivet) -> None:
    id = trivet.remember("known", id=KNOWN.upper()).id
    assert id == KNOWN
    assert trivet.get(KNOWN.upper()).content == "known"
