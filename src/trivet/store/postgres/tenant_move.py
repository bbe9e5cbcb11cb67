"""Moves a tenant from one database to another while it is used: copy, catch up, freeze, switch.

One row decides who may write: the tenant's row in its old home. Until it says `moved`, the old home is the home; from
that commit on the new one is. Everything before can be done again or given up, everything after is finished by whoever
comes next, be it this command or a server that follows the tenant. Each step looks at both rows first, so a process
that was killed anywhere is followed by one that goes on from there.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import msgspec

from trivet.common.clock import now
from trivet.errors import Conflict, InvalidInput, Moved, StoreError
from trivet.store.postgres.connections import Connection, Row
from trivet.store.postgres.server import Server
from trivet.store.postgres.tenant_copy import (
    MoveAbandoned,
    ReportProgress,
    begin_watermark,
    catch_up,
    copy_all,
)
from trivet.store.postgres.tenant_tables import (
    SQL,
    ArrivingMove,
    DepartingMove,
    TenantInCell,
    arriving,
    encoded,
    has_rows,
    leaving,
    remove_files,
    remove_rows,
)
from trivet.store.relational.changes import MODELS_KEY
from trivet.store.relational.tables.sync_feed import SYNC, ServerState

# The tenant is frozen once what was left was brought so quickly, or hardly more quickly than the round before.
FREEZE_BELOW_SECONDS = 1.0
ROUND_GAIN_LIMIT = 0.7
# A process that froze a tenant and died keeps its writers waiting no longer than this.
FREEZE_SECONDS = 30.0
# A process that lives says so so often within that time.
RENEWALS = 6


def move(server: Server, new: Server, tenant: str, report_progress: ReportProgress) -> str:
    """Moves it, or goes on with a move that was broken off. Says where it is at home then."""
    source, target = TenantInCell(server, tenant), TenantInCell(new, tenant)
    if server.cell == new.cell:
        raise InvalidInput(
            f"{new.address} is the database that {tenant} is in already. Nothing was moved."
        )
    with _move_lock(source):
        leave = _begin(source, target)
        if leave is not None:
            _arrive(source, target, leave)
            report_progress("copying", "")
            copy_all(source, target, leave.id, report_progress)
            _catch_up(source, target, leave, report_progress)
            _switch(source, target, leave.id, report_progress)
        report_progress("finishing", "")
        _finish(source, target)
    remove_files(source)
    server.list_home(tenant, new.cell, new.address)
    return new.address


def abandon(
    server: Server, new: Server | None, tenant: str, report_progress: ReportProgress
) -> None:
    """Before the switch: the tenant stays, and what was copied of it is removed where that can be reached."""
    source = TenantInCell(server, tenant)
    with source.transaction() as connection:
        row = connection.execute(SQL["lock"]).fetchone()
        noted = leaving(row)
        if row is not None and noted is not None and new is not None and noted.cell != new.cell:
            raise _other_move_error(row, noted, tenant)
        if row is not None and row["standing"] == "moved":
            raise Conflict(
                f"{tenant} was switched already and lives at {row['moved_to']}. To undo it, move it back."
            )
        if row is not None and row["standing"] != "arriving":
            connection.execute(SQL["give_up"])
    if new is not None:
        report_progress("removing the copy", "")
        _clear(TenantInCell(new, tenant), server.cell)


@contextmanager
def _move_lock(source: TenantInCell) -> Iterator[None]:
    """For one process at a time. Were the lock lost with its connection, the steps would still look before they act."""
    with source.server.errors(), source.server.connection() as connection:
        row = connection.execute(SQL["take_turn"], {"tenant": source.tenant}).fetchone()
        if not (row and row[0]):
            raise Conflict(
                f"Another process is moving {source.tenant}. Nothing was changed; let it end, or stop it."
            )
        try:
            yield
        finally:
            connection.execute("SELECT pg_advisory_unlock_all()")


def _begin(source: TenantInCell, target: TenantInCell) -> DepartingMove | None:
    """The move that is noted in the old home, which is noted now if there is none; None if only the end is left."""
    if leaving(source.row()) is None:
        _check_free(
            target, source.server.cell
        )  # before anything is noted, and while nobody waits for it
    with source.transaction() as connection:
        row = connection.execute(SQL["lock"]).fetchone()
        if row is None:
            raise InvalidInput(
                f"There is no tenant {source.tenant} in {source.server.address}. Nothing was moved."
            )
        if row["standing"] == "arriving":
            origin = arriving(row)
            assert origin is not None
            raise Moved(
                f"{source.tenant} still lives at {origin.address}. Nothing was moved; give that as --path."
            )
        noted = leaving(row)
        if noted is not None and noted.cell != target.server.cell:
            raise _other_move_error(row, noted, source.tenant)
        if row["standing"] == "moved":
            return None
        if noted is None:
            noted = DepartingMove.to(target.server)
            connection.execute(SQL["note_move"], {"move": encoded(noted)})
        return noted


def _other_move_error(row: Row, noted: DepartingMove, tenant: str) -> Conflict | Moved:
    if row["standing"] == "moved":
        return Moved(
            f"{tenant} lives at {row['moved_to']} now. Nothing was moved; give that as --path."
        )
    return Conflict(
        f"{tenant} is being moved to {noted.address}. Nothing was changed; go on with that, or give it up: "
        f"`trivet tenant move {tenant} --to {noted.address} --abandon`."
    )


def _check_free(target: TenantInCell, origin: str) -> None:
    """Raises where the new home has a tenant of that name that is not what this move or an earlier one left."""
    with target.transaction() as connection:
        _check_row_free(connection, target, origin)


def _check_row_free(connection: Connection, target: TenantInCell, origin: str) -> None:
    """Locks the row, so that nobody begins to use the tenant before it is marked."""
    row = connection.execute(SQL["lock"]).fetchone()
    if row is None:
        return
    came = arriving(row)
    if came is not None and came.cell != origin:
        raise Conflict(
            f"A tenant {target.tenant} is on its way to {target.server.address} from {came.address}."
        )
    if row["standing"] == "moved" and has_rows(connection):
        raise Conflict(
            f"{target.server.address} still has the old copy of {target.tenant}. Nothing was changed; remove it "
            f"first: `trivet tenant forget-moved {target.tenant} --path {target.server.address}`."
        )
    if came is None and row["standing"] != "moved" and _is_used(connection):
        raise Conflict(
            f"{target.server.address} has a tenant {target.tenant} of its own. Nothing was changed; two tenants "
            "cannot be made one."
        )


def _is_used(connection: Connection) -> bool:
    row = connection.execute(SQL["own_rows"]).fetchone()
    return bool(row and row[0])


def _arrive(source: TenantInCell, target: TenantInCell, leave: DepartingMove) -> None:
    """The row in the new home, which lets nobody in. What an earlier move left there goes first."""
    with target.transaction() as connection:
        came = arriving(connection.execute(SQL["standing"]).fetchone())
    if came is not None and came.id == leave.id:
        return
    with source.transaction() as connection:
        watermark, life = begin_watermark(connection)
    origin = source.server
    came = ArrivingMove(
        id=leave.id, cell=origin.cell, address=origin.address, watermark=watermark, life=life
    )
    noted = {
        "tenant": target.tenant,
        "move": encoded(msgspec.structs.replace(came, id=f"clearing {leave.id}")),
    }
    with target.transaction() as connection:  # whoever was bringing the earlier one notices
        _check_row_free(connection, target, origin.cell)
        connection.execute(SQL["arrive"], noted)
    remove_rows(target)
    with target.transaction() as connection:
        connection.execute(SQL["arrive"], {**noted, "move": encoded(came)})


def _catch_up(
    source: TenantInCell,
    target: TenantInCell,
    leave: DepartingMove,
    report_progress: ReportProgress,
) -> None:
    """Each round leaves less to the next, until it takes as long as it takes to look."""
    before = math.inf
    while True:
        begun = time.monotonic()
        rows = catch_up(source, target, leave.id)
        took = time.monotonic() - begun
        report_progress("catching up", f"{rows} rows in {took:.1f} s")
        if took < FREEZE_BELOW_SECONDS or took > ROUND_GAIN_LIMIT * before:
            return
        before = took


def _switch(
    source: TenantInCell, target: TenantInCell, move: str, report_progress: ReportProgress
) -> None:
    """Nobody writes from the freeze to the switch. Where it fails, the old home is thawed at once."""
    leave = _freeze(source, move)
    report_progress("frozen", "")
    try:
        catch_up(source, target, move, leave.freeze, _FreezeRenewal(source, leave))
        _hand_over_counters(source, target, leave)
        with source.transaction() as connection:
            _check_frozen(connection, leave)
            connection.execute(SQL["leave"], {"address": leave.address})
    except BaseException:
        with suppress(
            StoreError
        ):  # if it cannot be reached, the next writer thaws it when its time is over
            _thaw(source, leave)
        raise
    report_progress("switched", "")


def _freeze(source: TenantInCell, move: str) -> DepartingMove:
    with source.transaction() as connection:
        connection.execute(SQL["wait_for_queues"], {"tenant": source.tenant})
        row = connection.execute(SQL["lock"]).fetchone()
        noted = leaving(row)
        if row is None or noted is None or noted.id != move or row["standing"] == "moved":
            raise MoveAbandoned(
                "Somebody has ended this move or given it up. `trivet tenant show` tells how it stands."
            )
        frozen = msgspec.structs.replace(noted, freeze=noted.freeze + 1)
        connection.execute(SQL["freeze"], {"move": encoded(frozen), "seconds": FREEZE_SECONDS})
        return frozen


def _check_frozen(connection: Connection, leave: DepartingMove) -> None:
    row = connection.execute(SQL["lock"]).fetchone()
    if row is None or row["standing"] != "frozen" or leaving(row) != leave:
        raise Conflict(
            "The tenant did not stay frozen: a writer found its time over, or somebody gave up this move. Nothing was "
            "switched; start the move again."
        )


class _FreezeRenewal:
    """Keeps the tenant frozen while the last copy takes long. Called now and then."""

    def __init__(self, source: TenantInCell, leave: DepartingMove) -> None:
        self._source = source
        self._leave = leave
        self._last = time.monotonic()

    def __call__(self) -> None:
        if time.monotonic() - self._last < FREEZE_SECONDS / RENEWALS:
            return
        with self._source.transaction() as connection:
            _check_frozen(connection, self._leave)
            connection.execute(SQL["stay_frozen"], {"seconds": FREEZE_SECONDS})
        self._last = time.monotonic()


def _thaw(source: TenantInCell, leave: DepartingMove) -> None:
    with source.transaction() as connection:
        row = connection.execute(SQL["lock"]).fetchone()
        if row is not None and row["standing"] == "frozen" and leaving(row) == leave:
            connection.execute(SQL["thaw"])


def _hand_over_counters(source: TenantInCell, target: TenantInCell, leave: DepartingMove) -> None:
    """The numbers of the tenant's row go on; laptops learn by a new epoch that the server is another."""
    with source.transaction() as reading, target.transaction() as writing:
        row = reading.execute(SQL["lock"]).fetchone()
        came = arriving(writing.execute(SQL["lock"]).fetchone())
        if row is None or came is None or (came.id, came.complete) != (leave.id, leave.freeze):
            raise MoveAbandoned("Another process has taken this move over. Nothing was switched.")
        last = row["last_change"] + 1
        numbers = {
            "last_key": row["last_key"],
            "last_concept": row["last_concept"],
            "last_change": last,
        }
        writing.execute(SQL["count_on"], numbers)
        writing.execute(SQL["note_models"], {"sequence": last, "memory": MODELS_KEY})
        _begin_epoch(writing, leave.id)


def _begin_epoch(connection: Connection, epoch: str) -> None:
    """Named after the move, so that to do it again changes nothing."""
    maintenance = "SELECT value FROM meta WHERE name = %(name)s"
    row = connection.execute(maintenance, {"name": SYNC}).fetchone()
    if row is None:
        return
    state = msgspec.json.decode(row[0], type=ServerState)
    past = tuple(one for one in dict.fromkeys((*state.past, state.epoch)) if one and one != epoch)
    state = msgspec.structs.replace(state, epoch=epoch, past=past)
    values = {"name": SYNC, "value": msgspec.json.encode(state).decode()}
    connection.execute("UPDATE meta SET value = %(value)s WHERE name = %(name)s", values)


def _finish(source: TenantInCell, target: TenantInCell) -> None:
    """The new home opens, if the old one says that it is the home. A server that comes first does the same."""
    row = source.row()
    noted = leaving(row)
    if (
        row is None
        or noted is None
        or row["standing"] != "moved"
        or noted.cell != target.server.cell
    ):
        raise MoveAbandoned(
            "Somebody has ended this move otherwise. `trivet tenant show` tells how it stands."
        )
    target.server.activate(target.tenant, noted.id)
    there = target.server.standing(target.tenant)
    if there is None or there.standing not in ("home", "frozen"):
        raise Moved(
            f"{target.tenant} has gone on since: {there.address if there else 'nobody knows where'}."
        )


def _clear(target: TenantInCell, origin: str) -> None:
    """What a move from this cell left before its switch."""
    row = target.row()
    came = arriving(row)
    if came is None:
        return
    if came.cell != origin:
        raise Conflict(
            f"What is on its way to {target.server.address} comes from {came.address}. Nothing was removed."
        )
    with target.transaction() as connection:
        given_up = msgspec.structs.replace(came, id=f"given up {now()}")
        connection.execute(SQL["note_move"], {"move": encoded(given_up)})
    remove_rows(target)
    with target.transaction() as connection:
        connection.execute(SQL["remove_tenant"])


def forget_moved(old: Server, new: Server, tenant: str) -> str | None:
    """Removes the copy that a tenant left behind. Its row stays and says where it went. What is pending, or None."""
    source, target = TenantInCell(old, tenant), TenantInCell(new, tenant)
    row = source.row()
    noted = leaving(row)
    if row is None or row["standing"] != "moved" or noted is None:
        raise Conflict(f"{tenant} has not moved away from {old.address}. Nothing was removed.")
    if new.cell != noted.cell:
        raise Conflict(
            f"{tenant} went to {row['moved_to']}, and not to {new.address}. Nothing was removed."
        )
    there = target.row()
    if there is None or there["standing"] == "arriving":
        raise StoreError(
            f"{tenant} has not arrived at {new.address}. Nothing was removed; finish its move first."
        )
    return remove_rows(source)
