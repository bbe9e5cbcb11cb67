"""Move of a tenant between databases while in use: copy, catch up, freeze, switch.

The tenant's row in its old home decides who may write, until it says `moved`. Before that a move
can be abandoned; after it any process can finish.
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

# Freeze once a round takes less than this, or barely less than the last.
FREEZE_BELOW_SECONDS = 1.0
ROUND_GAIN_LIMIT = 0.7
# A process that died blocks writers for no longer than this.
FREEZE_SECONDS = 30.0
# Renewals per FREEZE_SECONDS.
RENEWALS = 6


def move(server: Server, new: Server, tenant: str, report_progress: ReportProgress) -> str:
    """Move the tenant, or resume a move, and return its new address."""
    source, target = TenantInCell(server, tenant), TenantInCell(new, tenant)
    if server.cell == new.cell:
        raise InvalidInput(f"{tenant} is already in {new.address}. Nothing was moved.")
    with _move_lock(source):
        leave = _begin(source, target)
        if leave is not None:
            _register_arrival(source, target, leave)
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
    """Give up a move before the switch; remove the copy if `new` can be reached."""
    source = TenantInCell(server, tenant)
    with source.transaction() as connection:
        row = connection.execute(SQL["lock"]).fetchone()
        noted = leaving(row)
        if row is not None and noted is not None and new is not None and noted.cell != new.cell:
            raise _other_move_error(row, noted, tenant)
        if row is not None and row["standing"] == "moved":
            raise Conflict(
                f"{tenant} was already switched and lives at {row['moved_to']}. "
                "To undo the move, move it back."
            )
        if row is not None and row["standing"] != "arriving":
            connection.execute(SQL["give_up"])
    if new is not None:
        report_progress("removing the copy", "")
        _clear(TenantInCell(new, tenant), server.cell)


@contextmanager
def _move_lock(source: TenantInCell) -> Iterator[None]:
    """Lock out other processes; steps still check, in case the lock is lost."""
    with source.server.errors(), source.server.connection() as connection:
        row = connection.execute(SQL["take_turn"], {"tenant": source.tenant}).fetchone()
        if not (row and row[0]):
            raise Conflict(
                f"Another process is moving {source.tenant}. "
                "Nothing was changed; wait for it or stop it."
            )
        try:
            yield
        finally:
            connection.execute("SELECT pg_advisory_unlock_all()")


def _begin(source: TenantInCell, target: TenantInCell) -> DepartingMove | None:
    """Return the noted move, noting one if needed; None if only `_finish` is left."""
    if leaving(source.row()) is None:
        _check_free(target, source.server.cell)
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
                f"{source.tenant} still lives at {origin.address}. "
                "Nothing was moved; pass that address as --path."
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
            f"{tenant} lives at {row['moved_to']} now. "
            "Nothing was moved; pass that address as --path."
        )
    return Conflict(
        f"{tenant} is being moved to {noted.address}. Nothing was changed; finish that move, "
        f"or give it up: `trivet tenant move {tenant} --to {noted.address} --abandon`."
    )


def _check_free(target: TenantInCell, origin: str) -> None:
    with target.transaction() as connection:
        _check_row_free(connection, target, origin)


def _check_row_free(connection: Connection, target: TenantInCell, origin: str) -> None:
    row = connection.execute(SQL["lock"]).fetchone()
    if row is None:
        return
    came = arriving(row)
    if came is not None and came.cell != origin:
        raise Conflict(
            f"Another tenant {target.tenant} is being moved from {came.address} "
            f"to {target.server.address}. Nothing was changed."
        )
    if row["standing"] == "moved" and has_rows(connection):
        raise Conflict(
            f"{target.server.address} still has the old copy of {target.tenant}. "
            "Nothing was changed; remove it first: "
            f"`trivet tenant forget-moved {target.tenant} --path {target.server.address}`."
        )
    if came is None and row["standing"] != "moved" and _is_used(connection):
        raise Conflict(
            f"{target.server.address} has a tenant {target.tenant} of its own. "
            "Nothing was changed; two tenants cannot be merged."
        )


def _is_used(connection: Connection) -> bool:
    row = connection.execute(SQL["own_rows"]).fetchone()
    return bool(row and row[0])


def _register_arrival(source: TenantInCell, target: TenantInCell, leave: DepartingMove) -> None:
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
    with target.transaction() as connection:  # stops the process of an earlier move
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
    leave = _freeze(source, move)
    report_progress("frozen", "")
    try:
        catch_up(source, target, move, leave.freeze, _FreezeRenewal(source, leave))
        _hand_over_counters(source, target, leave)
        with source.transaction() as connection:
            _check_frozen(connection, leave)
            connection.execute(SQL["leave"], {"address": leave.address})
    except BaseException:
        # If unreachable, the freeze expires.
        with suppress(StoreError):
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
                "Another process ended this move or gave it up. "
                "`trivet tenant show` shows its state."
            )
        frozen = msgspec.structs.replace(noted, freeze=noted.freeze + 1)
        connection.execute(SQL["freeze"], {"move": encoded(frozen), "seconds": FREEZE_SECONDS})
        return frozen


def _check_frozen(connection: Connection, leave: DepartingMove) -> None:
    row = connection.execute(SQL["lock"]).fetchone()
    if row is None or row["standing"] != "frozen" or leaving(row) != leave:
        raise Conflict(
            "The tenant did not stay frozen: the freeze expired, or somebody gave up this move. "
            "Nothing was switched; start the move again."
        )


class _FreezeRenewal:
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
    with source.transaction() as reading, target.transaction() as writing:
        row = reading.execute(SQL["lock"]).fetchone()
        came = arriving(writing.execute(SQL["lock"]).fetchone())
        if row is None or came is None or (came.id, came.complete) != (leave.id, leave.freeze):
            raise MoveAbandoned("Another process took over this move. Nothing was switched.")
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
    """Name the epoch after the move, so that repeating it changes nothing."""
    maintenance = "SELECT value FROM meta WHERE name = %(name)s"
    row = connection.execute(maintenance, {"name": SYNC}).fetchone()
    if row is None:
        return
    state = msgspec.json.decode(row[0], type=ServerState)
    past = tuple(old for old in dict.fromkeys((*state.past, state.epoch)) if old and old != epoch)
    state = msgspec.structs.replace(state, epoch=epoch, past=past)
    values = {"name": SYNC, "value": msgspec.json.encode(state).decode()}
    connection.execute("UPDATE meta SET value = %(value)s WHERE name = %(name)s", values)


def _finish(source: TenantInCell, target: TenantInCell) -> None:
    row = source.row()
    noted = leaving(row)
    if (
        row is None
        or noted is None
        or row["standing"] != "moved"
        or noted.cell != target.server.cell
    ):
        raise MoveAbandoned(
            "Another process ended this move differently. `trivet tenant show` shows its state."
        )
    target.server.activate(target.tenant, noted.id)
    there = target.server.standing(target.tenant)
    if there is None or there.standing not in ("home", "frozen"):
        raise Moved(
            f"{target.tenant} has moved on since: "
            f"{there.address if there else 'its address is unknown'}."
        )


def _clear(target: TenantInCell, origin: str) -> None:
    row = target.row()
    came = arriving(row)
    if came is None:
        return
    if came.cell != origin:
        raise Conflict(
            f"The copy in {target.server.address} comes from {came.address}. Nothing was removed."
        )
    with target.transaction() as connection:
        given_up = msgspec.structs.replace(came, id=f"given up {now()}")
        connection.execute(SQL["note_move"], {"move": encoded(given_up)})
    remove_rows(target)
    with target.transaction() as connection:
        connection.execute(SQL["remove_tenant"])


def forget_moved(old: Server, new: Server, tenant: str) -> str | None:
    """Remove the copy left behind, except the tenant's row; return what is pending."""
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
            f"{tenant} has not arrived at {new.address}. "
            "Nothing was removed; finish its move first."
        )
    return remove_rows(source)
