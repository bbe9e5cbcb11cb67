"""From the name of a reranker to the reranker. Importing this is cheap: each kind is imported when it is asked for."""

from __future__ import annotations

import threading

from trivet.errors import InvalidInput
from trivet.models.kinds import known
from trivet.models.rerank.base import Reranker
from trivet.models.rerank.spec import AUTO, KINDS, OFF, PRESETS, RerankSpec


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
        spec = RerankSpec(kind) if kind in PRESETS else self.setting
        name = PRESETS[kind].folder if kind in PRESETS else str(spec)  # `auto` and `best` are the same model
        with self._lock:
            if name not in self._loaded:
                self._loaded[name] = load(spec)
            return self._loaded[name]

    def note(self, answered: bool) -> None:
        with self._lock:
            self.asked += 1
            self.failed += not answered
