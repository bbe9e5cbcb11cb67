"""`trivet sync`: this store follows a team's server, works without it, and loses nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from trivet.cli.command import command, verb_command
from trivet.cli.session import Session
from trivet.cli.terminal import STORE_ERROR, Line, line
from trivet.cli.views.memories import preview
from trivet.contract import SyncConflicts, SyncResolve
from trivet.types import EditConflict, RefusedOperation

UrlArgument = Annotated[
    str, typer.Argument(metavar="URL", help="The address of the server.", show_default=False)
]


@command(
    "sync join",
    "Follow a server: everything here is sent to it, and what others share with you comes.",
    more="The key is given as TRIVET_KEY and kept in a private file of this user. From then on the store works the "
    "same with and without the server. What is sensitive stays here unless both sides set sync_sensitive. With "
    "--scope this store holds what is in these scopes and those below them; what is written here for another one is "
    "sent, and is then on the server alone. To hold others, join again.",
    example="TRIVET_KEY=KEY trivet sync join https://memory.example.org\ntrivet sync now",
    creates=True,
)
def join(
    session: Session,
    url: UrlArgument,
    scope: Annotated[
        list[str] | None,
        typer.Option("--scope", metavar="NAME", help="Hold this scope alone; may be repeated."),
    ] = None,
    everything: Annotated[
        bool,
        typer.Option("--everything", help="Hold all scopes again, after a join that named some."),
    ] = False,
) -> None:
    from trivet.sync import verbs

    state = verbs.join(session.memory.engine, url, [] if everything else scope or None)
    said = f"This store follows {state.url} as {state.user}. `trivet sync now` exchanges."
    held = _held(state.place.scopes)
    session.show(
        {"server": state.url, "user": state.user, "scopes": state.place.scopes},
        lambda: [line(said), *held],
    )


def _held(scopes: Sequence[str]) -> list[Line]:
    return (
        [line(f"it holds the scopes {', '.join(scopes)}; the rest is on the server alone")]
        if scopes
        else []
    )


@command("sync now", "Send what waits and fetch what changed.", example="trivet sync now")
def now(session: Session) -> None:
    from trivet.sync import verbs

    done = verbs.sync_now(session.memory.engine)
    session.show(done, lambda: _exchanged(done))
    session.embed_pending()


def _exchanged(done: Any) -> list[Line]:
    lines = [line(f"Sent {done.sent}, received {done.received}.")]
    if done.vectors.taken:
        lines.append(
            line(
                f"{done.vectors.taken} memories came with their vectors, and need not be embedded here."
            )
        )
    if done.vectors.reason:
        lines.append(
            line(
                f"Vectors of the server are not used, and made here instead: {done.vectors.reason}"
            )
        )
    if done.branched:
        lines.append(
            line(
                f"{done.branched} edits clashed with others' and are kept: `trivet sync conflicts`."
            )
        )
    if done.refused:
        lines.append(
            line(f"{done.refused} operations were refused and are kept: `trivet sync refused`.")
        )
    if done.held_back:
        lines.append(line(f"Some wait, since the server said: {done.held_back}"))
    return lines


@command(
    "sync status",
    "Show how far this store is from its server, and what waits, clashed, was refused or stays here.",
    more="It works without the server too; then it says why it could not be asked.",
    example="trivet sync status --json",
)
def status(session: Session) -> None:
    from trivet.sync import verbs

    told = verbs.status(session.memory.engine)
    level = {
        True: "both hold the same",
        False: "they differ: `trivet sync now`",
        None: "not asked",
    }[told.level]
    session.show(
        told,
        lambda: [
            line(f"{told.server} as {told.user}; last contact {told.contact or 'never'}; {level}"),
            *([line(f"the server cannot be asked: {told.trouble}")] if told.trouble else []),
            line(
                f"{told.outbox} operations wait"
                + (f", the oldest since {told.oldest}" if told.oldest else "")
            ),
            line(f"{told.conflicts} conflicts, {told.refused} refused"),
            *(
                [line(f"{told.stays_local} memories stay here: {told.why_local}")]
                if told.stays_local
                else []
            ),
            *_held(told.scopes),
            *(
                [line("everything is being read, and not all of it is here yet")]
                if told.full_pull
                else []
            ),
            *([line("what others shared is hidden until the next contact")] if told.hidden else []),
        ],
    )


@verb_command("sync conflicts", example="trivet sync conflicts")
def conflicts(session: Session, request: SyncConflicts) -> None:
    found = session.memory.perform(request)
    session.show(
        found, lambda: [made for one in found for made in _conflict(one)] or [line("No conflicts.")]
    )


def _conflict(one: EditConflict) -> list[Line]:
    return [
        line((one.id, "cyan"), f" {one.author} at {one.at}"),
        *(line(f"  {name}: {preview(str(value))}") for name, value in one.head.items()),
        line("  or, by ", (one.rev, "cyan")),
        *(line(f"  {name}: {preview(str(value))}") for name, value in one.branch.items()),
    ]


@verb_command(
    "sync resolve",
    more="All texts stay in the history.",
    example="trivet sync resolve 0199c2f4-7d1e-7a3b-9c55-2f6f0f6c1a2b --take head",
)
def resolve(session: Session, request: SyncResolve) -> None:
    session.memory.perform(request)
    session.show(
        {"id": request.id, "status": "resolved"},
        lambda: [line("Resolved; it is told at the next exchange.")],
    )


@command(
    "sync refused",
    "List what the server refused, with its words and the reason. Nothing of it is ever dropped by itself.",
    example="trivet sync refused\ntrivet sync refused --drop 0199c2f4-7d1e-7a3b-9c55-2f6f0f6c1a2b",
)
def refused(
    session: Session,
    drop: Annotated[
        str | None, typer.Option("--drop", metavar="OP", help="Let go of one of them.")
    ] = None,
    reveal: Annotated[
        bool, typer.Option("--reveal", help="Show words that are or were sensitive.")
    ] = False,
) -> None:
    if drop is not None:
        session.memory.sync_drop(drop)
    found = session.memory.sync_refused(reveal=reveal)
    session.show(
        found,
        lambda: [made for one in found for made in _refused(one)] or [line("Nothing was refused.")],
    )


def _refused(one: RefusedOperation) -> list[Line]:
    return [
        line((one.op, "cyan"), f" {one.kind} of {one.id}: {one.reason}"),
        *(
            line(f"  {name}: {preview(str(value))}")
            for name, value in one.said.items()
            if value not in (None, [], "")
        ),
    ]


@command(
    "sync verify",
    "Compare digests of all memories with the server's, in 256 buckets.",
    more="The exit status is 5 if they differ.",
    example="trivet sync verify",
)
def verify(session: Session) -> int:
    from trivet.sync import verbs

    found = verbs.verify(session.memory.engine)
    said = (
        "Both hold the same."
        if found.level
        else f"{found.different} of {found.buckets} buckets differ."
    )
    waiting = f" {found.outbox} operations wait to be sent." if found.outbox else ""
    session.show(found, lambda: [line(said + waiting)])
    return 0 if found.level else STORE_ERROR


@command(
    "sync leave",
    "Stop following the server. Your memories stay here and there; what others shared goes from here.",
    example="trivet sync leave",
)
def leave(session: Session) -> None:
    from trivet.sync import verbs

    state = verbs.leave(session.memory.engine)
    session.show(
        {"server": state.url, "status": "left"},
        lambda: [line(f"This store follows {state.url} no longer.")],
    )
