"""What a tuning will do, told before it does it; and doing it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

import msgspec

from trivet.errors import InvalidInput
from trivet.lab.requirements import MEASURING, need
from trivet.lab.tune.feedback import all_feedback, feedback_probes
from trivet.lab.tune.paraphrase import Paraphrased, paraphrase
from trivet.lab.tune.probes import Probe, make_probes, relatives_of, sample, usable_memories
from trivet.lab.tune.rules import commonness
from trivet.lab.tune.scores import Scores
from trivet.lab.tune.search import Space
from trivet.lab.tune.validate import FOLDS, Validation, cross_validate
from trivet.memory.engine import Engine
from trivet.memory.upkeep import stats
from trivet.models.chat import Chat
from trivet.search.legs.registry import legs
from trivet.search.recipe import Recipe

# Two probes each make some four hundred, which tell differences of two or three points from chance.
MOST_MEMORIES = 200

Progress = Callable[[int], None]


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """`skipped` says what gave no probe and why; `candidates` and `seconds` are the most it may take."""

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
    """One tuning of one store: `plan` is ready when it is made, `run` measures. Nothing is written."""

    def __init__(
        self,
        engine: Engine,
        *,
        most_memories: int = MOST_MEMORIES,
        seed: int = 0,
        chat: Chat | None = None,
        space: Space | None = None,
        asking: Progress | None = None,
    ) -> None:
        need(*MEASURING)
        self._present = _runnable(engine)
        self._space = space or Space()
        usable = {memory.id: memory for memory in usable_memories(engine)}
        chosen = sample(list(usable.values()), most_memories, seed)
        relatives = relatives_of(engine, chosen, usable)
        probes = make_probes(chosen, relatives, commonness(usable.values()), seed)
        given = feedback_probes(all_feedback(engine), usable)
        written = paraphrase(chat, chosen, relatives, asking) if chat else Paraphrased((), {})
        dumb = len(chosen) - len({probe.memory for probe in probes})
        self._scores = Scores(engine, [*probes, *written.probes, *given.probes])
        candidates = self._space.most(self._present, FOLDS + 1)
        self.plan = Plan(
            memories=len(chosen),
            usable=len(usable),
            probes=self._scores.probes,
            skipped={
                **({"memories too short for a probe": dumb} if dumb else {}),
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
        return cross_validate(self._scores, self._present, self._space, self.plan.seed, self.plan.folds)


def _runnable(engine: Engine) -> Recipe:
    """The present recipe; without an embedder, with the legs that need none. A store half embedded would mislead."""
    if not engine.embedding.enabled:
        able = tuple(leg.name for leg in legs() if not leg.needs_embedder and not leg.after_others)
        return msgspec.structs.replace(engine.recipe, legs=able)
    waiting = stats(engine).not_embedded
    if waiting:
        raise InvalidInput(
            f"{waiting} memories are not embedded yet, so the dense leg would look worse than it is. "
            "Run `trivet reindex` first; `trivet doctor` says what is wrong if they stay."
        )
    return engine.recipe
