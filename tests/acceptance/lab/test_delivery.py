"""Memories that reach an agent must not get worse; floors are today's results less a margin."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from support.command_line import process
from trivet.lab.datasets.plain_layout import lives
from trivet.lab.measure.bench import open_bench
from trivet.lab.measure.delivery import (
    SURFACES,
    DeliveryReport,
    Outcome,
    Share,
    Surface,
    deliver,
    summarize_delivery,
)
from trivet.lab.measure.gate import LENGTH_RATIO

# Small datasets, since every store starts small, one of them in another language.
STORES = ("s1-beekeeper", "s2-novelist", "s9-de-schreinerei")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder where the stores are embedded once."""
    return tmp_path_factory.mktemp("lives")


def measured(
    folder: Path, surfaces: Sequence[Surface] = SURFACES, **settings: Any
) -> list[Outcome]:
    outcomes: list[Outcome] = []
    for dataset in lives("dev"):
        if dataset.name in STORES:
            with open_bench(dataset, folder, **{"rerank": "auto", **settings}) as bench:
                outcomes += deliver(bench, surfaces)
    return outcomes


def values(delivered: DeliveryReport, surface: str, stratum: str = "(all)") -> Mapping[str, Share]:
    return next(
        row.values for row in delivered.rows if (row.surface, row.stratum) == (surface, stratum)
    )


def test_delivery_has_not_got_worse(folder: Path) -> None:
    """One test, so that the stores are read once."""
    delivered = summarize_delivery(measured(folder))
    found = values(delivered, "recall")
    assert found["delivered@3"].mean >= found["found@3"].mean - 0.03
    assert found["delivered@3"].mean >= 0.88
    assert values(delivered, "recall", "paraphrase")["delivered@3"].mean >= 0.8
    prompted = values(delivered, "prompt")
    assert prompted["kept"].mean >= 0.85
    assert values(delivered, "prompt", "paraphrase")["kept"].mean >= 0.75
    assert prompted["refused"].mean >= 0.3
    assert prompted["tokens"].mean < found["tokens"].mean
    assert delivered.calibration_error_small <= 0.08
    started = values(delivered, "start")
    assert started["delivered"].mean >= 0.5
    assert started["tokens"].mean <= 1_100
    assert delivered.lengths is not None
    assert 1 / LENGTH_RATIO <= delivered.lengths.ratio <= LENGTH_RATIO


def test_too_strict_relevance_is_detected(folder: Path) -> None:
    strict = summarize_delivery(measured(folder, ("prompt",), rerank="off", relevance_at_least=0.5))
    assert values(strict, "prompt", "paraphrase")["kept"].mean < 0.5


def test_command_writes_every_outcome(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "corpus.jsonl").write_text('{"id": "a", "text": "My dog is called Rex."}\n')
    (folder / "queries.jsonl").write_text(
        '{"id": "q", "text": "name of my pet", "stratum": "paraphrase"}\n'
    )
    (folder / "qrels.tsv").write_text("q\ta\t3\n")
    out = str(tmp_path / "out.json")
    result = process(
        "lab",
        "delivery",
        str(folder),
        "--out",
        out,
        "--measure",
        "delivered@7",
        XDG_CACHE_HOME=str(tmp_path),
    )
    assert "paraphrase" in result.out
    assert "delivered@7" in result.out
    written = json.loads((tmp_path / "out.json").read_text())
    assert [one["delivered"] for one in written["outcomes"] if one["surface"] == "recall"] == [1]
    assert written["manifest"]["dataset"] == str(folder)
