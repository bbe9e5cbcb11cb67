"""LangGraph: a `BaseStore` over a Trivet store.

A namespace is a scope below the store's own. An item is a memory whose id derives from namespace
and key, so that a repeated put edits it.
"""

from __future__ import annotations

import operator
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

from trivet.adapters.shared import (
    decode,
    decode_scope_label,
    encode,
    encode_scope_label,
    run_in_thread,
)
from trivet.common.clock import moment, now, stamp
from trivet.contract.parameters import MAX_SOURCE_CHARACTERS
from trivet.errors import Conflict, InvalidInput, NotFound
from trivet.secrets.detect import find
from trivet.secrets.masking import placeholder_names
from trivet.trivet import Trivet
from trivet.types import Memory

KEY_PREFIX = "langgraph:"
# Tag of an item put with index=False: listings and reads return it, queries do not.
NOT_INDEXED = "not-indexed"
MOST_HITS = 100
PAGE = 200
_NAMESPACE = uuid.UUID("b7d1c9ce-6b2a-5a0e-8f0d-2c1f6b0d9e57")

Namespace = tuple[str, ...]


class TrivetStore(BaseStore):
    """LangGraph items as memories.

    Args:
        memory: The store; the caller closes it.
        scope: The scope above all namespaces.
        relevance_at_least: Minimum relevance of a query's items; by default all are ranked.
        reveal: Return secrets instead of placeholders; the audit record notes it.
        ttl: LangGraph's settings for expiry; only `default_ttl` is used.
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
        """Perform operations; reads see the state before, and the last put per key wins."""
        operations = list(ops)
        for op in operations:
            validate_op_namespace(op)
        results = [self._read(op) for op in operations]
        self._write([op for op in operations if isinstance(op, PutOp)])
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        operations = list(ops)
        return await run_in_thread(lambda: self.batch(operations))

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
        raise InvalidInput(f"The LangGraph operation {type(op).__name__} is not supported.")

    def _found(self, op: SearchOp) -> Iterator[SearchItem]:
        """Yield ranked hits, then the rest without a score, so a filter leaves enough items."""
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
        last = {(op.namespace, op.key): op for op in puts}
        rows = {at: self._row(op) for at, op in last.items() if op.value is not None}
        held = {at: self._find(*at) for at in last}
        new = [at for at in rows if held[at] is None]
        try:
            self._memory.remember_many([rows[at] for at in new])
        except Conflict:  # another program may have just put one of these
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
        assert op.value is not None, "the caller handles deletions"
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
        try:
            return self._memory.get(self._id(namespace, key))
        except NotFound:
            return self._found_by_key(namespace, key) if self._memory.server else None

    def _found_by_key(self, namespace: Namespace, key: str) -> Memory | None:
        """Find by key: a server assigns another id if another user's memory has it."""
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
    """Apply LangGraph's filter: equal fields, or operators such as $gt."""
    return all(_field_matches(_at(value, name), one) for name, one in (wanted or {}).items())


def _at(value: Any, name: str) -> Any:
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
    if name not in _COMPARISONS:
        raise ValueError(f"Unsupported operator: {name}. Available: {', '.join(_COMPARISONS)}.")
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
            f"key: {len(key)} characters; use at most {MAX_SOURCE_CHARACTERS - len(KEY_PREFIX)}."
        )
    if find(source):
        raise InvalidInput(
            "key: it looks like a secret, but a key is public. Put the secret into the value."
        )
    return source


def _key(memory: Memory) -> str | None:
    source = memory.source.uri if memory.source else ""
    return source.removeprefix(KEY_PREFIX) if source.startswith(KEY_PREFIX) else None


def _is_alive(memory: Memory) -> bool:
    in_time = memory.valid_to is None or memory.valid_to > moment(now())
    return in_time and memory.state in ("active", "superseded")
