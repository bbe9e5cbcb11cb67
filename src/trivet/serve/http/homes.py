"""Finds the database that a tenant lives in, where a server has several cells.

The databases themselves have the say: the row of a tenant in its old home names the new one. The directory tells where
to begin if the tenant never was in this server's own database; a stale entry costs a step more and does no harm.
"""

from __future__ import annotations

import logging
import threading
import time

import msgspec

from trivet.errors import Moving, StoreError
from trivet.settings import Settings
from trivet.settings.address import database_of
from trivet.store.servers import DatabaseServer, Standing, open_server

logger = logging.getLogger("trivet.serve.http")

# From one cell to the next; more than this is a circle that a move in this moment makes.
MOST_STEPS = 8
# A cell that cannot be reached is not tried again before: whoever asks for it would hold a thread meanwhile.
PAUSE_SECONDS = 5.0

UNKNOWN_CELL = "The tenant lives in a database that the server does not know. Its setting `cells` must name it."
UNREACHABLE = "The database that the tenant lives in cannot be reached just now. Nothing was done; try again."
ON_ITS_WAY = "The tenant is just being moved. Nothing was done; try again in a moment."


class Homes:
    def __init__(self, settings: Settings, first: DatabaseServer) -> None:
        self._settings = settings
        self._first = first
        self._open: dict[str, DatabaseServer] = {settings.path: first}
        self._failed: dict[str, float] = {}
        self._lock = threading.Lock()

    def of(self, tenant: str) -> DatabaseServer | None:
        """The database it is at home in; None where nobody knows it. Each database has a first tenant of its own."""
        here: DatabaseServer = self._first
        by: Standing | None = None  # what the cell before said
        for _ in range(MOST_STEPS):
            standing = here.standing(tenant)
            if standing is None:
                asks = here is self._first and tenant != self._settings.tenant
                listed = self._first.listed(tenant) if asks else None
                if listed is None or listed[0] == here.cell:
                    return None
                here = self._cell(*listed)
            elif standing.standing in ("home", "frozen"):
                return here
            elif standing.standing == "arriving" and by is not None and by.move == standing.move:
                here.activate(tenant, standing.move)  # who moved it was stopped after the switch
                return here
            else:
                by = standing if standing.standing == "moved" else None
                here = self._cell(standing.cell, standing.address)
        raise Moving(ON_ITS_WAY)

    def names(self) -> list[str]:
        """Of the databases that are open, as errors name them."""
        return [one for server in tuple(self._open.values()) for one in (server.name, server.address)]

    def close(self) -> None:
        """All but the first, which is not its own."""
        with self._lock:
            for server in self._open.values():
                if server is not self._first:
                    server.close()
            self._open = {self._settings.path: self._first}

    def _cell(self, cell: str, address: str) -> DatabaseServer:
        """One of those that the settings name: a row in a database cannot send this server anywhere else."""
        for server in tuple(self._open.values()):
            if server.cell == cell:
                return server
        with self._lock:  # whoever waits here wants a cell that is not open, too
            for url in self._settings.cells:
                opened = self._open.get(url) or self._opened(url)
                if opened is not None and opened.cell == cell:
                    return opened
            if self._failed:
                raise StoreError(UNREACHABLE)
        logger.error("A tenant lives at %s, which the setting `cells` does not name.", address)
        raise StoreError(UNKNOWN_CELL)

    def _opened(self, url: str) -> DatabaseServer | None:
        if time.monotonic() < self._failed.get(url, 0.0):
            return None
        settings = msgspec.structs.replace(self._settings, path=url, replica_urls=())
        kind = database_of(url)
        try:
            if kind is None:
                raise StoreError("one of the setting `cells` is not the address of a PostgreSQL database")
            self._open[url] = open_server(settings, kind)
        except StoreError as error:
            logger.error("A cell cannot be opened: %s", error)
            self._failed[url] = time.monotonic() + PAUSE_SECONDS
            return None
        self._failed.pop(url, None)
        return self._open[url]
