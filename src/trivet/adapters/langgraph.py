"""Any text as a part of a scope, and back: characters that a scope cannot have stand there as their numbers, between
dots.

LangGraph: a `BaseStore` over a Trivet store.

    from trivet import Trivet
    from trivet.adapters.langgraph import TrivetStore

    graph = builder.compile(store=TrivetStore(Trivet.open()))

A namespace is a scope below the store's own, an item is a memory whose content is its value, and its key stands in the
memory's source. The id follows from both, so a repeated put changes the memory, which keeps its earlier revisions.
"""

from __future__ import annotations

import operator
import re
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from itertools import islice
from typing import Any, cast

from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    TTLConfig,
    validate_op_namespace,
)

from trivet.adapters.shared import decode, encode, run_in_thread
from trivet.common.clock import moment, now, stamp
from trivet.contract.parameters import MAX_SOURCE_CHARACTERS
from trivet.errors import Conflict, InvalidInput, NotFound
from trivet.secrets.detect import find
from trivet.secrets.masking import placeholder_names
from trivet.trivet import Trivet
from trivet.types import Memory

_ESCAPED = re.compile(r"[^\w-]")
_ESCAPE = re.compile(r"\.([0-9a-f]{1,6})\.")


def encode_scope_label(text: str) -> str:
    return _ESCAPED.sub(lambda match: f".{ord(match[0]):x}.", text)


def decode_scope_label(label: str) -> str:
    return _ESCAPE.sub(lambda match: chr(int(match[1], 16)), label)


KEY_PREFIX = "langgraph:"
# Carried by an item that was put with index=False: it is listed and read, and no query finds it.
NOT_INDEXED = "not-indexed"
MOST_HITS = 100
PAGE = 200
_NAMESPACE = uuid.UUID("b7d1c9ce-6b2a-5a0e-8f0d-2c1f6b0d9e57")

Namespace = tuple[str, ...]


class TrivetStore(BaseStore):
    """Items of LangGraph as memories.

    :param memory: The store, which stays open as long as this object is used, and is closed by whoever opened it.
    :param scope: The scope below which all namespaces lie.
    :param relevance_at_least: If given, a query returns only items that are at least so likely to be relevant;
        otherwise the best of all, as LangGraph's own stores do.
    :param reveal: Give values back with the secrets that were found in them, each time noted in the audit record;
        otherwise placeholders stand for these.
    :param ttl: LangGraph's settings for items that expire; of these `default_ttl` is heeded.
    """

    supports_ttl = True

    def __init__(
        self,
        memory: Trivet,
        *,
        scope: str = "langgraph",
        relevance_at_least: float | None = None,
        reveal: bool = False,
        ttl: TTLConfig | None = None,
    ) -> None:
        self._memory = memory
        self._scope = scope
        self._relevance_at_least = relevance_at_least
        self._reveal = reveal
        self.ttl_config = ttl

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Reads see what was there before the batch; of several puts to one key the last counts."""
        asked = list(ops)
        for op in asked:
            validate_op_namespace(op)
        results = [self._read(op) for op in asked]
        self._write([op for op in asked if isinstance(op, PutOp)])
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        asked = list(ops)
        return await run_in_thread(lambda: self.batch(asked))

    def _read(self, op: Op) -> Result:
        match op:
            case GetOp():
                memory = self._find(op.namespace, op.key)
                return (
                    Item(**self._fields(memory))
                    if memory is not None and _is_alive(memory)
                    else None
                )
            case SearchOp():
                return cast(Result, list(islice(self._found(op), op.offset, op.offset + op.limit)))
            case ListNamespacesOp():
                return cast(Result, self._namespaces(op))
            case PutOp():
                return None
        raise InvalidInput(f"LangGraph's operation {type(op).__name__} is not known here.")

    def _found(self, op: SearchOp) -> Iterator[SearchItem]:
        """What recall finds, best first, then the rest without a score: a filter shall not leave too few."""
        scope = self._scope_of(op.namespace_prefix)
        ranked: list[SearchItem] = []
        shown: set[str] = set()
        if op.query and op.query.strip():
            answer = self._memory.recall(
                op.query,
                scope=scope,
                limit=MOST_HITS,
                collapse=False,
                relevance_at_least=self._relevance_at_least or 0.0,
            )
            hits = [
                hit for hit in answer.hits if _key(hit) is not None and NOT_INDEXED not in hit.tags
            ]
            ranked = [SearchItem(**self._fields(hit), score=hit.relevance) for hit in hits]
            shown = {hit.id for hit in hits}
            yield from (item for item in ranked if matches(item.value, op.filter))
            if self._relevance_at_least is not None:
                return
        for memory in self._listed(scope):
            if memory.id not in shown:
                item = SearchItem(**self._fields(memory))
                if matches(item.value, op.filter):
                    yield item

    def _listed(self, scope: str) -> Iterator[Memory]:
        """Every item at or below a scope, newest first."""
        offset = 0
        while memories := self._memory.list(scope=scope, limit=PAGE, offset=offset).memories:
            yield from (memory for memory in memories if _key(memory) is not None)
            offset += len(memories)

    def _namespaces(self, op: ListNamespacesOp) -> list[Namespace]:
        found = {self._namespace_of(memory.scope) for memory in self._listed(self._scope)}
        conditions = op.match_conditions or ()
        matching = {
            one
            for one in found
            if all(_namespace_matches(condition, one) for condition in conditions)
        }
        return sorted({one[: op.max_depth] for one in matching})[op.offset : op.offset + op.limit]

    def _write(self, puts: Sequence[PutOp]) -> None:
        """New items in one transaction, or none of them; changed and deleted ones each in their own."""
        last = {(op.namespace, op.key): op for op in puts}
        rows = {at: self._row(op) for at, op in last.items() if op.value is not None}
        held = {at: self._find(*at) for at in last}
        new = [at for at in rows if held[at] is None]
        try:
            self._memory.remember_many([rows[at] for at in new])
        except Conflict:  # another program may have put one of these just now
            if not any(self._find(*at) for at in new):
                raise
            self._write(puts)
            return
        for at, memory in held.items():
            if memory is not None:
                self._change(memory, rows.get(at))

    def _change(self, memory: Memory, row: Mapping[str, Any] | None) -> None:
        if row is None:
            self._memory.forget(memory.id)
            return
        if memory.state == "deleted":
            self._memory.restore(memory.id)
        if memory.state == "archived":
            self._memory.edit(memory.id, state="active")
        self._memory.edit(
            memory.id, content=row["content"], tags=row["tags"], valid_to=row.get("valid_to")
        )

    def _row(self, op: PutOp) -> dict[str, Any]:
        assert op.value is not None, "a put without a value is a deletion"
        row: dict[str, Any] = {
            "id": self._id(op.namespace, op.key),
            "content": encode(op.value),
            "scope": self._scope_of(op.namespace),
            "source": _checked_source(op.key),
            "tags": (NOT_INDEXED,) if op.index is False else (),
        }
        if op.ttl is not None:
            row["valid_to"] = stamp(moment(now()) + timedelta(minutes=op.ttl))
        return row

    def _find(self, namespace: Namespace, key: str) -> Memory | None:
        """The memory of an item, also one that was deleted or has expired."""
        try:
            return self._memory.get(self._id(namespace, key))
        except NotFound:
            return self._found_by_key(namespace, key) if self._memory.server else None

    def _found_by_key(self, namespace: Namespace, key: str) -> Memory | None:
        """A server gives a memory another id where the one asked for is taken by somebody else's."""
        scope = self._scope_of(namespace)
        page = self._memory.list(
            scope=scope, source=KEY_PREFIX + key, state=("active", "superseded", "deleted")
        )
        return next((memory for memory in page.memories if memory.scope == scope), None)

    def _fields(self, memory: Memory) -> dict[str, Any]:
        content = memory.content
        if self._reveal and placeholder_names(content):
            content = self._memory.reveal(memory.id).content
        return {
            "value": decode(content),
            "key": _key(memory),
            "namespace": self._namespace_of(memory.scope),
            "created_at": memory.created_at,
            "updated_at": memory.updated_at,
        }

    def _id(self, namespace: Namespace, key: str) -> str:
        return str(uuid.uuid5(_NAMESPACE, f"{self._scope_of(namespace)}\n{key}"))

    def _scope_of(self, namespace: Namespace) -> str:
        return "/".join([self._scope, *map(encode_scope_label, namespace)])

    def _namespace_of(self, scope: str) -> Namespace:
        labels = scope.removeprefix(self._scope).split("/")[1:]
        return tuple(map(decode_scope_label, labels))


def matches(value: Mapping[str, Any], wanted: Mapping[str, Any] | None) -> bool:
    """LangGraph's filter: fields that are equal, or compare as $eq, $ne, $gt, $gte, $lt, $lte say."""
    return all(_field_matches(_at(value, name), one) for name, one in (wanted or {}).items())


def _at(value: Any, name: str) -> Any:
    """The field of this name, or `user.name`: of its inner value."""
    if not isinstance(value, dict) or name in value or "." not in name:
        return value.get(name) if isinstance(value, dict) else None
    outer, _, inner = name.partition(".")
    return _at(value.get(outer), inner)


_COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "$eq": operator.eq,
    "$ne": operator.ne,
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}


def _field_matches(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, Mapping):
        if any(name.startswith("$") for name in wanted):
            return all(_compares(value, name, other) for name, other in wanted.items())
        return isinstance(value, dict) and matches(value, wanted)
    if isinstance(wanted, list | tuple):
        return (
            isinstance(value, list)
            and len(value) == len(wanted)
            and all(map(_field_matches, value, wanted))
        )
    return bool(value == wanted)


def _compares(value: Any, name: str, other: Any) -> bool:
    """What cannot be compared, such as a missing field with a number, does not match."""
    if name not in _COMPARISONS:
        raise ValueError(f"Unsupported operator: {name}. There are: {', '.join(_COMPARISONS)}.")
    ordered = name in ("$eq", "$ne") or _comparable(value, other)
    return ordered and bool(_COMPARISONS[name](value, other))


def _comparable(value: Any, other: Any) -> bool:
    return all(isinstance(one, int | float) for one in (value, other)) or all(
        isinstance(one, str) for one in (value, other)
    )


def _namespace_matches(condition: MatchCondition, namespace: Namespace) -> bool:
    path = condition.path
    if len(namespace) < len(path):
        return False
    part = (
        namespace[: len(path)]
        if condition.match_type == "prefix"
        else namespace[len(namespace) - len(path) :]
    )
    return all(wanted in ("*", label) for wanted, label in zip(path, part, strict=True))


def _checked_source(key: str) -> str:
    source = KEY_PREFIX + key
    if len(source) > MAX_SOURCE_CHARACTERS:
        raise InvalidInput(
            f"key: it has {len(key)} characters; up to {MAX_SOURCE_CHARACTERS - len(KEY_PREFIX)} fit."
        )
    if find(source):
        raise InvalidInput(
            "key: it looks like a secret, and a key is shown everywhere. Keep the secret in the value."
        )
    return source


def _key(memory: Memory) -> str | None:
    """The key of an item; None for a memory that LangGraph did not put there."""
    source = memory.source.uri if memory.source else ""
    return source.removeprefix(KEY_PREFIX) if source.startswith(KEY_PREFIX) else None


def _is_alive(memory: Memory) -> bool:
    in_time = memory.valid_to is None or memory.valid_to > moment(now())
    return in_time and memory.state in ("active", "superseded")
