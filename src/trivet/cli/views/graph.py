"""The concept graph for people."""

from __future__ import annotations

from collections.abc import Iterator

from trivet.cli.terminal import Line, line, one_line
from trivet.cli.views.memories import day, next_page
from trivet.graph.draw import Branch, tree_of
from trivet.types import Concept, ConceptPage, GraphEdge, GraphNode, Neighbourhood

INDENT = 2
# Other spellings shown with a concept.
SHOWN_ALIASES = 4


def concepts(page: ConceptPage) -> Iterator[Line]:
    width = len(str(max((concept.memories for concept in page.concepts), default=0)))
    for concept in page.concepts:
        yield _concept_line(concept, width)
    if more := next_page(page.offset, len(page.concepts), page.total):
        yield more
    elif not page.concepts:
        yield line("No concept matches." if page.total == 0 else f"There are only {page.total}.")
    yield from _waiting(page.not_in_graph)


def _concept_line(concept: Concept, width: int) -> Line:
    aliases = ", ".join(one_line(alias) for alias in concept.aliases[:SHOWN_ALIASES])
    also = f" · also {aliases}" if aliases else ""
    return line(
        (f"{concept.memories:>{width}}  ", "bold"),
        one_line(concept.label),
        (f"  {concept.kind}{also}", "dim"),
    )


def graph(found: Neighbourhood) -> Iterator[Line]:
    yield from _branch(tree_of(found))
    labels = {node.id: node.label for node in found.nodes}
    statements = [edge for edge in found.edges if edge.kind == "statement"]
    if statements:
        yield line(
            (
                f"Statements that hold {f'as of {day(found.as_of)}' if found.as_of else 'now'}:",
                "bold",
            )
        )
    for edge in statements:
        yield _statement(edge, labels)
    if found.truncated:
        count = len(found.nodes)
        yield line(
            (
                f"Only {count} are shown: raise --limit for more, or lower --depth.",
                "dim",
            )
        )
    yield from _waiting(found.not_in_graph)


def _branch(branch: Branch) -> Iterator[Line]:
    node, edge = branch.node, branch.edge
    yield line(
        *([(f"{_verb(edge, node)} ", "dim")] if edge else []),
        *_node(node),
        indent=INDENT * node.distance,
    )
    for child in branch.children:
        yield from _branch(child)


def _node(node: GraphNode) -> list[str | tuple[str, str]]:
    if node.kind == "memory":
        return [(node.id, "cyan"), f"  {one_line(node.label)}"]
    plural = "memory" if node.memories == 1 else "memories"
    return [
        (one_line(node.label), "bold"),
        (f"  {node.concept_kind}, {node.memories} {plural}", "dim"),
    ]


def _verb(edge: GraphEdge, node: GraphNode) -> str:
    if edge.kind == "mention":
        mention = "is about" if edge.relation == "about" else "mentions"
        return f"{mention}" if node.kind == "concept" else f"<- {mention} it:"
    return (
        one_line(edge.relation) if edge.target == node.id else f"<- {one_line(edge.relation)} it:"
    )


def _statement(edge: GraphEdge, labels: dict[str, str]) -> Line:
    words = " ".join(
        one_line(part) for part in (labels[edge.source], edge.relation, labels[edge.target])
    )
    until = f" until {day(edge.valid_to)}" if edge.valid_to else ""
    until += f", ended by {edge.ended_by}" if edge.ended_by else ""
    since = f"since {day(edge.valid_from)}{until}; stated by "
    return line(f"{words}  ", (since, "dim"), (edge.evidence or "", "cyan"), indent=INDENT)


def _waiting(count: int) -> Iterator[Line]:
    if count:
        yield line(
            (
                f"{count} memories are not in the concept graph yet; `trivet embed` adds them.",
                "yellow",
            )
        )
