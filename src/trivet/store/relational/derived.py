"""What follows from a memory's row, in the tables beside it: tags, words, fingerprint, and the queues of what reads it.

It is written in the transaction that writes the row.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from trivet.memory_fields import as_json
from trivet.store.records import Document
from trivet.store.relational.database import WriteTransaction
from trivet.store.relational.likely_updates import clear_likely_updates
from trivet.store.relational.readings import clear_graph
from trivet.types import Memory


def clear_derived(connection: WriteTransaction, key: int) -> None:
    connection.execute(connection.sql("memories")["delete_tags"], {"key": key})
    connection.execute(connection.sql("lexical")["delete"], {"key": key})
    connection.execute(connection.sql("lexical")["delete_fingerprint"], {"key": key})
    connection.execute(connection.sql("jobs")["cancel"], {"key": key})
    connection.execute(connection.sql("vectors")["delete_passages"], {"memory": key})
    clear_graph(connection, key)
    clear_likely_updates(connection, key)


def write_derived(connection: WriteTransaction, key: int, memory: Memory, document: Document) -> None:
    write_all_derived(connection, [(key, memory, document)])


def write_all_derived(connection: WriteTransaction, written: Sequence[tuple[int, Memory, Document]]) -> None:
    """What follows from memories that were just written: statements of one kind together, which saves a tenth."""
    tagged = [{"key": key, "tags": as_json(memory.tags)} for key, memory, _ in written if memory.tags]
    connection.put_all("memories", "insert_tags", tagged)
    living = [(key, document) for key, memory, document in written if memory.state != "deleted"]
    connection.put_all("lexical", "insert", [_lexical_row(key, document) for key, document in living])
    connection.put_all("lexical", "insert_fingerprint", [_fingerprint_row(key, document) for key, document in living])
    keys = [{"key": key} for key, _ in living]
    for queue in ("jobs", "graph", "likely_updates"):
        connection.put_all(queue, "enqueue", keys)
    connection.note_change(*(key for key, _, _ in written))


def with_branches(connection: WriteTransaction, key: int, document: Document) -> Document:
    """A memory is found by the words of edits that clashed with it too, until somebody resolves them."""
    rows = connection.execute(connection.sql("sync")["branch_terms"], {"key": key}).fetchall()
    words = tuple(word for row in rows for word in row[0].split(" ") if word)
    return msgspec.structs.replace(document, keywords=(*document.keywords, *words)) if words else document


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
