"""At a session's start, and again after its conversation was cut short: what is known of the project and its user."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath

from trivet.agents.hooks.event import Event, answer_of
from trivet.agents.hooks.prompt import least_relevance
from trivet.agents.hooks.shown_memories import Seen
from trivet.errors import NotFound
from trivet.memory.answer.excerpts import estimate_tokens
from trivet.serve.mcp import results as lean
from trivet.serve.mcp.text import Wrapper, label
from trivet.serve.resident.hook_calls import HookCall
from trivet.trivet import Trivet
from trivet.types import Memory, Page

PREFERENCES = "preferences"
# Looked through for each reason; the budget of tokens shows far fewer.
MOST_OF_A_KIND = 20
# Many a folder has the name of a common word, so little is taken by it.
MOST_BY_NAME = 5
OPENING = "From the user's long-term memory (Trivet), for this session."

Chosen = tuple[Memory, str]


def at_start(memory: Trivet, call: HookCall, event: Event) -> bytes:
    settings = call.settings
    seen = Seen(call.environment, event.session)
    lost: tuple[str, ...] = ()
    if event.source == "clear":
        seen.forget()
    elif event.source == "compact":
        seen.compact()
        lost = seen.lost()
    if not settings.hook_start_tokens:
        return b""
    shown = seen.shown()
    chosen = (one for one in _candidates(memory, call, event, lost) if one[0].id not in shown)
    text, ids = _packed(chosen, settings.hook_start_tokens, settings.hook_bytes)
    seen.add(ids)
    return answer_of(event, text, "SessionStart")


def _candidates(memory: Trivet, call: HookCall, event: Event, lost: tuple[str, ...]) -> Iterator[Chosen]:
    """The most needed first: what this conversation had in sight, then the project's own, then the user's ways."""
    for id in lost:
        yield from _by_id(memory, id)
    project = PurePath(event.folder).name
    scopes = [scope for scope in memory.stats().scopes if _of_project(scope, project)]
    for scope in scopes:
        page = memory.list(scope=scope, sort="importance", limit=MOST_OF_A_KIND)
        yield from ((one, "of this project's scope") for one in page.memories)
    if project:
        answer = memory.recall(project, limit=MOST_BY_NAME, relevance_at_least=least_relevance(call.settings))
        yield from ((hit.memory, "about a thing of this project's name") for hit in answer.hits)
    if PREFERENCES in call.settings.categories:
        page = memory.list(category=[PREFERENCES], scope=call.settings.scope, sort="importance", limit=MOST_OF_A_KIND)
        yield from ((one, "a preference of the user") for one in page.memories)


def _by_id(memory: Trivet, id: str) -> Iterator[Chosen]:
    try:
        found = memory.get(id)
    except NotFound:
        return  # purged since
    if found.state != "deleted":
        yield found, "in sight before the conversation was cut short"


def _of_project(scope: str, project: str) -> bool:
    return bool(project) and scope.rpartition("/")[2].lower() == project.lower()


def _packed(chosen: Iterator[Chosen], most_tokens: int, most_bytes: int) -> tuple[str, list[str]]:
    """What fits, each once; one that is too long makes room for the next."""
    wrapper = Wrapper()
    rows, ids = [f"{OPENING} {wrapper.notice}"], []
    bytes_left, tokens_left = most_bytes - len(rows[0].encode()), most_tokens
    for memory, reason in chosen:
        if memory.id in ids or memory.sensitive:  # which is masked, and would say nothing
            continue
        (shown,) = lean.listed(Page(memories=(memory,), total=1, offset=0)).memories
        row = f"- {reason}\n{wrapper.wrap(f'{label(shown)}{chr(10)}{shown.content}', memory.id)}"
        bytes_needed, tokens_needed = len(row.encode()) + 1, estimate_tokens(row)
        if bytes_needed <= bytes_left and tokens_needed <= tokens_left:
            rows.append(row)
            ids.append(memory.id)
            bytes_left, tokens_left = bytes_left - bytes_needed, tokens_left - tokens_needed
    return ("\n".join(rows), ids) if ids else ("", [])
