"""`why_not` reruns the recall and gives every kind of reason."""

from __future__ import annotations

from typing import Any

import pytest

from support.store_fixtures import Opened
from support.word_embedder import WordEmbedder
from trivet import Trivet
from trivet.types import WhyNot


def explain(trivet: Trivet, query: str, id: str, **options: Any) -> WhyNot:
    """Return the explanation after checking it against the recall."""
    explained = trivet.why_not(query, id, **options)
    ranks = {hit.id: hit.rank for hit in trivet.recall(query, **options).hits}
    assert explained.returned == (id in ranks)
    assert explained.rank == ranks.get(id)
    return explained


def test_returned_memory_has_a_rank(trivet: Trivet) -> None:
    trivet.remember("zebra relay listens")
    id = trivet.remember("relay and a good many other words").id
    explained = explain(trivet, "zebra relay", id)
    assert (explained.returned, explained.rank) == (True, 2)
    assert "rank 2" in explained.verdict
    assert explained.legs["lexical"].rank == 2


def test_forgotten_memory(trivet: Trivet) -> None:
    id = trivet.remember("zebra relay").id
    trivet.forget(id)
    assert "forgotten" in explain(trivet, "zebra relay", id).verdict


FILTERS: list[tuple[dict[str, Any], str, str]] = [
    ({"scope": "theirs"}, "scope", "mine"),
    ({"category": ["code"]}, "categories", "facts"),
    ({"tags": ["x", "z"]}, "tags", "x, y"),
    ({"state": ["archived"]}, "states", "active"),
    ({"source": "b.py"}, "source", "a.py"),
    ({"created_after": "2025-01-01"}, "created_after", "2024-05-05"),
    ({"created_before": "2024-01-01"}, "created_before", "2024-05-05"),
    ({"as_of": "2024-01-01"}, "as_of", "2024-05-05"),
]


@pytest.mark.parametrize(("options", "filter", "value"), FILTERS)
def test_filter_is_named(trivet: Trivet, options: dict[str, Any], filter: str, value: str) -> None:
    id = trivet.remember(
        "zebra relay", scope="mine", tags=["x", "y"], source="a.py", created_at="2024-05-05"
    ).id
    explained = explain(trivet, "zebra relay", id, **options)
    assert "filter" in explained.verdict
    (reason,) = explained.reasons
    assert filter in reason
    assert value in reason


def test_only_failing_filters_are_named(trivet: Trivet) -> None:
    id = trivet.remember("zebra relay", scope="mine", tags=["x"]).id
    reasons = explain(
        trivet, "zebra relay", id, scope="theirs", tags=["z"], category=["facts"]
    ).reasons
    assert len(reasons) == 2
    assert "scope" in reasons[0]
    assert "tags" in reasons[1]


@pytest.mark.parametrize("bounds", [{"valid_to": "2001-01-01"}, {"valid_from": "2999-01-01"}])
def test_memory_not_valid_now(trivet: Trivet, bounds: dict[str, Any]) -> None:
    id = trivet.remember("zebra relay", created_at="2000-01-01", **bounds).id
    explained = explain(trivet, "zebra relay", id)
    assert "filter" in explained.verdict
    assert any("not now" in reason for reason in explained.reasons)


def test_memory_found_by_no_leg(trivet: Trivet) -> None:
    trivet.remember("zebra relay")
    id = trivet.remember("gardens need water and a zebra").id
    explained = explain(trivet, "relay horses", id)
    assert explained.verdict == "No leg found it."
    assert any("lacks: relay, horses" in reason for reason in explained.reasons)
    assert any("lexical" in reason for reason in explained.reasons)


def test_memory_below_the_limit(trivet: Trivet) -> None:
    for number in range(3):
        trivet.remember(f"zebra relay number{number}")
    id = trivet.remember("zebra and a good many more words about nothing much").id
    explained = explain(trivet, "zebra relay", id, limit=2)
    assert "limit" in explained.verdict
    assert explained.legs["lexical"].rank == 4
    assert any("at 4 of 4" in reason for reason in explained.reasons)


def test_memory_far_below_the_limit(trivet: Trivet) -> None:
    for number in range(30):
        trivet.remember(f"zebra zebra relay number{number}")
    id = trivet.remember("relay " + "and words " * 50).id
    explained = explain(trivet, "zebra relay", id, limit=1, recipe="match(any)")
    assert "found" in explained.verdict
    assert "31" in explained.verdict


def test_memory_below_the_minimum_score(trivet: Trivet) -> None:
    trivet.remember("zebra relay")
    id = trivet.remember("zebra and a good many more words about nothing much").id
    assert "minimum" in explain(trivet, "zebra relay", id, minimum_score=0.75).verdict


def test_memory_collapsed_into_another(trivet: Trivet) -> None:
    first = trivet.remember("The old zebra relay in the cellar of the house listens.").id
    second = trivet.remember("The old zebra relay in the cellar of the house listens!").id
    shown = trivet.recall("zebra relay").hits[0].id
    folded = second if shown == first else first
    verdict = explain(trivet, "zebra relay", folded).verdict
    assert "says the same" in verdict
    assert shown in verdict


def test_memory_replaced_by_its_successor(trivet: Trivet) -> None:
    old, new = trivet.remember("zebra relay").id, trivet.remember("now a horse").id
    trivet.link(new, "supersedes", old)
    verdict = explain(trivet, "zebra relay", old).verdict
    assert "superseded" in verdict
    assert new in verdict


def test_source_limit_reached(trivet: Trivet) -> None:
    for number in range(2):
        trivet.remember(f"zebra relay number{number}", source="a.md")
    id = trivet.remember("zebra and a good many more words about nothing much", source="a.md").id
    verdict = explain(trivet, "zebra relay", id, per_source=2).verdict
    assert "2 better hits" in verdict
    assert "source" in verdict


def test_token_budget_used_up(trivet: Trivet) -> None:
    for number in range(3):
        trivet.remember(f"zebra relay {number} " + f"filler{number} " * 20)
    id = trivet.remember("zebra with other words " + "nothing " * 40).id
    verdict = explain(trivet, "zebra relay", id, token_budget=120, recipe="match(any)").verdict
    assert "budget" in verdict


def test_memory_without_the_quoted_words(trivet: Trivet) -> None:
    trivet.remember("She said open the green door.")
    id = trivet.remember("The door is green, open it.").id
    verdict = explain(trivet, '"open the green door"', id).verdict
    assert '"open the green door"' in verdict


def test_leg_without_answer(open_trivet: Opened, embedder: WordEmbedder) -> None:
    trivet = open_trivet(embedder=embedder.spec())
    id = trivet.remember("gardens need water").id
    trivet.drain()
    embedder.stop()
    explained = explain(trivet, "zebra", id)
    assert any("dense" in reason and "did not answer" in reason for reason in explained.reasons)


def test_memory_not_embedded_yet(hybrid: Trivet) -> None:
    hybrid.remember("zebra")
    hybrid.drain()
    id = hybrid.remember("gardens need water").id
    assert any("not embedded yet" in reason for reason in explain(hybrid, "zebra", id).reasons)


def test_sensitive_memory(hybrid: Trivet) -> None:
    id = hybrid.remember("gardens need hunter2", sensitive=True).id
    hybrid.remember("zebra")
    hybrid.drain()
    explained = explain(hybrid, "zebra", id)
    assert any("sensitive" in reason for reason in explained.reasons)


def test_query_without_content_words(trivet: Trivet) -> None:
    id = trivet.remember("gardens need water").id
    assert any("function words" in reason for reason in explain(trivet, "what is it", id).reasons)
