"""OpenAI Agents SDK: a `Session` that keeps conversations in a Trivet store, and memory tools.

Items are `archived` memories, so recall does not return questions as answers.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

from agents import FunctionTool
from agents.memory import SessionSettings
from agents.tool_context import ToolContext

from trivet.adapters.shared import (
    DEFAULT_TOOLS,
    ToolError,
    call_tool,
    decode,
    encode,
    pieces,
    run_in_thread,
    select_tools,
)
from trivet.contract.parameters import MAX_SOURCE_CHARACTERS
from trivet.errors import Conflict, InvalidInput
from trivet.secrets.detect import find
from trivet.secrets.masking import placeholder_names, private_spans
from trivet.serve.mcp.tools import AgentTool
from trivet.trivet import Trivet
from trivet.types import Memory, State

SOURCE_PREFIX = "openai-agents:"
# Tag of pieces of an item too large for one memory.
PIECE = "piece"
# Tag of an item that `pop_item` has claimed.
POPPED = "popped"
# ASCII only, and an escaped quotation mark takes two bytes; so a piece fits the 32 KiB of a memory.
PIECE_CHARACTERS = 15_000
PRIVATE_MARK = "<private>"
PAGE = 1000
# Items stay active if a process was killed before archiving them.
KEPT_STATES: tuple[State, ...] = ("active", "archived", "superseded")

Item = dict[str, Any]


class TrivetSession:
    """A conversation whose items come back exactly and in order, in every process.

    Args:
        session_id: The name of the conversation.
        memory: The store; the caller closes it. A server's key needs the right `reveal` if the
            conversation contains secrets.
        scope: The scope of the items.
        session_settings: The SDK's settings; `limit` is the number of latest items per run.
    """

    def __init__(
        self,
        session_id: str,
        memory: Trivet,
        *,
        scope: str = "openai-agents",
        session_settings: SessionSettings | None = None,
    ) -> None:
        self.session_id = session_id
        self.session_settings = session_settings
        self._memory = memory
        self._scope = scope
        self._source = _checked_source(session_id)

    async def get_items(self, limit: int | None = None) -> list[Item]:
        if limit is None and self.session_settings is not None:
            limit = self.session_settings.limit
        return await run_in_thread(lambda: self._items(limit))

    async def add_items(self, items: list[Item]) -> None:
        """Add all items or, on an error, none; concurrent batches do not interleave."""
        if items:
            contents = [content for item in items for content in _contents(item)]
            await run_in_thread(lambda: self._add(contents))

    async def pop_item(self) -> Item | None:
        """Forget and return the latest item; concurrent callers get different ones."""
        return await run_in_thread(self._pop)

    async def clear_session(self) -> None:
        """Forget every item; `trivet purge` erases them."""
        await run_in_thread(self._clear)

    def _items(self, limit: int | None) -> list[Item]:
        groups = list(_grouped(self._kept()))
        if limit is not None and limit >= 0:
            groups = groups[len(groups) - limit :] if limit < len(groups) else groups
        return [self._item(group) for group in groups]

    def _add(self, contents: Sequence[tuple[str, tuple[str, ...]]]) -> None:
        first = max((_place(memory) for memory in self._kept()), default=0) + 1
        rows = [
            {
                "content": content,
                "tags": tags,
                "scope": self._scope,
                "category": "events",
                "source": self._source,
                "start_line": first,
                "end_line": first + number,
            }
            for number, (content, tags) in enumerate(contents)
        ]
        for stored in self._memory.remember_many(rows):
            with suppress(Conflict):  # another process has popped it
                self._memory.edit(stored.id, state="archived")

    def _pop(self) -> Item | None:
        while groups := list(_grouped(self._kept())):
            group = groups[-1]
            item = self._item(group)
            try:
                self._memory.edit(group[-1].id, tags=(POPPED,), if_revision=group[-1].revision)
            except Conflict:  # another process popped or archived it
                continue
            # The last piece first: without it, the remaining pieces are not an item.
            for memory in reversed(group):
                self._memory.forget(memory.id)
            return item
        return None

    def _clear(self) -> None:
        for memory in reversed(self._kept()):
            self._memory.forget(memory.id)

    def _kept(self) -> list[Memory]:
        found: dict[str, Memory] = {}
        offset = 0
        while page := self._memory.list(
            scope=self._scope, source=self._source, state=KEPT_STATES, limit=PAGE, offset=offset
        ).memories:
            found |= {memory.id: memory for memory in page if _is_of(memory, self._source)}
            offset += len(page)
            if len(page) < PAGE:
                break
        return sorted(found.values(), key=_order)

    def _item(self, group: Sequence[Memory]) -> Item:
        contents = [self._content(memory) for memory in group]
        if PIECE not in group[0].tags:
            return decode(contents[0])
        texts = (decode(content)["text"].removeprefix(PRIVATE_MARK) for content in contents)
        whole: Item = json.loads("".join(texts))
        return whole

    def _content(self, memory: Memory) -> str:
        """Return the content with its secrets, which the model has already seen."""
        return (
            self._memory.reveal(memory.id).content
            if placeholder_names(memory.content)
            else memory.content
        )


def memory_tools(memory: Trivet, tools: Sequence[str] = DEFAULT_TOOLS) -> list[FunctionTool]:
    """Return function tools by their names in docs/mcp.md, such as `memory_store`."""
    return [_function_tool(memory, tool) for tool in select_tools(memory, tools)]


def _function_tool(memory: Trivet, tool: AgentTool) -> FunctionTool:
    async def invoke(context: ToolContext[Any], arguments: str) -> str:
        try:
            given = json.loads(arguments or "{}")
        except ValueError:
            return "Error: the arguments are not JSON. Call the tool again with a JSON object."
        try:
            return await call_tool(memory, tool, given)
        except ToolError as error:
            return f"Error: {error}"

    return FunctionTool(
        name=tool.name,
        description=tool.description,
        params_json_schema=tool.input_schema(),
        on_invoke_tool=invoke,
        strict_json_schema=False,  # strict mode would require every optional argument
    )


def _contents(item: Item) -> list[tuple[str, tuple[str, ...]]]:
    try:
        return [(encode(item), ())]
    # Too large, lone surrogates, or a secret that spans fields.
    except (InvalidInput, UnicodeEncodeError):
        texts = list(_pieces(_json(item)))
    return [
        (encode({"part": number, "of": len(texts), "text": text}), (PIECE,))
        for number, text in enumerate(texts, 1)
    ]


def _json(item: Item) -> str:
    try:
        return json.dumps(item, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InvalidInput(
            f"items: an item cannot be written as JSON ({error}). Nothing was added."
        ) from None


def _pieces(text: str) -> Iterator[str]:
    """Yield pieces, all private if the text has private parts or an overlong secret."""
    secrets = find(text)
    if private_spans(text) or any(span.stop - span.start > PIECE_CHARACTERS for span in secrets):
        unmarked = text.replace("<", "\\u003c")  # equal in JSON, but cannot close a mark
        yield from (PRIVATE_MARK + piece for piece in pieces(unmarked, PIECE_CHARACTERS))
    else:
        yield from pieces(text, PIECE_CHARACTERS, secrets)


def _grouped(memories: Sequence[Memory]) -> Iterator[list[Memory]]:
    """Yield each item's memories; incomplete items of a killed process are skipped."""
    group: list[Memory] = []
    for memory in memories:
        if PIECE not in memory.tags:
            group = []
            if POPPED not in memory.tags:
                yield [memory]
            continue
        part, of = _part(memory)
        group = [*group, memory] if part == len(group) + 1 else []
        if group and part == of:
            yield group
            group = []


def _part(memory: Memory) -> tuple[int, int]:
    lines = memory.content.split("\n", 2)
    return int(lines[0].removeprefix("part: ")), int(lines[1].removeprefix("of: "))


def _order(memory: Memory) -> tuple[Any, ...]:
    assert memory.source is not None, "every item of a session has a source"
    return memory.source.start_line or 0, memory.created_at, _place(memory), memory.id


def _place(memory: Memory) -> int:
    return (memory.source.end_line or 0) if memory.source else 0


def _is_of(memory: Memory, source: str) -> bool:
    """Exclude sessions below this one: a source ending with a slash matches those too."""
    return memory.source is not None and memory.source.uri == source


def _checked_source(session_id: str) -> str:
    source = SOURCE_PREFIX + session_id
    if not session_id or len(source) > MAX_SOURCE_CHARACTERS:
        most = MAX_SOURCE_CHARACTERS - len(SOURCE_PREFIX)
        raise InvalidInput(f"session_id: {len(session_id)} characters; use 1 to {most}.")
    if find(source):
        raise InvalidInput(
            "session_id: it looks like a secret, but a session's name is public. Use another name."
        )
    return source
