"""Probes: queries whose answer is known, made from the user's own memories."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from random import Random

import msgspec

from trivet.errors import InvalidInput
from trivet.lab.tune.rules import LITERAL, REWORDED, Commonness, reworded
from trivet.memory.engine import Engine
from trivet.memory.likeness import REPORTED_FROM, fingerprint, likeness_if, words_of
from trivet.types import Filter, LinkKind, Memory

# With fewer, five folds leave too little of each kind of probe to tell anything apart.
FEWEST_MEMORIES = 50
PER_MEMORY = 2
ITSELF, NEAR_DUPLICATE, LINKED = 3, 2, 1
LINKED_BY: tuple[LinkKind, ...] = ("see-also", "part-of", "resolved-by")
COMPARED = 20
PAGE = 1_000


class Probe(msgspec.Struct, frozen=True, kw_only=True):
    """A query and what it should find. `memory` is what it was made of; `group` stays together in one fold."""

    id: str
    query: str
    kind: str
    memory: str
    group: str
    grades: Mapping[str, int]


class Relatives(msgspec.Struct, frozen=True):
    """What else answers a probe of a memory, and the name of the group of near-duplicates it is in."""

    grades: Mapping[str, int]
    group: str


def usable_memories(engine: Engine) -> list[Memory]:
    """The memories that probes are made of: active, valid now, not sensitive."""
    memories: list[Memory] = []
    while True:
        page = engine.store.memories.page(Filter(states=("active",)), "recency", PAGE, len(memories))
        memories.extend(page.memories)
        if not page.memories or len(memories) >= page.total:
            return sorted((memory for memory in memories if not memory.sensitive), key=lambda memory: memory.id)


def sample(memories: Sequence[Memory], most: int, seed: int) -> list[Memory]:
    """Up to `most` of them to tune on, spread over scopes and categories; too few are refused."""
    if len(memories) < FEWEST_MEMORIES:
        raise InvalidInput(
            f"There are {len(memories)} memories to make probes of, and tuning needs {FEWEST_MEMORIES}: on fewer, "
            "chance would choose. The default recipe is measured on seven corpora; keep it and come back later."
        )
    return spread_over(memories, most, Random(seed))


def spread_over(memories: Sequence[Memory], most: int, random: Random) -> list[Memory]:
    """Up to `most` of them, in each scope and category as many as its share."""
    shuffled = random.sample(memories, len(memories))
    ordered = sorted(shuffled, key=lambda memory: (memory.scope, memory.category))  # stable, so still shuffled inside
    count = min(most, len(ordered))
    offset = random.random()
    return [ordered[int((place + offset) * len(ordered) / count)] for place in range(count)]


def relatives_of(engine: Engine, memories: Sequence[Memory], usable: Mapping[str, Memory]) -> dict[str, Relatives]:
    links: dict[str, set[str]] = {}
    for link in engine.store.links.touching([memory.id for memory in memories]):
        if link.kind in LINKED_BY:
            links.setdefault(link.source, set()).add(link.target)
            links.setdefault(link.target, set()).add(link.source)
    found = {}
    for memory in memories:
        near = _near_duplicates(engine, memory, usable)
        grades = {id: LINKED for id in sorted(links.get(memory.id, ())) if id in usable}
        grades |= dict.fromkeys(near, NEAR_DUPLICATE) | {memory.id: ITSELF}
        found[memory.id] = Relatives(grades, min([memory.id, *near]))
    return found


def make_probes(
    memories: Sequence[Memory], relatives: Mapping[str, Relatives], common: Commonness, seed: int
) -> list[Probe]:
    """Two for each memory where it allows: one in other words if our table has enough of its own, the rest literal.

    The literal kinds share words with the memory and so favour the lexical leg; the other kind is its counterweight.
    """
    counts: Counter[str] = Counter()
    probes: list[Probe] = []
    for memory in Random(seed + 1).sample(memories, len(memories)):
        random = Random(f"{seed}:{memory.id}")
        free = reworded(memory, common, random)
        literal = {kind: text for kind, rule in LITERAL.items() if (text := rule(memory, common, random))}
        kinds = sorted(literal, key=lambda kind: counts[kind])[: PER_MEMORY - bool(free)]
        counts.update(kinds)
        texts = {kind: literal[kind] for kind in kinds} | ({REWORDED: free} if free else {})
        probes.extend(probe_of(memory.id, kind, text, relatives[memory.id]) for kind, text in texts.items())
    return probes


def probe_of(memory: str, kind: str, query: str, relatives: Relatives) -> Probe:
    id = f"{kind}:{memory}"
    return Probe(id=id, query=query, kind=kind, memory=memory, group=relatives.group, grades=relatives.grades)


def _near_duplicates(engine: Engine, memory: Memory, usable: Mapping[str, Memory]) -> list[str]:
    words = words_of(memory.content)
    ids = engine.store.lexical.similar(memory.id, fingerprint(memory.content), COMPARED)
    others = [usable[id] for id in ids if id in usable and id != memory.id]
    return sorted(other.id for other in others if likeness_if(words, words_of(other.content), REPORTED_FROM))
