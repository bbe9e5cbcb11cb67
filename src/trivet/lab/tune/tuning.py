"""A tuning: its plan, its search, and cross-validation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random
from statistics import fmean

import msgspec

from trivet.errors import InvalidInput
from trivet.lab.measure.comparison import Comparison, compare, paired
from trivet.lab.measure.complete_retrieval import measuring_engine
from trivet.lab.measure.gate import GATE_MEASURES, Verdict, gate
from trivet.lab.measure.measures import Measured
from trivet.lab.optional_packages import MEASURING, need
from trivet.lab.tune.probes import (
    Paraphrased,
    Probe,
    all_feedback,
    feedback_probes,
    make_probes,
    paraphrase,
    relatives_of,
    sample,
    usable_memories,
)
from trivet.lab.tune.query_rules import document_frequencies
from trivet.lab.tune.search import OBJECTIVE, Scores, SearchSpace, search
from trivet.memory.admin.maintenance import stats
from trivet.memory.engine import Engine
from trivet.models.chat import Chat
from trivet.search.legs.registry import legs
from trivet.search.recipe import Recipe

FOLDS = 5
# Measures in which no kind of probe may lose; more of them would only repeat these.
GUARDED = (OBJECTIVE, "MRR", "any@5")

# The share of probes that may fail: rules make them, and a few are unfair to any recipe.
PROBES_MAY_BREAK = 0.02


class Gain(msgspec.Struct, frozen=True, kw_only=True):
    measure: str
    kind: str | None
    count: int
    present: float
    candidate: float
    difference: float
    low: float
    high: float


class Validation(msgspec.Struct, frozen=True, kw_only=True):
    """The expected effect on unseen probes; `recipe` is the choice on all."""

    recipe: str
    by_fold: tuple[str, ...]
    overall: tuple[Gain, ...]
    by_kind: tuple[Gain, ...]
    gate: Verdict
    losing: tuple[str, ...]

    @property
    def passed(self) -> bool:
        return self.gate.passed and not self.losing


def cross_validate(
    scores: Scores, present: Recipe, space: SearchSpace, seed: int, folds: int = FOLDS
) -> Validation:
    fold_of = assign_folds(scores.probes, folds, seed)
    choices = []
    for fold in range(folds):
        training = [probe for probe in scores.probes if fold_of[probe.group] != fold]
        choices.append(search(scores, ids_by_kind(training), present, space))
    base = scores.of(str(present))
    held_out = {probe.id: scores.of(str(choices[fold_of[probe.group]])) for probe in scores.probes}
    candidate = pooled(base, held_out)
    final = search(scores, ids_by_kind(scores.probes), present, space)
    return judged(
        base, candidate, scores.probes, str(final), tuple(str(choice) for choice in choices)
    )


def judged(
    base: Measured,
    candidate: Measured,
    probes: Sequence[Probe],
    recipe: str,
    by_fold: Sequence[str] = (),
) -> Validation:
    by_stratum = compare(base, candidate, GUARDED).by_stratum
    gains = [one for group in by_stratum.values() for one in group.values()]
    return Validation(
        recipe=recipe,
        by_fold=tuple(by_fold),
        overall=tuple(
            _gain(one) for one in paired(_by_memory(base, probes), _by_memory(candidate, probes))
        ),
        by_kind=tuple(_gain(one) for one in gains),
        gate=gate(base, candidate, may_break=PROBES_MAY_BREAK),
        losing=tuple(
            f"{one.stratum}: {one.measure} {one.difference:+.3f}" for one in gains if one.high < 0
        ),
    )


def assign_folds(probes: Sequence[Probe], folds: int, seed: int) -> dict[str, int]:
    """Return folds by group: a memory and its near-duplicates stay together."""
    groups = sorted({probe.group for probe in probes})
    Random(seed + 2).shuffle(groups)
    return {group: place % folds for place, group in enumerate(groups)}


def ids_by_kind(probes: Iterable[Probe]) -> dict[str, list[str]]:
    kinds: dict[str, list[str]] = {}
    for probe in probes:
        kinds.setdefault(probe.kind, []).append(probe.id)
    return kinds


def pooled(base: Measured, held_out: Mapping[str, Measured]) -> Measured:
    """Take each probe's values from the run that held it out."""
    per_query = {
        name: {id: held_out[id].per_query[name][id] for id in values}
        for name, values in base.per_query.items()
    }
    return Measured(
        per_query=per_query,
        overall={name: fmean(values.values()) for name, values in per_query.items()},
        by_stratum={
            kind: {name: fmean(values[id] for id in ids) for name, values in per_query.items()}
            for kind, ids in base.strata.items()
        },
        strata=base.strata,
    )


def _by_memory(measured: Measured, probes: Sequence[Probe]) -> dict[str, dict[str, float]]:
    """Average by memory: its probes are not independent."""
    groups: dict[str, list[str]] = {}
    for probe in probes:
        groups.setdefault(probe.group, []).append(probe.id)
    return {
        name: {
            group: fmean(measured.per_query[name][id] for id in ids)
            for group, ids in groups.items()
        }
        for name in GATE_MEASURES
    }


def _gain(one: Comparison) -> Gain:
    return Gain(
        measure=one.measure,
        kind=one.stratum,
        count=one.queries,
        present=one.base,
        candidate=one.candidate,
        difference=one.difference,
        low=one.low,
        high=one.high,
    )


# Two probes each make about 400, which separate differences of 2 to 3 points from chance.
MOST_MEMORIES = 200

Progress = Callable[[int], None]


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """A plan whose `candidates` and `seconds` are upper limits; `skipped` counts reasons."""

    memories: int
    usable: int
    probes: tuple[Probe, ...]
    skipped: Mapping[str, int]
    present: str
    candidates: int
    seconds: float
    folds: int
    seed: int

    @property
    def kinds(self) -> dict[str, int]:
        return dict(sorted(Counter(probe.kind for probe in self.probes).items()))


class Tuning:
    """One tuning of a store, which writes nothing."""

    def __init__(
        self,
        engine: Engine,
        *,
        most_memories: int = MOST_MEMORIES,
        seed: int = 0,
        chat: Chat | None = None,
        space: SearchSpace | None = None,
        asking: Progress | None = None,
    ) -> None:
        need(*MEASURING)
        engine = measuring_engine(engine)
        self._present = _runnable(engine)
        self._space = space or SearchSpace()
        usable = {memory.id: memory for memory in usable_memories(engine)}
        chosen = sample(list(usable.values()), most_memories, seed)
        relatives = relatives_of(engine, chosen, usable)
        probes = make_probes(chosen, relatives, document_frequencies(usable.values()), seed)
        given = feedback_probes(all_feedback(engine), usable)
        written = paraphrase(chat, chosen, relatives, asking) if chat else Paraphrased((), {})
        without_probe = len(chosen) - len({probe.memory for probe in probes})
        self._scores = Scores(engine, [*probes, *written.probes, *given.probes])
        candidates = self._space.most(self._present, FOLDS + 1)
        self.plan = Plan(
            memories=len(chosen),
            usable=len(usable),
            probes=self._scores.probes,
            skipped={
                **({"memories too short for a probe": without_probe} if without_probe else {}),
                **{f"paraphrase: {reason}": count for reason, count in written.skipped.items()},
                **{f"feedback: {reason}": count for reason, count in given.skipped.items()},
            },
            present=str(self._present),
            candidates=candidates,
            seconds=self._scores.seconds_each(str(self._present)) * candidates,
            folds=FOLDS,
            seed=seed,
        )

    def run(self, progress: Progress | None = None) -> Validation:
        self._scores.progress = progress
        return cross_validate(
            self._scores, self._present, self._space, self.plan.seed, self.plan.folds
        )


def _runnable(engine: Engine) -> Recipe:
    """Return the present recipe; without an embedder, only with legs that need none.

    Refuse a store that is not fully indexed: its results would mislead.
    """
    if unread := engine.store.graph.backlog("rules").waiting:
        raise InvalidInput(
            f"{unread} memories are not read for the graph yet, so the graph leg would look worse "
            "than it is. Run `trivet embed` first. If they stay, run `trivet doctor`."
        )
    if not engine.embedding.enabled:
        able = tuple(leg.name for leg in legs() if not leg.needs_embedder and not leg.after_others)
        return msgspec.structs.replace(engine.recipe, legs=able)
    waiting = stats(engine).not_embedded
    if waiting:
        raise InvalidInput(
            f"{waiting} memories are not embedded yet, so the dense leg would look worse than it "
            "is. Run `trivet reindex` first. If they stay, run `trivet doctor`."
        )
    return engine.recipe
