r"""Measure on LoCoMo which context a stored turn of a conversation should keep.

TRIVET_DATA=/path/to/originals python benchmarks/studies/context.py \
    --output docs/results/context.json

Each way of storing is a separate store; the default recipe answers. Differences are against
"speaker: text".
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
from embedder import add_embedder, identity

from trivet.lab.datasets.catalog import import_original
from trivet.lab.datasets.dataset import Dataset, Document
from trivet.lab.measure.bench import open_bench
from trivet.lab.measure.comparison import paired
from trivet.lab.measure.measures import Measured
from trivet.lab.measure.run import environment, run_arm

MEASURES = ("recall@5", "recall@10", "nDCG@10", "MRR", "any@5", "all@5")
DEEP = 20

Write = Callable[[Document, Document | None], str]


def main() -> None:
    options = _options()
    turns = import_original("locomo")
    measured = {
        name: _measured(_stored(turns, name, write), options) for name, write in WAYS.items()
    }
    base = measured["speaker: text"]
    rows = {name: _row(base, one) for name, one in measured.items()}
    about = {"embedder": identity(options.embedder), "dataset": turns.fingerprint}
    result = {"manifest": environment() | about, "rows": rows}
    options.output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    for name, row in rows.items():
        print(name, row)


def _without_speaker(turn: Document, before: Document | None) -> str:
    return turn.text.partition(": ")[2] or turn.text


def _as_it_is(turn: Document, before: Document | None) -> str:
    return turn.text


def _with_date(turn: Document, before: Document | None) -> str:
    moment = datetime.fromisoformat(turn.created_at) if turn.created_at else None
    return f"{moment:%-d %B %Y}. {turn.text}" if moment else turn.text


def _with_turn_before(turn: Document, before: Document | None) -> str:
    return f"{before.text}\n{turn.text}" if before else turn.text


def _with_both(turn: Document, before: Document | None) -> str:
    return _with_date(msgspec.structs.replace(turn, text=_with_turn_before(turn, before)), before)


WAYS: dict[str, Write] = {
    "speaker: text": _as_it_is,
    "text alone": _without_speaker,
    "with the date": _with_date,
    "with the turn before": _with_turn_before,
    "with the date and the turn before": _with_both,
}


def _stored(turns: Dataset, name: str, write: Write) -> Dataset:
    documents = tuple(
        msgspec.structs.replace(turn, text=write(turn, before)) for turn, before in _in_order(turns)
    )
    return replace(
        turns, name="locomo-" + name.replace(" ", "-").replace(":", ""), documents=documents
    )


def _in_order(turns: Dataset) -> Iterator[tuple[Document, Document | None]]:
    yield turns.documents[0], None
    for before, turn in pairwise(turns.documents):
        same = before.id.rpartition(":")[0] == turn.id.rpartition(":")[0]
        yield turn, before if same else None


def _measured(dataset: Dataset, options: argparse.Namespace) -> Measured:
    with open_bench(dataset, options.cache, options.embedder) as bench:
        return run_arm(bench, "default", MEASURES, DEEP).measured


def _row(base: Measured, one: Measured) -> dict[str, Any]:
    (compared,) = paired(
        {"nDCG@10": base.per_query["nDCG@10"]}, {"nDCG@10": one.per_query["nDCG@10"]}
    )
    strata = {stratum: round(values["nDCG@10"], 4) for stratum, values in one.by_stratum.items()}
    difference = {"difference": compared.difference, "low": compared.low, "high": compared.high}
    means = {name: round(value, 4) for name, value in one.overall.items()}
    return (
        means
        | {name: round(value, 4) for name, value in difference.items()}
        | {"nDCG@10 by stratum": strata}
    )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--output", type=Path, default=Path("docs/results/context.json"))
    add_embedder(parser)
    return parser.parse_args()


if __name__ == "__main__":
    main()
