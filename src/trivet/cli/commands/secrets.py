"""Secrets on purpose: reading them, seeing who did, and changing the key."""

from __future__ import annotations

from typing import Annotated

import typer

from trivet.cli.command import command, verb_command
from trivet.cli.output import line
from trivet.cli.progress import LateProgress
from trivet.cli.session import Session
from trivet.cli.views import memories as views
from trivet.clock import stamp
from trivet.contract import AuditRequest, RevealRequest
from trivet.types import Rotated

ID = "0199c2f4-7d1e-7a3b-9c55-2f6f0f6c1a2b"


@verb_command(
    "reveal",
    more="Everywhere else a placeholder such as [secret:github-token:1] or [private] stands in its place.",
    example=f"trivet reveal {ID}",
)
def reveal(session: Session, request: RevealRequest) -> None:
    memory = session.memory.perform(request)
    session.show(memory, lambda: views.memory(memory))


@command(
    "redact",
    "Take secrets out of memories that were stored before, from their whole history.",
    more="What is stored from now on is looked through anyway, unless the setting secrets is off.",
    example="trivet redact",
)
def redact(session: Session) -> None:
    with LateProgress("reading", lambda _: None) as progress:
        redacted = session.memory.redact(progress=progress)
    found = ", ".join(f"{kind} {count}" for kind, count in redacted.secrets.items()) or "nothing"
    pending = [line(f"Still to be done: {redacted.pending}")] if redacted.pending else []
    said = f"Encrypted, and replaced in {redacted.memories} memories: {found}."
    session.show(redacted, lambda: [line(said), *pending])
    session.embed_waiting()


@verb_command(
    "audit",
    more="Every act of a server's users is on the record, and every reveal. `trivet doctor` checks that none was "
    "changed or removed.",
    example="trivet audit",
)
def audit(session: Session, request: AuditRequest) -> None:
    entries = session.memory.perform(request)
    rows = [
        line((f"{stamp(one.at)}  ", "dim"), f"{one.actor or '-':<12} {one.act:<12} {one.memory or '-'}  {one.detail}")
        for one in entries
    ]
    session.show(entries, lambda: rows or [line("Nothing is on the record yet.")])


@command(
    "rotate-keys",
    "Seal every secret of this store with a new key.",
    more="Others may go on writing meanwhile. If it is interrupted, nothing is lost: run it again, and it goes on. The "
    "old keys stay, since backups need them; --drop-old removes those that no store was noted to use any longer, and "
    "names the others with their stores. Rotate the keys there too, or name a key with --drop if its store is gone.",
    example="trivet rotate-keys\ntrivet rotate-keys --drop-old",
)
def rotate_keys(
    session: Session,
    drop_old: Annotated[
        bool, typer.Option("--drop-old", help="Remove the old keys that no store needs, when all is sealed anew.")
    ] = False,
    drop: Annotated[
        list[str] | None,
        typer.Option("--drop", metavar="KEY", help="Remove this old key, even if another store was noted to use it."),
    ] = None,
) -> None:
    rotated = session.memory.rotate_keys(drop_old=drop_old, drop=tuple(drop or ()))
    session.show(rotated, lambda: [line(text) for text in _of_rotation(rotated)])


def _of_rotation(rotated: Rotated) -> list[str]:
    which = "the key of an unfinished rotation" if rotated.resumed else "the new key"
    said = [f"{rotated.resealed} secrets are sealed with {which} {rotated.key}; {rotated.dropped} old keys dropped."]
    if rotated.resumed:
        said.append("Run it again for a new key.")
    said += [f"Kept: {key}, which may be needed by {', '.join(users)}." for key, users in rotated.kept.items()]
    if rotated.kept:
        said.append("Run `trivet rotate-keys` on these stores, then --drop-old again; --drop KEY drops one regardless.")
    return said
