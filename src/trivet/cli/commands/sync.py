"""Commands of `trivet sync`."""

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
    str, typer.Argument(metavar="URL", help="The server's address.", show_default=False)
]


@command(
    "sync join",
    "Follow a server: your memories are sent there, and memories shared with you are copied here.",
    more="Give the key as TRIVET_KEY; a private file of your user keeps it. Sensitive memories "
    "stay here unless both sides set sync_sensitive. With --scope this store holds only those "
    "scopes and the scopes below them; what you write here for another scope is kept only on the "
    "server. Join again to change the scopes.",
    example="TRIVET_KEY=KEY trivet sync join https://memory.example.org\ntrivet sync now",
    creates=True,
)
def join(
    session: Session,
    url: UrlArgument,
    scope: Annotated[
        list[str] | None,
        typer.Option("--scope", metavar="NAME", help="Hold only this scope. Repeatable."),
    ] = None,
    everything: Annotated[
        bool,
        typer.Option("--everything", help="Hold all scopes again after a join with --scope."),
    ] = False,
) -> None:
    from trivet.sync import verbs

    state = verbs.join(session.memory.engine, url, [] if everything else scope or None)
    text = f"This store follows {state.url} as {state.user}. Run `trivet sync now` to exchange."
    held = _held(state.place.scopes)
    session.show(
        {"server": state.url, "user": state.user, "scopes": state.place.scopes},
        lambda: [line(text), *held],
    )


def _held(scopes: Sequence[str]) -> list[Line]:
    return (
        [line(f"it holds only the scopes {', '.join(scopes)}; the server holds the rest")]
        if scopes
        else []
    )


@command("sync now", "Send waiting writes and fetch changes.", example="trivet sync now")
def now(session: Session) -> None:
    from trivet.sync import verbs

    done = verbs.sync_now(session.memory.engine)
    session.show(done, lambda: _exchanged(done))
    session.embed_pending()


def _exchanged(done: Any) -> list[Line]:
    lines = [line(f"Sent {done.sent}, received {done.received}.")]
    if done.vectors.taken:
        lines.append(
            line(f"{done.vectors.taken} memories came with vectors and need no embedding here.")
        )
    if done.vectors.reason:
        lines.append(
            line(
                f"The server's vectors were not used, and are computed here: {done.vectors.reason}"
            )
        )
    if done.branched:
        lines.append(
            line(
                f"{done.branched} edits conflict with others; both sides are kept: `trivet sync "
                "conflicts`."
            )
        )
    if done.refused:
        lines.append(
            line(f"{done.refused} operations were refused and kept: `trivet sync refused`.")
        )
    if done.held_back:
        lines.append(line(f"Some operations wait, because the server answered: {done.held_back}"))
    return lines


@command(
    "sync status",
    "Show the last contact with the server, and what waits, conflicts, was refused or stays local.",
    more="Works offline too, and says why the server cannot be reached.",
    example="trivet sync status --json",
)
def status(session: Session) -> None:
    from trivet.sync import verbs

    state = verbs.status(session.memory.engine)
    level = {
        True: "in sync",
        False: "not in sync: run `trivet sync now`",
        None: "not compared",
    }[state.level]
    session.show(
        state,
        lambda: [
            line(
                f"{state.server} as {state.user}; last contact {state.contact or 'never'}; {level}"
            ),
            *([line(f"the server cannot be reached: {state.trouble}")] if state.trouble else []),
            line(
                f"{state.outbox} operations wait"
                + (f", the oldest since {state.oldest}" if state.oldest else "")
            ),
            line(f"{state.conflicts} conflicts, {state.refused} refused"),
            *(
                [line(f"{state.stays_local} memories stay here: {state.why_local}")]
                if state.stays_local
                else []
            ),
            *_held(state.scopes),
            *(
                [line("a full read is under way; not everything is here yet")]
                if state.full_pull
                else []
            ),
            *([line("shared memories are hidden until the next contact")] if state.hidden else []),
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
    more="All versions stay in the history.",
    example="trivet sync resolve 0199c2f4-7d1e-7a3b-9c55-2f6f0f6c1a2b --take head",
)
def resolve(session: Session, request: SyncResolve) -> None:
    session.memory.perform(request)
    session.show(
        {"id": request.id, "status": "resolved"},
        lambda: [line("Resolved; the next exchange sends it.")],
    )


@command(
    "sync refused",
    "List the operations that the server refused, with their texts and reasons; only --drop "
    "removes one.",
    example="trivet sync refused\ntrivet sync refused --drop 0199c2f4-7d1e-7a3b-9c55-2f6f0f6c1a2b",
)
def refused(
    session: Session,
    drop: Annotated[
        str | None, typer.Option("--drop", metavar="OP", help="Drop this refused operation.")
    ] = None,
    reveal: Annotated[
        bool, typer.Option("--reveal", help="Show texts that are or were sensitive.")
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
    text = (
        "Both hold the same memories."
        if found.level
        else f"{found.different} of {found.buckets} buckets differ."
    )
    waiting = f" {found.outbox} operations wait to be sent." if found.outbox else ""
    session.show(found, lambda: [line(text + waiting)])
    return 0 if found.level else STORE_ERROR


@command(
    "sync leave",
    "Stop following the server. Your memories stay on both sides; memories shared by others are "
    "removed here.",
    example="trivet sync leave",
)
def leave(session: Session) -> None:
    from trivet.sync import verbs

    state = verbs.leave(session.memory.engine)
    session.show(
        {"server": state.url, "status": "left"},
        lambda: [line(f"This store no longer follows {state.url}.")],
    )
