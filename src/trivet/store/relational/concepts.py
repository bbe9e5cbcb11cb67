"""What people see of the graph: its concepts in pages, one by its name, and what lies around a node."""

from __future__ import annotations

from trivet.clock import now
from trivet.store.relational.database import Database
from trivet.store.relational.known_concepts import KnownConcepts, timeless
from trivet.store.relational.neighbourhood import Surveyor
from trivet.store.relational.rows import filter_parameters
from trivet.types import Concept, ConceptPage, ConceptSort, Filter, Memory, Neighbourhood


class RelationalConcepts:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._known = KnownConcepts(database)

    def page(
        self, filter: Filter, contains: str | None, kind: str | None, sort: ConceptSort, limit: int, offset: int
    ) -> ConceptPage:
        """`contains` is looked for in names, which are squeezed to letters and digits (graph/canonical.py)."""
        parameters = filter_parameters(filter, now())
        known = self._known.select(parameters, None, contains, kind, sort)
        shown = self._known.spelled_out(known[offset : offset + limit], parameters)
        return ConceptPage(concepts=tuple(shown.values()), total=len(known), offset=offset)

    def find(self, name: str, form: str, filter: Filter) -> Concept | None:
        """The concept of this name, or else the one most often written so, whenever that was."""
        with self._database.errors():
            values = {"name": name, "form": form}
            keys = [row[0] for row in self._database.read().execute(self._database.sql("concepts")["by_name"], values)]
        known = self._known.select(timeless(filter), keys)
        found = self._known.spelled_out(known, timeless(filter)).values()
        return min(found, key=lambda one: (one.name != name, -one.memories, one.name), default=None)

    def around(self, start: Memory | Concept, filter: Filter, depth: int, most: int) -> Neighbourhood:
        with self._database.snapshot() as connection:
            return Surveyor(connection, self._known, filter).survey(start, depth, most)
