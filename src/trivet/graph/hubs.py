"""Which concepts are hubs among the memories a caller may see: the walk does not follow them.

Counting the visible mentions of a concept that thousands mention costs more than the rest of the walk. So counts are
kept, and made again only if the changes since could have brought one below the bound.
"""

from __future__ import annotations

from collections import OrderedDict

import numpy as np
from numpy.typing import NDArray

from trivet.graph.network import Keys, Network, visible_among
from trivet.types import Filter

# A concept that more visible memories mention passes on next to nothing to each (docs/decisions/0010).
HUB = 200
# Filters whose counts are kept, the latest ones.
FILTERS_KEPT = 64


class Hubs:
    """The hubs for one filter. Kept from walk to walk, as long as the network is the same object."""

    def __init__(self) -> None:
        self._counted: dict[int, tuple[int, int]] = {}  # concept: visible mentions, and the network's changes by then

    def among(self, network: Network, visible: NDArray[np.bool_], concepts: Keys) -> NDArray[np.bool_]:
        found = network.of_concept.counts(concepts) > HUB
        if found.any():
            large = np.unique(concepts[found])
            self._count(network, visible, [key for key in large.tolist() if not self._still_known(network, key)])
            hubs = [key for key in large.tolist() if self._counted[key][0] > HUB]
            found &= np.isin(concepts, hubs)
        return found

    def _still_known(self, network: Network, concept: int) -> bool:
        """Whether the kept count still decides: each change since took away or added one mention at most."""
        if concept not in self._counted:
            return False
        count, changes = self._counted[concept]
        return changes == network.changes or count - (network.changes - changes) > HUB

    def _count(self, network: Network, visible: NDArray[np.bool_], concepts: list[int]) -> None:
        if concepts:
            mentioned = network.of_concept.gather(np.array(concepts, np.int32))
            shown = visible_among(visible, mentioned.keys)
            count = np.bincount(mentioned.origins[shown], minlength=len(concepts)).tolist()
            self._counted.update({key: (count, network.changes) for key, count in zip(concepts, count, strict=True)})


class HubsByFilter:
    """The hubs of each of the latest filters; dropped when the network is another one."""

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
