"""Memory-like text in any amount, equal for the same seed.

Sentences follow the demo memories' word pairs, so word frequencies are realistic. Every memory also
names its own people, tickets, hosts and versions: the long tail of a real store.
"""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Iterator
from importlib import resources
from itertools import pairwise

_SYLLABLES = "ba ke li mo nu ra si to ve za dor fen gul hal jin kor lum mer nor pel qua ris sol tam ul vor wen yar".split()


def memories(count: int, seed: int = 7) -> Iterator[str]:
    """Yield texts of about 60 tokens, like short notes."""
    chance = random.Random(seed)
    starts, follows = _chain()
    for _ in range(count):
        sentences = [_sentence(chance, starts, follows) for _ in range(chance.randint(1, 3))]
        yield " ".join([*sentences, _particulars(chance)])


def queries(count: int, seed: int = 11) -> list[str]:
    """Return questions of four to nine words from the same walk, none a stored sentence."""
    chance = random.Random(seed)
    starts, follows = _chain()
    asked = []
    for _ in range(count):
        words = _sentence(chance, starts, follows).rstrip(".").split()
        length = chance.randint(4, 9)
        start = chance.randrange(max(1, len(words) - length))
        opening = chance.choice(("what about", "who knows", "when did", "why"))
        asked.append(f"{opening} {' '.join(words[start : start + length])}?")
    return asked


def named_queries(count: int, size: int, seed: int = 13) -> list[str]:
    """Return questions naming people and tickets of the first `size` memories, for the graph."""
    chance = random.Random(seed)
    wanted = set(chance.sample(range(size), count))
    asked = []
    for number, text in enumerate(memories(size)):
        if number in wanted:
            said, _, particulars = text.removesuffix(".").rpartition(". ")
            name, ticket = particulars.split()[0], particulars.split(" in ")[-1].split()[0]
            words = said.split()
            asked.append(f"what did {name} say about {' '.join(words[1:5])} in {ticket}?")
    return asked


def long_memories(count: int, words: int, seed: int = 17) -> Iterator[str]:
    """Yield texts of about this many words, each ending with its own details."""
    chance = random.Random(seed)
    starts, follows = _chain()
    for _ in range(count):
        sentences: list[str] = []
        length = 0
        while length < words - 12:
            sentences.append(_sentence(chance, starts, follows))
            length += len(sentences[-1].split())
        yield " ".join([*sentences, _particulars(chance)])


def words_of_sentences() -> list[str]:
    starts, follows = _chain()
    return sorted(
        {
            word.strip(".,;:")
            for word in (*starts, *follows, *(one for some in follows.values() for one in some))
        }
    )


def _chain() -> tuple[list[str], dict[str, list[str]]]:
    text = (
        resources.files("trivet.lab")
        .joinpath("house", "memories.jsonl")
        .read_text(encoding="utf-8")
    )
    starts: list[str] = []
    follows: dict[str, list[str]] = defaultdict(list)
    for line in text.splitlines():
        words = json.loads(line)["content"].split()
        starts.append(words[0])
        for one, next_one in pairwise(words):
            follows[one].append(next_one)
    return starts, dict(follows)


def _sentence(chance: random.Random, starts: list[str], follows: dict[str, list[str]]) -> str:
    words = [chance.choice(starts)]
    while len(words) < chance.randint(8, 22):
        words.append(chance.choice(follows.get(words[-1]) or starts))
    return " ".join(words).rstrip(".,;:") + "."


def _particulars(chance: random.Random) -> str:
    name = "".join(chance.choice(_SYLLABLES) for _ in range(3)).capitalize()
    host = "".join(chance.choice(_SYLLABLES) for _ in range(2))
    ticket = f"{chance.choice(('HB', 'QL', 'AT', 'OPS'))}-{chance.randint(100, 9999)}"
    version = f"{chance.randint(1, 9)}.{chance.randint(0, 30)}"
    return (
        f"{name} wrote it down in {ticket} for {host}-{chance.randint(1, 40)}, version {version}."
    )
