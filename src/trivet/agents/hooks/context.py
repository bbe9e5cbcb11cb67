"""What hooks add to a conversation: memories and likely files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path, PurePath

import msgspec

from trivet.agents.hooks.event import Event, ShownMemories, answer_of
from trivet.analyse import analyse_query
from trivet.code.types import CodeHit, Search
from trivet.code.types import reason as hit_reason
from trivet.errors import InvalidInput, NotFound
from trivet.memory.passages import estimate_tokens
from trivet.models.vocabulary import is_known_word
from trivet.search.legs.dense import NAME as DENSE
from trivet.search.relevance import relevance_model
from trivet.secrets.masking import remove_private_parts
from trivet.serve.mcp import results as agent_results
from trivet.serve.mcp.result_types import Found, Recalled
from trivet.serve.mcp.text import Wrapper, label, recalled_text
from trivet.serve.resident.code_search import check_project_folder
from trivet.serve.resident.protocol import HookCall
from trivet.settings import Settings
from trivet.trivet import Trivet
from trivet.types import Answer, Hit, Memory, Page

MAX_FILES = 3
MAX_FILE_HITS = 12
FILES_OPENING = "Files that most likely matter for this prompt (Trivet code search):"


def likely_files(call: HookCall, event: Event, query: str) -> str:
    """Name files from an index the resident process has open, without waiting for reads."""
    if not call.settings.code_hook or call.code is None or not event.folder:
        return ""
    try:
        folder = check_project_folder(Path(event.folder))
    except InvalidInput:  # not in a project
        return ""
    found = call.code(str(folder), Search(query=query, limit=MAX_FILE_HITS, budget=None))
    files: dict[str, CodeHit] = {}
    for hit in found.hits if found else ():
        files.setdefault(hit.path, hit)
    rows = [
        f"- {path}:{hit.start} ({hit_reason(hit)})" for path, hit in list(files.items())[:MAX_FILES]
    ]
    return "\n".join([FILES_OPENING, *rows]) if rows else ""


# People ask at a long prompt's start or end and paste material in between.
HEAD_CHARACTERS = 1_500
TAIL_CHARACTERS = 500
# Bounds the hits requested to find new ones.
MAX_HITS_REQUESTED = 50
# The dense leg's top ranks are similar in meaning, not only by a shared word.
NEAR_RANKS = 20
# Below this share of the best relevance, a memory is not worth its tokens.
SHARE_OF_BEST = 0.2
# A one-word prompt not in the dictionary, such as `pgbouncer`, is a name; shorter words are often
# slang.
MIN_NAME_LENGTH = 4
# Minimum relevance after a reaction to the agent ("perfect, merged"), which rarely needs a memory.
MIN_RELEVANCE_AFTER_REACTION = 0.3
PROMPT_OPENING = "From the user's long-term memory (Trivet), for this prompt."
_PARTIAL_FIRST_WORD = re.compile(r"^\S+")
_PARTIAL_LAST_WORD = re.compile(r"(?<!\S)\S+$")
_POSSESSIVE = re.compile(
    r"\b(?:my|our|mein|meine|unser|unsere|mon|ma|mes|notre|nos|mi|mis|nuestro|nuestra)\s+\w",
    re.IGNORECASE,
)
# Words that may start a question count only before punctuation: "right, go on" but not "right wing
# of the house".
_REACTION = re.compile(
    r"\W*(?:(?:ok|okay|yep|nope|hm+|thanks|thank you|well done|looks? (?:good|fine|right)|"
    r"that (?:reads|looks|works|sounds)|danke|merci|gracias|köszi|köszönöm|obrigad[oa])\b|"
    r"(?:yes|no|sure|fine|right|good|great|nice|cool|perfect|super|excellent|awesome|lovely"
    r"|wonderful|alright|sorry|"
    r"ja|nein|gut|passt|genau|oui|non|parfait|d'accord|sí|perfecto|vale|igen|nem|sim|não"
    r"|ótimo)\s*[,.!;])",
    re.IGNORECASE,
)


def before_prompt(memory: Trivet, call: HookCall, event: Event) -> bytes:
    query, settings = _question(event.prompt), call.settings
    if not _asks_something(query):
        return b""
    parts = (
        _memories(memory, call, event, query) if settings.hook_memories else "",
        likely_files(call, event, query),
    )
    return answer_of(event, "\n".join(part for part in parts if part), "UserPromptSubmit")


def _memories(memory: Trivet, call: HookCall, event: Event, query: str) -> str:
    settings = call.settings
    shown_before = ShownMemories(call.environment, event.session)
    shown = shown_before.shown()
    least = min_relevance(settings)
    if settings.relevance_at_least is None and _REACTION.match(query):
        least = max(least, MIN_RELEVANCE_AFTER_REACTION)
    limit = min(settings.hook_memories + len(shown), MAX_HITS_REQUESTED)
    answer = memory.recall(query, limit=limit, relevance_at_least=least)
    text, ids = _fit_bytes(_unshown(answer, shown, settings.hook_memories), settings.hook_bytes)
    shown_before.add(ids)
    return text


def min_relevance(settings: Settings) -> float:
    """Return the relevance required of unrequested memories."""
    given = settings.relevance_at_least
    return relevance_model().threshold if given is None else given


def _question(prompt: str) -> str:
    """Return the prompt as a query: without private parts, and shortened if long.

    Private parts go first: half a <private> mark hides nothing. The cut splits no word, since
    secret detection recognizes only whole keys.
    """
    text = remove_private_parts(prompt).strip()
    if len(text) <= HEAD_CHARACTERS + TAIL_CHARACTERS:
        return text
    head, tail = text[: HEAD_CHARACTERS + 1], text[-TAIL_CHARACTERS - 1 :]
    return f"{_PARTIAL_LAST_WORD.sub('', head)}\n{_PARTIAL_FIRST_WORD.sub('', tail)}"


def _asks_something(query: str) -> bool:
    """Return whether to recall: for a name, an identifier, a quote or "my dentist"."""
    question = analyse_query(query)
    if (
        len(question.terms) > 1
        or question.phrases
        or (question.words and _POSSESSIVE.search(query))
    ):
        return True
    return any(
        len(word.text) >= MIN_NAME_LENGTH and not is_known_word(word.text)
        for word in question.words
    )


def _unshown(answer: Answer, shown: frozenset[str], most: int) -> Recalled:
    by_meaning = any(
        leg.leg == DENSE and leg.answered and leg.candidates for leg in answer.health.legs
    )
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
    """Return whether a hit only repeats words: "thanks, looks good" is no search for them."""
    dense = hit.why.legs.get(DENSE)
    return hit.strength != "strong" and (
        dense is None or dense.rank is None or dense.rank > NEAR_RANKS
    )


def _fit_bytes(recalled: Recalled, most_bytes: int) -> tuple[str, list[str]]:
    text, fitting = "", tuple[Found, ...]()
    for hit in recalled.hits:
        longer = _text_of(recalled, (*fitting, hit))
        if len(longer.encode()) <= most_bytes:
            text, fitting = longer, (*fitting, hit)
    return text, [hit.id for hit in fitting]


def _text_of(recalled: Recalled, hits: tuple[Found, ...]) -> str:
    return (
        f"{PROMPT_OPENING} {recalled_text(msgspec.structs.replace(recalled, hits=hits), Wrapper())}"
    )


PREFERENCES = "preferences"
# Candidates per reason; the token budget admits far fewer.
MAX_PER_REASON = 20
# Few, because many folders have a common word as name.
MAX_BY_PROJECT_NAME = 5
START_OPENING = "From the user's long-term memory (Trivet), for this session."

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
    text, ids = _fit_budget(chosen, settings.hook_start_tokens, settings.hook_bytes)
    shown_before.add(ids)
    return answer_of(event, text, "SessionStart")


def _candidates(
    memory: Trivet, call: HookCall, event: Event, lost: tuple[str, ...]
) -> Iterator[Chosen]:
    for id in lost:
        yield from _by_id(memory, id)
    project = PurePath(event.folder).name
    scopes = [scope for scope in memory.stats().scopes if _of_project(scope, project)]
    for scope in scopes:
        page = memory.list(scope=scope, sort="importance", limit=MAX_PER_REASON)
        yield from ((one, "from this project's scope") for one in page.memories)
    if project:
        answer = memory.recall(
            project, limit=MAX_BY_PROJECT_NAME, relevance_at_least=min_relevance(call.settings)
        )
        yield from ((hit.memory, "matches this project's name") for hit in answer.hits)
    if PREFERENCES in call.settings.categories:
        page = memory.list(
            category=[PREFERENCES],
            scope=call.settings.scope,
            sort="importance",
            limit=MAX_PER_REASON,
        )
        yield from ((one, "a preference of the user") for one in page.memories)


def _by_id(memory: Trivet, id: str) -> Iterator[Chosen]:
    try:
        found = memory.get(id)
    except NotFound:
        return  # purged meanwhile
    if found.state != "deleted":
        yield found, "shown before the conversation was compacted"


def _of_project(scope: str, project: str) -> bool:
    return bool(project) and scope.rpartition("/")[2].lower() == project.lower()


def _fit_budget(
    chosen: Iterator[Chosen], most_tokens: int, most_bytes: int
) -> tuple[str, list[str]]:
    wrapper = Wrapper()
    rows, ids = [f"{START_OPENING} {wrapper.notice}"], []
    bytes_left, tokens_left = most_bytes - len(rows[0].encode()), most_tokens
    for memory, reason in chosen:
        if memory.id in ids or memory.sensitive:  # a sensitive one is masked and useless here
            continue
        (shown,) = agent_results.listed(Page(memories=(memory,), total=1, offset=0)).memories
        row = f"- {reason}\n{wrapper.wrap(f'{label(shown)}{chr(10)}{shown.content}', memory.id)}"
        bytes_needed, tokens_needed = len(row.encode()) + 1, estimate_tokens(row)
        if bytes_needed <= bytes_left and tokens_needed <= tokens_left:
            rows.append(row)
            ids.append(memory.id)
            bytes_left, tokens_left = bytes_left - bytes_needed, tokens_left - tokens_needed
    return ("\n".join(rows), ids) if ids else ("", [])
