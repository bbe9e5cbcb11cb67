"""What the writers were told: which write was acknowledged, refused, or left open, by the subject it is about."""

from __future__ import annotations

import threading
from collections import Counter, deque
from dataclasses import dataclass, field

import msgspec


class Said(msgspec.Struct, frozen=True):
    """How a subject stands after an act: its text if it is active, else that it is deleted or gone for good."""

    text: str
    state: str


GONE = Said("", "purged")


class Told(msgspec.Struct, frozen=True):
    """A writer's word: `will` before a call; after it `did`, `refused` (nothing written), `unknown` or `wrong`."""

    what: str
    subject: str
    said: Said
    detail: str = ""


@dataclass
class Fate:
    acknowledged: Said = GONE
    # Acts that may have been done: under way when their writer died, or answered by an error that leaves it open.
    possible: list[Said] = field(default_factory=list)
    acts: int = 0
    # What the last error said.
    error: str = ""

    def allows(self, found: Said) -> bool:
        return found in (self.acknowledged, *self.possible)


class Ledger:
    """Filled by the threads that listen to writers; read when all of them have ended."""

    def __init__(self) -> None:
        self.fates: dict[str, Fate] = {}
        self.purged: list[str] = []
        self.counts: Counter[str] = Counter()
        self.wrong: list[str] = []
        # What was said of writes whose fate is open, the latest.
        self.open: deque[str] = deque(maxlen=5)
        self._touched: set[str] = set()
        self._changed = threading.Condition()

    def note(self, told: Told) -> None:
        with self._changed:
            self.counts[told.what] += 1
            self._touched.add(told.subject)
            fate = self.fates.setdefault(told.subject, Fate())
            fate.error = told.detail or fate.error
            match told.what:
                case "will":
                    fate.possible.append(told.said)
                case "did":
                    fate.acknowledged, fate.possible, fate.acts = told.said, [], fate.acts + 1
                case "refused":
                    fate.possible.remove(told.said)
                case "unknown":
                    self.open.append(told.detail)
                case "wrong":
                    self.wrong.append(f"{told.subject}: {told.detail}")
            self._changed.notify_all()

    def wait(self, more: int, seconds: float, what: str = "did") -> bool:
        """Until so many more acts were acknowledged, or had another end; False where that takes too long."""
        with self._changed:
            aim = self.counts[what] + more
            return self._changed.wait_for(lambda: self.counts[what] >= aim, seconds)

    def touched(self) -> dict[str, Fate]:
        """What was written about since it was last asked."""
        with self._changed:
            subjects, self._touched = self._touched, set()
            return {subject: self.fates[subject] for subject in sorted(subjects)}

    def settle(self, subject: str, found: Said, revisions: int) -> None:
        """What was open is known now, since no writer is left that could still be at it."""
        fate = self.fates[subject]
        if found == GONE:
            if fate.acts:
                self.purged.append(subject)
            del self.fates[subject]
        else:
            self.fates[subject] = Fate(found, [], revisions)
