"""A neighborhood as a tree, as DOT, and as an SVG with one ring of nodes per step."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from html import escape

import msgspec

from trivet.common.clock import stamp
from trivet.types import GraphEdge, GraphNode, Neighbourhood

RING = 240
NODE_SPACING = 26
MARGIN_X = 230
MARGIN_Y = 30
LABEL_CHARACTERS = 32
RADIUS = {"memory": 6, "concept": 8}

# Characters that XML forbids, or that change the text direction.
_unprintable = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)

# Scoped, because a notebook's page may contain other pictures.
STYLE = """
  .trivet-graph { background: #ffffff; font: 12px system-ui, sans-serif; }
  .trivet-graph text { fill: #1b1f24; stroke: #ffffff; stroke-width: 3px; paint-order: stroke; }
  .trivet-graph .relation { fill: #59636e; font-size: 10px; }
  .trivet-graph .mention { stroke: #b8c0c8; }
  .trivet-graph .link { stroke: #d55e00; }
  .trivet-graph .statement { stroke: #009e73; }
  .trivet-graph .memory { fill: #0072b2; }
  .trivet-graph .concept { fill: #e69f00; }
  .trivet-graph .start { stroke: #1b1f24; stroke-width: 3; }
  @media (prefers-color-scheme: dark) {
    .trivet-graph { background: #0d1117; }
    .trivet-graph text { fill: #e6edf3; stroke: #0d1117; }
    .trivet-graph .relation { fill: #9198a1; }
    .trivet-graph .mention { stroke: #4a525a; }
    .trivet-graph .start { stroke: #e6edf3; }
    .trivet-graph .memory { fill: #56b4e9; }
  }
"""

Place = tuple[float, float]


def dot(neighbourhood: Neighbourhood) -> str:
    rows = ["digraph trivet {", "  rankdir=LR; node [fontname=Helvetica];"]
    for node in neighbourhood.nodes:
        shape = "box" if node.kind == "memory" else "ellipse"
        rows.append(f"  {_quoted(node.id)} [label={_quoted(_short(node.label))}, shape={shape}];")
    for edge in neighbourhood.edges:
        label = "" if edge.kind == "mention" else f", label={_quoted(_edge_text(edge))}"
        rows.append(
            f"  {_quoted(edge.source)} -> {_quoted(edge.target)} "
            f"[style={_STROKES[edge.kind]}{label}];"
        )
    return "\n".join([*rows, "}"]) + "\n"


_STROKES = {"mention": "solid", "link": "bold", "statement": "dashed"}


def svg(neighbourhood: Neighbourhood) -> str:
    """Return a self-contained SVG, light or dark like the reader's screen."""
    places = _places(tree_of(neighbourhood), _ring(neighbourhood))
    left, right = (
        min(x for x, _ in places.values()) - MARGIN_X,
        max(x for x, _ in places.values()) + MARGIN_X,
    )
    top, bottom = (
        min(y for _, y in places.values()) - MARGIN_Y,
        max(y for _, y in places.values()) + MARGIN_Y,
    )
    width, height = right - left, bottom - top
    start = neighbourhood.nodes[0]
    rows = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="trivet-graph" '
        f'width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="{left:.0f} {top:.0f} {width:.0f} {height:.0f}" role="img">',
        f"<title>{xml_text(f'What lies around {start.label}')}</title>",
        f"<style>{STYLE}</style>",
        *_edge_svg(neighbourhood, places),
        *(_node_svg(node, places[node.id], node is start) for node in neighbourhood.nodes),
        "</svg>",
    ]
    return "\n".join(rows) + "\n"


def _ring(neighbourhood: Neighbourhood) -> float:
    full: dict[int, int] = {}
    for node in neighbourhood.nodes[1:]:
        full[node.distance] = full.get(node.distance, 0) + 1
    return max(
        [
            RING,
            *(count * NODE_SPACING / (2 * math.pi * distance) for distance, count in full.items()),
        ]
    )


def _places(branch: Branch, ring: float) -> dict[str, Place]:
    places: dict[str, Place] = {}
    deepest = _deepest(branch)

    def put(branch: Branch, begin: float, end: float) -> None:
        middle, away, width = (begin + end) / 2, ring * branch.node.distance, end - begin
        places[branch.node.id] = (away * math.cos(middle), away * math.sin(middle))
        needed = sum(_angular_weight(child, deepest) for child in branch.children)
        for child in branch.children:
            stop = begin + width * _angular_weight(child, deepest) / needed
            put(child, begin, stop)
            begin = stop

    put(branch, -math.pi / 2, 1.5 * math.pi)
    return places


def _deepest(branch: Branch) -> int:
    return max([branch.node.distance, *map(_deepest, branch.children)])


def _angular_weight(branch: Branch, deepest: int) -> float:
    """Give a node near the center a larger share: a slice is narrower there."""
    return max(
        sum(_angular_weight(child, deepest) for child in branch.children),
        deepest / branch.node.distance,
    )


def _edge_svg(neighbourhood: Neighbourhood, places: dict[str, Place]) -> Iterator[str]:
    for edge in neighbourhood.edges:
        (x1, y1), (x2, y2) = places[edge.source], places[edge.target]
        width = 2 if edge.kind != "mention" or edge.relation == "about" else 1
        yield (
            f'<line class="{edge.kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
            f'stroke-width="{width}"><title>{xml_text(_edge_text(edge))}</title></line>'
        )
        if edge.kind != "mention":
            yield (
                f'<text class="relation" x="{(x1 + x2) / 2:.1f}" y="{(y1 + y2) / 2 - 3:.1f}" '
                f'text-anchor="middle">{xml_text(_short(edge.relation))}</text>'
            )


def _node_svg(node: GraphNode, place: Place, is_start: bool) -> str:
    x, y = place
    side = "end" if x < -1 else "start"
    label_x = x - 12 if side == "end" else x + 12
    marked = f"{node.kind} start" if is_start else node.kind
    return (
        f"<g><title>{xml_text(_tooltip(node))}</title>"
        f'<circle class="{marked}" cx="{x:.1f}" cy="{y:.1f}" r="{RADIUS[node.kind]}"/>'
        f'<text x="{label_x:.1f}" y="{y + 4:.1f}" text-anchor="{side}">'
        f"{xml_text(_short(node.label))}</text></g>"
    )


def _tooltip(node: GraphNode) -> str:
    if node.kind == "memory":
        return f"{node.id}: {node.label}"
    return f"{node.label} ({node.concept_kind}, {node.memories} memories)"


def _edge_text(edge: GraphEdge) -> str:
    since = f" since {stamp(edge.valid_from)}" if edge.valid_from else ""
    until = f" until {stamp(edge.valid_to)}" if edge.valid_to else ""
    return f"{edge.relation}{since}{until}"


def _short(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= LABEL_CHARACTERS else words[: LABEL_CHARACTERS - 1].rstrip() + "…"


def xml_text(text: str) -> str:
    """Escape text for XML, and replace characters that change the text direction."""
    return escape(_unprintable.sub("\ufffd", text))


def _quoted(text: str) -> str:
    clean = _unprintable.sub("\ufffd", " ".join(text.split()))
    return '"' + clean.replace("\\", "\\\\").replace('"', '\\"') + '"'


class Branch(msgspec.Struct, frozen=True):
    node: GraphNode
    edge: GraphEdge | None
    children: tuple[Branch, ...]


def tree_of(neighbourhood: Neighbourhood) -> Branch:
    """Return a tree in which each node hangs on one nearer to the start."""
    places = {node.id: place for place, node in enumerate(neighbourhood.nodes)}
    parents: dict[str, tuple[int, GraphEdge]] = {}
    for edge in neighbourhood.edges:
        for near, far in ((edge.source, edge.target), (edge.target, edge.source)):
            if (
                neighbourhood.nodes[places[near]].distance
                == neighbourhood.nodes[places[far]].distance - 1
            ):
                known = parents.get(far)
                if known is None or places[near] < known[0]:
                    parents[far] = (places[near], edge)
    children: dict[int, list[int]] = {}
    for place, node in enumerate(neighbourhood.nodes):
        if node.id in parents:
            children.setdefault(parents[node.id][0], []).append(place)
    return _branch(neighbourhood, 0, parents, children)


def _branch(
    neighbourhood: Neighbourhood,
    place: int,
    parents: dict[str, tuple[int, GraphEdge]],
    children: dict[int, list[int]],
) -> Branch:
    node = neighbourhood.nodes[place]
    edge = parents[node.id][1] if node.id in parents else None
    below = tuple(
        _branch(neighbourhood, child, parents, children) for child in children.get(place, ())
    )
    return Branch(node, edge, below)
