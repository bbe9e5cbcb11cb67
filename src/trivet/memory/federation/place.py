"""Which memory a system's hit means, if it means one of ours; and what may be shown of it if it means none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from trivet.contract import Recall
from trivet.search.systems.reply import Reply, SystemHit
from trivet.settings.systems import OtherSystem
from trivet.store.records import Sourced
from trivet.types import Candidate, Filter, Ranking

if TYPE_CHECKING:
    from trivet.store import Store


class Foreign(msgspec.Struct, frozen=True):
    """A hit that is no memory: what the first system said of it."""

    id: str
    told: SystemHit


class Placed(msgspec.Struct, frozen=True):
    """The systems' hits as rankings like those of our own legs, over memories and over what is none."""

    rankings: list[Ranking]
    foreign: dict[str, Foreign]
    notes: tuple[str, ...]


def placed(
    store: Store,
    replies: Mapping[str, tuple[OtherSystem, Reply]],
    own: Sequence[Ranking],
    request: Recall,
    filter: Filter,
) -> Placed:
    known = _known(store, replies, filter)
    ranks = _ranks(own)
    foreign: dict[str, Foreign] = {}
    rankings, notes = [], []
    for name, (system, reply) in replies.items():
        left_out: Counter[str] = Counter()
        best: dict[str, float] = {}
        for hit in reply.hits:
            id = _memory(known.get(hit.id, ()), hit, ranks, left_out) if hit.common else None
            if id is None and not _ours(known.get(hit.id, ()), hit):
                id = _outside(name, system, hit, request, foreign, left_out)
            if id is not None:
                best.setdefault(id, hit.score)
        candidates = tuple(Candidate(id=id, score=score) for id, score in best.items())
        rankings.append(Ranking(leg=name, floor=reply.floor, candidates=candidates))
        notes += [f"{name}: {note}" for note in reply.notes]
        notes += [f"{name}: {count} of its hits {why}" for why, count in left_out.items()]
    return Placed(rankings, foreign, tuple(notes))


def _known(
    store: Store, replies: Mapping[str, tuple[OtherSystem, Reply]], filter: Filter
) -> Mapping[str, tuple[Sourced, ...]]:
    """The memories behind common ids: those that came from there, or the one that is called so."""
    wanted = {hit.id for _, reply in replies.values() for hit in reply.hits if hit.common}
    found: dict[str, list[Sourced]] = {}
    for memory in store.memories.of_sources(sorted(wanted), filter) if wanted else ():
        for name in (memory.id, memory.source):
            if name is not None and name in wanted:
                found.setdefault(name, []).append(memory)
    return {name: tuple(memories) for name, memories in found.items()}


def _ranks(own: Sequence[Ranking]) -> Mapping[str, int]:
    """The best place of each memory in any of our legs."""
    ranks: dict[str, int] = {}
    for ranking in own:
        for place, candidate in enumerate(ranking.candidates):
            ranks[candidate.id] = min(place, ranks.get(candidate.id, place))
    return ranks


def _ours(memories: Sequence[Sourced], hit: SystemHit) -> bool:
    """What a file says is not shown past the memory that was made of it; one that was forgotten guards nothing,
    unless it was sensitive."""
    return hit.common and any(memory.sensitive or not memory.deleted for memory in memories)


def _memory(
    memories: Sequence[Sourced], hit: SystemHit, ranks: Mapping[str, int], left_out: Counter[str]
) -> str | None:
    """The part that holds the line; else the one our legs like best; else the first."""
    shown = [memory for memory in memories if memory.shown]
    if not shown:
        if _ours(memories, hit):
            left_out["left out, since this recall may not show their memories"] += 1
        return None
    last = len(ranks)
    return min(shown, key=lambda memory: (not _holds(memory, hit.line), ranks.get(memory.id, last), _start(memory))).id


def _holds(memory: Sourced, line: int | None) -> bool:
    if line is None or memory.start_line is None:
        return False
    return memory.start_line <= line <= (memory.end_line or memory.start_line)


def _start(memory: Sourced) -> tuple[int, str]:
    return (memory.start_line or 0, memory.id)


def _outside(
    name: str, system: OtherSystem, hit: SystemHit, request: Recall, foreign: dict[str, Foreign], left_out: Counter[str]
) -> str | None:
    if not _admitted(system, hit, request):
        left_out["left out, since nobody can tell whether the filters let them through"] += 1
        return None
    id = hit.id if hit.common else f"{name}:{hit.id}"
    foreign.setdefault(id, Foreign(hit.id, hit))
    return id


def _admitted(system: OtherSystem, hit: SystemHit, request: Recall) -> bool:
    """A hit that is no memory has a source, and the scope its system was given; nothing else can be asked of it."""
    dated = request.created_after or request.created_before or request.as_of
    if request.category or request.tags or request.state or dated:
        return False
    if request.scope is not None and not f"{system.scope}/".startswith(f"{request.scope}/"):
        return False
    if request.source is None:
        return True
    below = request.source.endswith("/") and hit.id.startswith(request.source)
    return hit.common and (below or hit.id == request.source)
