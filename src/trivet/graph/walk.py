"""The walk: personalised PageRank by local push, from the best hits and the query's concepts.

Each round pushes the mass at memories through the concepts they mention on to other memories. A concept that few
memories mention passes on much, a hub next to nothing; a memory whose concepts are all common keeps its mass. The
result is the mass that arrived by walking, so a seed gains only where other seeds lead to it.
"""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from trivet.bounded_cache import MIB, cached
from trivet.graph.hubs import Hubs
from trivet.graph.mentions import ROLES
from trivet.graph.network import Keys, Neighbours, Network, Roles, numbered, visible_among

Mass = NDArray[np.float64]

# Bounds on the work of a walk: rounds, memories pushed in each, the heaviest first, and the least share of the start
# that is worth another push. Looser ones change nothing in the third decimal (docs/decisions/0010).
ROUNDS = 2
PUSHED_AT_ONCE = 50
LEAST_SHARE = 1e-3
# Mentions that mass is passed on by in each, those of the rarest concepts first: short memories of any number have
# fewer, and a text of thousands of words brings hundreds of concepts that many others mention (docs/decisions/0010).
MENTIONS_AT_ONCE = 10_000
# A word counts as a name if it stands capitalised within sentences at least this share as often as at their start.
SURE_PER_MAYBE = 0.2
# Weight of a link between two memories, beside their concepts: as of a concept that only the two mention.
LINK_WEIGHT = 0.6

# For powers of counts, by exponent: those of a walk and of a few others that a lab tries.
POWERS_BYTES = MIB

# Never divide by a concept that no visible memory holds.
LEAST_PULL = 1e-9

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
    even: float = 0.25  # a memory that mentions n concepts draws from each as n to the power of minus this


class Spread(msgspec.Struct, frozen=True):
    """Of concepts: weights, numbers of visible memories that mention them, and each such memory's share."""

    weights: Mass
    mentions: NDArray[np.int64]
    pull: Mass
    memories: Neighbours
    shares: Mass


class Masses(msgspec.Struct, frozen=True):
    """Memories, by ascending keys, and the mass at each."""

    keys: Keys
    values: Mass


def walk(
    network: Network, visible: NDArray[np.bool_], hits: Masses, concepts: Masses, how: Walk, hubs: Hubs | None = None
) -> Masses:
    """The mass that arrives at the visible memories. `concepts` are concepts and the mass that starts at them."""
    hubs = hubs or Hubs()
    least = LEAST_SHARE * float(hits.values.sum() + concepts.values.sum())
    reached = _from_concepts(network, visible, concepts, how)
    arrived = [reached]
    pushing = hits
    for number in range(ROUNDS):
        passed_on, returned = _push(network, visible, pushing, how, hubs)
        arrived.append(passed_on)
        if number == 0:
            arrived.append(Masses(pushing.keys, -returned))
            passed_on = _added([reached, passed_on])
        pushing = _heaviest(passed_on, least)
    total = _added(arrived)
    return Masses(total.keys, np.maximum(total.values, 0.0))


def weigh_concepts(network: Network, visible: NDArray[np.bool_], concepts: Keys, how: Walk) -> Spread:
    """Weighs concepts by the visible memories alone: how many mention them, and how surely."""
    memories = _shown(visible, network.of_concept.gather(concepts))
    count = len(concepts)
    mentions = np.bincount(memories.origins, minlength=count)
    maybe = np.bincount(memories.origins[memories.roles == _MAYBE], minlength=count)
    sure = mentions - maybe
    is_name = (sure > 0) & (sure > SURE_PER_MAYBE * maybe)
    weights = np.where(is_name, _powers(mentions, -how.rare), 0.0)
    pulls = _pulls(network, memories.keys, memories.roles, how)
    pull = np.maximum(_sums(memories.origins, pulls, count), LEAST_PULL)
    return Spread(weights, mentions, pull, memories, pulls / pull[memories.origins])


def _shown(visible: NDArray[np.bool_], found: Neighbours) -> Neighbours:
    shown = visible_among(visible, found.keys)
    return found if shown.all() else _some(found, shown.nonzero()[0])


def _some(found: Neighbours, places: NDArray[np.int64]) -> Neighbours:
    return Neighbours(found.origins[places], found.keys[places], found.roles[places])


def _pulls(network: Network, memories: Keys, roles: Roles, how: Walk) -> Mass:
    """How strongly each memory draws from a concept: one that mentions much would else be reached by every walk."""
    pulls = np.where(roles == _ABOUT, how.about, 1.0)
    return pulls * _powers(network.of_memory.counts(memories), -how.even) if how.even else pulls


def _powers(counts: NDArray[np.int64], exponent: float) -> Mass:
    """Of each count, and of 1 for none. Most are small and alike, so each is raised once."""
    return _powers_up_to(int(counts.max(initial=0)).bit_length(), exponent)[counts]


@cached(POWERS_BYTES)
def _powers_up_to(bits: int, exponent: float) -> Mass:
    table: Mass = np.maximum(np.arange(1 << bits), 1) ** exponent
    return table


def _push(network: Network, visible: NDArray[np.bool_], at: Masses, how: Walk, hubs: Hubs) -> tuple[Masses, Mass]:
    """The mass that memories pass on through concepts and links, and how much of it returns to each directly."""
    mentioned, concepts, place = _shared(network, visible, network.of_memory.gather(at.keys), hubs)
    spread = weigh_concepts(network, visible, concepts, how)
    weights = np.where(spread.mentions > 1, spread.weights, 0.0)[place]
    origins, linked = _links(network, visible, at.keys)
    count = len(at.keys)
    total = how.rest + _sums(mentioned.origins, weights, count) + LINK_WEIGHT * np.bincount(origins, minlength=count)
    flow = how.onward * at.values[mentioned.origins] * weights / total[mentioned.origins]
    through_concepts = _onward(spread, how.onward * _sums(place, flow, len(concepts)))
    through_links = _masses(linked, how.onward**2 * at.values[origins] * LINK_WEIGHT / total[origins])
    own = _pulls(network, at.keys[mentioned.origins], mentioned.roles, how) / spread.pull[place]
    return _added([through_concepts, through_links]), _sums(mentioned.origins, how.onward * flow * own, count)


def _from_concepts(network: Network, visible: NDArray[np.bool_], at: Masses, how: Walk) -> Masses:
    return _onward(weigh_concepts(network, visible, at.keys, how), how.onward * at.values)


def _onward(spread: Spread, at_concepts: Mass) -> Masses:
    return _masses(spread.memories.keys, at_concepts[spread.memories.origins] * spread.shares)


def _links(network: Network, visible: NDArray[np.bool_], memories: Keys) -> tuple[NDArray[np.int64], Keys]:
    places, others = network.links_of(memories.tolist())
    linked = np.array(others, np.int32)
    shown = visible_among(visible, linked).nonzero()[0]
    return np.array(places, np.int64)[shown], linked[shown]


def _added(parts: list[Masses]) -> Masses:
    parts = [part for part in parts if len(part.keys)] or parts[:1]
    if len(parts) == 1:
        return parts[0]
    return _masses(np.concatenate([part.keys for part in parts]), np.concatenate([part.values for part in parts]))


def _masses(keys: Keys, values: Mass) -> Masses:
    """One entry a key, in the order of keys, so that equal parts always add up to exactly the same sum."""
    found, place = numbered(keys)
    return Masses(found, _sums(place, values, len(found)))


def _sums(places: NDArray[np.int64], values: Mass, count: int) -> Mass:
    # Without a single value numpy would count in integers.
    return np.bincount(places, weights=values, minlength=count).astype(np.float64, copy=False)


def _shared(
    network: Network, visible: NDArray[np.bool_], mentioned: Neighbours, hubs: Hubs
) -> tuple[Neighbours, Keys, NDArray[np.int64]]:
    """Of the concepts that are followed alone; each concept, and where those stand there."""
    concepts, place = numbered(mentioned.keys)
    followed = _followed(network, visible, concepts, hubs)
    kept = followed[place].nonzero()[0]
    return _some(mentioned, kept), concepts[followed], (followed.cumsum() - 1)[place[kept]]


def _followed(network: Network, visible: NDArray[np.bool_], concepts: Keys, hubs: Hubs) -> NDArray[np.bool_]:
    """Those that several memories mention and that are no hubs; of many, the rarest."""
    counts = network.of_concept.counts(concepts)
    followed: NDArray[np.bool_] = (counts > 1) & ~hubs.among(network, visible, concepts)
    if counts[followed].sum() > MENTIONS_AT_ONCE:
        places = followed.nonzero()[0]
        rarest = places[np.argsort(counts[places], kind="stable")]  # of equal counts those of lower keys
        followed[rarest[counts[rarest].cumsum() > MENTIONS_AT_ONCE]] = False
    return followed


def _heaviest(reached: Masses, least: float) -> Masses:
    found = (reached.values > least).nonzero()[0]
    if len(found) > PUSHED_AT_ONCE:
        # Stable, so that equal masses are taken by key and the same graph always gives the same walk.
        found = np.sort(found[np.argsort(-reached.values[found], kind="stable")[:PUSHED_AT_ONCE]])
    return Masses(reached.keys[found], reached.values[found])
