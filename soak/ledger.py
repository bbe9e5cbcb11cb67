"""Which writes were acknowledged, refused or left open, by subject."""

from __future__ import annotations

import threading
from collections import Counter, deque
from dataclasses import dataclass, field

import msgspec


class Said(msgspec.Struct, frozen=True):
    """A subject's state after an act: its text, or deleted, or purged."""

    text: str
    state: str


GONE = Said("", "purged")


class Told(msgspec.Struct, frozen=True):
    """A message: `will` before a call, then `did`, `refused`, `unknown` or `wrong`.

    `refused` means that nothing was written.
    """

    what: str
    subject: str
    said: Said
    detail: str = ""


@dataclass
class Fate:
    acknowledged: Said = GONE
    # Acts that may have been done: under way when the writer died, or ended in an open error.
    possible: list[Said] = field(default_factory=list)
    acts: int = 0
    # Text of the last error.
    error: str = ""

    def allows(self, found: Said) -> bool:
        return found in (self.acknowledged, *self.possible)


class Ledger:
    """A record filled by listener threads; read it after they have ended."""

    def __init__(self) -> None:
        self.fates: dict[str, Fate] = {}
        self.purged: list[str] = []
        self.counts: Counter[str] = Counter()
        self.wrong: list[str] = []
        # Latest errors of open writes.
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
        """Wait for this many more acts with that end; return False on timeout."""
        with self._changed:
            aim = self.counts[what] + more
            return self._changed.wait_for(lambda: self.counts[what] >= aim, seconds)

    def touched(self) -> dict[str, Fate]:
        """Return the subjects written since the last call."""
        with self._changed:
            subjects, self._touched = self._touched, set()
            return {subject: self.fates[subject] for subject in sorted(subjects)}

    def settle(self, subject: str, found: Said, revisions: int) -> None:
        """Resolve open acts, since no writer is left."""
        fate = self.fates[subject]
        if found == GONE:
            if fate.acts:
                self.purged.append(subject)
            del self.fates[subject]
        else:
            self.fates[subject] = Fate(found, [], revisions)
