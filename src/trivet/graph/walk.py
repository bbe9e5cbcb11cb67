"""The walk: personalised PageRank by local push, from the best hits and the query's concepts.

Each round pushes what has arrived at memories through the concepts they mention on to other memories. A concept that
few memories mention passes on much, a hub next to nothing; a memory whose concepts are all common keeps what it has.
What counts in the end is what arrived by walking, so that the seeds gain only where other seeds lead to them.
"""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from trivet.graph.network import Keys, Neighbours, Network, Roles
from trivet.graph.values import ROLES

Mass = NDArray[np.float64]

# Beyond this many mentions a concept passes on less than a thousandth to each: looking at them all would be wasted.
HUB = 1_000
# Bounds on the work of a walk: rounds, and memories pushed in each, the heaviest first.
ROUNDS = 4
PUSHED_AT_ONCE = 200
# The least share of all the seeds' mass that is worth another push.
LEAST_SHARE = 1e-4
# A capital at the start of sentences makes a name if the word stands capitalised within sentences this much as often.
SURE_PER_MAYBE = 0.2
# How much a link between two memories carries, beside their concepts: as a concept that only the two mention.
LINK_WEIGHT = 0.6

_MAYBE = ROLES.index("maybe")
_ABOUT = ROLES.index("about")


class Walk(msgspec.Struct, frozen=True, kw_only=True):
    """The constants of the walk, chosen in docs/decisions/0010."""

    seeds: float = 10  # best hits to start from
    sharpness: float = 3.0  # how much more the first of them start with than the last
    hits: float = 0.85  # share of the start that the hits get; the query's concepts get the rest
    onward: float = 0.7  # share of what arrives that is passed on
    rare: float = 0.75  # a concept in n memories passes on as n to the power of minus this
    rest: float = 0.5  # weight of staying, beside the weights of a memory's concepts
    about: float = 6.0  # what a memory is about leads to it so many times as strongly as what it mentions
    named: float = 0.3  # weight of the query's concepts at which the walk has half its strength


class Spread(msgspec.Struct, frozen=True):
    """Concepts with what they weigh, and the visible memories they lead to with the share of each."""

    weights: Mass
    memories: Neighbours
    shares: Mass


def walk(
    network: Network, visible: NDArray[np.bool_], hits: tuple[Keys, Mass], concepts: tuple[Keys, Mass], how: Walk
) -> Mass:
    """What arrives at each memory, by key, within what is visible."""
    arrived = np.zeros(len(visible))
    least = LEAST_SHARE * float(hits[1].sum() + concepts[1].sum())
    reached = _through_concepts(network, visible, *concepts, how)
    arrived += reached
    memories, mass = hits
    for number in range(ROUNDS):
        if not len(memories):
            break
        pushed = _push(network, visible, memories, mass, how, leave_out_returns=number == 0)
        arrived += pushed.counted
        reached = reached + pushed.passed_on if number == 0 else pushed.passed_on
        memories, mass = _heaviest(reached, least)
    return arrived


def weigh_concepts(network: Network, visible: NDArray[np.bool_], concepts: Keys, how: Walk) -> Spread:
    """A concept counts within what is visible alone: how many memories there mention it, and how surely."""
    found = network.of_concept.gather(concepts)
    seen = np.flatnonzero(_is_visible(visible, found.keys))
    memories = Neighbours(found.origins[seen], found.keys[seen], found.roles[seen])
    held = np.bincount(memories.origins, minlength=len(concepts))
    maybe = np.bincount(memories.origins[memories.roles == _MAYBE], minlength=len(concepts))
    sure = held - maybe
    is_name = (sure > 0) & (sure > SURE_PER_MAYBE * maybe)
    weights = np.where(is_name, np.maximum(held, 1) ** -how.rare, 0.0)
    pull = np.where(memories.roles == _ABOUT, how.about, 1.0)
    total = np.bincount(memories.origins, weights=pull, minlength=len(concepts))
    return Spread(weights, memories, pull / np.maximum(total, 1.0)[memories.origins])


class Pushed(msgspec.Struct, frozen=True):
    passed_on: Mass
    counted: Mass


def _push(
    network: Network, visible: NDArray[np.bool_], memories: Keys, mass: Mass, how: Walk, leave_out_returns: bool
) -> Pushed:
    mentioned = network.of_memory.gather(memories)
    mentioned = _without_hubs(network, mentioned)
    concepts, place = np.unique(mentioned.keys, return_inverse=True)
    spread = weigh_concepts(network, visible, concepts.astype(np.int32), how)
    held = np.bincount(spread.memories.origins, minlength=len(concepts))
    weights = np.where(held > 1, spread.weights, 0.0)[place]
    origins, others = network.links_of(memories.tolist())
    linked = np.array(others, np.int32)
    link_weights = np.where(_is_visible(visible, linked), LINK_WEIGHT, 0.0)
    origins_array = np.array(origins, np.int64)
    room = how.rest + np.bincount(mentioned.origins, weights=weights, minlength=len(memories))
    room = room + np.bincount(origins_array, weights=link_weights, minlength=len(memories))
    flow = how.onward * mass[mentioned.origins] * weights / room[mentioned.origins]
    at_concepts = np.bincount(place, weights=flow, minlength=len(concepts))
    passed_on = _arrivals(visible, spread, how.onward * at_concepts)
    if len(linked):
        by_link = how.onward**2 * mass[origins_array] * link_weights / room[origins_array]
        np.add.at(passed_on, linked[link_weights > 0], by_link[link_weights > 0])
    counted = passed_on
    if leave_out_returns:
        counted = passed_on.copy()
        np.subtract.at(counted, memories, _returns(spread, mentioned, place, flow, how, len(memories)))
        np.maximum(counted, 0.0, out=counted)
    return Pushed(passed_on, counted)


def _through_concepts(network: Network, visible: NDArray[np.bool_], concepts: Keys, mass: Mass, how: Walk) -> Mass:
    if not len(concepts):
        return np.zeros(len(visible))
    return _arrivals(visible, weigh_concepts(network, visible, concepts, how), how.onward * mass)


def _arrivals(visible: NDArray[np.bool_], spread: Spread, at_concepts: Mass) -> Mass:
    parts = at_concepts[spread.memories.origins] * spread.shares
    # Without a single part numpy counts in integers.
    return np.bincount(spread.memories.keys, weights=parts, minlength=len(visible)).astype(np.float64, copy=False)


def _returns(
    spread: Spread, mentioned: Neighbours, place: NDArray[np.int64], flow: Mass, how: Walk, count: int
) -> Mass:
    """What comes straight back to a memory through its own concepts, which says nothing about it."""
    pull = np.where(spread.memories.roles == _ABOUT, how.about, 1.0)
    total = np.bincount(spread.memories.origins, weights=pull, minlength=int(place.max()) + 1 if len(place) else 0)
    own = np.where(mentioned.roles == _ABOUT, how.about, 1.0) / np.maximum(total[place], 1.0)
    return np.bincount(mentioned.origins, weights=how.onward * flow * own, minlength=count)


def _without_hubs(network: Network, mentioned: Neighbours) -> Neighbours:
    counts = network.of_concept.counts(mentioned.keys)
    kept = np.flatnonzero((counts > 1) & (counts <= HUB))
    return Neighbours(mentioned.origins[kept], mentioned.keys[kept], mentioned.roles[kept])


def _heaviest(reached: Mass, least: float) -> tuple[Keys, Mass]:
    found = np.flatnonzero(reached > least)
    if len(found) > PUSHED_AT_ONCE:
        # Stable, so that equal masses are taken by key and the same graph always gives the same walk.
        found = np.sort(found[np.argsort(-reached[found], kind="stable")[:PUSHED_AT_ONCE]])
    return found.astype(np.int32), reached[found]


def _is_visible(visible: NDArray[np.bool_], keys: Keys | Roles) -> NDArray[np.bool_]:
    """A memory newer than the mask is not in it yet."""
    inside = keys < len(visible)
    if inside.all():
        return visible[keys]
    seen: NDArray[np.bool_] = inside & visible[np.where(inside, keys, 0)]
    return seen
