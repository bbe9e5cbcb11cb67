"""Memories and their revisions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec
import numpy as np

from trivet.common.clock import moment, now
from trivet.common.ids import reassigned_id
from trivet.errors import Conflict, Damaged, Forbidden, NotFound
from trivet.memory_fields import as_json, to_row
from trivet.store.records import AddResult, Document, Entry, IndexedText, MemoryDates, SourcedMemory
from trivet.store.relational.database import Database, Row, StorePart, WriteTransaction
from trivet.store.relational.ids import Ids, id_prefix_range
from trivet.store.relational.index.visibility import Visibility, filter_parameters
from trivet.store.relational.tables.access import check_keys, check_rights, insert_secrets
from trivet.store.relational.tables.ledgers import record_write
from trivet.store.relational.tables.links import (
    superseded_by,
    update_superseded_state,
    update_superseded_states,
)
from trivet.store.relational.tables.memory_rows import (
    dates_from_row,
    delete_memory,
    insert_memory,
    log_damaged,
    memory_from_row,
    readable_memories,
    revision_from_row,
    rewrite_derived,
    rewrite_pending_edits,
    rewrite_revisions,
    sourced_from_row,
    to_revision,
    update_memory,
    write_all_derived,
    write_revision,
)
from trivet.types import Count, Filter, Memory, Page, Revision, Sealed, Sort, Stats

_ORDERS: dict[Sort, str] = {
    "relevance": "m.created_at DESC, m.id DESC",
    "recency": "m.created_at DESC, m.id DESC",
    "importance": "m.importance DESC, m.created_at DESC, m.id DESC",
}
_NEXT_PAGE: dict[Sort, str] = {
    "relevance": "page_after",
    "recency": "page_after",
    "importance": "page_after_by_importance",
}
_EXPORT_BATCH = 500
_COUNTED = ("links", "revisions", "sensitive", "passages", "concepts", "mentions", "statements")


class Memories(StorePart):
    file = "memories"

    def __init__(self, database: Database, visibility: Visibility, ids: Ids) -> None:
        super().__init__(database)
        self._visibility, self._ids = visibility, ids
        self._viewer = database.viewer

    def add_many(self, entries: Sequence[Entry]) -> list[AddResult]:
        with self._database.write() as connection:
            check_keys(connection, (sealed for entry in entries for sealed in entry.secrets))
            ids = as_json(entry.memory.id for entry in entries)
            rows = connection.execute(self._sql["seen_by_ids"], {"ids": ids, "viewer": None})
            buried = connection.execute(connection.sql("sync")["buried"], {"ids": ids}).fetchone()
            if buried is not None:
                raise Conflict(
                    f"Memory {buried[0]} was purged, also on laptops that follow this store. "
                    "Nothing was written; store it under another id."
                )
            known = {row["id"]: memory_from_row(row) for row in rows.fetchall()}
            added, new = [], []
            for entry in entries:
                one = self._unchanged(entry, known.get(entry.memory.id))
                if one is None:
                    new.append((self._insert(connection, entry), entry.memory, entry.document))
                added.append(one or AddResult("stored", entry.memory.revision))
                known.setdefault(entry.memory.id, entry.memory)
            write_all_derived(connection, new)
            stored = [
                entry.memory.id
                for entry, one in zip(entries, added, strict=True)
                if one.status == "stored"
            ]
            record_write(connection, self._viewer, "remember", stored)
            return added

    def claim(self, id: str) -> str:
        """Return the id to store under.

        It differs if an invisible memory has it, since a refusal would reveal that memory.
        """
        if self._viewer is None:
            return id
        with self._database.errors():
            taken = (
                self._database.read_unrestricted()
                .execute(self._sql["keys_of_ids"], {"ids": as_json([id])})
                .fetchone()
            )
        return id if taken is None or self._is_seen(id) else reassigned_id(id, self._viewer)

    def replace(
        self, memory: Memory, document: Document, action: str, secrets: Sequence[Sealed] = ()
    ) -> Memory:
        """Write the next revision; `memory.revision` is the one it replaces."""
        with self._database.write() as connection:
            check_keys(connection, secrets)
            row = self._row_of(memory.id)
            if row["revision"] != memory.revision:
                raise Conflict(
                    f"Memory {memory.id} is now at revision {row['revision']}, but this change was "
                    f"made for revision {memory.revision}. Read it again and repeat the change."
                )
            key: int = row["key"]
            check_rights(connection, self._viewer, row, action, memory)
            following = msgspec.structs.replace(
                memory, revision=memory.revision + 1, updated_at=moment(now())
            )
            update_memory(connection, key, following, document)
            write_revision(connection, key, to_revision(following, action), self._viewer)
            insert_secrets(connection, key, secrets)
            rewrite_derived(connection, key, following, document)
            update_superseded_states(connection, key)
            record_write(
                connection, self._viewer, action, [memory.id], f"revision {following.revision}"
            )
        return self.get(memory.id)

    def scrub(self, entry: Entry) -> None:
        """Rewrite a memory, its revisions and pending edits in place."""
        memory = entry.memory
        with self._database.erasing() as connection:
            check_keys(connection, entry.secrets)
            row = self._row_of(memory.id)
            if row["revision"] != memory.revision:
                raise Conflict(
                    f"Memory {memory.id} was changed meanwhile. Nothing was written; try again."
                )
            check_rights(connection, self._viewer, row, "redact")
            key: int = row["key"]
            update_memory(connection, key, memory, entry.document)
            rewrite_revisions(connection, key, entry.history)
            rewrite_pending_edits(connection, key, memory.id, entry.beside)
            insert_secrets(connection, key, entry.secrets)
            rewrite_derived(connection, key, memory, entry.document)
            record_write(connection, self._viewer, "redact", [memory.id])

    def purge(self, id: str) -> None:
        with self._database.erasing() as connection:
            row = self._row_of(id)
            key = row["key"]
            check_rights(connection, self._viewer, row, "purge")
            targets = superseded_by(connection, key)
            delete_memory(connection, key, id, row["owner"])
            for target in targets:
                update_superseded_state(connection, target)
            record_write(connection, self._viewer, "purge", [id])

    def get(self, id: str) -> Memory:
        return memory_from_row(self._row_of(id))

    def get_for_change(self, id: str, action: str) -> Memory:
        """Raise Forbidden before the verb writes anything."""
        row = self._row_of(id)
        with self._database.errors():
            check_rights(self._database.read_unrestricted(), self._viewer, row, action)
        return memory_from_row(row)

    def get_many(self, ids: Sequence[str]) -> dict[str, Memory]:
        """Return the readable ones and log the damaged ones."""
        try:
            rows = self._rows("seen_by_ids", ids=as_json(ids), viewer=self._viewer)
        except Damaged:
            rows = list(self._each(ids))
        return {memory.id: memory for memory in readable_memories(rows, log_damaged)}

    def terms_of(self, ids: Sequence[str]) -> dict[str, IndexedText]:
        try:
            rows = self._rows("terms_of_ids", ids=as_json(ids), viewer=self._viewer)
        except Damaged:  # the caller analyzes the text itself, as for unindexed memories
            return {}
        return {row[0]: IndexedText(row[1], row[2]) for row in rows}

    def dated(self, ids: Sequence[str]) -> dict[str, MemoryDates]:
        try:
            rows = self._rows("dated_by_ids", ids=as_json(ids), viewer=self._viewer)
            return {row[0]: dates_from_row(*row[1:]) for row in rows}
        # The caller then reads the memories themselves.
        except (Damaged, ValueError, TypeError):
            return {}

    def _each(self, ids: Sequence[str]) -> Iterator[Row]:
        for id in ids:
            try:
                yield from self._rows("seen_by_id", id=id, viewer=self._viewer)
            except Damaged:
                log_damaged(id)

    def ids_with_prefix(self, start: str, limit: int) -> list[str]:
        """Return visible ids in any state; `start` is hex digits and hyphens."""
        return [
            row[0]
            for row in self._rows(
                "starting_with", **id_prefix_range(start), limit=limit, viewer=self._viewer
            )
        ]

    def revisions(self, id: str) -> tuple[Revision, ...]:
        self._row_of(id)
        return tuple(
            revision_from_row(id, row)
            for row in self._rows("revisions", id=id, viewer=self._viewer)
        )

    def page(
        self, filter: Filter, sort: Sort, limit: int, offset: int, after: str | None = None
    ) -> Page:
        """Return a page.

        `offset` reads all it skips; going on `after` a memory costs the same at any depth.
        """
        if after is not None:
            return self._page_after(filter, sort, limit, offset, after)
        rows = self._ordered("page", filter, sort, limit=limit, offset=offset)
        (total,) = self._visible("total", filter)[0]
        return Page(
            memories=tuple(readable_memories(rows, log_damaged)), total=total, offset=offset
        )

    def _page_after(self, filter: Filter, sort: Sort, limit: int, offset: int, after: str) -> Page:
        last = self._row_of(after)
        place = {"id": after, "created_at": last["created_at"], "importance": last["importance"]}
        rows = self._ordered(_NEXT_PAGE[sort], filter, sort, limit=limit, offset=offset, **place)
        # Paging repeats this, so use the cached visibility.
        return Page(
            memories=tuple(readable_memories(rows, log_damaged)),
            total=self._visibility.of(filter).count,
            offset=offset,
        )

    def _ordered(self, name: str, filter: Filter, sort: Sort, **values: Any) -> list[Row]:
        parameters = {**filter_parameters(filter, now()), **values}
        with self._database.errors():
            connection = self._database.read()
            sql = connection.sql.ordered("visible", name, _ORDERS[sort])
            return connection.execute(sql, parameters).fetchall()

    def everything(self) -> Iterator[Memory]:
        key = 0
        while True:
            rows = self._rows("after_key", key=key, limit=_EXPORT_BATCH, viewer=self._viewer)
            if not rows:
                return
            yield from (memory_from_row(row) for row in rows)
            key = rows[-1]["key"]

    def readable(self, damaged: Callable[[str], object]) -> Iterator[Memory]:
        """Yield readable memories; report the id of each damaged one."""
        key = 0
        while True:
            try:
                rows = self._rows("after_key", key=key, limit=_EXPORT_BATCH, viewer=self._viewer)
            except Damaged:
                rows = list(self._one_by_one(key, damaged))
                yield from readable_memories(rows, damaged)
                return
            if not rows:
                return
            yield from readable_memories(rows, damaged)
            key = rows[-1]["key"]

    def _one_by_one(self, after: int, damaged: Callable[[str], object]) -> Iterator[Row]:
        """Read keys and ids from an index, so that damaged rows stay untouched."""
        for key, id in self._rows("keys_and_ids"):
            if key > after:
                try:
                    yield from self._rows("seen_by_key", key=key, viewer=self._viewer)
                except Damaged:
                    damaged(id)

    def is_visible(self, id: str, filter: Filter) -> bool:
        return bool(self._visible("changed_keys", filter, keys=as_json([self._row_of(id)["key"]])))

    def of_sources(self, names: Sequence[str], filter: Filter) -> tuple[SourcedMemory, ...]:
        rows = self._visible("of_sources", filter, names=as_json(names))
        return tuple(map(sourced_from_row, rows))

    def tags(self, filter: Filter, limit: int) -> tuple[Count, ...]:
        return self._counts("tags", filter, limit)

    def categories(self, filter: Filter) -> tuple[Count, ...]:
        return self._counts("categories", filter, 0)

    def sources(self, filter: Filter, text: str | None, limit: int) -> tuple[Count, ...]:
        return self._counts("sources", filter, limit, text=text)

    def days(self, filter: Filter, utc_offset: int, limit: int) -> tuple[Count, ...]:
        return self._counts("days", filter, limit, utc_offset=utc_offset)

    def _counts(self, name: str, filter: Filter, limit: int, **values: Any) -> tuple[Count, ...]:
        rows = self._visible(name, filter, limit=limit, **values)
        return tuple(Count(name=row[0], memories=row[1]) for row in rows)

    def _visible(self, name: str, filter: Filter, **values: Any) -> list[Any]:
        parameters = {**filter_parameters(filter, now()), **values}
        with self._database.errors():
            return (
                self._database.read()
                .execute(self._database.sql("visible")[name], parameters)
                .fetchall()
            )

    def visible_count(self, filter: Filter) -> int:
        return self._visibility.of(filter).count

    def shown(self, ids: Sequence[str], filter: Filter) -> dict[str, float]:
        """Return importance by id of those let through, without reading rows."""
        visible, keys = self._visibility.of(filter), self._ids.keys(ids)
        places = np.fromiter(keys.values(), np.int64, len(keys))
        shown = visible.mask.take(places, mode="clip").tolist()  # the mask ends with False
        found = visible.importances.take(places, mode="clip").tolist()
        return {id: one for id, one, is_shown in zip(keys, found, shown, strict=True) if is_shown}

    def stats(self) -> Stats:
        viewer = self._viewer
        other = (
            self._row("count_other")
            if viewer is None
            else self._row("count_other_seen", viewer=viewer)
        )
        counts = {
            name: dict(tuple(row) for row in self._rows(f"count_by_{name}", viewer=viewer))
            for name in ("state", "category", "scope", "tag")
        }
        return Stats(
            path=self._database.name,
            memories=counts["state"],
            categories=counts["category"],
            scopes=counts["scope"],
            tags=counts["tag"],
            **{name: other[name] for name in _COUNTED},
            not_embedded=0,
            failing_jobs=0,
            embedder=None,
            schema=self._database.schema,
            bytes=self._database.size() if self._viewer is None else None,
        )

    def _is_seen(self, id: str) -> bool:
        return self._row("is_seen", id=id, viewer=self._viewer) is not None

    def _row_of(self, id: str) -> Row:
        row: Row | None = self._row("seen_by_id", id=id, viewer=self._viewer)
        if row is None:
            raise NotFound(f"There is no memory {id} in this store. `list` shows the existing ids.")
        return row

    def _unchanged(self, entry: Entry, existing: Memory | None) -> AddResult | None:
        memory = entry.memory
        if self._viewer is not None and memory.owner != self._viewer:
            raise Forbidden("You can only store memories that you own. Nothing was written.")
        if existing is not None:
            if not self._is_seen(memory.id):
                raise Conflict(
                    "Two requests claimed this id at once. Nothing was written; try again."
                )
            if existing.content == memory.content and existing.state != "deleted":
                return AddResult("unchanged", existing.revision)
            raise Conflict(_conflict(memory.id, existing.state))
        return None

    def _insert(self, connection: WriteTransaction, entry: Entry) -> int:
        memory = entry.memory
        key = insert_memory(connection, to_row(memory, entry.document.row_values))
        for revision in entry.history[:-1]:
            write_revision(connection, key, revision, None)
        action = entry.history[-1].action if entry.history else "remember"
        write_revision(connection, key, to_revision(memory, action), self._viewer)
        insert_secrets(connection, key, entry.secrets)
        return key


def _conflict(id: str, state: str) -> str:
    if state == "deleted":
        return f"Memory {id} was forgotten. Restore it, or store this text under another id."
    return (
        f"Memory {id} exists with other content. "
        "Nothing was written; use edit to change it, or another id."
    )
