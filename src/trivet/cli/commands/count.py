"""Counting memories by what they have in common."""

from __future__ import annotations

from collections.abc import Sequence

from trivet.cli.command import verb_command
from trivet.cli.output import Line, line
from trivet.cli.session import Session
from trivet.contract import CategoriesRequest, DaysRequest, SourcesRequest, TagsRequest
from trivet.types import Count


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
    more="A source can be given to list and recall as it stands here, or a folder of them with / at its end.",
    example="trivet sources --text notes/",
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
