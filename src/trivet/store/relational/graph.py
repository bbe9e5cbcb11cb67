"""The concept graph: written with the memories it derives from, walked in memory, kept fresh by the change record."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

import numpy as np

from trivet.clock import now
from trivet.graph.canonical import canonical
from trivet.graph.hubs import HubsByFilter
from trivet.graph.mentions import Mention, Reader, Triple
from trivet.graph.path import Paths, Step
from trivet.graph.walk import Masses, Walk, walk, weigh_concepts
from trivet.store.base import Backlog, Named, Reading, Seeds
from trivet.store.relational import triple_names
from trivet.store.relational.changes import Changes
from trivet.store.relational.database import Connection, Database
from trivet.store.relational.graph_rows import mention_row, write_triples
from trivet.store.relational.graph_traces import drop_orphans
from trivet.store.relational.identity import Identities
from trivet.store.relational.living_network import LivingNetwork
from trivet.store.relational.rows import as_json, strings
from trivet.store.relational.visible import Visibility
from trivet.types import Candidate, Filter, PathStep

# Less than this cannot lift a memory by a single place.
LEAST_MASS = 1e-6


class RelationalGraph:
    def __init__(self, database: Database, visibility: Visibility, changes: Changes, identities: Identities) -> None:
        self._database = database
        self._visibility = visibility
        self._identities = identities
        self._changes = changes
        self._asked_at: int | None = None  # the last change when memories were last queued for a language model
        self._network = LivingNetwork(database, changes)
        self._hubs = HubsByFilter()
        self._sql = database.sql("graph")

    def named(self, forms: Sequence[str], filter: Filter, how: Walk) -> tuple[Named, ...]:
        """The concepts known by these forms, as far as visible memories mention them."""
        with self._database.errors():
            rows = self._database.read().execute(self._sql["concepts_of_forms"], {"forms": as_json(forms)}).fetchall()
        found = [(row[0], row[1]) for row in rows if row[1] is not None]
        if not found:
            return ()
        network, visible = self._network.fresh(), self._visibility.of(filter).mask
        concepts = np.array([concept for _, concept in found], np.int32)
        hubs = self._hubs.of(network, filter).among(network, visible, concepts)
        found = [pair for pair, is_hub in zip(found, hubs.tolist(), strict=True) if not is_hub]
        spread = weigh_concepts(network, visible, concepts[~hubs], how)
        return tuple(
            Named(concept, name, int(count), float(weight))
            for (name, concept), count, weight in zip(found, spread.mentions, spread.weights, strict=True)
            if weight > 0
        )

    def walk(self, seeds: Seeds, filter: Filter, how: Walk, depth: int) -> list[Candidate]:
        """The memories that most arrives at; the score is the square root of what arrived, so that few do not swamp."""
        network, visible = self._network.fresh(), self._visibility.of(filter).mask
        hubs = self._hubs.of(network, filter)
        mass = walk(network, visible, self._hits(seeds.memories), _masses(seeds.concepts), how, hubs)
        found = np.flatnonzero(mass.values > LEAST_MASS)
        if len(found) > depth:
            cut = np.partition(mass.values[found], len(found) - depth)[len(found) - depth]
            found = found[mass.values[found] >= cut]  # everything tied at the cut stays until ids decide
        keys, scores = mass.keys[found].tolist(), np.minimum(np.sqrt(mass.values[found]), 1.0).tolist()
        ids = self._identities.of(keys)
        ranked = [Candidate(id=ids[key], score=score) for key, score in zip(keys, scores, strict=True) if key in ids]
        ranked.sort(key=lambda candidate: (-candidate.score, candidate.id))
        return ranked[:depth]

    def paths(self, ids: Sequence[str], seeds: Seeds, filter: Filter, how: Walk) -> dict[str, tuple[PathStep, ...]]:
        network, visible = self._network.fresh(), self._visibility.of(filter).mask
        keys = self._identities.keys([*ids, *seeds.memories])
        best_first = sorted(seeds.memories, key=lambda id: -seeds.memories[id])
        hits = [keys[id] for id in best_first if id in keys]
        ends = {id: keys[id] for id in ids if id in keys}
        paths = Paths(
            network, visible, hits, sorted(seeds.concepts), list(ends.values()), how, self._hubs.of(network, filter)
        )
        found = {id: steps for id, key in ends.items() if (steps := paths.to(key))}
        return self._spelled_out(found, list(ends.values()))

    def lease(self, reader: Reader, limit: int, seconds: float) -> tuple[Reading, ...]:
        moment = time.time()
        with self._database.errors():
            due = self._database.read().execute(self._sql["next_due"], {"reader": reader}).fetchone()[0]
        if due is None or due > moment:  # nothing to do must not cost a write transaction
            return ()
        with self._database.take() as connection:
            parameters = {"reader": reader, "moment": moment, "limit": limit}
            rows = connection.execute(self._sql["due"], parameters).fetchall()
            keys = as_json(row["memory"] for row in rows)
            connection.execute(self._sql["postpone"], {"reader": reader, "keys": keys, "not_before": moment + seconds})
        return tuple(
            Reading(
                row["memory"], row["revision"], row["attempts"], row["title"], row["content"], strings(row["tags"]),
                row["since"],
            )
            for row in rows
        )  # fmt: skip

    def finish_mentions(self, done: Sequence[tuple[Reading, Sequence[Mention]]]) -> None:
        """Stores what the rules found, unless the memory has changed or gone since: then a newer reading waits."""
        with self._database.write() as connection:
            concepts = self._concepts(connection, [mention.name for _, found in done for mention in found])
            touched = set(concepts.values())
            taken = self._taken(connection, "rules", [reading for reading, _ in done], touched)
            for reading, mentions in done:
                if reading in taken:
                    for one in {mention.name: mention for mention in mentions}.values():
                        row = mention_row(reading.key, concepts[one.name], "rules", one)
                        connection.put("graph", "insert_mention", row)
                    connection.note_change(reading.key)
            drop_orphans(connection, touched)

    def finish_triples(self, done: Sequence[tuple[Reading, Sequence[Triple]]]) -> None:
        """Stores what a language model found: its concepts as mentions, its statements with the memory as evidence."""
        ends = [end for _, found in done for one in found for end in one.ends]
        recorded_at = now()
        with self._database.write() as connection:
            concepts = self._known(connection, [means for _, means in ends if means])
            concepts |= self._concepts(connection, [canonical(label) for label, _ in ends])
            touched = set(concepts.values())
            taken = self._taken(connection, "triples", [reading for reading, _ in done], touched)
            for reading, triples in done:
                if reading in taken:
                    write_triples(connection, reading, triples, concepts, recorded_at)
                    connection.note_change(reading.key)
            drop_orphans(connection, touched)

    def fail(self, reader: Reader, readings: Sequence[Reading], error: str, retry_after: float) -> None:
        not_before = time.time() + retry_after
        with self._database.take() as connection:
            for reading in readings:
                values = {"memory": reading.key, "reader": reader, "revision": reading.revision, "error": error}
                connection.execute(self._sql["fail"], {**values, "not_before": not_before})

    def release(self, reader: Reader, readings: Sequence[Reading]) -> None:
        with self._database.take() as connection:
            keys = as_json(reading.key for reading in readings)
            connection.execute(self._sql["postpone"], {"reader": reader, "keys": keys, "not_before": 0.0})

    def backlog(self, reader: Reader) -> Backlog:
        with self._database.errors():
            row = self._database.read().execute(self._sql["pending"], {"reader": reader}).fetchone()
        return Backlog(row[0], row[1], row[2])

    def ask_for_triples(self) -> int:
        """Queues every memory that no language model has read as it is now; says how many were added."""
        changed = self._changes.last()
        if changed == self._asked_at:
            return 0
        added = 0
        with self._database.errors():
            unread = self._database.read().execute(self._database.sql("triples")["unread"]).fetchone()[0]
        if unread:
            with self._database.write() as connection:
                added = connection.execute(self._sql["enqueue_unread"]).rowcount
        self._asked_at = changed
        return added

    def behind(self) -> bool:
        return self._network.behind

    def retry_now(self, reader: Reader) -> None:
        with self._database.take() as connection:
            connection.execute(connection.sql("triples")["retry_now"], {"reader": reader})

    def means(self, labels: Sequence[str]) -> dict[str, str]:
        return triple_names.means(self._database, labels)

    def names_with(self, terms: Sequence[str]) -> tuple[tuple[str, str], ...]:
        return triple_names.names_with(self._database, terms)

    def spend(self, tokens: int, most: int) -> bool:
        return triple_names.spend(self._database, tokens, most)

    def spent(self) -> int:
        return triple_names.spent(self._database)

    def _taken(
        self, connection: Connection, reader: Reader, readings: Sequence[Reading], touched: set[int]
    ) -> set[Reading]:
        """Those still wanted. What this reader found of them before goes, and a mark says that they were read."""
        rows = as_json({"memory": reading.key, "revision": reading.revision} for reading in readings)
        finished = connection.execute(self._sql["finish"], {"reader": reader, "rows": rows}).fetchall()
        wanted = {(row[0], row[1]) for row in finished}
        names = {"keys": as_json(key for key, _ in wanted), "reader": reader}
        touched.update(row[0] for row in connection.execute(self._sql["concepts_of_memories"], names).fetchall())
        connection.execute(self._sql["delete_mentions_of_reader"], names)
        if reader == "triples":
            connection.execute(self._sql["delete_statements_of"], names)
        for key, revision in sorted(wanted):
            connection.put("graph", "mark_read", {"memory": key, "reader": reader, "revision": revision})
        return {reading for reading in readings if (reading.key, reading.revision) in wanted}

    def _concepts(self, connection: Connection, names: Sequence[str]) -> dict[str, int]:
        wanted = dict.fromkeys(name for name in names if name)
        known = self._known(connection, list(wanted))
        new = [name for name in wanted if name not in known]
        if not new:
            return known
        for name in new:
            connection.put("graph", "insert_concept", {"concept": connection.number("concept"), "name": name})
        return known | self._known(connection, new)

    def _known(self, connection: Connection, names: Sequence[str]) -> dict[str, int]:
        parameters = {"names": as_json(dict.fromkeys(names))}
        return dict(tuple(row) for row in connection.execute(self._sql["concepts_by_name"], parameters).fetchall())

    def _hits(self, seeds: Mapping[str, float]) -> Masses:
        keys = self._identities.keys(list(seeds))
        return _masses({keys[id]: share for id, share in seeds.items() if id in keys})

    def _spelled_out(
        self, paths: Mapping[str, tuple[Step, ...]], ends: Sequence[int]
    ) -> dict[str, tuple[PathStep, ...]]:
        """Concepts as the memories on the paths write them: how others write them is not for the caller to know."""
        steps = [step for path in paths.values() for step in path]
        between = [key for kind, key in steps if kind == "memory"]
        ids = self._identities.of(between)
        concepts = {key for kind, key in steps if kind == "concept"}
        wanted = {"concepts": as_json(concepts), "memories": as_json([*between, *ends])}
        with self._database.errors():
            labels = {row[0]: row[1] for row in self._database.read().execute(self._sql["labels"], wanted)}
        return {
            id: tuple(
                PathStep(kind="concept", name=labels[key])
                if kind == "concept"
                else PathStep(kind="memory", name=ids[key])
                for kind, key in path
            )
            for id, path in paths.items()
            if all((labels if kind == "concept" else ids).get(key) for kind, key in path)
        }


def _masses(seeds: Mapping[int, float]) -> Masses:
    keys = sorted(seeds)
    return Masses(np.array(keys, np.int32), np.array([seeds[key] for key in keys], np.float64))
