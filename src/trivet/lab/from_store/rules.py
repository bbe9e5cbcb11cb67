"""The strata of such a dataset: which memories each asks for, and the rule that makes a question of one.

A rule sees the memory and how common words are, and never a ranking, so no leg can choose the questions that suit it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from random import Random

import msgspec

from trivet.analyse import ENGLISH, language_of_text
from trivet.lab.lengths import words_in
from trivet.lab.tune.rules import Commonness, Rule, query_of, reworded, sentences_of, some_words, words_of
from trivet.types import Memory

# As many rare words as people type who know what they look for.
FEWEST_RARE, MOST_RARE = 2, 3
# With more than so many words of a sentence, any recipe finds it.
FEWEST_REORDERED, MOST_REORDERED = 4, 7
MOST_OPENING = 8
FEWEST_REMEMBERED, MOST_REMEMBERED = 3, 5
# A memory of so many words has parts that its beginning does not tell.
LONG_WORDS = 80
# The classes of length: a fact, a note, a document.
CLASSES: Mapping[str, tuple[int, float]] = {
    "length-short": (1, 30),
    "length-medium": (31, 150),
    "length-long": (151, float("inf")),
}
# The newest share of all memories, but at least so many.
RECENT_SHARE, FEWEST_RECENT = 0.1, 10

_vowel = "aeiou"
_plain_word = re.compile(r"[a-z]{4,}")
_stays = ("ss", "us", "is", "ing", "ed", "ly")
_hissing = ("s", "sh", "ch", "x", "z")


class Stratum(msgspec.Struct, frozen=True):
    """Which of all memories it asks for, and how."""

    chosen: Callable[[Sequence[Memory]], Sequence[Memory]]
    rule: Rule


def opening(memory: Memory, common: Commonness, random: Random) -> str | None:
    """The title, or the first sentence, with a word left out: whole, it would be its own proof."""
    first = next(iter(sentences_of(memory.content)), "")
    words = next((found for text in (memory.title or "", first) if len(found := words_of(text)) > FEWEST_RARE), None)
    if words is None:
        return None
    words = words[:MOST_OPENING]
    words.remove(random.choice(words))
    return query_of(words)


def rare_words(memory: Memory, common: Commonness, random: Random) -> str | None:
    """Its rarest words, as one who knows the term types them."""
    ordered = sorted(words_of(memory.content), key=lambda word: (common.of(word), word))
    if len(ordered) < FEWEST_RARE:
        return None
    return query_of(ordered[: random.randint(FEWEST_RARE, MOST_RARE)])


def reordered(memory: Memory, common: Commonness, random: Random) -> str | None:
    """The words of one of its sentences in another order and, in English, in another number or person."""
    able = [words for text in sentences_of(memory.content) if len(words := words_of(text)) >= FEWEST_REORDERED]
    if not able:
        return None
    words = random.choice(able)[:MOST_REORDERED]
    shuffled = random.sample(words, len(words))
    english = language_of_text(memory.content) == ENGLISH
    return query_of([inflected(word) if english else word for word in shuffled])


def half_remembered(memory: Memory, common: Commonness, random: Random) -> str | None:
    """A few words of one sentence in the second half of a long memory."""
    sentences = sentences_of(memory.content)
    able = [words for text in sentences[len(sentences) // 2 :] if len(words := words_of(text)) > FEWEST_REMEMBERED]
    if not able:
        return None
    words = random.choice(able)
    return query_of(random.sample(words, random.randint(FEWEST_REMEMBERED, min(MOST_REMEMBERED, len(words) - 1))))


def inflected(word: str) -> str:
    """An English word in the other number: "cities" for "city". What is no plain word stays as it is."""
    if not _plain_word.fullmatch(word) or word.endswith(_stays):
        return word
    if word.endswith("ies"):
        return f"{word[:-3]}y"
    if word.endswith("es") and word[:-2].endswith(_hissing):
        return word[:-2]
    if word.endswith("s"):
        return word[:-1]
    if word.endswith("y") and word[-2] not in _vowel:
        return f"{word[:-1]}ies"
    return f"{word}es" if word.endswith(_hissing) else f"{word}s"


def everything(memories: Sequence[Memory]) -> Sequence[Memory]:
    return memories


def long_ones(memories: Sequence[Memory]) -> Sequence[Memory]:
    return [memory for memory in memories if words_in(memory.content) >= LONG_WORDS]


def recent_ones(memories: Sequence[Memory]) -> Sequence[Memory]:
    count = max(FEWEST_RECENT, round(RECENT_SHARE * len(memories)))
    return sorted(memories, key=lambda memory: memory.created_at, reverse=True)[:count]


def of_length(least: float, most: float) -> Callable[[Sequence[Memory]], Sequence[Memory]]:
    return lambda memories: [memory for memory in memories if least <= words_in(memory.content) <= most]


STRATA: Mapping[str, Stratum] = {
    "opening": Stratum(everything, opening),
    "keyword": Stratum(everything, rare_words),
    "reordered": Stratum(everything, reordered),
    "other-words": Stratum(everything, reworded),
    "half-remembered": Stratum(long_ones, half_remembered),
    "recent": Stratum(recent_ones, some_words),
    # One rule for all classes, so that only the length differs.
    **{name: Stratum(of_length(*bounds), some_words) for name, bounds in CLASSES.items()},
}
