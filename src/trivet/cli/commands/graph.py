"""The concept graph for people: what memories speak of, and what is connected with what."""

from __future__ import annotations

from typing import Annotated

import typer

from trivet.cli.command import verb_command
from trivet.cli.options import keyword
from trivet.cli.output import write_text
from trivet.cli.session import Session
from trivet.cli.views import graph as graph_views
from trivet.contract import ConceptsRequest, GraphRequest
from trivet.errors import InvalidInput

DOT = keyword("dot", Annotated[bool, typer.Option("--dot", help="Print it for Graphviz.")], False)
SVG = keyword("svg", Annotated[bool, typer.Option("--svg", help="Print it as a drawing for a browser.")], False)


@verb_command(
    "concepts",
    more="Concepts are found by rules in every memory that is not sensitive: names, titles, tags, quoted terms, "
    "identifiers, paths, codes, URLs and dates. docs/graph.md tells more.",
    example="trivet concepts\ntrivet concepts postgres --kind identifier --scope acme/shop",
)
def concepts(session: Session, request: ConceptsRequest) -> None:
    page = session.memory.perform(request)
    session.show(page, lambda: graph_views.concepts(page))


@verb_command(
    "graph",
    more="Rare concepts are followed first, so that what everything mentions does not fill the picture. Statements are "
    "shown as they hold now, or at the time of --as-of.",
    example="""
trivet graph Berlin
trivet graph 0199c2f4-7d1e-7a3b-9c55-2f6f0f6c1a2b --depth 1
trivet graph "Li Hua" --as-of 2026-03-01 --svg > li-hua.svg
""",
    extra=(DOT, SVG),
)
def graph(session: Session, request: GraphRequest, dot: bool, svg: bool) -> None:
    if dot + svg + session.as_json > 1:
        raise InvalidInput("--json, --dot and --svg exclude each other. Choose one.")
    found = session.memory.perform(request)
    if dot or svg:
        from trivet.graph import draw

        write_text(draw.dot(found) if dot else draw.svg(found))
        return
    session.show(found, lambda: graph_views.graph(found))
