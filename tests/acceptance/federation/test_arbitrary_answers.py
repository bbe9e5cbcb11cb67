"""Any JSON from a system is either refused as a whole or becomes a valid ranking."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from trivet.search.fuse import check, fuse, parse_fusion
from trivet.search.systems.command import hits_in
from trivet.search.systems.messages import (
    ID_CHARACTERS,
    TEXT_CHARACTERS,
    TITLE_CHARACTERS,
    IdMap,
    Reply,
    SystemFailed,
    reply_of,
)
from trivet.settings.systems import ExternalSystem
from trivet.types import Candidate, Ranking

scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
anything = st.recursive(
    scalars,
    lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)
fields = st.fixed_dictionaries(
    {}, optional=dict.fromkeys(("id", "score", "text", "title", "line"), scalars | anything)
)
answers = anything | st.lists(fields | anything) | st.fixed_dictionaries({"hits": st.lists(fields)})


def answer_of(output: bytes, **more: Any) -> Reply | None:
    member = ExternalSystem(command=("x",), fetch_k=5, **more)
    try:
        return reply_of(hits_in(output, member, ("key",)), member, IdMap(member))
    except SystemFailed:
        return None


def assert_valid_ranking(reply: Reply) -> None:
    assert len(reply.hits) <= 5
    seen: dict[str, float] = {}
    for hit in reply.hits:
        assert 0 < len(hit.id) <= ID_CHARACTERS
        assert len(hit.text) <= TEXT_CHARACTERS
        assert len(hit.title or "") <= TITLE_CHARACTERS
        (hit.id + hit.text + (hit.title or "")).encode()
        seen.setdefault(hit.id, hit.score)
    candidates = tuple(Candidate(id=id, score=score) for id, score in seen.items())
    ranking = Ranking(leg="liar", floor=reply.floor, candidates=candidates)
    check(ranking)
    for fused in fuse(parse_fusion("convex(norm=spread)"), [ranking]):
        assert 0 <= fused.score <= 1


@given(answers, st.booleans())
def test_any_json(answer: Any, lower_is_better: bool) -> None:
    reply = answer_of(json.dumps(answer).encode(), lower_is_better=lower_is_better)
    if reply is not None:
        assert_valid_ranking(reply)


@given(st.binary(max_size=200), st.sampled_from(["json", "jsonl", "rg", "lines"]))
def test_any_bytes(output: bytes, format: Any) -> None:
    reply = answer_of(output, format=format)
    if reply is not None:
        assert_valid_ranking(reply)


@given(st.lists(st.tuples(st.text(max_size=9), st.integers(0, 99), st.text(max_size=30))))
def test_any_lines_of_grep(lines: list[tuple[str, int, str]]) -> None:
    output = "\n".join(f"{path}:{line}:{text}" for path, line, text in lines).encode(
        "utf-8", "replace"
    )
    reply = answer_of(output, format="lines")
    assert reply is not None
    assert_valid_ranking(reply)
