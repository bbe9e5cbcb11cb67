"""Which concepts are hubs among the memories a caller may see: those the walk does not follow.

Counting the visible mentions of a concept that thousands mention costs more than the rest of the walk, and a concept
that was far above the bound a moment ago is still there after a few changes: so counts are kept, and made anew only
where changes since could have brought one below it.
"""

from __future__ import annotations

from collections import OrderedDict

import numpy as np
from numpy.typing import NDArray

from trivet.graph.network import Keys, Network, seen_among
from trivet.types import Filter

# A concept that more visible memories mention passes on next to nothing to each (docs/decisions/0010).
HUB = 200
# As many as are kept of what a filter shows.
FILTERS_KEPT = 64


class Hubs:
    """For one filter. Kept from walk to walk, as long as the network is the same object."""

    def __init__(self) -> None:
        self._held: dict[int, tuple[int, int]] = {}  # concept: visible mentions, and the network's changes by then

    def among(self, network: Network, visible: NDArray[np.bool_], concepts: Keys) -> NDArray[np.bool_]:
        found = network.of_concept.counts(concepts) > HUB
        if found.any():
            large = np.unique(concepts[found])
            self._count(network, visible, [key for key in large.tolist() if not self._surely(network, key)])
            hubs = [key for key in large.tolist() if self._held[key][0] > HUB]
            found &= np.isin(concepts, hubs)
        return found

    def _surely(self, network: Network, concept: int) -> bool:
        """Whether the count of before settles it: each change since can have taken away or added one at most."""
        if concept not in self._held:
            return False
        held, changes = self._held[concept]
        return changes == network.changes or held - (network.changes - changes) > HUB

    def _count(self, network: Network, visible: NDArray[np.bool_], concepts: list[int]) -> None:
        if concepts:
            mentioned = network.of_concept.gather(np.array(concepts, np.int32))
            seen = seen_among(visible, mentioned.keys)
            held = np.bincount(mentioned.origins[seen], minlength=len(concepts)).tolist()
            self._held.update({key: (count, network.changes) for key, count in zip(concepts, held, strict=True)})


class HubsByFilter:
    """What is known of each of the last filters; forgotten when the network is another one."""

    def __init__(self) -> None:
        self._network: Network | None = None
        self._known: OrderedDict[Filter, Hubs] = OrderedDict()

    def of(self, network: Network, filter: Filter) -> Hubs:
        known = self._known
        if self._network is not network:
            self._network, known = network, OrderedDict()
            self._known = known
        hubs = known.pop(filter, None) or Hubs()
        known[filter] = hubs
        while len(known) > FILTERS_KEPT:
            known.popitem(last=False)
        return hubs
