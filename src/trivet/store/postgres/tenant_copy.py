"""Copy of a tenant's rows between databases: all in batches, then what changed since.

PostgreSQL keeps the writing transaction's id in each row; row counts show deletions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain

import msgspec

from trivet.errors import Conflict, StoreError
from trivet.store.postgres.connections import QUERIES, Connection
from trivet.store.postgres.server import TIMELINE
from trivet.store.postgres.tenant_tables import (
    PURGE_MARK,
    SQL,
    ArrivingMove,
    Parent,
    Table,
    TenantInCell,
    arriving,
    encoded,
    tables,
)
from trivet.store.postgres.tenant_tables import PURGED_TABLES as WITH_WORDS
from trivet.store.relational.database import ERASING

# Bounds a batch to a few megabytes.
KEYS_PER_BATCH = 2_000
# An 11-byte signature, two numbers and the end mark.
EMPTY_COPY_BYTES = 21

Models = Mapping[int, int]
Counts = Mapping[int, int]
ReportProgress = Callable[[str, str], None]  # (stage, progress within it)


class MoveAbandoned(Conflict):
    """A move that another process abandoned or ended."""


def begin_watermark(source: Connection) -> tuple[str, str]:
    row, life = source.execute(SQL["watermark"]).fetchone(), source.execute(TIMELINE).fetchone()
    assert row is not None
    assert life is not None
    return str(row[0]), str(life[0])


def copy_all(
    source: TenantInCell, target: TenantInCell, move: str, report_progress: ReportProgress
) -> None:
    """Copy or resume; `catch_up` repairs what differs between batches."""
    with source.transaction() as connection:
        every = tables(connection)
    done = _lock_arriving_move(target, move)
    names = [each.name for each in every]
    start = names.index(done.table) if done.table else 0
    for table in [] if done.copied else every[start:]:
        first = done.after if table.name == done.table else None
        for after, up_to in _portions(source, table, first):
            _copy_portion(source, target, move, table, after, up_to)
            report_progress(
                "copying", f"{table.name} up to {up_to}" if up_to is not None else table.name
            )
    with target.transaction() as connection:
        _note(connection, msgspec.structs.replace(_locked(connection, move), copied=True))


def _portions(
    source: TenantInCell, table: Table, first: int | None
) -> Iterator[tuple[int | None, int | None]]:
    if table.number is None:
        with source.transaction() as connection:
            if connection.execute(f"SELECT 1 FROM {table.name} LIMIT 1").fetchone():
                yield None, None
        return
    with source.transaction() as connection:
        row = connection.execute(
            f"SELECT min({table.number}), max({table.number}) FROM {table.name}"
        ).fetchone()
    least, most = row if row and row[0] is not None else (0, -1)
    for after in range(least - 1 if first is None else first, most, KEYS_PER_BATCH):
        yield after, after + KEYS_PER_BATCH


def _copy_portion(
    source: TenantInCell,
    target: TenantInCell,
    move: str,
    table: Table,
    after: int | None,
    up_to: int | None,
) -> None:
    """Skip existing rows and rows without their parent: `catch_up` brings both."""
    between = "true" if after is None else f"{table.number} > {after} AND {table.number} <= {up_to}"
    with source.transaction() as reading, target.transaction() as writing:
        done = _locked(writing, move)
        if done.copied:
            raise MoveAbandoned("Another process took over this move.")
        models = _match_models(reading, writing)
        if _stage_rows(reading, writing, table, f"{table.within} AND {between}", models):
            columns = table.listed(table.columns)
            known = " AND ".join(["true", *(_has_parent(parent) for parent in table.parents)])
            writing.execute(
                f"INSERT INTO {table.name} ({columns}) SELECT {columns} "
                f"FROM {_staging_table(table)} AS c WHERE {known} ON CONFLICT DO NOTHING"
            )
            _make_postings(writing, table)
        _note(writing, msgspec.structs.replace(done, table=table.name, after=up_to or 0))


def catch_up(
    source: TenantInCell,
    target: TenantInCell,
    move: str,
    freeze: int = 0,
    renew: Callable[[], None] = lambda: None,
) -> int:
    """Bring the target to one moment of the source; return the number of rows changed.

    With a `freeze`, verify the row counts.
    """
    with source.transaction(isolated=True) as reading, target.transaction() as writing:
        # Before the snapshot, so that other processes' copies are older.
        done = _locked(writing, move)
        watermark, life = begin_watermark(reading)
        since = done.watermark if done.life == life else ""
        models = _match_models(reading, writing)
        every = tables(reading)
        came, counts, gone = {}, {}, 0
        for table in every:
            changed = f"{table.within} AND {_changed_since(since)}"
            came[table.name] = _stage_rows(reading, writing, table, changed, models)
            counts[table.name] = _counts(reading, table)
            renew()
        for table in reversed(every):
            gone += _delete(
                reading, writing, table, counts[table.name], models, bool(came[table.name])
            )
        _drop_models(reading, writing)
        for table in every:
            if came[table.name]:
                _put(writing, table)
        if gone or any(came.get(name) for name in WITH_WORDS):
            _note_erasing(writing)
        if freeze:
            for table in every:
                renew()
                _check_counts(table, counts[table.name], _counts(writing, table))
        _note(
            writing, msgspec.structs.replace(done, watermark=watermark, life=life, complete=freeze)
        )
    return gone + sum(came.values())


def _lock_arriving_move(target: TenantInCell, move: str) -> ArrivingMove:
    with target.transaction() as connection:
        return _locked(connection, move)


def _locked(connection: Connection, move: str) -> ArrivingMove:
    found = arriving(connection.execute(SQL["lock"]).fetchone())
    if found is None or found.id != move:
        raise MoveAbandoned(
            "Another process ended this move or gave it up. `trivet tenant show` shows its state."
        )
    return found


def _note(connection: Connection, move: ArrivingMove) -> None:
    connection.execute(SQL["note_move"], {"move": encoded(move)})


def _match_models(reading: Connection, writing: Connection) -> Models:
    numbers = {}
    for row in reading.execute(SQL["models"]).fetchall():
        values = {name: row[name] for name in ("identity", "spec", "dimension", "serving")}
        made = writing.execute(SQL["put_model"], values).fetchone()
        assert made is not None
        numbers[int(row["model"])] = int(made[0])
    return numbers


def _drop_models(reading: Connection, writing: Connection) -> None:
    rows = reading.execute(SQL["models"]).fetchall()
    writing.execute(SQL["drop_models"], {"identities": [row["identity"] for row in rows]})


def _staging_table(table: Table) -> str:
    return f"come_{table.name}"


def _stage_rows(
    reading: Connection, writing: Connection, table: Table, condition: str, models: Models
) -> int:
    rows = _copy_rows(
        reading, writing, table, table.columns, condition, models, _staging_table(table)
    )
    if rows and "model" in table.columns:  # its model was added after the models were read
        writing.execute(f"DELETE FROM {_staging_table(table)} WHERE model IS NULL")
    return rows


def _copy_rows(
    reading: Connection,
    writing: Connection,
    table: Table,
    columns: Sequence[str],
    condition: str,
    models: Models,
    into: str,
) -> int:
    query = f"SELECT {table.listed(columns, models)} FROM {table.name} WHERE {condition}"
    with reading.cursor() as out, out.copy(f"COPY ({query}) TO STDOUT (FORMAT binary)") as rows:
        first, second = rows.read(), rows.read()
        if not second and len(first) <= EMPTY_COPY_BYTES:
            return 0
        writing.execute(
            f"CREATE TEMP TABLE {into} ON COMMIT DROP AS "
            f"SELECT {table.listed(columns)} FROM {table.name} WITH NO DATA"
        )
        with writing.cursor() as taken:
            with taken.copy(f"COPY {into} FROM STDIN (FORMAT binary)") as copy:
                for data in chain((first, second), rows) if second else (first,):
                    copy.write(data)
            return taken.rowcount


def _changed_since(watermark: str) -> str:
    """Compare row ages; after an id wraparound a few too many rows match."""
    return f"age(xmin) <= age('{int(watermark)}'::xid8::xid)" if watermark else "true"


def _counts(connection: Connection, table: Table) -> Counts:
    query = f"SELECT {table.bucket}, count(*) FROM {table.name} WHERE {table.within} GROUP BY 1"
    return {int(row[0]): int(row[1]) for row in connection.execute(query)}


def _check_counts(table: Table, wanted: Counts, found: Counts) -> None:
    if wanted != found:
        raise StoreError(
            f"{table.name} has {sum(found.values())} rows after the copy instead of "
            f"{sum(wanted.values())}, or different ones. Nothing was switched: "
            "the tenant stays where it is. Start the move again."
        )


def _delete(
    reading: Connection,
    writing: Connection,
    table: Table,
    wanted: Counts,
    models: Models,
    came: bool,
) -> int:
    """Delete what the source lacks, counting staged rows as inserted."""
    found = dict(_counts(writing, table))
    new = (
        f"SELECT {table.bucket}, count(*) FROM {_staging_table(table)} AS c WHERE NOT EXISTS "
        f"(SELECT 1 FROM {table.name} AS t WHERE {_same(table, 't', 'c')}) GROUP BY 1"
    )
    for row in writing.execute(new) if came else ():
        found[int(row[0])] = found.get(int(row[0]), 0) + int(row[1])
    other = [bucket for bucket, count in found.items() if wanted.get(bucket, 0) != count]
    if not other:
        return 0
    among = f"{table.within} AND {table.bucket} IN ({', '.join(map(str, other))})"
    kept = f"kept_{table.name}"
    gone = f"DELETE FROM {table.name} AS t WHERE {among}"
    if _copy_rows(reading, writing, table, table.key, among, models, kept):
        gone += f" AND NOT EXISTS (SELECT 1 FROM {kept} AS k WHERE {_same(table, 't', 'k')})"
    if table.name == "lexical":
        gone = (
            f"WITH gone AS ({gone} RETURNING memory) "
            "DELETE FROM posting WHERE memory IN (SELECT memory FROM gone)"
        )
    return writing.execute(gone).rowcount


def _note_erasing(connection: Connection) -> None:
    """Erase here too what the old home has purged since the copy."""
    row = connection.execute(PURGE_MARK).fetchone()
    assert row is not None
    connection.execute(QUERIES("maintenance")["set_meta"], {"name": ERASING, "value": row[0]})


def _put(connection: Connection, table: Table) -> None:
    columns = table.listed(table.columns)
    others = [column for column in table.columns if column not in table.key]
    changes = ", ".join(f"{column} = excluded.{column}" for column in others)
    connection.execute(
        f"INSERT INTO {table.name} ({columns}) SELECT {columns} FROM {_staging_table(table)} "
        f"ON CONFLICT (tenant, {table.listed(table.key)}) "
        f"DO {f'UPDATE SET {changes}' if others else 'NOTHING'}"
    )
    _make_postings(connection, table)


def _make_postings(connection: Connection, table: Table) -> None:
    if table.name == "lexical":
        connection.execute(SQL["drop_postings"])
        connection.execute(SQL["postings"])


def _same(table: Table, one: str, other: str) -> str:
    return " AND ".join(f"{one}.{column} = {other}.{column}" for column in table.key)


def _has_parent(parent: Parent) -> str:
    if parent.table == "embedding_model":
        return "true"  # models were matched before
    pairs = zip(parent.columns, parent.target, strict=True)
    same = " AND ".join(f"p.{target} = c.{column}" for column, target in pairs)
    return f"EXISTS (SELECT 1 FROM {parent.table} AS p WHERE {same})"
