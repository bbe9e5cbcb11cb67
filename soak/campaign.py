"""Run the plan: a fault, then the invariants. Count everything and keep violated stores."""

from __future__ import annotations

import shutil
import tempfile
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any

from soak.injectors import Injector
from soak.invariants import check
from soak.plan import Chapter
from soak.world import Skipped, World, world

Figures = dict[str, Any]


class Campaign:
    def __init__(
        self, chosen: Mapping[str, Injector], writers: int, seconds: float, until: float | None
    ) -> None:
        self._chosen = chosen
        self._writers = writers
        self._seconds = seconds
        self._until = until
        self.counts: dict[str, Counter[str]] = defaultdict(Counter)
        self.checks: Counter[str] = Counter()
        self.skipped: dict[str, str] = {}
        self.violations: list[Figures] = []
        self.stores: Counter[str] = Counter()

    @property
    def over(self) -> bool:
        return self._until is not None and time.monotonic() > self._until

    def run(self, chapters: list[Chapter]) -> Iterator[Chapter]:
        """Yield each finished chapter, so the caller can write partial results."""
        for chapter in chapters:
            if self.over:
                return
            try:
                self._chapter(chapter)
            except Exception as error:  # noqa: BLE001
                self._violated(
                    "every round goes through",
                    "a round",
                    chapter,
                    [f"{type(error).__name__}: {error}"],
                )
                traceback.print_exc()
            yield chapter

    def _chapter(self, chapter: Chapter) -> None:
        with world(chapter.store, Random(chapter.seed), self._writers, self._seconds) as attacked:
            for name in chapter.rounds:
                if self.over or (
                    self._round(attacked, name) and self._look(attacked, chapter, name, False)
                ):
                    break
            self._look(attacked, chapter, "all of them", True)
            self.stores[chapter.store] += 1

    def _round(self, attacked: World, name: str) -> bool:
        before, started = attacked.ledger.counts.copy(), time.monotonic()
        try:
            own = self._chosen[name].inject(attacked)
        except Skipped as why:
            self.skipped[name] = str(why)
            return False
        told = attacked.ledger.counts - before
        unknown = (
            told["will"] - told["did"] - told["refused"]
        )  # Cut off, or answered by an error that leaves the outcome open.
        acts = {
            "writes acknowledged": told["did"],
            "refused": told["refused"],
            "fate unknown": unknown,
        }
        self.counts[name].update({"rounds": 1, **acts, **own})
        said = f"; last: {attacked.ledger.open[-1]}" if told["unknown"] else ""
        print(
            f"{name:18} {time.monotonic() - started:5.1f} s  {acts} {dict(own)}{said}", flush=True
        )
        return True

    def _look(self, attacked: World, chapter: Chapter, after: str, at_the_end: bool) -> bool:
        checked = check(attacked, at_the_end)
        self.checks.update(list(checked))
        violated = {invariant: found for invariant, found in checked.items() if found}
        for invariant, found in violated.items():
            self._violated(invariant, after, chapter, found)
        if violated:
            print(f"The store is kept: {_kept(attacked)}", flush=True)
        return bool(violated)

    def _violated(self, invariant: str, after: str, chapter: Chapter, found: list[str]) -> None:
        case = {
            "invariant": invariant,
            "after": after,
            "store": chapter.store,
            "chapter seed": chapter.seed,
        }
        self.violations.append({**case, "found": found[:10], "count": len(found)})
        print(f"VIOLATED: {invariant}, after {after}: {found[:3]}", flush=True)


def _kept(attacked: World) -> Path:
    target = Path(tempfile.mkdtemp(prefix="trivet-violated-"))
    for file in attacked.folder.glob("*.db*"):
        shutil.copy(file, target)
    return target
