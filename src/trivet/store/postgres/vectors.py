"""Vectors as pgvector's halfvec: searched in memory for most tenants, by HNSW for the largest."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from psycopg import sql

from trivet.common.clock import now
from trivet.errors import StoreError
from trivet.memory_fields import as_json
from trivet.store.postgres.database import Database
from trivet.store.records import Model
from trivet.store.relational.changes import Changes
from trivet.store.relational.ids import Ids
from trivet.store.relational.index.vector_index import (
    PassageRows,
    VectorCache,
    VectorIndex,
    check_dimension,
)
from trivet.store.relational.index.vector_matrix import bytes_per_passage
from trivet.store.relational.index.visibility import Visibility, filter_parameters
from trivet.types import Candidate, Filter

# Up to this many visible memories, a scan is as fast as the index.
EXACT_SCAN_MAX = 5_000
# Listing this many keys or fewer spares the database the filter.
MAX_LISTED_KEYS = 1_000
# pgvector's limit for halfvec.
MAX_HNSW_DIMENSIONS = 4_000
# The deviation of all scores relative to that of the best hundred or two.
OF_THE_BEST = 2.0
# Finds .98 of the top ten where neighbors hardly differ; lower values save nothing
# (docs/results/hnsw.md).
EF_SEARCH = 200
EF_CONSTRUCTION = 128
# Bounds an iterative scan under a selective filter.
MAX_SCAN_TUPLES = 200_000
# Passages to fetch per wanted memory: twice as many nearly always belong to enough memories.
LIKELY_FACTOR = 2
LIMIT_GROWTH = 4
# Seconds between checks of the size: a model grows slowly.
SIZE_CHECK_SECONDS = 30.0
# The largest share of the vector memory that one model may take.
LARGEST_SHARE = 0.5
# Bounds a batch to a few megabytes.
MEMORIES_AT_ONCE = 10_000

_SETTINGS: dict[str, str] = {
    "hnsw.iterative_scan": "relaxed_order",  # strict_order drops rows; scores are sorted anyway
    "hnsw.ef_search": str(EF_SEARCH),
    "hnsw.max_scan_tuples": str(MAX_SCAN_TUPLES),
    "enable_sort": "off",  # otherwise the planner may sort everything for a selective filter
}
_TAKE_TURN = "SELECT pg_try_advisory_lock(hashtextextended(%(name)s, 0))"
_END_TURN = "SELECT pg_advisory_unlock(hashtextextended(%(name)s, 0))"
_STATE = "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(%(name)s)"


class PostgresVectorIndex(VectorIndex):
    def __init__(
        self,
        database: Database,
        visibility: Visibility,
        changes: Changes,
        ids: Ids,
        exact_up_to: int = EXACT_SCAN_MAX,
    ) -> None:
        super().__init__(database, changes)
        memory = database.server.vector_memory
        self._cache = VectorCache(
            changes, ids, self._read, memory, np.float16, database.mapped_index
        )
        self.cached_up_to = memory.bytes * LARGEST_SHARE
        self._postgres = database
        self._visibility = visibility
        self.exact_up_to = exact_up_to
        self.named_up_to = MAX_LISTED_KEYS
        self._counted: dict[int, tuple[float, int]] = {}
        self._size_checked_at: dict[int, float] = {}
        self._indexed: set[int] = set()
        self._building: threading.Thread | None = None

    def search(
        self,
        model: Model,
        vector: NDArray[np.float32],
        filter: Filter,
        depth: int,
        chance: float = 0.0,
    ) -> list[Candidate]:
        check_dimension(model, vector)
        if self._fits(model):
            return self._cache.search(
                model, vector, self._visibility.of(filter).mask, depth, chance
            )
        how, parameters = self._choose_query(model, filter)
        parameters["query"] = str(vector.astype(np.float32).tolist())
        limit = max(1, depth * LIKELY_FACTOR)
        while True:
            rows = self._nearest(model, how, {**parameters, "limit": limit})
            ranked = _best_passages(rows, chance)
            if len(rows) < limit or _surely_best(ranked, rows, depth):
                return ranked[:depth]
            limit *= LIMIT_GROWTH

    def is_in_memory(self, model: Model) -> bool:
        return self._fits(model)

    def embedded(self, model: Model, ids: Sequence[str]) -> set[str]:
        if not self._fits(model):
            return super().embedded(model, ids)
        return self._cache.embedded(model, ids)

    def close(self) -> None:
        self.wait()
        self._cache.forget()

    def serve(self, model: Model) -> None:
        others = [other for other in self.models() if other.model != model.model]
        super().serve(model)
        self._drop_indexes(others)

    def remove(self, model: Model) -> None:
        super().remove(model)
        self._drop_indexes([model])

    def is_indexed(self, model: Model) -> bool:
        """Return whether the index is usable; start building a missing one."""
        if model.model in self._indexed:
            return True
        moment = time.monotonic()
        if (
            moment - self._size_checked_at.get(model.model, -SIZE_CHECK_SECONDS)
            >= SIZE_CHECK_SECONDS
        ):
            self._size_checked_at[model.model] = moment
            if self._is_valid(model):
                self._indexed.add(model.model)
            elif self._is_large(model) and (
                self._building is None or not self._building.is_alive()
            ):
                self._building = threading.Thread(
                    target=self._build_in_background, args=(model,), name="trivet-hnsw"
                )
                self._building.start()
        return model.model in self._indexed

    def build_index(self, model: Model) -> None:
        place = sql.Identifier(_index_name(model))
        statement = sql.SQL(
            "CREATE INDEX CONCURRENTLY IF NOT EXISTS {name} ON passage "
            "USING hnsw ((vector::halfvec({dimension})) halfvec_ip_ops) "
            "WITH (ef_construction = {effort}) WHERE {within}"
        ).format(
            name=place,
            dimension=sql.Literal(model.dimension),
            effort=sql.Literal(EF_CONSTRUCTION),
            within=sql.SQL(self._within(model, "")),
        )
        with self._postgres.errors(), self._postgres.server.connection() as connection:
            turn = {"name": _index_name(model)}
            if not connection.execute(_TAKE_TURN, turn).fetchone()[0]:  # type: ignore[index]
                return  # another process is building it; its unfinished index looks invalid
            try:
                if not self._is_valid(model):
                    connection.execute(
                        sql.SQL("DROP INDEX CONCURRENTLY IF EXISTS {}").format(place)
                    )
                connection.execute(statement)
                self._indexed.add(model.model)
            finally:
                connection.execute(_END_TURN, turn)

    def prepare(self) -> None:
        for model in self.models():
            if not self._fits(model) and self._is_large(model) and not self._is_valid(model):
                self.build_index(model)

    def wait(self) -> None:
        if self._building is not None:
            self._building.join()

    def _build_in_background(self, model: Model) -> None:
        try:
            self.build_index(model)
            self.trouble = None
        except StoreError as error:  # searches stay exact, and `doctor` reports it
            self.trouble = str(error)

    def _choose_query(self, model: Model, filter: Filter) -> tuple[str, dict[str, Any]]:
        visible = self._visibility.of(filter)
        if visible.count <= self.named_up_to:
            return "nearest_among", {"keys": as_json(np.flatnonzero(visible.mask).tolist())}
        exact = visible.count <= self.exact_up_to or not self.is_indexed(model)
        return "nearest_exact" if exact else "nearest_indexed", filter_parameters(filter, now())

    def _nearest(self, model: Model, how: str, parameters: Mapping[str, Any]) -> list[Any]:
        query = self._sql[how].replace("{within}", _escaped(self._within(model, "p.")))
        query = query.replace("{dimension}", str(model.dimension))
        settings = _SETTINGS if how == "nearest_indexed" else {}
        with self._postgres.errors():
            return self._postgres.read().execute_with(settings, query, parameters).fetchall()

    def _within(self, model: Model, table: str) -> str:
        tenant = sql.Literal(self._postgres.tenant).as_string(None)
        return f"{table}tenant = {tenant} AND {table}model = {model.model}"

    def _is_valid(self, model: Model) -> bool:
        with self._postgres.errors():
            row = self._postgres.read().execute(_STATE, {"name": _index_name(model)}).fetchone()
        return bool(row and row[0])

    def _is_large(self, model: Model) -> bool:
        return model.dimension <= MAX_HNSW_DIMENSIONS and self._passages(model) > self.exact_up_to

    def _fits(self, model: Model) -> bool:
        held = self._cache.bytes(model)
        return (
            held or self._passages(model) * bytes_per_passage(model.dimension)
        ) <= self.cached_up_to

    def _passages(self, model: Model) -> int:
        """Cache the count, which takes longer than a search."""
        moment, (counted_at, count) = (
            time.monotonic(),
            self._counted.get(model.model, (-SIZE_CHECK_SECONDS, 0)),
        )
        if moment - counted_at >= SIZE_CHECK_SECONDS:
            with self._postgres.errors():
                [row] = (
                    self._postgres.read()
                    .execute(self._sql["passages"], {"model": model.model})
                    .fetchall()
                )
            count = row[0]
            self._counted[model.model] = (moment, count)
        return count

    def _read(self, model: Model, keys: Collection[int] | None) -> Iterator[PassageRows]:
        with self._postgres.errors():
            if keys is not None:
                yield self._packed("vectors_of", {"model": model.model, "keys": as_json(keys)})
                return
            [row] = self._postgres.read().execute(self._sql["last_embedded"]).fetchall()
            for after in range(0, row[0] or 0, MEMORIES_AT_ONCE):
                between = {"model": model.model, "after": after, "up_to": after + MEMORIES_AT_ONCE}
                yield self._packed("vectors_between", between)

    def _packed(self, name: str, parameters: Mapping[str, Any]) -> PassageRows:
        [(keys, ordinals, vectors)] = (
            self._postgres.read().execute(self._sql[name], parameters).fetchall()
        )
        return PassageRows(
            np.frombuffer(keys or b"", ">i8").tolist(),
            np.frombuffer(ordinals or b"", ">i8").tolist(),
            np.frombuffer(vectors or b"", ">f2").astype(np.float16),
        )

    def _drop_indexes(self, models: Iterable[Model]) -> None:
        """Leave the indexes to their owner: a removed model's are empty."""
        if not self._postgres.server.acts_as_owner:
            return
        with self._postgres.errors(), self._postgres.server.connection() as connection:
            for model in models:
                self._indexed.discard(model.model)
                name = sql.Identifier(_index_name(model))
                connection.execute(sql.SQL("DROP INDEX CONCURRENTLY IF EXISTS {}").format(name))


def _index_name(model: Model) -> str:
    return f"passage_hnsw_{model.model}"


def _escaped(text: str) -> str:
    return text.replace("%", "%%")


def _best_passages(rows: Sequence[Any], chance: float) -> list[Candidate]:
    deviation = OF_THE_BEST * float(np.std([row[2] for row in rows])) if chance and rows else 0.0
    best: dict[str, Candidate] = {}
    for id_, ordinal, score, passages in sorted(rows, key=lambda row: (-row[2], row[0], row[1])):
        if id_ not in best:
            score -= chance * deviation * math.log(passages)
            best[id_] = Candidate(id=id_, score=max(-1.0, min(1.0, score)), passage=ordinal)
    return sorted(best.values(), key=lambda candidate: (-candidate.score, candidate.id))


def _surely_best(ranked: list[Candidate], rows: Iterable[Any], depth: int) -> bool:
    """Return whether no other row can beat or tie with the last one."""
    return len(ranked) >= depth and ranked[depth - 1].score > min(row[2] for row in rows)
