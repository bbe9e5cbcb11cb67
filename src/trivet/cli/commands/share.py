"""Showing memories to other users of a server, and how memories are linked."""

from __future__ import annotations

from typing import Any

from trivet.cli.command import verb_command
from trivet.cli.output import line
from trivet.cli.session import Session
from trivet.cli.views import memories as views
from trivet.contract import (
    LinksRequest,
    ShareRequest,
    SharesRequest,
    UnshareRequest,
    given,
)
from trivet.types import Share

ID = "0199c2f4-7d1e-7a3b-9c55-2f6f0f6c1a2b"


@verb_command(
    "share",
    more="Name a memory with --id, or a tag: then whatever memory of yours carries it is shared, also one of later. "
    "Only its owner can delete, share or reveal a memory.",
    example=f"trivet share bo --id {ID}\ntrivet share '*' --tag handbook --permission write",
)
def share(session: Session, request: ShareRequest) -> None:
    made = session.memory.perform(request)
    session.show(made, lambda: [_line(made)])


@verb_command("unshare", example=f"trivet unshare bo --id {ID}")
def unshare(session: Session, request: UnshareRequest) -> None:
    session.memory.perform(request)
    session.show({**given(request), "status": "removed"}, lambda: [line("It is not shared any longer.")])


@verb_command("shares", example="trivet shares")
def shares(session: Session, request: SharesRequest) -> None:
    found = session.memory.perform(request)
    session.show(found, lambda: [_line(one) for one in found] or [line("Nothing is shared.")])


@verb_command("links", example=f"trivet links {ID}")
def links(session: Session, request: LinksRequest) -> None:
    found = session.memory.perform(request)
    session.show(found, lambda: [views.link_line(one) for one in found] or [line("It has no links.")])


def _line(share: Share) -> Any:
    what = f"memory {share.id}" if share.id else f"everything tagged {share.tag!r}"
    whom = "everyone" if share.user == "*" else share.user
    return line(f"{share.owner} shows {whom} ", (what, "cyan"), f" ({share.permission})")
