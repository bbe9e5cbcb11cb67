"""Before a prompt: the few memories that matter for it, and nothing where none does."""

from __future__ import annotations

import re

import msgspec

from trivet.agents.hooks.event import Event, answer_of
from trivet.agents.hooks.shown_memories import Seen
from trivet.analyse import analyse_query
from trivet.search.relevance.judge import HELD_LITERALLY
from trivet.search.relevance.model import relevance_model
from trivet.secrets.private import without_private
from trivet.serve.mcp import results as lean
from trivet.serve.mcp.result_types import Found, Recalled
from trivet.serve.mcp.text import Wrapper, recalled_text
from trivet.serve.resident.hook_calls import HookCall
from trivet.settings import Settings
from trivet.trivet import Trivet
from trivet.types import Answer, Hit

# A person's question stands at the beginning or at the end; what lies between is pasted.
HEAD_CHARACTERS = 1_500
TAIL_CHARACTERS = 500
# Most hits looked through for some that the conversation has not seen.
MOST_ASKED = 50
# Among so many of the nearest by meaning a memory may stand by more than the words it holds.
NEAR_RANKS = 20
OPENING = "From the user's long-term memory (Trivet), for this prompt."
_HALF_A_WORD_FIRST = re.compile(r"^\S+")
_HALF_A_WORD_LAST = re.compile(r"(?<!\S)\S+$")


def before_prompt(memory: Trivet, call: HookCall, event: Event) -> bytes:
    query, settings = _question(event.prompt), call.settings
    if not settings.hook_memories or not _asks_something(query):
        return b""
    seen = Seen(call.environment, event.session)
    shown = seen.shown()
    least = least_relevance(settings)
    limit = min(settings.hook_memories + len(shown), MOST_ASKED)
    answer = memory.recall(query, limit=limit, relevance_at_least=least)
    text, ids = _fitted(_fresh(answer, shown, least, settings.hook_memories), settings.hook_bytes)
    seen.add(ids)
    return answer_of(event, text, "UserPromptSubmit")


def least_relevance(settings: Settings) -> float:
    """How likely a memory must be to matter: the user's setting, else what the calibration found."""
    given = settings.relevance_at_least
    return relevance_model().threshold if given is None else given


def _question(prompt: str) -> str:
    """What is private goes before the prompt is cut: half a mark would hide nothing. Nor is a word cut, which may be
    a key that only its whole form tells."""
    text = without_private(prompt).strip()
    if len(text) <= HEAD_CHARACTERS + TAIL_CHARACTERS:
        return text
    head, tail = text[: HEAD_CHARACTERS + 1], text[-TAIL_CHARACTERS - 1 :]
    return f"{_HALF_A_WORD_LAST.sub('', head)}\n{_HALF_A_WORD_FIRST.sub('', tail)}"


def _asks_something(query: str) -> bool:
    """Nobody asks a memory with "continue" or "ok do it"; but one identifier, or words in quotes, may be a question."""
    question = analyse_query(query)
    return len(question.terms) > 1 or bool(question.phrases)


def _fresh(answer: Answer, shown: frozenset[str], least: float, most: int) -> Recalled:
    """A sensitive memory is masked, so it would say nothing here. One too unlikely is no better behind a likely one."""
    by_meaning = any(leg.leg == "dense" and leg.answered and leg.candidates for leg in answer.health.legs)
    hits = tuple(
        hit
        for hit in answer.hits
        if hit.memory.id not in shown
        and not hit.memory.sensitive
        and (hit.relevance or 0.0) >= least
        and not (by_meaning and _held_by_chance(hit))
    )
    return lean.recalled(msgspec.structs.replace(answer, hits=hits[:most]))


def _held_by_chance(hit: Hit) -> bool:
    """Whether all that speaks for it is that it holds the prompt's words, and by its meaning it is far off.

    A person who asks for words wants them found; "thanks, looks good" is said to the agent, not asked of a memory.
    """
    dense = hit.why.legs.get("dense")
    return hit.relevance == HELD_LITERALLY and (dense is None or dense.rank is None or dense.rank > NEAR_RANKS)


def _fitted(recalled: Recalled, most_bytes: int) -> tuple[str, list[str]]:
    """What fits, the best first; one that is too long makes room for the next."""
    text, fitting = "", tuple[Found, ...]()
    for hit in recalled.hits:
        longer = _told(recalled, (*fitting, hit))
        if len(longer.encode()) <= most_bytes:
            text, fitting = longer, (*fitting, hit)
    return text, [hit.id for hit in fitting]


def _told(recalled: Recalled, hits: tuple[Found, ...]) -> str:
    return f"{OPENING} {recalled_text(msgspec.structs.replace(recalled, hits=hits), Wrapper())}"
