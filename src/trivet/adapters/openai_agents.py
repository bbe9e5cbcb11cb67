"""OpenAI Agents SDK: a `Session` that keeps conversations in a Trivet store, and memory tools for an agent.

    from agents import Agent, Runner
    from trivet import Trivet
    from trivet.adapters.openai_agents import TrivetSession, memory_tools

    memory = Trivet.open()
    agent = Agent(name="Assistant", tools=memory_tools(memory))
    await Runner.run(agent, "Which port has staging?", session=TrivetSession("ana-1", memory))

An item of a conversation is a memory in the state `archived`, so that recall does not find questions instead of
answers. Its source names the session; its lines there are the place where its batch begins and its own place.
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
# Carried by the pieces of an item that is too large for one memory.
PIECE = "piece"
# Carried by what a `pop_item` has claimed and not yet forgotten.
POPPED = "popped"
# Of ASCII, where a quotation mark takes two bytes; with `part` and `of` that fits the 32 KiB of a memory.
PIECE_CHARACTERS = 15_000
PRIVATE_MARK = "<private>"
PAGE = 1000
# Active is what a killed process could not archive any more.
KEPT_STATES: tuple[State, ...] = ("active", "archived", "superseded")

Item = dict[str, Any]


class TrivetSession:
    """A conversation: its items come back exactly, in order, also to other processes that have the store open.

    :param session_id: The name of the conversation.
    :param memory: The store, which is closed by whoever opened it. The key of a server needs the right `reveal`, or a
        conversation with a secret in it cannot be read.
    :param scope: The scope of the memories that hold the items.
    :param session_settings: The SDK's settings; `limit` says how many of the latest items a run is given.
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
        """The latest `limit` items, or all, oldest first."""
        if limit is None and self.session_settings is not None:
            limit = self.session_settings.limit
        return await run_in_thread(lambda: self._items(limit))

    async def add_items(self, items: list[Item]) -> None:
        """All of them, or at an error none; what another process adds at the same time stands before or after them."""
        if items:
            contents = [content for item in items for content in _contents(item)]
            await run_in_thread(lambda: self._add(contents))

    async def pop_item(self) -> Item | None:
        """Forget the latest item and return it. Of several processes that pop, each gets another item."""
        return await run_in_thread(self._pop)

    async def clear_session(self) -> None:
        """Forget every item. `trivet restore` could bring one back; `trivet purge` erases for good."""
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
            with suppress(Conflict):  # another process popped it already
                self._memory.edit(stored.id, state="archived")

    def _pop(self) -> Item | None:
        while groups := list(_grouped(self._kept())):
            group = groups[-1]
            item = self._item(group)
            try:
                self._memory.edit(group[-1].id, tags=(POPPED,), if_revision=group[-1].revision)
            except Conflict:  # another process popped it, or was just archiving it
                continue
            # From the last piece on: pieces without a last one are no item.
            for memory in reversed(group):
                self._memory.forget(memory.id)
            return item
        return None

    def _clear(self) -> None:
        for memory in reversed(self._kept()):
            self._memory.forget(memory.id)

    def _kept(self) -> list[Memory]:
        """The memories of this conversation in order.

        Batches that began at the same place, because two processes added at once, stand one after the other.
        """
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
        """With what was encrypted of it: the model that is shown it has said or seen it before."""
        return (
            self._memory.reveal(memory.id).content
            if placeholder_names(memory.content)
            else memory.content
        )


def memory_tools(memory: Trivet, tools: Sequence[str] = DEFAULT_TOOLS) -> list[FunctionTool]:
    """Function tools for an agent, by their names in docs/mcp.md: `memory_store`, `memory_recall` and so on."""
    return [_function_tool(memory, tool) for tool in select_tools(memory, tools)]


def _function_tool(memory: Trivet, tool: AgentTool) -> FunctionTool:
    async def invoke(context: ToolContext[Any], arguments: str) -> str:
        try:
            given = json.loads(arguments or "{}")
        except ValueError:
            return "Error: the arguments are not JSON. Call the tool again with an object of arguments."
        try:
            return await call_tool(memory, tool, given)
        except ToolError as error:
            return f"Error: {error}"

    return FunctionTool(
        name=tool.name,
        description=tool.description,
        params_json_schema=tool.input_schema(),
        on_invoke_tool=invoke,
        strict_json_schema=False,  # which would demand every optional argument
    )


def _contents(item: Item) -> list[tuple[str, tuple[str, ...]]]:
    """The texts that hold an item, each with its tags: one that people can read, or else pieces of JSON."""
    try:
        return [(encode(item), ())]
    except (
        InvalidInput,
        UnicodeEncodeError,
    ):  # too large, halves of characters, a secret over several fields
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
            f"items: one of them cannot be written as JSON ({error}). Nothing was added."
        ) from None


def _pieces(text: str) -> Iterator[str]:
    """With private parts, or a secret that is larger than a piece, all of each piece is private."""
    secrets = find(text)
    if private_spans(text) or any(span.stop - span.start > PIECE_CHARACTERS for span in secrets):
        unmarked = text.replace("<", "\\u003c")  # the same in JSON, and closes no mark
        yield from (PRIVATE_MARK + piece for piece in pieces(unmarked, PIECE_CHARACTERS))
    else:
        yield from pieces(text, PIECE_CHARACTERS, secrets)


def _grouped(memories: Sequence[Memory]) -> Iterator[list[Memory]]:
    """The memories of each item. Pieces of one that is not whole, because a process was killed, are left out."""
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
    assert memory.source is not None, "only memories of a session come here"
    return memory.source.start_line or 0, memory.created_at, _place(memory), memory.id


def _place(memory: Memory) -> int:
    return (memory.source.end_line or 0) if memory.source else 0


def _is_of(memory: Memory, source: str) -> bool:
    """A source that ends with a slash finds those below it too."""
    return memory.source is not None and memory.source.uri == source


def _checked_source(session_id: str) -> str:
    source = SOURCE_PREFIX + session_id
    if not session_id or len(source) > MAX_SOURCE_CHARACTERS:
        most = MAX_SOURCE_CHARACTERS - len(SOURCE_PREFIX)
        raise InvalidInput(f"session_id: it has {len(session_id)} characters; give 1 to {most}.")
    if find(source):
        raise InvalidInput(
            "session_id: it looks like a secret, and a session's name is shown everywhere."
        )
    return source
