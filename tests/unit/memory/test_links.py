"""Recall follows supersession links and attaches resolutions."""

from __future__ import annotations

from itertools import pairwise

import pytest

from support.store_fixtures import Opened
from support.word_embedder import WordEmbedder
from trivet import Conflict, InvalidInput, NotFound, Trivet
from trivet.types import Hit


def hits(trivet: Trivet, query: str, **filters: str) -> list[Hit]:
    return list(trivet.recall(query, **filters).hits)  # type: ignore[arg-type]


def chain(trivet: Trivet, *contents: str) -> list[str]:
    """Store memories that each supersede the previous one."""
    ids = [trivet.remember(content).id for content in contents]
    for old, new in pairwise(ids):
        trivet.link(new, "supersedes", old)
    return ids


def test_superseded_memory_is_answered_by_the_chain_head(trivet: Trivet) -> None:
    old, middle, head = chain(
        trivet, "Zebra relay on port 1.", "Moved to port 2.", "Now it is port 3."
    )
    (hit,) = hits(trivet, "zebra relay")
    assert (hit.id, hit.content) == (head, "Now it is port 3.")
    assert hit.why.redirected_from == (old,)
    assert [trivet.get(id).state for id in (old, middle, head)] == [
        "superseded",
        "superseded",
        "active",
    ]


def test_chain_is_one_hit_that_names_the_others(trivet: Trivet) -> None:
    old, middle, head = chain(
        trivet, "Zebra relay on port 1.", "Zebra relay on port 2.", "Zebra relay on port 3."
    )
    (hit,) = hits(trivet, "zebra relay")
    assert hit.id == head
    assert set(hit.why.redirected_from) == {old, middle}


def test_forgetting_the_head_reactivates_the_older(trivet: Trivet) -> None:
    _, middle, head = chain(
        trivet, "Zebra relay on port 1.", "Moved to port 2.", "Now it is port 3."
    )
    trivet.forget(head)
    assert [hit.id for hit in hits(trivet, "zebra relay")] == [middle]
    assert trivet.get(middle).state == "active"
    trivet.restore(head)
    assert [hit.id for hit in hits(trivet, "zebra relay")] == [head]
    trivet.purge(head)
    assert [hit.id for hit in hits(trivet, "zebra relay")] == [middle]
    assert all(finding.ok for finding in trivet.doctor())


def test_unlink_reactivates_the_older(trivet: Trivet) -> None:
    old, new = chain(trivet, "Zebra relay on port 1.", "Now it is port 3.")
    trivet.unlink(new, "supersedes", old)
    assert [hit.id for hit in hits(trivet, "zebra relay")] == [old]


def test_head_outside_the_filter_is_not_shown(trivet: Trivet) -> None:
    old = trivet.remember("Zebra relay on port 1.", scope="mine").id
    new = trivet.remember("Now it is port 3.", scope="theirs").id
    trivet.link(new, "supersedes", old)
    assert [hit.id for hit in hits(trivet, "zebra relay", scope="mine")] == [old]
    assert [hit.id for hit in hits(trivet, "zebra relay")] == [new]


def test_visible_successor_of_two_answers(trivet: Trivet) -> None:
    old = trivet.remember("Zebra relay on port 1.", scope="mine").id
    visible = trivet.remember("Now it is port 2.", scope="mine", created_at="2020-01-01").id
    hidden = trivet.remember("Now it is port 3.", scope="theirs").id
    for new in (visible, hidden):
        trivet.link(new, "supersedes", old)
    assert [hit.id for hit in hits(trivet, "zebra relay", scope="mine")] == [visible]


@pytest.mark.parametrize("bounds", [{"valid_from": "2999-01-01"}, {"valid_to": "2001-01-01"}])
def test_head_not_valid_now_does_not_answer(trivet: Trivet, bounds: dict[str, str]) -> None:
    old = trivet.remember("Zebra relay on port 1.").id
    new = trivet.remember("Now it is port 3.", **bounds).id  # type: ignore[arg-type]
    trivet.link(new, "supersedes", old)
    assert [hit.id for hit in hits(trivet, "zebra relay")] == [old]


def test_as_of_query_answers_from_the_past(trivet: Trivet) -> None:
    old = trivet.remember("Zebra relay on port 1.", created_at="2020-01-01").id
    new = trivet.remember("Zebra relay on port 2.", created_at="2024-01-01").id
    trivet.link(new, "supersedes", old)
    assert [hit.id for hit in hits(trivet, "zebra relay", as_of="2022-01-01")] == [old]
    assert [hit.id for hit in hits(trivet, "zebra relay", as_of="2025-01-01")] == [new]


def test_superseded_memories_are_shown_on_request(trivet: Trivet) -> None:
    old, _ = chain(trivet, "Zebra relay on port 1.", "Now it is port 3.")
    answer = trivet.recall("zebra relay", state=["superseded"])
    assert [hit.id for hit in answer.hits] == [old]


def test_edit_and_restore_keep_the_superseded_state(trivet: Trivet) -> None:
    old, new = chain(trivet, "Zebra relay on port 1.", "Now it is port 3.")
    trivet.edit(old, importance=0.9)
    trivet.restore(old, revision=1)
    assert trivet.get(old).state == "superseded"
    assert [hit.id for hit in hits(trivet, "zebra relay")] == [new]
    assert all(finding.ok for finding in trivet.doctor())


def test_redirected_hit_shows_best_passage_of_the_head(
    open_trivet: Opened, embedder: WordEmbedder
) -> None:
    trivet = open_trivet(embedder=f"{embedder.spec()}#window=60")
    old = trivet.remember("The zebra relay listens on port 6543.").id
    filler = "".join(
        f"Sentence {number} is about the garden and its many flowers. " for number in range(20)
    )
    new = trivet.remember(f"{filler}The zebra relay listens on port 9999.").id
    trivet.link(new, "supersedes", old)
    trivet.drain()
    (hit,) = hits(trivet, "zebra relay listens on port")
    assert hit.id == new
    assert "9999" in hit.passage
    assert len(hit.passage) < len(hit.content)


def test_resolution_is_attached(trivet: Trivet) -> None:
    problem = trivet.remember("Zebra relay drops calls at night.", category="problems").id
    solution = trivet.remember("Raise the keepalive to 60 seconds.").id
    trivet.link(problem, "resolved-by", solution)
    (hit,) = hits(trivet, "zebra relay")
    assert [(one.id, one.content) for one in hit.resolved_by] == [
        (solution, "Raise the keepalive to 60 seconds.")
    ]
    trivet.forget(solution)
    assert hits(trivet, "zebra relay")[0].resolved_by == ()


def test_resolution_is_hidden_by_scope_or_masked(trivet: Trivet) -> None:
    problem = trivet.remember("Zebra relay drops calls at night.", scope="mine").id
    elsewhere = trivet.remember("Raise the keepalive.", scope="theirs").id
    secret = trivet.remember("Use the word hunter2.", scope="mine", sensitive=True).id
    for solution in (elsewhere, secret):
        trivet.link(problem, "resolved-by", solution)
    (hit,) = hits(trivet, "zebra relay", scope="mine")
    assert [one.id for one in hit.resolved_by] == [secret]
    assert "hunter2" not in hit.resolved_by[0].content
    assert (
        "hunter2"
        in trivet.recall("zebra relay", scope="mine", reveal=True).hits[0].resolved_by[0].content
    )


def test_other_links_do_not_change_recall(trivet: Trivet) -> None:
    part = trivet.remember("Zebra relay has three wheels.").id
    whole = trivet.remember("The machine hall.").id
    trivet.link(part, "part-of", whole)
    trivet.link(part, "see-also", whole)
    assert [hit.id for hit in hits(trivet, "zebra relay")] == [part]
    assert {link.kind for link in trivet.links(whole)} == {"part-of", "see-also"}


def test_supersession_cycle_is_refused(trivet: Trivet) -> None:
    old, middle, head = chain(trivet, "one", "two", "three")
    with pytest.raises(Conflict, match="cycle"):
        trivet.link(old, "supersedes", head)
    assert trivet.get(head).state == "active"
    assert len(trivet.links(middle)) == 2


@pytest.mark.parametrize("kind", ["supersedes", "see-also"])
def test_self_link_is_refused(trivet: Trivet, kind: str) -> None:
    id = trivet.remember("one").id
    with pytest.raises(InvalidInput, match="itself"):
        trivet.link(id, kind, id)  # type: ignore[arg-type]


def test_link_needs_active_ends_and_known_kind(trivet: Trivet) -> None:
    one, two = trivet.remember("one").id, trivet.remember("two").id
    with pytest.raises(InvalidInput, match="kind"):
        trivet.link(one, "replaces", two)  # type: ignore[arg-type]
    with pytest.raises(NotFound):
        trivet.unlink(one, "see-also", two)
    trivet.forget(two)
    with pytest.raises(Conflict, match="forgotten"):
        trivet.link(one, "see-also", two)
