"""Federation with another Trivet: a store on this machine, or a server."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from trivet.contract import RecallRequest, check
from trivet.errors import TrivetError
from trivet.memory.engine import Engine, open_engine
from trivet.search.systems.messages import RawHit, SystemFailed, SystemQuery
from trivet.settings import Settings
from trivet.settings.locations import is_file, is_server
from trivet.settings.systems import ExternalSystem
from trivet.types import Answer, Hit

if TYPE_CHECKING:
    from trivet.memory.answer.decision import Decision

# Passed in, because memory/recall.py imports this package.
RecallWithDecision = Callable[..., "tuple[Answer, Decision]"]
# The largest limit of a recall.
MAX_HITS = 100


class OtherTrivet:
    def __init__(
        self, settings: Settings, system: ExternalSystem, recall_with_decision: RecallWithDecision
    ) -> None:
        self._recall_with_decision = recall_with_decision
        self._settings = msgspec.structs.replace(
            settings,
            path=system.trivet,
            key=os.environ.get(system.key_env, "") if system.key_env else "",
            answer_time_limit_ms=system.time_limit_ms,
            leg_time_limit_ms=min(settings.leg_time_limit_ms, system.time_limit_ms),
            federation={},  # two stores that ask each other would never finish
            recipe="default",
            rerank="off",
            relevance_at_least=None,
            expand=False,
            background=False,
        )
        self._engine: Engine | None = None
        self._guard = threading.Lock()

    def ask(self, system: ExternalSystem, asked: SystemQuery, end: float) -> Iterable[RawHit]:
        request = check(
            RecallRequest, {"query": asked.query, "limit": min(system.fetch_k, MAX_HITS)}
        )
        try:
            answer = (
                self._over_http(request)
                if is_server(self._settings.path)
                else self._recall_with_decision(self._opened(), request)[0]
            )
        except TrivetError as error:
            raise SystemFailed(f"it refused ({type(error).__name__})", str(error)) from None
        return [_raw(hit) for hit in answer.hits]

    def close(self) -> None:
        with self._guard:
            if self._engine is not None:
                self._engine.close()
                self._engine = None

    def _opened(self) -> Engine:
        # Creating a missing store would hide an error in the settings.
        with self._guard:
            if self._engine is None:
                path = self._settings.path
                if is_file(path) and not Path(path).expanduser().exists():
                    raise SystemFailed(f"there is no store at {path}")
                self._engine = open_engine(self._settings)
            return self._engine

    def _over_http(self, request: RecallRequest) -> Answer:
        from trivet.client.connection import Connection

        connection = Connection(self._settings)
        try:
            return connection.perform(request)
        finally:
            connection.close()


def _raw(hit: Hit) -> RawHit:
    """Convert a hit; its source, which stores have in common, becomes its id."""
    source = hit.memory.source
    return {
        "id": source.uri if source else hit.id,
        "line": source.start_line if source else None,
        "score": hit.score,
        "text": hit.passage,
        "title": hit.memory.title,
    }
