"""Commands that inspect a store: revisions, missing hits, counts and the concept graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from trivet.cli.command import command, verb_command
from trivet.cli.options import completer, keyword
from trivet.cli.session import Session
from trivet.cli.terminal import Line, line, write_text
from trivet.cli.views import memories as views
from trivet.contract import (
    CategoriesRequest,
    ConceptsRequest,
    DaysRequest,
    FeedbackRequest,
    GraphRequest,
    History,
    SourcesRequest,
    StatsRequest,
    TagsRequest,
    UsageRequest,
    WhyNotRequest,
    describe,
)
from trivet.errors import InvalidInput, NotFound
from trivet.types import Count, Usage

ID = "0199c2f4-7d1e-7a3b-9c55-2f6f0f6c1a2b"


@verb_command("history", example=f"trivet history {ID}")
def history(session: Session, request: History) -> None:
    revisions = session.memory.perform(request)
    session.show(revisions, lambda: views.history(revisions))


@command(
    "diff",
    "Show what changed between two revisions of a memory.",
    example=f"trivet diff {ID}\ntrivet diff {ID} 1 3",
)
def diff(
    session: Session,
    id: Annotated[
        str,
        typer.Argument(
            help=describe(History, "id"), show_default=False, autocompletion=completer("memory")
        ),
    ],
    older: Annotated[
        int | None,
        typer.Argument(min=1, help="Default: the one before `newer`.", show_default=False),
    ] = None,
    newer: Annotated[
        int | None, typer.Argument(min=1, help="Default: the latest.", show_default=False)
    ] = None,
    reveal: Annotated[bool, typer.Option("--reveal", help=describe(History, "reveal"))] = False,
) -> None:
    newer = newer or session.memory.get(id).revision
    older = older or newer - 1
    if older < 1:
        raise NotFound(
            "This memory has only one revision, so there is nothing to compare. `trivet get` "
            "shows its text."
        )
    text = session.memory.diff(id, older, newer, reveal=reveal)
    value = {"id": id, "older": older, "newer": newer, "diff": text}
    session.show(
        value, lambda: views.diff(text) if text else [line("The two revisions are identical.")]
    )


@verb_command(
    "why-not",
    more="Repeats the recall with the same options and follows this memory through every step.",
    example=f'trivet why-not "which port is staging on?" {ID}',
)
def why_not(session: Session, request: WhyNotRequest) -> None:
    verdict = session.memory.perform(request)
    session.show(verdict, lambda: views.why_not(verdict))


@verb_command("stats", example="trivet stats")
def stats(session: Session, request: StatsRequest) -> None:
    counts = session.memory.perform(request)
    session.show(counts, lambda: views.stats(counts))


@verb_command(
    "feedback",
    example=f'trivet feedback {ID} useful --query "which port is staging on?"',
)
def feedback(session: Session, request: FeedbackRequest) -> None:
    counts = session.memory.perform(request)
    session.show(counts, lambda: [line("Noted. "), _line(counts)])


@verb_command("usage", example=f"trivet usage {ID}")
def usage(session: Session, request: UsageRequest) -> None:
    counts = session.memory.perform(request)
    session.show(counts, lambda: [_line(counts)])


def _line(counts: Usage) -> Line:
    last = f", last on {views.day(counts.last_shown)}" if counts.last_shown else ""
    votes = f"useful {_times(counts.useful)}, not useful {_times(counts.not_useful)}"
    return line((counts.id, "cyan"), f"  shown {_times(counts.shown)}{last}; {votes}")


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


@verb_command("tags", example="trivet tags --scope acme/shop")
def tags(session: Session, request: TagsRequest) -> None:
    counts = session.memory.perform(request)
    session.show(counts, lambda: _lines(counts) or [line("No tags.")])


@verb_command("categories", example="trivet categories")
def categories(session: Session, request: CategoriesRequest) -> None:
    counts = session.memory.perform(request)
    session.show(counts, lambda: _lines(counts))


@verb_command(
    "sources",
    more="`--source` of `list` and `recall` takes a source as printed here, or a folder of "
    "sources with / at its end.",
    example="trivet sources notes/",
)
def sources(session: Session, request: SourcesRequest) -> None:
    counts = session.memory.perform(request)
    session.show(counts, lambda: _lines(counts) or [line("No memory names a source.")])


@verb_command("days", example="trivet days --created-after 30d --utc-offset 120")
def days(session: Session, request: DaysRequest) -> None:
    counts = session.memory.perform(request)
    session.show(counts, lambda: _lines(counts) or [line("No memories.")])


def _lines(counts: Sequence[Count]) -> list[Line]:
    return [line(f"{one.memories:>6}  {one.name}") for one in counts]


DOT = keyword(
    "dot", Annotated[bool, typer.Option("--dot", help="Print the graph for Graphviz.")], False
)
SVG = keyword(
    "svg",
    Annotated[bool, typer.Option("--svg", help="Print the graph as an SVG drawing.")],
    False,
)


@verb_command(
    "concepts",
    more="Rules find them in every memory that is not sensitive: names, titles, tags, quoted "
    "terms, identifiers, paths, codes, URLs and dates (docs/graph.md).",
    example="trivet concepts\ntrivet concepts postgres --kind identifier --scope acme/shop",
)
def concepts(session: Session, request: ConceptsRequest) -> None:
    page = session.memory.perform(request)
    from trivet.cli.views import graph as graph_views  # takes milliseconds to load

    session.show(page, lambda: graph_views.concepts(page))


@verb_command(
    "graph",
    more="Rare concepts come first. Statements are those that hold now, or at the time of --as-of.",
    example="""
trivet graph Berlin
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
    from trivet.cli.views import graph as graph_views  # takes milliseconds to load

    session.show(found, lambda: graph_views.graph(found))
