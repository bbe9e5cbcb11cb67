"""At a session's start, and after its conversation was shortened: what is known of the project and its user."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath

from trivet.agents.hooks.event import Event, answer_of
from trivet.agents.hooks.prompt import least_relevance
from trivet.agents.hooks.shown_memories import ShownMemories
from trivet.errors import NotFound
from trivet.memory.passages import estimate_tokens
from trivet.serve.mcp import results as agent_results
from trivet.serve.mcp.text import Wrapper, label
from trivet.serve.resident.hook_calls import HookCall
from trivet.trivet import Trivet
from trivet.types import Memory, Page

PREFERENCES = "preferences"
# Memories looked at for each reason; the token budget lets far fewer through.
MOST_OF_A_KIND = 20
# Few by the project's name alone: many a folder is called by a common word.
MOST_BY_NAME = 5
OPENING = "From the user's long-term memory (Trivet), for this session."

# A memory and the reason why it is shown.
Chosen = tuple[Memory, str]


def at_start(memory: Trivet, call: HookCall, event: Event) -> bytes:
    settings = call.settings
    shown_before = ShownMemories(call.environment, event.session)
    lost: tuple[str, ...] = ()
    if event.source == "clear":
        shown_before.forget()
    elif event.source == "compact":
        shown_before.compact()
        lost = shown_before.lost()
    if not settings.hook_start_tokens:
        return b""
    shown = shown_before.shown()
    chosen = (one for one in _candidates(memory, call, event, lost) if one[0].id not in shown)
    text, ids = _packed(chosen, settings.hook_start_tokens, settings.hook_bytes)
    shown_before.add(ids)
    return answer_of(event, text, "SessionStart")


def _candidates(memory: Trivet, call: HookCall, event: Event, lost: tuple[str, ...]) -> Iterator[Chosen]:
    """In order of need: what the model saw before the cut, then the project's scope, then the user's preferences."""
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
        return  # purged meanwhile
    if found.state != "deleted":
        yield found, "in sight before the conversation was cut short"


def _of_project(scope: str, project: str) -> bool:
    return bool(project) and scope.rpartition("/")[2].lower() == project.lower()


def _packed(chosen: Iterator[Chosen], most_tokens: int, most_bytes: int) -> tuple[str, list[str]]:
    """The text of as many as fit, each once; one that is too long is skipped."""
    wrapper = Wrapper()
    rows, ids = [f"{OPENING} {wrapper.notice}"], []
    bytes_left, tokens_left = most_bytes - len(rows[0].encode()), most_tokens
    for memory, reason in chosen:
        if memory.id in ids or memory.sensitive:  # a sensitive one is masked, and would say nothing
            continue
        (shown,) = agent_results.listed(Page(memories=(memory,), total=1, offset=0)).memories
        row = f"- {reason}\n{wrapper.wrap(f'{label(shown)}{chr(10)}{shown.content}', memory.id)}"
        bytes_needed, tokens_needed = len(row.encode()) + 1, estimate_tokens(row)
        if bytes_needed <= bytes_left and tokens_needed <= tokens_left:
            rows.append(row)
            ids.append(memory.id)
            bytes_left, tokens_left = bytes_left - bytes_needed, tokens_left - tokens_needed
    return ("\n".join(rows), ids) if ids else ("", [])
