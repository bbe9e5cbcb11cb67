"""What a recipe achieves on the probes, asked of the user's own store through the real read path."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence

from trivet.contract import Recall, check
from trivet.lab.dataset_types import Dataset, Document, Judgement, Query
from trivet.lab.gate import JUDGED_BY
from trivet.lab.legs import CachedLegs
from trivet.lab.measures import Measured, measure
from trivet.lab.tune.probes import Probe
from trivet.memory.engine import Engine
from trivet.memory.recall import Stopwatch, decide

# As deep as any measure of the gate looks, and what an agent gets.
DEPTH = 10
# Where the plan's estimate is taken from.
TIMED = 10

Progress = Callable[[int], None]


class Scores:
    """Measures each recipe once, over all probes; legs are retrieved once for each way of retrieving."""

    def __init__(self, engine: Engine, probes: Sequence[Probe], progress: Progress | None = None) -> None:
        self.probes = tuple(probes)
        self.progress = progress
        self._engine = engine
        self._legs = CachedLegs()
        self._questions = _dataset(probes, [memory.id for memory in engine.store.memories.everything()])
        self._measured: dict[str, Measured] = {}

    def of(self, recipe: str) -> Measured:
        if recipe not in self._measured:
            run = {probe.id: self._ranked(probe.query, recipe) for probe in self.probes}
            self._measured[recipe] = measure(self._questions, run, JUDGED_BY)
        return self._measured[recipe]

    @property
    def recipes(self) -> int:
        return len(self._measured)

    def seconds_each(self, recipe: str) -> float:
        """How long one recipe takes over all probes, told from a few."""
        few = self.probes[:TIMED]
        for probe in few:
            self._ask(probe.query, recipe)  # fills the legs, which all recipes share
        started = time.perf_counter()
        for probe in few:
            self._ask(probe.query, recipe)
        return (time.perf_counter() - started) / max(len(few), 1) * len(self.probes)

    def _ranked(self, query: str, recipe: str) -> list[tuple[str, float]]:
        ids = self._ask(query, recipe)
        if self.progress is not None:
            self.progress(1)
        return [(id, -float(rank)) for rank, id in enumerate(ids)]

    def _ask(self, query: str, recipe: str) -> list[str]:
        request = check(Recall, {"query": query, "recipe": recipe, "limit": DEPTH, "collapse": False})
        decision = decide(self._engine, request, Stopwatch(), self._legs.retrieve)
        return [hit.memory.id for hit in decision.hits]


def _dataset(probes: Sequence[Probe], ids: Collection[str]) -> Dataset:
    """The probes as the lab's measures take them. Only the ids of documents count, so their texts stay in the store."""
    return Dataset(
        name="probes",
        documents=tuple(Document(id=id, text="(in the store)") for id in ids),
        queries=tuple(Query(id=probe.id, text=probe.query, stratum=probe.kind) for probe in probes),
        judgements=tuple(
            Judgement(query=probe.id, document=id, grade=grade)
            for probe in probes
            for id, grade in probe.grades.items()
        ),
    )
