"""How often memories were shown, and what was said of them. It is counted beside them and changes no rank."""

from __future__ import annotations

from collections.abc import Mapping

from trivet.clock import now
from trivet.errors import NotFound
from trivet.store.base import Judged
from trivet.store.relational.database import Database
from trivet.types import LOCAL, Usage, Usefulness


class RelationalUsage:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._sql = database.sql("usage")

    def note(self, shown: Mapping[str, int]) -> None:
        """So many more times each. A memory that is gone by now is nobody's loss."""
        moment = now()
        with self._database.take() as connection:
            connection.execute(self._sql["begin"], {"at": moment})
            for id, times in sorted(shown.items()):
                connection.execute(self._sql["note"], {"id": id, "times": times, "at": moment})

    def since(self) -> str | None:
        """From when on it is counted."""
        with self._database.errors():
            row = self._database.read().execute(self._sql["since"]).fetchone()
        return str(row[0]) if row else None

    def of(self, id: str) -> Usage:
        """The counts of a memory; of feedback only what the viewer said."""
        values = {"id": id, "viewer": self._database.viewer}
        with self._database.errors():
            row = self._database.read().execute(self._sql["of"], values).fetchone()
        if row is None:
            raise NotFound(f"There is no memory {id} in this store. `list` shows the ids there are.")
        return Usage(
            id=id,
            shown=row["shown"] or 0,
            last_shown=row["last_shown"],
            useful=row["useful"],
            not_useful=row["not_useful"],
        )

    def shown(self) -> frozenset[str]:
        """The memories that were shown at least once."""
        with self._database.errors():
            return frozenset(row[0] for row in self._database.read().execute(self._sql["shown"]).fetchall())

    def judge(self, id: str, query: str, verdict: Usefulness) -> None:
        """The last word on the same memory and query counts."""
        values = {"id": id, "actor": self._database.viewer or LOCAL, "query": query, "verdict": verdict, "at": now()}
        with self._database.take() as connection:
            connection.execute(self._sql["judge"], values)

    def judged(self) -> tuple[Judged, ...]:
        """What was said of memories where the query was named."""
        with self._database.errors():
            return tuple(Judged(*row) for row in self._database.read().execute(self._sql["judged"]).fetchall())
