"""Showing memories to other users of a server, and what there is to show."""

from __future__ import annotations

from typing import Any

from trivet.cli.command import operation
from trivet.cli.output import line
from trivet.cli.session import Session
from trivet.cli.views import memories as views
from trivet.types import Share

ID = "0199c2f4-7d1e-7a3b-9c55-2f6f0f6c1a2b"


@operation(
    "share",
    more="Name a memory with --id, or a tag: then whatever memory of yours carries it is shared, also one of later. "
    "Only its owner can delete, share or reveal a memory.",
    example=f"trivet share bo --id {ID}\ntrivet share '*' --tag handbook --permission write",
)
def share(session: Session, arguments: dict[str, Any]) -> None:
    made = session.memory.share(**arguments)
    session.show(made, lambda: [_line(made)])


@operation("unshare", example=f"trivet unshare bo --id {ID}")
def unshare(session: Session, arguments: dict[str, Any]) -> None:
    session.memory.unshare(**arguments)
    session.show({**arguments, "status": "removed"}, lambda: [line("It is not shared any longer.")])


@operation("shares", example="trivet shares")
def shares(session: Session, arguments: dict[str, Any]) -> None:
    found = session.memory.shares(**arguments)
    session.show(found, lambda: [_line(one) for one in found] or [line("Nothing is shared.")])


@operation("links", example=f"trivet links {ID}")
def links(session: Session, arguments: dict[str, Any]) -> None:
    found = session.memory.links(**arguments)
    session.show(found, lambda: [views.link_line(one) for one in found] or [line("It has no links.")])


@operation("tags", example="trivet tags --scope acme/shop")
def tags(session: Session, arguments: dict[str, Any]) -> None:
    counts = session.memory.tags(**arguments)
    session.show(counts, lambda: [line(f"{one.memories:>6}  {one.name}") for one in counts] or [line("No tags.")])


@operation("categories", example="trivet categories")
def categories(session: Session, arguments: dict[str, Any]) -> None:
    counts = session.memory.categories(**arguments)
    session.show(counts, lambda: [line(f"{one.memories:>6}  {one.name}") for one in counts])


def _line(share: Share) -> Any:
    what = f"memory {share.id}" if share.id else f"everything tagged {share.tag!r}"
    whom = "everyone" if share.user == "*" else share.user
    return line(f"{share.owner} shows {whom} ", (what, "cyan"), f" ({share.permission})")
