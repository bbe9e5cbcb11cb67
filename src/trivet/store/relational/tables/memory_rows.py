"""What follows from a memory's row, written in the same transaction, and its pending edits.

A pending edit clashed, was refused, or has not been carried over yet.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from trivet.common.clock import moment, moment_or_none, stamp
from trivet.common.threads import prepared_type
from trivet.errors import Damaged
from trivet.memory_fields import as_json, to_memory, to_row
from trivet.store.records import Document, MemoryDates, PendingEdit, SourcedMemory
from trivet.store.relational.database import Connection, Row, WriteTransaction
from trivet.store.relational.index.extraction_queue import clear_graph
from trivet.types import Memory, Revision

logger = logging.getLogger("trivet.store")


def clear_derived(connection: WriteTransaction, key: int) -> None:
    connection.execute(connection.sql("memories")["delete_tags"], {"key": key})
    connection.execute(connection.sql("lexical")["delete"], {"key": key})
    connection.execute(connection.sql("lexical")["delete_fingerprint"], {"key": key})
    connection.execute(connection.sql("jobs")["cancel"], {"key": key})
    connection.execute(connection.sql("vectors")["delete_passages"], {"memory": key})
    clear_graph(connection, key)
    clear_likely_updates(connection, key)


def write_derived(
    connection: WriteTransaction, key: int, memory: Memory, document: Document
) -> None:
    write_all_derived(connection, [(key, memory, document)])


def write_all_derived(
    connection: WriteTransaction, written: Sequence[tuple[int, Memory, Document]]
) -> None:
    """Write a batch per statement, which saves a tenth of the time."""
    tagged = [
        {"key": key, "tags": as_json(memory.tags)} for key, memory, _ in written if memory.tags
    ]
    connection.put_all("memories", "insert_tags", tagged)
    living = [(key, document) for key, memory, document in written if memory.state != "deleted"]
    connection.put_all(
        "lexical", "insert", [_lexical_row(key, document) for key, document in living]
    )
    connection.put_all(
        "lexical",
        "insert_fingerprint",
        [_fingerprint_row(key, document) for key, document in living],
    )
    keys = [{"key": key} for key, _ in living]
    for queue in ("jobs", "graph", "likely_updates"):
        connection.put_all(queue, "enqueue", keys)
    connection.note_change(*(key for key, _, _ in written))


def with_branches(connection: WriteTransaction, key: int, document: Document) -> Document:
    """Add the words of unresolved branches, so that search finds them."""
    rows = connection.execute(connection.sql("sync")["branch_terms"], {"key": key}).fetchall()
    words = tuple(word for row in rows for word in row[0].split(" ") if word)
    return (
        msgspec.structs.replace(document, keywords=(*document.keywords, *words))
        if words
        else document
    )


def rewrite_derived(
    connection: WriteTransaction, key: int, memory: Memory, document: Document
) -> None:
    clear_derived(connection, key)
    write_derived(connection, key, memory, with_branches(connection, key, document))


def write_lexical(connection: WriteTransaction, key: int, document: Document) -> None:
    connection.put("lexical", "insert", _lexical_row(key, document))
    connection.put("lexical", "insert_fingerprint", _fingerprint_row(key, document))


def _lexical_row(key: int, document: Document) -> dict[str, object]:
    return {
        "key": key,
        "content": " ".join(document.content),
        "title": " ".join(document.title),
        "keywords": " ".join(document.keywords),
        "tags": " ".join(document.tags),
        "category": " ".join(document.category),
    }


def _fingerprint_row(key: int, document: Document) -> dict[str, object]:
    return {"key": key, "hashes": as_json(document.fingerprint)}


def insert_memory(connection: WriteTransaction, row: dict[str, Any]) -> int:
    number = connection.number("memory")
    if number is None:
        return int(
            connection.execute(
                connection.sql("memories")["insert"], {**row, "key": None}
            ).fetchone()[0]
        )
    connection.put("memories", "insert", {**row, "key": number})
    return number


def update_memory(
    connection: WriteTransaction, key: int, memory: Memory, document: Document
) -> None:
    values = {**to_row(memory, document.row_values), "key": key}
    connection.execute(connection.sql("memories")["update"], values)


def rewrite_revisions(
    connection: WriteTransaction, key: int, revisions: Sequence[Revision]
) -> None:
    for revision in revisions:
        snapshot = msgspec.json.encode(revision.memory).decode()
        values = {"key": key, "revision": revision.revision, "snapshot": snapshot}
        connection.execute(connection.sql("memories")["rewrite_revision"], values)


def delete_memory(connection: WriteTransaction, key: int, id: str, owner: str) -> None:
    """Delete a memory everywhere, and note for sync that it was purged."""
    connection.execute(connection.sql("lexical")["delete"], {"key": key})
    connection.execute(connection.sql("lexical")["delete_fingerprint"], {"key": key})
    clear_graph(connection, key)
    connection.execute(connection.sql("vaults")["blank_part"], {"id": id})
    connection.execute(connection.sql("inbox")["purge"], {"id": id})
    connection.execute(connection.sql("sync")["bury"], {"id": id, "key": key, "owner": owner})
    connection.execute(connection.sql("sync")["forget_parked"], {"id": id})
    connection.execute(connection.sql("memories")["delete"], {"key": key})
    connection.note_change(key)


def write_revision(
    connection: WriteTransaction, key: int, revision: Revision, author: str | None
) -> None:
    """Sync names the revision later (sync_bundles.py)."""
    snapshot = msgspec.json.encode(revision.memory).decode()
    values = {"key": key, "revision": revision.revision, "changed_at": stamp(revision.changed_at)}
    names = {"rev": None, "base": None, "author": author}
    connection.put(
        "memories",
        "insert_revision",
        {**values, **names, "action": revision.action, "snapshot": snapshot},
    )


def dates_from_row(
    created_at: str, valid_from: str | None, valid_to: str | None, times: str | None
) -> MemoryDates:
    return MemoryDates(
        moment(created_at), moment_or_none(valid_from), moment_or_none(valid_to), times
    )


def row_by_id(connection: Connection, id: str) -> Row | None:
    """Return a memory's row, whoever may see it."""
    values = {"id": id}
    row: Row | None = connection.execute(connection.sql("memories")["by_id"], values).fetchone()
    return row


def key_by_id(connection: Connection, id: str) -> int | None:
    row = row_by_id(connection, id)
    return None if row is None else int(row["key"])


def sourced_from_row(row: Row) -> SourcedMemory:
    return SourcedMemory(
        id=row["id"],
        source=row["source_uri"],
        start_line=row["source_start_line"],
        end_line=row["source_end_line"],
        deleted=row["state"] == "deleted",
        sensitive=bool(row["sensitive"]),
        shown=bool(row["shown"]),
    )


def memory_from_row(row: Row) -> Memory:
    try:
        return to_memory(row)
    except (ValueError, TypeError, msgspec.MsgspecError) as error:
        raise _damaged(f"Memory {row['id']}") from error


def revision_from_row(id: str, row: Row) -> Revision:
    try:
        return Revision(
            revision=row["revision"],
            changed_at=moment(row["changed_at"]),
            action=row["action"],
            memory=msgspec.json.decode(row["snapshot"], type=prepared_type(Memory)),
        )
    except (ValueError, TypeError, msgspec.MsgspecError) as error:
        raise _damaged(f"Revision {row['revision']} of memory {id}") from error


def _damaged(what: str) -> Damaged:
    return Damaged(
        f"{what} is damaged and cannot be read. "
        "Restore a backup with `trivet backup --restore FILE`."
    )


def readable_memories(rows: Sequence[Row], damaged: Callable[[str], object]) -> Iterator[Memory]:
    for row in rows:
        try:
            yield memory_from_row(row)
        except Damaged:
            damaged(str(row["id"]))


def log_damaged(id: str) -> None:
    logger.warning(
        "Memory %s is damaged and was left out of an answer. Run `trivet doctor` for details.", id
    )


def to_revision(memory: Memory, action: str) -> Revision:
    return Revision(
        revision=memory.revision, changed_at=memory.updated_at, action=action, memory=memory
    )


def clear_likely_updates(connection: WriteTransaction, key: int) -> None:
    for name in ("clear", "cancel"):
        connection.execute(connection.sql("likely_updates")[name], {"key": key})


# May hold a secret.
_TEXTS = ("content", "title", "tags", "expanded_keywords", "source", "scope", "category")


def read_pending_edits(connection: Connection, memory: Memory) -> tuple[PendingEdit, ...]:
    key = key_by_id(connection, memory.id)
    return () if key is None else tuple(_pending_edits(connection, key, memory))


def _pending_edits(connection: Connection, key: int, memory: Memory) -> Iterator[PendingEdit]:
    sql, head = connection.sql("sync"), msgspec.to_builtins(memory)
    for row in connection.execute(sql["branches_of"], {"keys": f"[{key}]"}).fetchall():
        yield PendingEdit(
            "branch", row["rev"], _edited_memory(head, msgspec.json.decode(row["snapshot"]))
        )
    for row in connection.execute(sql["parked_words"], {"id": memory.id}).fetchall():
        yield PendingEdit(
            "parked",
            row["op"],
            _edited_memory(head, msgspec.json.decode(row["body"]).get("fields", {})),
        )
    for row in connection.execute(sql["carried_words"], {"key": key}).fetchall():
        for rev in _revs(msgspec.json.decode(row["bundle"])):
            yield PendingEdit("carried", rev["rev"], _edited_memory(head, rev["fields"]))


def _edited_memory(head: Mapping[str, Any], fields: Mapping[str, Any]) -> Memory:
    texts = {name: fields[name] for name in _TEXTS if name in fields}
    return msgspec.convert({**head, **texts}, prepared_type(Memory))


def rewrite_pending_edits(
    connection: WriteTransaction, key: int, id: str, beside: Sequence[PendingEdit]
) -> None:
    """Replace only the texts."""
    sql = connection.sql("sync")
    clean = {(edit.kind, edit.name): edit for edit in beside}
    for row in connection.execute(sql["branches_of"], {"keys": f"[{key}]"}).fetchall():
        edit = clean.get(("branch", row["rev"]))
        if edit is not None:
            snapshot = _with_texts_of(msgspec.json.decode(row["snapshot"]), edit)
            values = {
                "key": key,
                "rev": row["rev"],
                "snapshot": _json(snapshot),
                "terms": edit.terms,
            }
            connection.execute(sql["rewrite_branch"], values)
    for row in connection.execute(sql["parked_words"], {"id": id}).fetchall():
        edit = clean.get(("parked", row["op"]))
        body = msgspec.json.decode(row["body"])
        if edit is not None and "fields" in body:
            body["fields"] = _with_texts_of(body["fields"], edit)
            connection.execute(sql["rewrite_parked"], {"op": row["op"], "body": _json(body)})
    for row in connection.execute(sql["carried_words"], {"key": key}).fetchall():
        bundle = msgspec.json.decode(row["bundle"])
        for rev in _revs(bundle):
            edit = clean.get(("carried", rev["rev"]))
            rev["fields"] = (
                _with_texts_of(rev["fields"], edit) if edit is not None else rev["fields"]
            )
        connection.execute(sql["rewrite_carried"], {"key": key, "bundle": _json(bundle)})


def _revs(bundle: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [*bundle["trunk"], *bundle.get("branches", ())]


def _with_texts_of(fields: Mapping[str, Any], edit: PendingEdit) -> dict[str, Any]:
    texts = msgspec.to_builtins(edit.memory)
    return {name: texts[name] if name in _TEXTS else value for name, value in fields.items()}


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
