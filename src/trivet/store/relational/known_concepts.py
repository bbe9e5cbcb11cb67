"""Which concepts there are for a caller: those that memories within the filter mention, surely enough to be names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from trivet.graph.walk import SURE_PER_MAYBE
from trivet.store.relational.database import Database
from trivet.store.relational.rows import as_json, filter_parameters
from trivet.types import Concept, ConceptSort, Filter

# A concept found in code or by a careless pen may have been written in dozens of ways.
MOST_ALIASES = 10

_ORDERS: dict[ConceptSort, str] = {"memories": "k.held DESC, c.name", "name": "c.name"}

Parameters = Mapping[str, Any]


class Known(NamedTuple):
    key: int
    name: str
    held: int  # by how many visible memories


class KnownConcepts:
    def __init__(self, database: Database) -> None:
        self._database = database

    def select(
        self,
        parameters: Parameters,
        among: Sequence[int] | None = None,
        contains: str | None = None,
        kind: str | None = None,
        sort: ConceptSort = "memories",
    ) -> list[Known]:
        """All of them, or those among the given ones, in order."""
        fitting = {"contains": contains, "kind": kind}
        with self._database.errors():
            connection = self._database.read()
            if among is None and (contains or kind):
                among = [row[0] for row in connection.execute(connection.sql.within("concepts", "candidates"), fitting)]
            values = {**parameters, **fitting, "sure_per_maybe": SURE_PER_MAYBE, "concepts": as_json(among or ())}
            sql = connection.sql.within("concepts", "known" if among is None else "known_among", _ORDERS[sort])
            return [Known(*row) for row in connection.execute(sql, values)]

    def spelled_out(self, known: Sequence[Known], parameters: Parameters) -> dict[int, Concept]:
        """As they are usually written by the memories that may be seen."""
        wanted = {**parameters, "concepts": as_json(one.key for one in known)}
        labels: dict[int, Counter[str]] = {one.key: Counter() for one in known}
        kinds: dict[int, Counter[str]] = {one.key: Counter() for one in known}
        with self._database.errors():
            connection = self._database.read()
            for key, label, kind, count in connection.execute(connection.sql.within("concepts", "writings"), wanted):
                labels[key][label] += count
                kinds[key][kind] += count
        # One whose last memory went between the two queries has no label, and is gone.
        return {one.key: _concept(one, labels[one.key], kinds[one.key]) for one in known if labels[one.key]}


def timeless(filter: Filter) -> dict[str, Any]:
    """The filter without its time: a concept is there whenever it is spoken of, and a statement has its own times."""
    return {**filter_parameters(filter), "as_of": None}


def _concept(known: Known, labels: Counter[str], kinds: Counter[str]) -> Concept:
    usual, *others = _by_frequency(labels)
    return Concept(
        name=known.name,
        label=usual,
        aliases=tuple(others[:MOST_ALIASES]),
        kind=_by_frequency(kinds)[0],
        memories=known.held,
    )


def _by_frequency(counts: Counter[str]) -> list[str]:
    return sorted(counts, key=lambda text: (-counts[text], text))
