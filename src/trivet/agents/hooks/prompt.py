"""Before a prompt: recalls the few memories that matter for it, and answers nothing where none does."""

from __future__ import annotations

import re

import msgspec

from trivet.agents.hooks.event import Event, answer_of
from trivet.agents.hooks.shown_memories import ShownMemories
from trivet.analyse import analyse_query
from trivet.search.relevance.model import relevance_model
from trivet.secrets.private import without_private
from trivet.serve.mcp import results as agent_results
from trivet.serve.mcp.result_types import Found, Recalled
from trivet.serve.mcp.text import Wrapper, recalled_text
from trivet.serve.resident.hook_calls import HookCall
from trivet.settings import Settings
from trivet.trivet import Trivet
from trivet.types import Answer

# Of a long prompt: people ask at its beginning or its end, and paste material in between.
HEAD_CHARACTERS = 1_500
TAIL_CHARACTERS = 500
# Most hits asked for, to find some that the conversation was not shown yet.
MOST_ASKED = 50
OPENING = "From the user's long-term memory (Trivet), for this prompt."
_HALF_A_WORD_FIRST = re.compile(r"^\S+")
_HALF_A_WORD_LAST = re.compile(r"(?<!\S)\S+$")


def before_prompt(memory: Trivet, call: HookCall, event: Event) -> bytes:
    query, settings = _question(event.prompt), call.settings
    if not settings.hook_memories or not _asks_something(query):
        return b""
    shown_before = ShownMemories(call.environment, event.session)
    shown = shown_before.shown()
    least = least_relevance(settings)
    limit = min(settings.hook_memories + len(shown), MOST_ASKED)
    answer = memory.recall(query, limit=limit, relevance_at_least=least)
    text, ids = _fitted(_fresh(answer, shown, settings.hook_memories), settings.hook_bytes)
    shown_before.add(ids)
    return answer_of(event, text, "UserPromptSubmit")


def least_relevance(settings: Settings) -> float:
    """The relevance from which a memory is shown unasked: the user's setting, else the calibrated threshold."""
    given = settings.relevance_at_least
    return relevance_model().threshold if given is None else given


def _question(prompt: str) -> str:
    """The prompt as a query: without private parts, and shortened where it is long.

    Private parts go first: half a <private> mark would hide nothing. The cut never splits a word: the secret
    detection knows a key by its whole form only.
    """
    text = without_private(prompt).strip()
    if len(text) <= HEAD_CHARACTERS + TAIL_CHARACTERS:
        return text
    head, tail = text[: HEAD_CHARACTERS + 1], text[-TAIL_CHARACTERS - 1 :]
    return f"{_HALF_A_WORD_LAST.sub('', head)}\n{_HALF_A_WORD_FIRST.sub('', tail)}"


def _asks_something(query: str) -> bool:
    """Whether recall is worth it: not for "continue" or "ok do it", but for one identifier or words in quotes."""
    question = analyse_query(query)
    return len(question.terms) > 1 or bool(question.phrases)


def _fresh(answer: Answer, shown: frozenset[str], most: int) -> Recalled:
    """The hits to show: not shown before and not sensitive, since those are masked."""
    hits = tuple(hit for hit in answer.hits if hit.memory.id not in shown and not hit.memory.sensitive)
    return agent_results.recalled(msgspec.structs.replace(answer, hits=hits[:most]))


def _fitted(recalled: Recalled, most_bytes: int) -> tuple[str, list[str]]:
    """The text of as many hits as fit, the best first; a hit that is too long is skipped."""
    text, fitting = "", tuple[Found, ...]()
    for hit in recalled.hits:
        longer = _text_of(recalled, (*fitting, hit))
        if len(longer.encode()) <= most_bytes:
            text, fitting = longer, (*fitting, hit)
    return text, [hit.id for hit in fitting]


def _text_of(recalled: Recalled, hits: tuple[Found, ...]) -> str:
    return f"{OPENING} {recalled_text(msgspec.structs.replace(recalled, hits=hits), Wrapper())}"
