"""Helpers of the leg score study: corpus reduction and score figures."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks" / "studies"))

from leg_scores import Asked, Seen, agreement, area_between, cut, lengths

from trivet.lab.datasets.dataset import Dataset, Document, DocumentLink, Judgement, Query


def test_reduced_corpus_keeps_answers_and_inner_links() -> None:
    documents = tuple(
        Document(
            id=f"d{number}",
            text="x",
            links=(DocumentLink(kind="see-also", to="d0"),) if number else (),
        )
        for number in range(20)
    )
    queries = tuple(Query(id=f"q{number}", text="x") for number in range(4))
    judged = tuple(
        Judgement(query=f"q{number}", document=f"d{number + 10}", grade=1) for number in range(3)
    )
    small = cut(Dataset(name="all", documents=documents, queries=queries, judgements=judged), 2, 5)
    assert len(small.documents) == 5
    assert "q3" not in {query.id for query in small.queries}, "no document answers q3"
    kept = {document.id for document in small.documents}
    assert {row.document for row in small.judgements} <= kept
    assert len(small.judgements) == 2
    assert {link.to for document in small.documents for link in document.links} <= kept


def test_area_counts_pairs_and_half_of_ties() -> None:
    assert area_between(np.array([3.0, 2.0]), np.array([1.0, 2.0])) == pytest.approx(3.5 / 4)


def test_agreement_differs_from_correctness() -> None:
    def asked(fusion: str, reranked: str) -> Asked:
        firsts = {"fusion": fusion, "rerank best": reranked}
        right = {name: id == "right" for name, id in firsts.items()}
        lists = {"dense": [Seen(0.9, True, 10), Seen(0.1, False, 400)]}
        return Asked("q", lists, {}, firsts, right, 0.5, 1, [10])

    found = [
        asked("right", "right"),
        asked("wrong", "wrong"),
        asked("right", "wrong"),
        asked("wrong", "right"),
    ]
    row = agreement(found)["fusion and rerank best"]
    assert (row["agree"]["mean"], row["right where they agree"]["of"]) == (0.5, 2)
    assert row["right where they agree"]["mean"] == row["fusion right where not"]["mean"] == 0.5
    by_length = lengths(found)
    assert by_length["answers"]["shares"]["up to 30"] == 1.0
    assert by_length["dense"]["deviation of the wrong"] == {"over 300": -1.0}
