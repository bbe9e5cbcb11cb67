"""Before a prompt: recalls the few memories that matter for it, and answers nothing where none does."""

from __future__ import annotations

import re

import msgspec

from trivet.agents.hooks.event import Event, answer_of
from trivet.agents.hooks.likely_files import likely_files
from trivet.agents.hooks.shown_memories import ShownMemories
from trivet.analyse import analyse_query
from trivet.models.known_words import is_known_word
from trivet.search.legs.dense import NAME as DENSE
from trivet.search.relevance.model import relevance_model
from trivet.secrets.private import without_private
from trivet.serve.mcp import results as agent_results
from trivet.serve.mcp.result_types import Found, Recalled
from trivet.serve.mcp.text import Wrapper, recalled_text
from trivet.serve.resident.hook_calls import HookCall
from trivet.settings import Settings
from trivet.trivet import Trivet
from trivet.types import Answer, Hit

# Of a long prompt: people ask at its beginning or its end, and paste material in between.
HEAD_CHARACTERS = 1_500
TAIL_CHARACTERS = 500
# Most hits asked for, to find some that the conversation was not shown yet.
MOST_ASKED = 50
# A memory among the dense leg's first so many is near by meaning, and not only by a shared word.
NEAR_RANKS = 20
# Less likely than this share of the best one, a memory is not worth its tokens.
SHARE_OF_BEST = 0.2
# A prompt of one word that is in no dictionary, such as `pgbouncer`, names something; shorter ones are often slang.
SHORTEST_NAME = 4
# From this relevance on a memory comes with a prompt that begins by an answer to the agent ("perfect, merged"): such a
# prompt goes on with what is being done, and hardly ever asks for something remembered.
LEAST_FOR_A_REACTION = 0.3
OPENING = "From the user's long-term memory (Trivet), for this prompt."
_HALF_A_WORD_FIRST = re.compile(r"^\S+")
_HALF_A_WORD_LAST = re.compile(r"(?<!\S)\S+$")
_ONES_OWN = re.compile(
    r"\b(?:my|our|mein|meine|unser|unsere|mon|ma|mes|notre|nos|mi|mis|nuestro|nuestra)\s+\w", re.IGNORECASE
)
# With a comma or a stop behind it, what may else begin a question: "right, go on", but "right wing of the house".
_REACTS = re.compile(
    r"\W*(?:(?:ok|okay|yep|nope|hm+|thanks|thank you|well done|looks? (?:good|fine|right)|"
    r"that (?:reads|looks|works|sounds)|danke|merci|gracias|köszi|köszönöm|obrigad[oa])\b|"
    r"(?:yes|no|sure|fine|right|good|great|nice|cool|perfect|super|excellent|awesome|lovely|wonderful|alright|sorry|"
    r"ja|nein|gut|passt|genau|oui|non|parfait|d'accord|sí|perfecto|vale|igen|nem|sim|não|ótimo)\s*[,.!;])",
    re.IGNORECASE,
)


def before_prompt(memory: Trivet, call: HookCall, event: Event) -> bytes:
    query, settings = _question(event.prompt), call.settings
    if not _asks_something(query):
        return b""
    parts = (_memories(memory, call, event, query) if settings.hook_memories else "", likely_files(call, event, query))
    return answer_of(event, "\n".join(part for part in parts if part), "UserPromptSubmit")


def _memories(memory: Trivet, call: HookCall, event: Event, query: str) -> str:
    settings = call.settings
    shown_before = ShownMemories(call.environment, event.session)
    shown = shown_before.shown()
    least = least_relevance(settings)
    if settings.relevance_at_least is None and _REACTS.match(query):
        least = max(least, LEAST_FOR_A_REACTION)
    limit = min(settings.hook_memories + len(shown), MOST_ASKED)
    answer = memory.recall(query, limit=limit, relevance_at_least=least)
    text, ids = _fitted(_fresh(answer, shown, settings.hook_memories), settings.hook_bytes)
    shown_before.add(ids)
    return text


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
    """Whether recall is worth it: not for "continue" or "ok do it", but for one identifier, name or words in quotes.

    And for what is one's own: "my dentist".
    """
    question = analyse_query(query)
    if len(question.terms) > 1 or question.phrases or (question.words and _ONES_OWN.search(query)):
        return True
    return any(len(word.text) >= SHORTEST_NAME and not is_known_word(word.text) for word in question.words)


def _fresh(answer: Answer, shown: frozenset[str], most: int) -> Recalled:
    """The hits to show: not shown before, not sensitive (those are masked), and none that only comes along."""
    by_meaning = any(leg.leg == DENSE and leg.answered and leg.candidates for leg in answer.health.legs)
    least = SHARE_OF_BEST * (answer.best_relevance or 0.0)
    hits = tuple(
        hit
        for hit in answer.hits
        if hit.id not in shown
        and not hit.sensitive
        and hit.relevance >= least
        and not (by_meaning and _shares_words_only(hit))
    )
    return agent_results.recalled(msgspec.structs.replace(answer, hits=hits[:most]))


def _shares_words_only(hit: Hit) -> bool:
    """Whether a hit only repeats the prompt's words and is far from it by meaning.

    Recall shows such hits; but a prompt such as "thanks, looks good" is no search for those words.
    """
    dense = hit.why.legs.get(DENSE)
    return hit.strength != "strong" and (dense is None or dense.rank is None or dense.rank > NEAR_RANKS)


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
