"""Which concepts are hubs among the memories a caller may see: the walk does not follow them.

Counting the visible mentions of a concept that thousands mention costs more than the rest of the walk. So counts are
kept, and made again only if the changes since could have brought one below the bound.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trivet.bounded_cache import KIB, MIB, BoundedCache
from trivet.graph.network import Keys, Network, visible_among
from trivet.types import Filter

# A concept that more visible memories mention passes on next to nothing to each (docs/decisions/0010).
HUB = 200
# For the counts of one filter, some 500 hubs, and for those of all filters together, some 64 of the latest.
COUNTS_BYTES = 128 * KIB
FILTERS_BYTES = 8 * MIB


class Hubs:
    """The hubs for one filter. Kept from walk to walk, as long as the network is the same object."""

    def __init__(self) -> None:
        # Of a concept, the visible mentions, and the network's changes by then.
        self._counted: BoundedCache[int, tuple[int, int]] = BoundedCache(COUNTS_BYTES)

    def among(self, network: Network, visible: NDArray[np.bool_], concepts: Keys) -> NDArray[np.bool_]:
        found = network.of_concept.counts(concepts) > HUB
        if found.any():
            places = found.nonzero()[0]
            large = concepts[places].tolist()
            counts = {key: count for key in large if (count := self._still_known(network, key)) is not None}
            counts |= self._count(network, visible, [key for key in dict.fromkeys(large) if key not in counts])
            found[places] = [counts[key] > HUB for key in large]
        return found

    def _still_known(self, network: Network, concept: int) -> int | None:
        """The kept count if it still decides: each change since took away or added one mention at most."""
        count, changes = self._counted.get(concept) or (0, -1)
        return count if changes == network.changes or count - (network.changes - changes) > HUB else None

    def _count(self, network: Network, visible: NDArray[np.bool_], concepts: list[int]) -> dict[int, int]:
        if not concepts:
            return {}
        mentioned = network.of_concept.gather(np.array(concepts, np.int32))
        shown = visible_among(visible, mentioned.keys)
        counts = np.bincount(mentioned.origins[shown], minlength=len(concepts)).tolist()
        for key, count in zip(concepts, counts, strict=True):
            self._counted.put(key, (count, network.changes))
        return dict(zip(concepts, counts, strict=True))


class HubsByFilter:
    """The hubs of each of the latest filters; dropped when the network is another one."""

    def __init__(self) -> None:
        self._network: Network | None = None
        self._known = _no_hubs()

    def of(self, network: Network, filter: Filter) -> Hubs:
        if self._network is not network:
            self._network, self._known = network, _no_hubs()
        known = self._known
        hubs = known.get(filter)
        if hubs is None:
            hubs = Hubs()
            known.put(filter, hubs)
        return hubs


def _no_hubs() -> BoundedCache[Filter, Hubs]:
    return BoundedCache(FILTERS_BYTES, lambda hubs: COUNTS_BYTES)  # counted as full, since they grow
