"""Quality: one store per scope of a collection, ten hits for every question."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from peers.corpora import text_of
from peers.process import Driver, DriverFailed
from peers.products import Arm
from peers.vectors import KeptVectors
from trivet.lab.datasets.dataset import Dataset, Document
from trivet.lab.measure.comparison import paired
from trivet.lab.measure.measures import Measured, Run, measure

MEASURES = ("recall@5", "nDCG@10")
COUNT = 10
# Documents per request, as an importer might send.
AT_ONCE = 100


@dataclass(frozen=True, kw_only=True)
class Bench:
    python: Path
    work: Path
    vectors: KeptVectors

    def driver(self, arm: Arm, store: Path) -> Driver:
        store.mkdir(parents=True, exist_ok=True)
        driver = Driver(self.python, arm.product.name, self.work, self.vectors.packed)
        try:
            driver.ask("open", folder=str(store), dimension=self.vectors.dimension, given=arm.given)
        except DriverFailed:
            driver.kill()
            raise
        return driver


def answers(bench: Bench, arm: Arm, dataset: Dataset) -> dict[str, list[str]]:
    """Return the ids found by each question, kept in the work folder so a run can continue."""
    if not (found := earlier_answers(bench.work, arm, dataset)):
        found = {
            query: ids
            for scope in scopes(dataset)
            for query, ids in _ask(bench, arm, dataset, scope)
        }
        kept = _kept(bench.work, arm, dataset)
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(found), encoding="utf-8")
    return found


def earlier_answers(work: Path, arm: Arm, dataset: Dataset) -> dict[str, list[str]]:
    kept = _kept(work, arm, dataset)
    found: dict[str, list[str]] = (
        json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else {}
    )
    return found


def _kept(work: Path, arm: Arm, dataset: Dataset) -> Path:
    return work / "answers" / f"{dataset.name}-{dataset.fingerprint[:12]}-{arm.name}.json"


def scopes(dataset: Dataset) -> list[str | None]:
    return list(dict.fromkeys(document.scope for document in dataset.documents))


def _ask(
    bench: Bench, arm: Arm, dataset: Dataset, scope: str | None
) -> Iterator[tuple[str, list[str]]]:
    store = bench.work / "stores" / arm.name / f"{dataset.name}-{scope}"
    shutil.rmtree(store, ignore_errors=True)
    queries = [query for query in dataset.queries if query.scope == scope]
    vectors = bench.vectors.packed([query.text for query in queries])
    with bench.driver(arm, store) as driver:
        add(driver, bench.vectors, [one for one in dataset.documents if one.scope == scope])
        for query, vector in zip(queries, vectors, strict=True):
            yield query.id, driver.ask("search", text=query.text, vector=vector, count=COUNT)["ids"]
        driver.ask("close")
    shutil.rmtree(store)


def add(driver: Driver, vectors: KeptVectors, documents: Sequence[Document]) -> float:
    """Store in batches and return the product's own seconds."""
    seconds = 0.0
    for start in range(0, len(documents), AT_ONCE):
        seconds += driver.ask(
            "add", documents=messages(vectors, documents[start : start + AT_ONCE])
        )["seconds"]
    return seconds + float(driver.ask("finish")["seconds"])


def messages(vectors: KeptVectors, documents: Sequence[Document]) -> list[dict[str, str]]:
    texts = [text_of(one) for one in documents]
    return [
        {"id": one.id, "text": text, "vector": vector}
        for one, text, vector in zip(documents, texts, vectors.packed(texts), strict=True)
    ]


def measured(dataset: Dataset, asked: Mapping[str, Sequence[str]]) -> Measured:
    """Measure. A document that appears twice, as two parts, counts where it came first."""
    run: Run = {
        query: [(id, -float(rank)) for rank, id in enumerate(dict.fromkeys(ids))]
        for query, ids in asked.items()
    }
    return measure(dataset, run, MEASURES)


def compared(base: Measured, other: Measured) -> dict[str, dict[str, float]]:
    """Return the gains over the base, with paired bootstrap intervals."""
    found = paired(base.per_query, other.per_query)
    return {
        one.measure: {"difference": one.difference, "low": one.low, "high": one.high}
        for one in found
    }


def figures(
    dataset: Dataset, asked: Mapping[str, Mapping[str, Sequence[str]]], base: str
) -> dict[str, Any]:
    """Return per arm means, differences, and how many questions found too few hits."""
    by_arm = {name: measured(dataset, found) for name, found in asked.items()}
    return {
        name: {
            "means": dict(value.overall),
            "against": {} if name == base else compared(by_arm[base], value),
            "short_answers": sum(len(ids) < COUNT for ids in asked[name].values()),
        }
        for name, value in by_arm.items()
    }
