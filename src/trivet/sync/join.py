"""A store begins to follow a server, or stops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from trivet.errors import Conflict, InvalidInput
from trivet.memory.engine import Engine
from trivet.settings.address import is_file
from trivet.store.relational.bundles import read_bundles
from trivet.store.relational.database import WriteTransaction
from trivet.store.relational.feed import SYNC
from trivet.store.sync_records import Bundle, Rev, changes_between
from trivet.sync.core import is_made_of_a_name, other_id
from trivet.sync.messages import Op, Place
from trivet.sync.preparing import prepare
from trivet.sync.removing import Removing
from trivet.sync.renaming import rename
from trivet.sync.state import LaptopState, load, save
from trivet.types import LOCAL


def join(
    engine: Engine, url: str, user: str, sensitive: bool = False, scopes: Sequence[str] | None = None
) -> LaptopState:
    """Everything that is here becomes the user's, and is sent at the next exchange. Nothing is lost if it fails.

    With `scopes` the store then holds what is in these. A store that joined before holds others from now on; none
    named, it holds everything again.
    """
    if not is_file(engine.settings.path):
        raise InvalidInput("Only a store in a file can follow a server. Give its path with --path.")
    with engine.store.feed.transaction() as connection:
        known = load(connection)
        if known is not None and (known.url, known.user) != (url, user):
            raise Conflict(f"This store follows {known.url} as {known.user} already. Run `trivet sync leave` first.")
        if known is not None:
            return known if scopes is None else _held_from_now_on(connection, known, scopes)
        if engine.store.feed.state(connection) is not None:
            raise Conflict("Laptops follow this store, so it cannot follow another one.")
        _rename_made_ids(engine, connection, user)
        place = Place(sensitive=sensitive, scopes=tuple(sorted(set(scopes or ()))))
        state = LaptopState(url=url, user=user, place=place, full=True)
        save(connection, state)
    return state


def _held_from_now_on(connection: WriteTransaction, known: LaptopState, scopes: Sequence[str]) -> LaptopState:
    """Everything is read again: what is outside is told, and what was outside comes."""
    wanted = tuple(sorted(set(scopes)))
    if wanted == known.place.scopes:
        return known
    connection.execute(connection.sql("replica")["doubt_all"])
    place = msgspec.structs.replace(known.place, scopes=wanted, seq=0)
    state = msgspec.structs.replace(known, place=place, full=True)
    save(connection, state)
    return state


def _rename_made_ids(engine: Engine, connection: WriteTransaction, user: str) -> None:
    for (id,) in connection.execute(connection.sql("replica")["ids"]).fetchall():
        row = connection.execute(connection.sql("memories")["by_id"], {"id": id}).fetchone()
        if row["owner"] == LOCAL and is_made_of_a_name(id):
            rename(engine, connection, id, other_id(id, user))


class _Leaving(Removing):
    def let_others_go(self) -> None:
        for row in self._connection.execute(self._sql["all"]).fetchall():
            if row["access"] != "own":
                self._remove(row["id"], self._why)

    def keep_what_lies_beside(self) -> None:
        """Another server would not be sent it, and tells the memory without it."""
        for row in self._connection.execute(self._sql["beside"]).fetchall():
            key, rev = row["memory"], row["rev"]
            bundle = read_bundles(self._connection, [key])[key]
            self._keep(bundle, bundle.revs[rev])
        for row in self._connection.execute(self._sql["all_carried"]).fetchall():
            self._keep_carried(read_bundles(self._connection, [row["memory"]]), row)

    def _keep_carried(self, held: Mapping[int, Bundle], row: Any) -> None:
        """Of what a server that was put back has still to be brought, all that the history here does not have."""
        carried = msgspec.json.decode(row["bundle"], type=Bundle)
        known = held[row["memory"]].revs if row["memory"] in held else {}
        for rev in carried.revs.values():
            if rev.rev not in known:
                self._keep(carried, rev)

    def _keep(self, bundle: Bundle, rev: Rev) -> None:
        before = bundle.revs.get(rev.base or "")
        fields = changes_between(before.fields if before else {}, rev.fields)
        self._put_parked(Op(op=rev.rev, kind="edit", id=bundle.id, rev=rev.rev, fields=fields), self._why)

    @property
    def _why(self) -> str:
        return f"This store no longer follows {self._state.url}."


def leave(engine: Engine) -> None:
    """The store follows nobody any more. What it holds stays, others' memories go; what waited for these is kept."""
    with engine.store.feed.transaction() as connection:
        sql, state = connection.sql("replica"), load(connection)
        if state is not None:
            leaving = _Leaving(engine, connection, prepare(connection, state, state.place.sensitive))
            leaving.let_others_go()
            leaving.keep_what_lies_beside()
        connection.execute("DELETE FROM meta WHERE name = :name", {"name": SYNC})
        connection.execute(sql["untold"])
        connection.execute(sql["forget_purges"])
        connection.execute(sql["purge_again"])
        connection.execute(sql["forget_waiting"])
        for table in ("replica", "replica_link", "replica_share", "carried"):
            connection.execute(f"DELETE FROM {table}")
