"""Commands for a server's users, keys and shares, and for secrets."""

from __future__ import annotations

from typing import Annotated, Any, get_args

import msgspec
import typer

from trivet.cli.command import command, verb_command
from trivet.cli.session import Session
from trivet.cli.terminal import DelayedProgress, line
from trivet.cli.views import memories as views
from trivet.common.clock import stamp
from trivet.contract import (
    AuditRequest,
    RevealRequest,
    ShareRequest,
    SharesRequest,
    UnshareRequest,
    User,
    given,
)
from trivet.errors import InvalidInput
from trivet.types import Right, Role, Rotated, Share

NAME = Annotated[
    str, typer.Argument(metavar="USER", help="The name of the user.", show_default=False)
]
ROLES = ", ".join(get_args(Role))
RIGHTS = ", ".join(get_args(Right))


@command(
    "user add",
    "Add a user of the server.",
    more="A reader sees their own memories and those shared with them. A writer also stores, "
    "changes and shares. An admin also manages users and keys, and reads the audit record and "
    "the metrics. The user `local` owns what was stored without a server.",
    example="trivet user add ana --role writer",
    creates=True,
)
def add_user(
    session: Session,
    name: NAME,
    role: Annotated[
        str, typer.Option("--role", metavar="ROLE", help=f"One of {ROLES}.")
    ] = "writer",
) -> None:
    user = session.memory.add_user(_user(name), role=_role(role))
    text = f"Added {user.name}, {user.role}. `trivet key add {user.name}` creates a key."
    session.show(user, lambda: [line(text)])


@command("user list", "List the users of the server.", example="trivet user list")
def list_users(session: Session) -> None:
    users = session.memory.list_users()
    session.show(
        users,
        lambda: [line(f"{one.name:<20} {one.role}") for one in users] or [line("No users yet.")],
    )


@command("user role", "Change a user's role; their keys allow no more than that from now on.",
         example="trivet user role ana admin")  # fmt: skip
def change_role(
    session: Session,
    name: NAME,
    role: Annotated[str, typer.Argument(help=f"One of {ROLES}.", show_default=False)],
) -> None:
    session.memory.set_role(_user(name), _role(role))
    session.show({"name": name, "role": role}, lambda: [line(f"{name} is now a {role}.")])


@command(
    "user remove",
    "Remove a user with all their keys and everything shared with them.",
    more="Their memories stay, and belong to any later user of the same name.",
    example="trivet user remove ana",
)
def remove_user(session: Session, name: NAME) -> None:
    session.memory.remove_user(_user(name))
    session.show(
        {"name": name, "status": "removed"},
        lambda: [line(f"Removed {name}; their keys are revoked.")],
    )


@command(
    "key add",
    "Create an API key for a user. It is shown once.",
    more=f"Rights are {RIGHTS}. Without --right, a key has the role's rights except reveal, "
    "which shows secrets and sensitive contents.",
    example="trivet key add ana --label laptop --days 90\n"
    "trivet key add ana --right read --label dashboard",
)
def add_key(
    session: Session,
    name: NAME,
    right: Annotated[
        list[str] | None,
        typer.Option("--right", metavar="RIGHT", help="A right of the key. Repeatable."),
    ] = None,
    label: Annotated[
        str, typer.Option("--label", metavar="TEXT", help="A note on what the key is for.")
    ] = "",
    days: Annotated[
        int | None,
        typer.Option(
            "--days",
            min=1,
            max=36500,
            metavar="NUMBER",
            help="Days until the key expires; default: never.",
        ),
    ] = None,
) -> None:
    made = session.memory.add_key(
        _user(name), rights=_rights(right) or (), label=label[:200], days=days
    )
    rights = ", ".join(made.rights)
    session.show(
        made,
        lambda: [
            line((made.key, "cyan")),
            line(f"Store it now; it is not shown again. It allows {rights}."),
        ],
    )


@command("key list", "List the keys without their secrets.", example="trivet key list")
def list_keys(session: Session) -> None:
    keys = session.memory.list_keys()
    rows = [
        line(
            f"{one.id}  {one.user:<16} {','.join(one.rights)}  ",
            (
                "revoked"
                if one.revoked_at
                else f"until {stamp(one.expires_at)}"
                if one.expires_at
                else "",
                "dim",
            ),
            f"  {one.label}",
        )
        for one in keys
    ]
    session.show(keys, lambda: rows or [line("No keys yet.")])


@command("key revoke", "Revoke a key at once.", example="trivet key revoke 3f9a1c0b77d2")
def revoke_key(
    session: Session,
    id: Annotated[
        str,
        typer.Argument(help="The key's id, as `trivet key list` shows it.", show_default=False),
    ],
) -> None:
    session.memory.revoke_key(id)
    session.show({"id": id, "status": "revoked"}, lambda: [line(f"The key {id} is revoked.")])


def _user(name: str) -> str:
    try:
        msgspec.convert(name, User)
    except msgspec.ValidationError:
        name = "*"
    if name == "*":
        raise InvalidInput(
            "USER: a name has 1 to 64 lower-case letters, digits and . _ @ -, and starts with a "
            "letter or digit. Nothing was added."
        )
    return name


def _role(text: str) -> Role:
    for role in get_args(Role):
        if text == role:
            return role  # type: ignore[no-any-return]  # one of its own arguments
    raise InvalidInput(f"role: {text!r} is not one of {ROLES}. Nothing was changed.")


def _rights(texts: list[str] | None) -> tuple[Right, ...] | None:
    unknown = sorted(set(texts or ()) - set(get_args(Right)))
    if unknown:
        raise InvalidInput(
            f"right: {', '.join(unknown)} is not one of {RIGHTS}. Nothing was created."
        )
    return tuple(right for right in get_args(Right) if right in texts) if texts else None


ID = "0199c2f4-7d1e-7a3b-9c55-2f6f0f6c1a2b"


@verb_command(
    "share",
    more="Name a memory with --id or a tag with --tag. Only the owner can delete, share or "
    "reveal a memory.",
    example=f"trivet share bo --id {ID}\ntrivet share '*' --tag handbook --permission write",
)
def share(session: Session, request: ShareRequest) -> None:
    made = session.memory.perform(request)
    session.show(made, lambda: [_line(made)])


@verb_command("unshare", example=f"trivet unshare bo --id {ID}")
def unshare(session: Session, request: UnshareRequest) -> None:
    session.memory.perform(request)
    session.show({**given(request), "status": "removed"}, lambda: [line("No longer shared.")])


@verb_command("shares", example="trivet shares")
def shares(session: Session, request: SharesRequest) -> None:
    found = session.memory.perform(request)
    session.show(found, lambda: [_line(one) for one in found] or [line("Nothing is shared.")])


def _line(share: Share) -> Any:
    what = f"memory {share.id}" if share.id else f"everything tagged {share.tag!r}"
    whom = "everyone" if share.user == "*" else share.user
    return line(f"{share.owner} shares with {whom} ", (what, "cyan"), f" ({share.permission})")


@verb_command(
    "reveal",
    more="Everywhere else, a placeholder such as [secret:github-token:1] or [private] stands for "
    "the secret.",
    example=f"trivet reveal {ID}",
)
def reveal(session: Session, request: RevealRequest) -> None:
    memory = session.memory.perform(request)
    session.show(memory, lambda: views.memory(memory))


@command(
    "redact",
    "Encrypt secrets in memories that are already stored, and in their whole history.",
    more="New memories are scanned anyway, unless the setting secrets is off.",
    example="trivet redact",
)
def redact(session: Session) -> None:
    with DelayedProgress("reading", lambda _: None) as progress:
        redacted = session.memory.redact(progress=progress)
    found = ", ".join(f"{kind} {count}" for kind, count in redacted.secrets.items()) or "nothing"
    pending = [line(f"Still pending: {redacted.pending}")] if redacted.pending else []
    text = f"Encrypted and replaced in {redacted.memories} memories: {found}."
    session.show(redacted, lambda: [line(text), *pending])
    session.embed_pending()


@verb_command(
    "audit",
    more="The record holds every action of a server's users, and every reveal. `trivet doctor` "
    "checks that no entry was changed or removed.",
    example="trivet audit",
)
def audit(session: Session, request: AuditRequest) -> None:
    entries = session.memory.perform(request)
    rows = [
        line(
            (f"{stamp(one.at)}  ", "dim"),
            f"{one.actor or '-':<12} {one.act:<12} {one.memory or '-'}  {one.detail}",
        )
        for one in entries
    ]
    session.show(entries, lambda: rows or [line("The record is empty.")])


@command(
    "rotate-keys",
    "Seal every secret of this store with a new key.",
    more="Writers can go on. After an interruption, run the command again. Old keys stay, "
    "because backups need them. --drop-old lists the keys that it keeps, with their stores: "
    "rotate these too, or use --drop if a store no longer exists.",
    example="trivet rotate-keys\ntrivet rotate-keys --drop-old",
)
def rotate_keys(
    session: Session,
    drop_old: Annotated[
        bool,
        typer.Option(
            "--drop-old",
            help="Remove the old keys that no known store needs, once all secrets are resealed.",
        ),
    ] = False,
    drop: Annotated[
        list[str] | None,
        typer.Option(
            "--drop",
            metavar="KEY",
            help="Remove this old key even if another store is known to use it. Repeatable.",
        ),
    ] = None,
) -> None:
    rotated = session.memory.rotate_keys(drop_old=drop_old, drop=tuple(drop or ()))
    session.show(rotated, lambda: [line(text) for text in _of_rotation(rotated)])


def _of_rotation(rotated: Rotated) -> list[str]:
    which = "the key of an unfinished rotation" if rotated.resumed else "the new key"
    rows = [
        f"{rotated.resealed} secrets are sealed with {which} {rotated.key}; {rotated.dropped} old "
        "keys dropped."
    ]
    if rotated.resumed:
        rows.append("Run it again for a new key.")
    rows += [
        f"Kept: {key}, which may be needed by {', '.join(users)}."
        for key, users in rotated.kept.items()
    ]
    if rotated.kept:
        rows.append(
            "Run `trivet rotate-keys` on these stores, then --drop-old again; --drop KEY drops a "
            "key anyway."
        )
    return rows
