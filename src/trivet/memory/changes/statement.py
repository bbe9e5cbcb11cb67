"""A text as a statement to compare: its words in order, and what is known of them by their form."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from trivet.analyse import STOP_WORDS, analyse, fold, tokens_of
from trivet.bounded_cache import MIB, cached
from trivet.memory.changes import words

# What a memory states, it states at its beginning; more would make each comparison slower.
CHARACTERS_READ = 600
WORDS_READ = 60
# For the latest statements, some thousand: an answer compares the same few again and again.
STATEMENTS_BYTES = 16 * MIB
SENSES_BYTES = 4 * MIB
# Before what the user said, in captured memories.
SPEAKER = "User: "
# A subject without a verb behind it.
FEW_WORDS = 2

Values = frozenset[tuple[str, str]]

_digit = re.compile(r"\d")
_head = re.compile(r"[^:,;=]*")
_sentence_start = re.compile(r"(?:^|[.!?:;\n]\s{1,3}|[\"“(]\s{0,3})[^\W_]")
_name = re.compile(r"[^\W_](?:[\w.\-/@']*[^\W_])?")


class Statement(msgspec.Struct, frozen=True, gc=False):
    """What two texts are compared by. Stems are the analyser's, one a word; function words have none."""

    stems: tuple[str, ...]
    held: frozenset[str]
    order: tuple[str, ...]  # every word in reading order: its stem, or the function word itself
    written: frozenset[str]  # every word, folded
    subject: frozenset[str]  # stems before the first verb
    names: frozenset[str]
    values: Values  # numbers, times, days, addresses, each with its kind
    head_values: Values  # those in the subject: "room 4.12", "harvest 2025"
    turned: frozenset[str]  # words of change
    fresh: frozenset[str]
    rejected: frozenset[str]  # stems of what is said not to hold any longer
    added: bool
    confirmed: bool
    planned: bool
    negated: bool
    dated: bool
    event: bool
    many: bool  # its verb can be true of several things at once

    @property
    def predicate(self) -> frozenset[str]:
        return self.held - self.subject


def statement(text: str) -> Statement:
    return _statement(text.removeprefix(SPEAKER)[:CHARACTERS_READ])


def states_change(text: str) -> bool:
    """Return whether the text says outright that something is different from before."""
    return bool(words.CHANGE_STATED.search(fold(text.removeprefix(SPEAKER)[:CHARACTERS_READ]).replace("'", "")))


@cached(STATEMENTS_BYTES)
def _statement(text: str) -> Statement:
    tokens = tokens_of(text)[:WORDS_READ]
    folded = fold(text).replace("'", "")
    written = [fold(token).replace("'", "") for token in tokens]
    stems = tuple(stem for token in tokens for stem in _stem(token))
    verb = next((place for place, word in enumerate(written) if place and word in words.VERBS), 0)
    senses = _senses(written)
    digits = bool(_digit.search(folded))
    head = _head.match(" ".join(folded.split()[:verb]) if verb else folded)
    return Statement(
        stems=stems,
        held=frozenset(stems),
        order=tuple((*_stem(token), word)[0] for token, word in zip(tokens, written, strict=True)),
        written=frozenset(written),
        subject=frozenset(stem for token in tokens[: verb or FEW_WORDS] for stem in _stem(token)),
        names=_names(text),
        values=_values(folded),
        head_values=_values(head.group()) if head else frozenset(),
        turned=frozenset(senses.get("turned", ())),
        fresh=frozenset(senses.get("fresh", ())) | frozenset(words.FROM_A_NUMBER.findall(folded) if digits else ()),
        rejected=_rejected(folded) if not words.REJECTING.isdisjoint(written) else frozenset(),
        added="added" in senses,
        confirmed="confirmed" in senses,
        planned="planned" in senses,
        negated="negated" in senses,
        dated=bool(words.DATED.search(folded)),
        event="event" in senses and "state" not in senses,
        many=any(word in words.MANY_AT_ONCE for word in written[1:4]),
    )


def _senses(written: Sequence[str]) -> dict[str, set[str]]:
    """The words and phrases of each sense."""
    found: dict[str, set[str]] = {}
    for place, word in enumerate(written):
        phrases = [word]
        if word in words.PHRASE_STARTS:
            phrases += [" ".join(written[place : place + length]) for length in (2, 3)]
        for phrase in phrases:
            for sense in _senses_of(phrase):
                found.setdefault(sense, set()).add(phrase)
    return found


@cached(SENSES_BYTES)
def _senses_of(phrase: str) -> tuple[str, ...]:
    return tuple(sense for sense, pattern in words.SENSES.items() if pattern.fullmatch(phrase))


def _stem(token: str) -> tuple[str, ...]:
    return analyse(token)[:1]


def _values(folded: str) -> Values:
    """Each with its kind. What one pattern has taken, the next does not see."""
    found: list[tuple[str, str]] = []
    for kind, pattern in words.KINDS if _digit.search(folded) else words.KINDS_WITHOUT_DIGITS:
        taken = pattern.findall(folded)
        if taken:
            found += [(kind, value.strip(" .,").replace(",", "")) for value in taken]
            folded = pattern.sub(" | ", folded)
    return frozenset(found)


def _rejected(folded: str) -> frozenset[str]:
    beside = (pattern.findall(folded) for pattern in (words.REJECTED_NEXT, words.REJECTED_BEFORE))
    return frozenset(stem for found in beside for pair in found for word in pair if word for stem in _stem(word))


def _names(text: str) -> frozenset[str]:
    """Words with a capital, unless it is only due to the start of a sentence."""
    starts = {match.end() - 1 for match in _sentence_start.finditer(text)}
    found = set()
    for match in _name.finditer(text):
        word = match.group()
        if word.islower() or word.isdigit() or word == "I":
            continue
        opens = match.start() in starts and word[1:].islower() and not word.endswith("'s")
        name = fold(word).removesuffix("'s")
        if not opens and word[:1].isupper() | (word != word.lower()) and name not in STOP_WORDS:
            found.add(name)
    return frozenset(found)
