"""`trivet user` and `trivet key`: who may use a server, and with which key."""

from __future__ import annotations

from typing import Annotated, get_args

import msgspec
import typer

from trivet.cli.command import command
from trivet.cli.output import line
from trivet.cli.session import Session
from trivet.clock import stamp
from trivet.contract import User
from trivet.errors import InvalidInput
from trivet.types import Right, Role

NAME = Annotated[str, typer.Argument(metavar="USER", help="The name of the user.", show_default=False)]
ROLES = ", ".join(get_args(Role))
RIGHTS = ", ".join(get_args(Right))


@command(
    "user add",
    "Add a user of the server.",
    more="A reader sees what is theirs or shared with them; a writer also stores, changes and shares; an admin also "
    "sees the audit record and the metrics. The user `local` owns what was stored without a server.",
    example="trivet user add ana --role writer",
    creates=True,
)
def add_user(
    session: Session,
    name: NAME,
    role: Annotated[str, typer.Option("--role", help=f"One of {ROLES}.")] = "writer",
) -> None:
    user = session.memory.add_user(_user(name), role=_role(role))
    said = f"Added {user.name}, {user.role}. `trivet key add {user.name}` makes a key for them."
    session.show(user, lambda: [line(said)])


@command("user list", "List the users of the server.", example="trivet user list")
def list_users(session: Session) -> None:
    users = session.memory.list_users()
    session.show(users, lambda: [line(f"{one.name:<20} {one.role}") for one in users] or [line("No users yet.")])


@command("user role", "Give a user another role; their keys allow no more than it from now on.",
         example="trivet user role ana admin")  # fmt: skip
def change_role(
    session: Session, name: NAME, role: Annotated[str, typer.Argument(help=f"One of {ROLES}.", show_default=False)]
) -> None:
    session.memory.set_role(_user(name), _role(role))
    session.show({"name": name, "role": role}, lambda: [line(f"{name} is a {role} now.")])


@command(
    "user remove",
    "Remove a user, with all their keys and what was shared with them.",
    more="Their memories stay, and are theirs again should somebody of that name be added.",
    example="trivet user remove ana",
)
def remove_user(session: Session, name: NAME) -> None:
    session.memory.remove_user(_user(name))
    session.show({"name": name, "status": "removed"}, lambda: [line(f"{name} is removed; their keys are void.")])


@command(
    "key add",
    "Make an API key for a user. It is shown once.",
    more=f"Rights are {RIGHTS}; without --right it has those of the role except reveal, which shows secrets and "
    "sensitive contents and must be asked for.",
    example="trivet key add ana --label laptop --days 90\ntrivet key add ana --right read --label dashboard",
)
def add_key(
    session: Session,
    name: NAME,
    right: Annotated[list[str] | None, typer.Option("--right", help="What it allows; may be repeated.")] = None,
    label: Annotated[str, typer.Option("--label", help="What it is for.")] = "",
    days: Annotated[
        int | None, typer.Option("--days", min=1, max=36500, help="After how many days it expires.")
    ] = None,
) -> None:
    made = session.memory.add_key(_user(name), rights=_rights(right) or (), label=label[:200], days=days)
    rights = ", ".join(made.rights)
    session.show(made, lambda: [line((made.key, "cyan")), line(f"Keep it: it is not shown again. It allows {rights}.")])


@command("key list", "List the keys, never their secrets.", example="trivet key list")
def list_keys(session: Session) -> None:
    keys = session.memory.list_keys()
    rows = [
        line(
            f"{one.id}  {one.user:<16} {','.join(one.rights)}  ",
            ("revoked" if one.revoked_at else f"until {stamp(one.expires_at)}" if one.expires_at else "", "dim"),
            f"  {one.label}",
        )
        for one in keys
    ]
    session.show(keys, lambda: rows or [line("No keys yet.")])


@command("key revoke", "Make a key void at once.", example="trivet key revoke 3f9a1c0b77d2")
def revoke_key(
    session: Session,
    id: Annotated[str, typer.Argument(help="The id of the key, as `trivet key list` shows it.", show_default=False)],
) -> None:
    session.memory.revoke_key(id)
    session.show({"id": id, "status": "revoked"}, lambda: [line(f"The key {id} is void.")])


def _user(name: str) -> str:
    try:
        msgspec.convert(name, User)
    except msgspec.ValidationError:
        name = "*"
    if name == "*":
        raise InvalidInput(
            "USER: a name has 1 to 64 lower-case letters, digits and . _ @ -, and starts with a letter or a digit. "
            "Nothing was added."
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
        raise InvalidInput(f"right: {', '.join(unknown)} is not one of {RIGHTS}. Nothing was made.")
    return tuple(right for right in get_args(Right) if right in texts) if texts else None
