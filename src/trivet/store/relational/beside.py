"""What is said of a memory beside its history: edits that clashed, were refused, or wait to be brought back.

A redaction takes secrets out of these too. The last two are a laptop's alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from trivet.decoding import known_type
from trivet.store.records import Beside
from trivet.store.relational.database import Connection, WriteTransaction
from trivet.types import Memory

# The texts of a memory, in which a secret may be.
_TEXTS = ("content", "title", "tags", "expanded_keywords", "source", "scope", "category")


def read_beside(connection: Connection, memory: Memory) -> tuple[Beside, ...]:
    row = connection.execute(connection.sql("memories")["by_id"], {"id": memory.id}).fetchone()
    return tuple(_sayings(connection, int(row["key"]), memory)) if row is not None else ()


def _sayings(connection: Connection, key: int, memory: Memory) -> Iterator[Beside]:
    sql, head = connection.sql("sync"), msgspec.to_builtins(memory)
    for row in connection.execute(sql["branches_of"], {"keys": f"[{key}]"}).fetchall():
        yield Beside("branch", row["rev"], _memory(head, msgspec.json.decode(row["snapshot"])))
    for row in connection.execute(sql["parked_words"], {"id": memory.id}).fetchall():
        yield Beside("parked", row["op"], _memory(head, msgspec.json.decode(row["body"]).get("fields", {})))
    for row in connection.execute(sql["carried_words"], {"key": key}).fetchall():
        for rev in _revs(msgspec.json.decode(row["bundle"])):
            yield Beside("carried", rev["rev"], _memory(head, rev["fields"]))


def _memory(head: Mapping[str, Any], fields: Mapping[str, Any]) -> Memory:
    """An edit may name a few fields alone; the others are as the memory has them."""
    said = {name: fields[name] for name in _TEXTS if name in fields}
    return msgspec.convert({**head, **said}, known_type(Memory))


def rewrite_beside(connection: WriteTransaction, key: int, id: str, beside: Sequence[Beside]) -> None:
    """Each says its texts as they are given, and whatever else it said."""
    sql = connection.sql("sync")
    clean = {(one.kind, one.name): one for one in beside}
    for row in connection.execute(sql["branches_of"], {"keys": f"[{key}]"}).fetchall():
        one = clean.get(("branch", row["rev"]))
        if one is not None:
            snapshot = _rewritten(msgspec.json.decode(row["snapshot"]), one)
            values = {"key": key, "rev": row["rev"], "snapshot": _json(snapshot), "terms": one.terms}
            connection.execute(sql["rewrite_branch"], values)
    for row in connection.execute(sql["parked_words"], {"id": id}).fetchall():
        one = clean.get(("parked", row["op"]))
        body = msgspec.json.decode(row["body"])
        if one is not None and "fields" in body:
            body["fields"] = _rewritten(body["fields"], one)
            connection.execute(sql["rewrite_parked"], {"op": row["op"], "body": _json(body)})
    for row in connection.execute(sql["carried_words"], {"key": key}).fetchall():
        bundle = msgspec.json.decode(row["bundle"])
        for rev in _revs(bundle):
            one = clean.get(("carried", rev["rev"]))
            rev["fields"] = _rewritten(rev["fields"], one) if one is not None else rev["fields"]
        connection.execute(sql["rewrite_carried"], {"key": key, "bundle": _json(bundle)})


def _revs(bundle: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [*bundle["trunk"], *bundle.get("branches", ())]


def _rewritten(fields: Mapping[str, Any], one: Beside) -> dict[str, Any]:
    texts = msgspec.to_builtins(one.memory)
    return {name: texts[name] if name in _TEXTS else value for name, value in fields.items()}


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
