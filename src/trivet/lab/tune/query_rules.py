"""Rules that turn a memory into a query, and the strata of a dataset.

A rule sees no ranking, so no leg can choose queries that suit it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from random import Random

import msgspec

from trivet.analyse import ENGLISH, UNSPACED, analyse, analyse_query, fold, language_of_text
from trivet.lab.measure.hit_analysis import count_words
from trivet.types import Memory

# As many words as people type: with half of a memory's words, every recipe finds it.
FEWEST_WORDS, MOST_WORDS = 2, 4
# Words on either side of the one that "what" replaces.
CLOZE_REACH = 4
FEWEST_REWORDED, MOST_REWORDED = 3, 6
MOST_CHARACTERS = 200
# Scripts without spaces are cut into pieces of about a word's length.
UNSPACED_PIECE = 4

_sentence_end = re.compile(r"(?<=[.!?;。！？])\s+|\n+")
_unspaced_run = re.compile(f"[{UNSPACED}]+")


class DocumentFrequencies(msgspec.Struct, frozen=True):
    counts: Counter[str]

    def of(self, word: str) -> int:
        return self.counts[fold(word)]


Rule = Callable[[Memory, DocumentFrequencies, Random], str | None]


def document_frequencies(memories: Iterable[Memory]) -> DocumentFrequencies:
    counts: Counter[str] = Counter()
    for memory in memories:
        counts.update({fold(word) for word in words_of(memory.content)})
    return DocumentFrequencies(counts)


def words_of(text: str) -> list[str]:
    words: dict[str, None] = {}
    for word in analyse_query(text).words:
        run = _unspaced_run.search(word.text)
        words.update(dict.fromkeys(_pieces(run.group()) if run else [word.text]))
    return list(words)


def sentences_of(text: str) -> list[str]:
    return _sentence_end.split(text)


def some_words(memory: Memory, common: DocumentFrequencies, random: Random) -> str | None:
    words = words_of(memory.content)
    if len(words) <= FEWEST_WORDS:
        return None
    return query_of(
        random.sample(words, random.randint(FEWEST_WORDS, min(MOST_WORDS, len(words) - 1)))
    )


def from_title(memory: Memory, common: DocumentFrequencies, random: Random) -> str | None:
    """Leave out one word; the whole title would always find the memory."""
    words = words_of(memory.title or "")
    if len(words) <= FEWEST_WORDS:
        return None
    words.remove(random.choice(words))
    return query_of(words)


def from_keywords(memory: Memory, common: DocumentFrequencies, random: Random) -> str | None:
    """Ask with keywords, or else tags, and one word of the text."""
    labels = list(memory.expanded_keywords or memory.tags)
    words = words_of(memory.content)
    if not labels or not words:
        return None
    chosen = random.sample(labels, min(2, len(labels)))
    return query_of([*chosen, random.choice(words)])


def cloze(memory: Memory, common: DocumentFrequencies, random: Random) -> str | None:
    """Ask with part of a sentence, "what" in place of its rarest word."""
    sentences = [
        text for text in sentences_of(memory.content) if len(words_of(text)) > FEWEST_WORDS
    ]
    if not sentences:
        return None
    sentence = random.choice(sentences)
    key = min(words_of(sentence), key=lambda word: (common.of(word), word))
    start = sentence.find(key)
    if start < 0:  # the analyzer rewrote the word, so it cannot be removed
        return None
    before, after = sentence[:start].split(), sentence[start + len(key) :].rstrip(" .!;?").split()
    return query_of([*before[-CLOZE_REACH:], "what", *after[:CLOZE_REACH], "?"])


def identifiers(memory: Memory, common: DocumentFrequencies, random: Random) -> str | None:
    """Ask with one or two identifiers: an error code, a path, a version."""
    found = [fold(one) for one in analyse_query(memory.content).identifiers]
    return query_of(random.sample(found, min(len(found), random.choice((1, 2))))) if found else None


def reworded(memory: Memory, common: DocumentFrequencies, random: Random) -> str | None:
    held = set(_terms(memory))
    chosen = {}
    for word in words_of(memory.content):
        foreign = [other for other in equivalents(word) if not held.intersection(analyse(other))]
        if foreign:
            chosen[word] = random.choice(foreign)
    return (
        query_of(list(chosen.values())[:MOST_REWORDED]) if len(chosen) >= FEWEST_REWORDED else None
    )


# Kinds that share words with their memory, as the lexical leg needs.
LITERAL: dict[str, Rule] = {
    "title": from_title,
    "identifier": identifiers,
    "keywords": from_keywords,
    "cloze": cloze,
    "words": some_words,
}
REWORDED = "reworded"


def _terms(memory: Memory) -> Iterator[str]:
    for text in (
        memory.content,
        memory.title or "",
        *memory.expanded_keywords,
        *memory.tags,
        memory.category,
    ):
        yield from analyse(text)


def query_of(parts: Sequence[str]) -> str | None:
    """Join without quotation marks, which would ask for a phrase."""
    text = " ".join(" ".join(parts).replace('"', " ").split())[:MOST_CHARACTERS].strip()
    return text or None


def _pieces(run: str) -> list[str]:
    pieces = [run[start : start + UNSPACED_PIECE] for start in range(0, len(run), UNSPACED_PIECE)]
    return [piece for piece in pieces if len(piece) > 1]


@cache
def _equivalents() -> dict[str, tuple[str, ...]]:
    """Map stems to synonyms, so that inflected words match."""
    found: dict[str, dict[str, None]] = {}
    for row in (
        files("trivet.lab.tune").joinpath("synonyms.txt").read_text(encoding="utf-8").splitlines()
    ):
        group = row.split()
        for word in group:
            stem = _stem(word)
            found.setdefault(stem, {}).update(
                {other: None for other in group if _stem(other) != stem}
            )
    return {stem: tuple(others) for stem, others in found.items()}


def equivalents(word: str) -> tuple[str, ...]:
    return _equivalents().get(_stem(word), ())


def _stem(word: str) -> str:
    return (analyse(word) or (word,))[0]


# The number of rare words that people type who know the term.
FEWEST_RARE, MOST_RARE = 2, 3
# With more words of a sentence, any recipe finds it.
FEWEST_REORDERED, MOST_REORDERED = 4, 7
MOST_OPENING = 8
FEWEST_REMEMBERED, MOST_REMEMBERED = 3, 5
# From this many words on, a memory has parts that its beginning does not reveal.
LONG_WORDS = 80
# Words: a fact, a note, a document.
CLASSES: Mapping[str, tuple[int, float]] = {
    "length-short": (1, 30),
    "length-medium": (31, 150),
    "length-long": (151, float("inf")),
}
# The newest share of all memories, and the minimum number.
RECENT_SHARE, FEWEST_RECENT = 0.1, 10

_vowel = "aeiou"
_plain_word = re.compile(r"[a-z]{4,}")
_stays = ("ss", "us", "is", "ing", "ed", "ly")
_hissing = ("s", "sh", "ch", "x", "z")


class Stratum(msgspec.Struct, frozen=True):
    chosen: Callable[[Sequence[Memory]], Sequence[Memory]]
    rule: Rule


def opening(memory: Memory, common: DocumentFrequencies, random: Random) -> str | None:
    """Ask with the title or first sentence, but for one word."""
    first = next(iter(sentences_of(memory.content)), "")
    words = next(
        (
            found
            for text in (memory.title or "", first)
            if len(found := words_of(text)) > FEWEST_RARE
        ),
        None,
    )
    if words is None:
        return None
    words = words[:MOST_OPENING]
    words.remove(random.choice(words))
    return query_of(words)


def rare_words(memory: Memory, common: DocumentFrequencies, random: Random) -> str | None:
    ordered = sorted(words_of(memory.content), key=lambda word: (common.of(word), word))
    if len(ordered) < FEWEST_RARE:
        return None
    return query_of(ordered[: random.randint(FEWEST_RARE, MOST_RARE)])


def reordered(memory: Memory, common: DocumentFrequencies, random: Random) -> str | None:
    """Shuffle a sentence's words and, in English, change their number or person."""
    able = [
        words
        for text in sentences_of(memory.content)
        if len(words := words_of(text)) >= FEWEST_REORDERED
    ]
    if not able:
        return None
    words = random.choice(able)[:MOST_REORDERED]
    shuffled = random.sample(words, len(words))
    english = language_of_text(memory.content) == ENGLISH
    return query_of([inflected(word) if english else word for word in shuffled])


def from_second_half(memory: Memory, common: DocumentFrequencies, random: Random) -> str | None:
    sentences = sentences_of(memory.content)
    able = [
        words
        for text in sentences[len(sentences) // 2 :]
        if len(words := words_of(text)) > FEWEST_REMEMBERED
    ]
    if not able:
        return None
    words = random.choice(able)
    return query_of(
        random.sample(
            words, random.randint(FEWEST_REMEMBERED, min(MOST_REMEMBERED, len(words) - 1))
        )
    )


def inflected(word: str) -> str:
    """Return an English word in the other number: "cities" for "city"."""
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


def all_memories(memories: Sequence[Memory]) -> Sequence[Memory]:
    return memories


def long_memories(memories: Sequence[Memory]) -> Sequence[Memory]:
    return [memory for memory in memories if count_words(memory.content) >= LONG_WORDS]


def recent_memories(memories: Sequence[Memory]) -> Sequence[Memory]:
    count = max(FEWEST_RECENT, round(RECENT_SHARE * len(memories)))
    return sorted(memories, key=lambda memory: memory.created_at, reverse=True)[:count]


def of_length(least: float, most: float) -> Callable[[Sequence[Memory]], Sequence[Memory]]:
    return lambda memories: [
        memory for memory in memories if least <= count_words(memory.content) <= most
    ]


STRATA: Mapping[str, Stratum] = {
    "opening": Stratum(all_memories, opening),
    "keyword": Stratum(all_memories, rare_words),
    "reordered": Stratum(all_memories, reordered),
    "other-words": Stratum(all_memories, reworded),
    "half-remembered": Stratum(long_memories, from_second_half),
    "recent": Stratum(recent_memories, some_words),
    # One rule for all classes, so that only the length differs.
    **{name: Stratum(of_length(*bounds), some_words) for name, bounds in CLASSES.items()},
}
