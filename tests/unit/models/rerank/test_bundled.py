"""Bundled rerankers prefer the answer and score texts independently of the batch."""

from __future__ import annotations

import pytest

from trivet.models.rerank.registry import PRESETS, RerankSpec, load

FOREVER = float("inf")
QUERY = "which port is staging on?"
TEXTS = (
    "The cat sleeps on the radiator.",
    "The staging database listens on port 6543.",
    "Ports of the Baltic sea",
)


@pytest.mark.parametrize("name", PRESETS)
def test_answer_scores_best_and_batch_equals_single(name: str) -> None:
    reranker = load(RerankSpec(name))
    scores = reranker.score(QUERY, TEXTS, FOREVER)
    assert scores.index(max(scores)) == 1
    assert [reranker.score(QUERY, [text], FOREVER)[0] for text in TEXTS] == scores
