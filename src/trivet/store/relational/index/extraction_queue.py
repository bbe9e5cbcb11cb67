"""The queue of memories to read for concepts, what the readers write, and token budgets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from trivet.common.clock import now
from trivet.graph.concepts import ROLES, Mention, Reader, Triple, canonical, form
from trivet.memory_fields import as_json, texts
from trivet.store.records import Backlog, ExtractionJob
from trivet.store.relational.changes import Changes
from trivet.store.relational.database import Connection, Database, StorePart, WriteTransaction

# "language model" extracts triples, "capture" curates proposals.
BudgetPurpose = Literal["language model", "capture"]


class DailyBudget(StorePart):
    """Tokens per purpose and day, counted in the database for all processes."""

    file = "budgets"

    def __init__(self, database: Database, purpose: BudgetPurpose) -> None:
        super().__init__(database)
        self._purpose = purpose

    def spend(self, tokens: int, most: int) -> bool:
        """Return False, taking nothing, if the tokens exceed today's budget."""
        if tokens > most:
            return False
        with self._database.write() as connection:
            values = {"name": self._today, "tokens": tokens, "most": most}
            taken = connection.execute(self._sql["spend"], values).rowcount > 0
            names = {"name": self._today, "earlier": f"{self._purpose} tokens %"}
            connection.execute(self._sql["forget_earlier_days"], names)
        return taken

    def spent(self) -> int:
        row = self._row("spent", name=self._today)
        return int(row[0]) if row else 0

    @property
    def _today(self) -> str:
        return f"{self._purpose} tokens {now()[:10]}"


# Terms in more memories say little about a name; the newest memories suffice.
MAX_MEMORIES_CONSIDERED = 50
# Longer than every lease and retry: a job due later was written under a clock that ran ahead.
LONGEST_WAIT_SECONDS = 3_600.0
# Stands for an unknown start.
BEGINNING = "0001-01-01T00:00:00.000000Z"
# Delete what the other concept already has, then move the rest.
_MOVES = (
    "clear_mentions", "move_mentions", "clear_sources", "move_sources",
    "clear_targets", "move_targets", "delete_circles", "delete_concept",
)  # fmt: skip


class ExtractionQueue(StorePart):
    file = "graph"

    def __init__(self, database: Database, changes: Changes) -> None:
        super().__init__(database)
        self._changes = changes
        # The latest change when memories were last queued.
        self._asked_at: int | None = None
        self._budget = DailyBudget(database, "language model")

    def lease(self, reader: Reader, limit: int, seconds: float) -> tuple[ExtractionJob, ...]:
        first, last = self._row("next_due", reader=reader)
        # Without due work, avoid the write transaction.
        if first is None or (first > 0 and last <= LONGEST_WAIT_SECONDS):
            return ()
        with self._database.take() as connection:
            connection.execute(
                self._sql["take_over"], {"reader": reader, "longest": LONGEST_WAIT_SECONDS}
            )
            rows = connection.execute(
                self._sql["due"], {"reader": reader, "limit": limit}
            ).fetchall()
            keys = as_json(row["memory"] for row in rows)
            connection.execute(
                self._sql["postpone"], {"reader": reader, "keys": keys, "seconds": seconds}
            )
        return tuple(
            ExtractionJob(
                row["memory"], row["revision"], row["attempts"], row["title"], row["content"],
                texts(row["tags"]), row["since"],
            )
            for row in rows
        )  # fmt: skip

    def finish_mentions(self, done: Sequence[tuple[ExtractionJob, Sequence[Mention]]]) -> None:
        """Store mentions, except of changed memories."""
        with self._database.write() as connection:
            concepts = self._concepts(
                connection, [mention.name for _, found in done for mention in found]
            )
            touched = set(concepts.values())
            taken = self._taken(connection, "rules", [reading for reading, _ in done], touched)
            wanted = [(reading.key, mentions) for reading, mentions in done if reading in taken]
            rows = [
                mention_row(key, concepts[one.name], "rules", one)
                for key, mentions in wanted
                for one in {mention.name: mention for mention in mentions}.values()
            ]
            connection.put_all("graph", "insert_mention", rows)
            connection.note_change(*(key for key, _ in wanted))
            drop_orphans(connection, touched)

    def finish_triples(self, done: Sequence[tuple[ExtractionJob, Sequence[Triple]]]) -> None:
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

    def fail(
        self, reader: Reader, readings: Sequence[ExtractionJob], error: str, retry_after: float
    ) -> None:
        with self._database.take() as connection:
            for reading in readings:
                values = {
                    "memory": reading.key,
                    "reader": reader,
                    "revision": reading.revision,
                    "error": error,
                }
                connection.execute(self._sql["fail"], {**values, "seconds": retry_after})

    def release(self, reader: Reader, readings: Sequence[ExtractionJob]) -> None:
        with self._database.take() as connection:
            keys = as_json(reading.key for reading in readings)
            connection.execute(self._sql["release"], {"reader": reader, "keys": keys})

    def backlog(self, reader: Reader) -> Backlog:
        row = self._row("pending", reader=reader)
        return Backlog(row[0], row[1], row[2])

    def has_more_than(self, reader: Reader, few: int) -> bool:
        """Return whether more than `few` wait, counting no further."""
        return int(self._row("counted_up_to", reader=reader, most=few + 1)[0]) > few

    def ask_for_triples(self) -> int:
        """Queue memories that no language model has read as they are; count them."""
        changed = self._changes.last()
        if changed == self._asked_at:
            return 0
        added = 0
        with self._database.errors():
            unread = (
                self._database.read().execute(self._database.sql("triples")["unread"]).fetchone()[0]
            )
        if unread:
            with self._database.write() as connection:
                added = connection.execute(self._sql["enqueue_unread"]).rowcount
        self._asked_at = changed
        return added

    def retry_now(self, reader: Reader) -> None:
        with self._database.take() as connection:
            connection.execute(connection.sql("triples")["retry_now"], {"reader": reader})

    def means(self, labels: Sequence[str]) -> dict[str, str]:
        """Return the canonical name that earlier readings gave each known label."""
        sql = self._database.sql("triples")
        with self._database.errors():
            connection = self._database.read()
            forms = connection.execute(
                sql["means"], {"forms": as_json({form(label) for label in labels})}
            ).fetchall()
            names = {"names": as_json({canonical(label) for label in labels})}
            read = {row[0] for row in connection.execute(sql["read_names"], names)}
        by_form = {row[0]: row[1] for row in forms if row[1] is not None}
        own = {label: canonical(label) for label in labels if canonical(label) in read}
        return own | {label: by_form[form(label)] for label in labels if form(label) in by_form}

    def names_with(self, terms: Sequence[str]) -> tuple[tuple[str, str], ...]:
        """Return (written, canonical) names mentioned in memories with these terms."""
        found: set[tuple[str, str]] = set()
        sql = self._database.sql("triples")["names_with"]
        with self._database.errors():
            for term in terms:
                rows = self._database.read().execute(
                    sql, {"term": term, "memories": MAX_MEMORIES_CONSIDERED}
                )
                found.update((row[0], row[1]) for row in rows)
        return tuple(sorted(found))

    def spend(self, tokens: int, most: int) -> bool:
        return self._budget.spend(tokens, most)

    def spent(self) -> int:
        return self._budget.spent()

    def _taken(
        self,
        connection: WriteTransaction,
        reader: Reader,
        readings: Sequence[ExtractionJob],
        touched: set[int],
    ) -> set[ExtractionJob]:
        """Return readings still wanted, after deleting this reader's old results."""
        rows = as_json(
            {"memory": reading.key, "revision": reading.revision} for reading in readings
        )
        finished = connection.execute(
            self._sql["finish"], {"reader": reader, "rows": rows}
        ).fetchall()
        wanted = {(row[0], row[1]) for row in finished}
        names = {"keys": as_json(key for key, _ in wanted), "reader": reader}
        touched.update(
            row[0]
            for row in connection.execute(self._sql["concepts_of_memories"], names).fetchall()
        )
        connection.execute(self._sql["delete_mentions_of_reader"], names)
        if reader == "triples":
            connection.execute(self._sql["delete_statements_of"], names)
        marks = [
            {"memory": key, "reader": reader, "revision": revision}
            for key, revision in sorted(wanted)
        ]
        connection.put_all("graph", "mark_read", marks)
        return {reading for reading in readings if (reading.key, reading.revision) in wanted}

    def _concepts(self, connection: WriteTransaction, names: Sequence[str]) -> dict[str, int]:
        wanted = dict.fromkeys(name for name in names if name)
        known = self._known(connection, list(wanted))
        new = [name for name in wanted if name not in known]
        if not new:
            return known
        rows = [{"concept": connection.number("concept"), "name": name} for name in new]
        connection.put_all("graph", "insert_concept", rows)
        return known | self._known(connection, new)

    def _known(self, connection: Connection, names: Sequence[str]) -> dict[str, int]:
        parameters = {"names": as_json(dict.fromkeys(names))}
        return dict(
            tuple(row)
            for row in connection.execute(self._sql["concepts_by_name"], parameters).fetchall()
        )


def mention_row(memory: int, concept: int, reader: Reader, mention: Mention) -> dict[str, object]:
    return {
        "memory": memory,
        "concept": concept,
        "reader": reader,
        "role": ROLES.index(mention.role),
        "kind": mention.kind,
        "label": mention.label,
        "form": form(mention.label),
    }


def write_triples(
    connection: WriteTransaction,
    reading: ExtractionJob,
    triples: Sequence[Triple],
    concepts: Mapping[str, int],
    recorded_at: str,
) -> None:
    """Write statements and mentions of their ends, except ends that are no name."""
    sql = connection.sql("graph")
    mentions: dict[tuple[int, bool], Mention] = {}
    for triple in triples:
        if not all(canonical(label) for label, _ in triple.ends):
            continue
        source, target = (_end(*end, concepts, mentions) for end in triple.ends)
        values = {
            "source": source,
            "relation": triple.relation,
            "target": target,
            "memory": reading.key,
            "weight": 1.0,
            "single": triple.single,
            "valid_from": _since(triple, reading),
            "valid_to": triple.valid_to,
            "recorded_at": recorded_at,
        }
        connection.execute(sql["insert_statement"], values)
    # One name per concept and reader: the alias, written last, stays.
    for (concept, _), mention in sorted(mentions.items(), key=lambda item: item[0]):
        connection.execute(
            sql["set_mention"], mention_row(reading.key, concept, "triples", mention)
        )


def _end(
    label: str,
    means: str | None,
    concepts: Mapping[str, int],
    mentions: dict[tuple[int, bool], Mention],
) -> int:
    alias = means is not None and means in concepts
    name = means if means is not None and alias else canonical(label)
    mentions[concepts[name], alias] = Mention(name=name, label=label, kind="name", role="in")
    return concepts[name]


def _since(triple: Triple, reading: ExtractionJob) -> str:
    """Return the start, unknown for what ended before the memory ("lived there until 2015")."""
    if triple.valid_from:
        return triple.valid_from
    return BEGINNING if triple.valid_to and triple.valid_to <= reading.since else reading.since


def clear_graph(connection: WriteTransaction, key: int) -> None:
    sql = connection.sql("graph")
    concepts = [
        row[0] for row in connection.execute(sql["concepts_of_memory"], {"key": key}).fetchall()
    ]
    for name in ("cancel", "delete_statements", "delete_mentions"):
        connection.execute(sql[name], {"key": key})
    drop_orphans(connection, concepts)


def drop_orphans(connection: WriteTransaction, concepts: Iterable[int]) -> None:
    """Delete unmentioned concepts, whose names come from forgotten memories."""
    touched = list(concepts)
    connection.execute(connection.sql("graph")["delete_orphans"], {"concepts": as_json(touched)})
    rename_unowned(connection, touched)


def rename_unowned(connection: WriteTransaction, concepts: Iterable[int]) -> None:
    """Rename concepts whose name only forgotten memories hold."""
    sql = connection.sql("triples")
    for row in connection.execute(sql["unowned"], {"concepts": as_json(concepts)}).fetchall():
        if not row["held"]:
            continue
        names = {"concept": row["concept"], "name": row["held"]}
        taken = connection.execute(sql["concept_of_name"], names).fetchone()
        if taken is None:
            connection.execute(sql["rename"], names)
        else:
            _move(connection, row["concept"], taken["concept"])


def _move(connection: WriteTransaction, concept: int, other: int) -> None:
    sql = connection.sql("triples")
    moved = {"concept": concept, "other": other}
    memories = connection.execute(sql["memories_of_concept"], moved).fetchall()
    for name in _MOVES:
        connection.execute(sql[name], moved)
    for row in memories:
        connection.note_change(row["memory"])
