"""Recall applies reranking, traces it, survives its failures and protects private text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.invented_secrets import github, password
from support.tiny_reranker import LOVE, write_reranker
from trivet import InvalidInput, RerankerError, Trivet
from trivet.models.rerank import local as onnx
from trivet.types import Answer

from .conftest import NOTES, Endpoint, Opened, Reply

QUERY = "zebra relay"
# Time limit for an endpoint that hangs.
SHORT_MS = 200


def contents(answer: Answer) -> list[str]:
    return [hit.content for hit in answer.hits]


def texts_sent(endpoint: Endpoint) -> str:
    return str([received.body for received in endpoint.received])


def test_reranker_reorders_hits_and_explains_why(reranking: Trivet) -> None:
    before, after = (
        reranking.recall(QUERY, rerank="off"),
        reranking.recall(QUERY, recipe="rerank(blend=1)"),
    )
    assert contents(before)[-1] != NOTES[0]
    assert contents(before)[0] != NOTES[3]
    assert contents(after)[0] == NOTES[3]
    why = after.hits[0].why
    assert why.rerank is not None
    assert (why.rerank.leg, why.rerank.rank, why.rerank.score, why.rerank.weight) == (
        "rerank",
        1,
        LOVE + 1,
        1.0,
    )
    assert why.rerank.normalised > 1
    assert why.blended == max(hit.why.blended or 0 for hit in after.hits)
    assert why.fused == next(hit.why.fused for hit in before.hits if hit.content == NOTES[3])
    leg = after.health.legs[-1]
    assert (leg.leg, leg.answered, leg.candidates) == ("rerank", True, len(NOTES))
    assert not after.health.degraded
    assert "rerank" in after.stages_ms


def test_rerank_off_leaves_no_trace(reranking: Trivet) -> None:
    answer = reranking.recall(QUERY, rerank="off")
    assert all(hit.why.rerank is None and hit.why.blended is None for hit in answer.hits)
    assert "rerank" not in {leg.leg for leg in answer.health.legs}
    assert "rerank" not in answer.recipe


def test_blend_weights_both_orders(reranking: Trivet) -> None:
    fused = contents(reranking.recall(QUERY, rerank="off"))
    assert contents(reranking.recall(QUERY, recipe="rerank(blend=0)")) == fused
    half = reranking.recall(QUERY)
    assert contents(half) != fused
    assert half.recipe.endswith("rerank(own, top=20, blend=0.5)")


def test_only_top_hits_are_reranked(reranking: Trivet) -> None:
    fused = contents(reranking.recall(QUERY, rerank="off"))
    answer = reranking.recall(QUERY, recipe="rerank(top=2, blend=1)")
    assert set(contents(answer)[:2]) == set(fused[:2])
    assert contents(answer)[2:] == fused[2:]
    assert [hit.why.rerank is not None for hit in answer.hits] == [True, True, False, False]
    assert answer.health.legs[-1].candidates == 2


def test_long_memory_scores_by_best_passage(open_trivet: Opened, tiny: Path) -> None:
    trivet = open_trivet(rerank=f"folder:{tiny}")
    filler = "The village council speaks of roads and bridges all day. " * 60
    id = trivet.remember(f"{filler} A zebra relay made of emerald. {filler}").id
    for note in NOTES[:3]:
        trivet.remember(note)
    answer = trivet.recall(QUERY, recipe="rerank(blend=1)")
    assert answer.hits[0].id == id
    assert answer.hits[0].why.rerank is not None
    assert answer.hits[0].why.rerank.score >= LOVE


def test_title_is_reranked_with_content(open_trivet: Opened, tiny: Path) -> None:
    trivet = open_trivet(rerank=f"folder:{tiny}")
    trivet.remember("zebra relay")
    id = trivet.remember("the zebra relay sleeps", title="Emerald").id
    assert trivet.recall(QUERY, recipe="rerank(blend=1)").hits[0].id == id


def test_sensitive_memory_is_not_reranked(open_trivet: Opened, tiny: Path) -> None:
    trivet = open_trivet(rerank=f"folder:{tiny}")
    hidden = trivet.remember("zebra relay emerald", sensitive=True).id
    for note in NOTES[:3]:
        trivet.remember(note)
    ranks = []
    for recipe in ("rerank(off)", "rerank(blend=1)"):
        (hit,) = [hit for hit in trivet.recall(QUERY, recipe=recipe).hits if hit.id == hidden]
        assert hit.why.rerank is None
        ranks.append(hit.rank)
    assert ranks[1] >= ranks[0], "the reranker must not have seen its emerald"


def test_endpoint_gets_no_sensitive_text_or_secrets(
    open_trivet: Opened, endpoint: Endpoint
) -> None:
    endpoint.answer = lambda body: Reply(
        [{"index": at, "score": 1.0} for at in range(len(body["texts"]))]
    )
    old = open_trivet(secrets="off")
    old.remember(
        f"zebra relay, password = {password('old')}"
    )  # stored before secret detection was on
    trivet = open_trivet(rerank=f"tei:{endpoint.url}")
    trivet.remember("zebra relay with SENSITIVE-WORDS", sensitive=True)
    trivet.remember(f"zebra relay with the key {github('new')}")
    trivet.remember("zebra relay <private>PRIVATE-WORDS</private> listens")
    answer = trivet.recall(f"zebra relay <private>QUERY-WORDS</private> {github('asked')}")
    assert len(answer.hits) == 4
    sent = texts_sent(endpoint)
    assert "zebra relay" in sent
    for word in ("SENSITIVE", "PRIVATE-", "QUERY-", "ghp_", password("old"), "[secret", "[private"):
        assert word not in sent


def test_hanging_endpoint_is_abandoned_at_time_limit(
    open_trivet: Opened, endpoint: Endpoint
) -> None:
    trivet = open_trivet(rerank=f"tei:{endpoint.url}", rerank_time_limit_ms=SHORT_MS)
    for note in NOTES:
        trivet.remember(note)
    fused = contents(trivet.recall(QUERY, rerank="off"))
    endpoint.open.clear()
    answer = trivet.recall(QUERY)
    assert contents(answer) == fused
    assert answer.health.degraded
    leg = answer.health.legs[-1]
    assert (leg.leg, leg.answered) == ("rerank", False)
    assert "the fused order stands" in (leg.reason or "")
    endpoint.open.set()


def test_reranking_resumes_after_counted_failures(open_trivet: Opened, endpoint: Endpoint) -> None:
    trivet = open_trivet(rerank=f"tei:{endpoint.url}")
    for note in NOTES:
        trivet.remember(note)
    fused = contents(trivet.recall(QUERY, rerank="off"))
    endpoint.answer = lambda _: Reply({"error": "out of order"}, status=500)
    for number in (1, 2):
        answer = trivet.recall(QUERY)
        assert contents(answer) == fused
        assert f"({number} of {number} times" in (answer.health.legs[-1].reason or "")
    endpoint.answer = lambda body: Reply(
        [{"index": at, "score": float("emerald" in text)} for at, text in enumerate(body["texts"])]
    )
    answer = trivet.recall(QUERY, recipe="rerank(blend=1)")
    assert contents(answer)[0] == NOTES[3]
    assert not answer.health.degraded


def test_why_not_reports_reranker_rank(reranking: Trivet) -> None:
    (id,) = [hit.id for hit in reranking.recall(QUERY).hits if hit.content == NOTES[2]]
    explanation = reranking.why_not(QUERY, id, limit=1, recipe="rerank(blend=1)")
    assert not explanation.returned
    assert any("the reranker put it at" in reason for reason in explanation.reasons)
    assert explanation.legs["rerank"].rank is not None
    shallow = reranking.why_not(QUERY, id, limit=1, recipe="rerank(top=1, blend=1)")
    assert any("the reranker did not read it" in reason for reason in shallow.reasons)


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder in place of the bundled models."""
    folder = tmp_path / "models"
    folder.mkdir()
    monkeypatch.setattr(onnx, "WEIGHTS", folder)
    return folder


def test_presets_rerank_their_number_of_hits(open_trivet: Opened, models: Path) -> None:
    write_reranker(models / "reranker")
    write_reranker(models / "reranker-fast")
    trivet = open_trivet(rerank="best")
    trivet.remember_many({"content": f"zebra number{number}"} for number in range(40))
    best, fast = trivet.recall("zebra"), trivet.recall("zebra", rerank="fast")
    assert best.health.legs[-1].candidates == 20
    assert best.recipe.endswith("rerank(best, top=20, blend=0.5)")
    assert fast.health.legs[-1].candidates == 20
    assert fast.recipe.endswith("rerank(fast, top=20, blend=0.25)")


def test_invalid_setting_is_rejected_at_open(models: Path, path: Path) -> None:
    for name, error in (
        ("best", RerankerError),
        ("folder:/nowhere", RerankerError),
        ("sometimes", InvalidInput),
    ):
        with pytest.raises(error, match="The setting rerank"):
            Trivet.open(path, embedder="none", rerank=name)
    assert not path.exists()


def test_missing_bundled_model_degrades_recall(open_trivet: Opened, models: Path) -> None:
    trivet = open_trivet()
    trivet.remember("zebra")
    answer = trivet.recall("zebra", rerank="best")
    assert contents(answer) == ["zebra"]
    assert "has no bundled reranker" in (answer.health.legs[-1].reason or "")


@pytest.mark.parametrize("value", ["tei:http://127.0.0.1:1", "folder:/etc", "on", ""])
def test_caller_cannot_choose_other_models(reranking: Trivet, value: Any) -> None:
    with pytest.raises(InvalidInput, match="rerank"):
        reranking.recall(QUERY, rerank=value)


@pytest.mark.parametrize(
    "step",
    [
        "rerank(worst)",
        "rerank(top=0)",
        "rerank(top=2.5)",
        "rerank(blend=2)",
        "rerank(off, top=3)",
        "rerank(k=1)",
    ],
)
def test_invalid_rerank_step_is_rejected(reranking: Trivet, step: str) -> None:
    with pytest.raises(InvalidInput, match="rerank"):
        reranking.recall(QUERY, recipe=step)


def test_empty_result_is_not_degraded(reranking: Trivet) -> None:
    answer = reranking.recall("quagga")
    assert answer.hits == ()
    assert not answer.health.degraded
