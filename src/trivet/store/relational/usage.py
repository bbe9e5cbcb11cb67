"""How often memories were shown, and what was said of them. It is counted beside them and changes no rank."""

from __future__ import annotations

from collections.abc import Mapping

from trivet.clock import moment_or_none, now
from trivet.errors import NotFound
from trivet.memory_fields import as_json
from trivet.store.records import Judged
from trivet.store.relational.database import Part
from trivet.types import LOCAL, Usage, Usefulness


class UsageCounts(Part):
    file = "usage"

    def note(self, shown: Mapping[str, int]) -> None:
        """So many more times each. A memory that is gone by now is left out."""
        moment = now()
        with self._database.take() as connection:
            connection.execute(self._sql["begin"], {"at": moment})
            counts = {"ids": as_json(shown), "times": as_json(shown.values())}
            connection.execute(self._sql["note"], {**counts, "at": moment})

    def since(self) -> str | None:
        """From when on it is counted."""
        row = self._row("since")
        return str(row[0]) if row else None

    def of(self, id: str) -> Usage:
        """The counts of a memory; of feedback only what the viewer said."""
        row = self._row("of", id=id, viewer=self._database.viewer)
        if row is None:
            raise NotFound(f"There is no memory {id} in this store. `list` shows the ids there are.")
        return Usage(
            id=id,
            shown=row["shown"] or 0,
            last_shown=moment_or_none(row["last_shown"]),
            useful=row["useful"],
            not_useful=row["not_useful"],
        )

    def all(self) -> tuple[Usage, ...]:
        """The counts of every memory that was ever shown or spoken of, whoever spoke: for the owner of the store."""
        return tuple(
            Usage(
                id=row["id"],
                shown=row["shown"],
                last_shown=moment_or_none(row["last_shown"]),
                useful=row["useful"],
                not_useful=row["not_useful"],
            )
            for row in self._rows("all")
        )

    def shown(self) -> frozenset[str]:
        """The memories that were shown at least once."""
        return frozenset(row[0] for row in self._rows("shown"))

    def judge(self, id: str, query: str, verdict: Usefulness) -> None:
        """The last word on the same memory and query counts. Laptops of the same user are told."""
        values = {"id": id, "actor": self._database.viewer or LOCAL, "query": query, "verdict": verdict, "at": now()}
        with self._database.write() as connection:
            row = connection.execute(connection.sql("memories")["by_id"], {"id": id}).fetchone()
            if row is not None:
                connection.execute(self._sql["judge"], values)
                connection.note_change(row["key"])

    def judged(self) -> tuple[Judged, ...]:
        """What was said of memories where the query was named."""
        return tuple(Judged(*row) for row in self._rows("judged"))
