"""From the name of a reranker to the reranker. Importing this is cheap: each kind is imported when it is asked for."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from trivet.errors import InvalidInput
from trivet.models.kinds import known
from trivet.models.rerank.base import Reranker
from trivet.models.rerank.spec import AUTO, KINDS, OFF, PRESETS, RerankSpec

if TYPE_CHECKING:
    from trivet.breaker import Breaker


def load(spec: RerankSpec) -> Reranker:
    """The reranker of that name, which must not be `off`. Opens no model and calls no one yet."""
    kind = KINDS.get(spec.kind)
    if kind is None or not kind.opens:
        raise InvalidInput(f"unknown reranker {spec.kind!r}; known are: {known(KINDS)}")
    given = {"nothing": (), "path": (spec.name,)}.get(kind.follows, (spec,))
    reranker: Reranker = kind.opener()(*given)
    return reranker


class Rerankers:
    """The rerankers of a process, each loaded when it is first asked for and shared by all who ask.

    `own` is the one that the settings name, if they name one beside the bundled presets.
    """

    def __init__(self, setting: RerankSpec) -> None:
        self.setting = setting
        self._loaded: dict[str, Reranker] = {}
        self._lock = threading.Lock()
        self.asked = 0
        self.failed = 0
        if setting.kind not in (OFF, AUTO):
            self.named(setting.kind)  # a setting that cannot work is told when the store is opened

    def named(self, kind: str) -> Reranker:
        """`auto`, `fast`, `best`, or anything else for the one of the settings."""
        name = self._name(kind)
        with self._lock:
            if name not in self._loaded:
                self._loaded[name] = load(RerankSpec(kind) if kind in PRESETS else self.setting)
            return self._loaded[name]

    def resting(self, kind: str) -> str | None:
        """Why the reranker of this name is not asked now; None if it is."""
        breaker = self._breaker(kind)
        return breaker.refusal() if breaker else None

    def late(self, kind: str) -> None:
        """A recall has waited for it as long as it may."""
        breaker = self._breaker(kind)
        if breaker:
            breaker.late()

    def _breaker(self, kind: str) -> Breaker | None:
        """None for a model that runs inside this process, or was not asked yet."""
        found: Breaker | None = getattr(self._loaded.get(self._name(kind)), "breaker", None)
        return found

    def _name(self, kind: str) -> str:
        """`auto` and `best` are the same model."""
        return PRESETS[kind].folder if kind in PRESETS else str(self.setting)

    def note(self, answered: bool) -> None:
        with self._lock:
            self.asked += 1
            self.failed += not answered
