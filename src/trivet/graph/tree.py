"""A neighbourhood as a tree: every node hangs on one that is a step nearer to the start."""

from __future__ import annotations

import msgspec

from trivet.types import GraphEdge, GraphNode, Neighbourhood


class Branch(msgspec.Struct, frozen=True):
    """A node, the edge by which it hangs on the one before, and what hangs on it."""

    node: GraphNode
    edge: GraphEdge | None
    children: tuple[Branch, ...]


def tree_of(neighbourhood: Neighbourhood) -> Branch:
    """Nodes keep their order; of several edges to the ring before, the one to the first node there is taken."""
    places = {node.id: place for place, node in enumerate(neighbourhood.nodes)}
    hanging: dict[str, tuple[int, GraphEdge]] = {}
    for edge in neighbourhood.edges:
        for near, far in ((edge.source, edge.target), (edge.target, edge.source)):
            if neighbourhood.nodes[places[near]].distance == neighbourhood.nodes[places[far]].distance - 1:
                known = hanging.get(far)
                if known is None or places[near] < known[0]:
                    hanging[far] = (places[near], edge)
    children: dict[int, list[int]] = {}
    for place, node in enumerate(neighbourhood.nodes):
        if node.id in hanging:
            children.setdefault(hanging[node.id][0], []).append(place)
    return _branch(neighbourhood, 0, hanging, children)


def _branch(
    neighbourhood: Neighbourhood,
    place: int,
    hanging: dict[str, tuple[int, GraphEdge]],
    children: dict[int, list[int]],
) -> Branch:
    node = neighbourhood.nodes[place]
    edge = hanging[node.id][1] if node.id in hanging else None
    below = tuple(_branch(neighbourhood, child, hanging, children) for child in children.get(place, ()))
    return Branch(node, edge, below)
