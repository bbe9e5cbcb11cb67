"""Every store has every named query, and its own folder holds only those that differ."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

import trivet.store
from trivet.store.postgres.connections import QUERIES as POSTGRES
from trivet.store.sql_files import PLACEHOLDERS, Queries, latest_version, step
from trivet.store.sqlite.connections import QUERIES as SQLITE

STORES = {"postgres": POSTGRES, "sqlite": SQLITE}
SHARED = Path(str(trivet.store.__file__)).with_name("sql")
# A laptop that follows a server always uses a file; only PostgreSQL tenants move between databases.
OWN = {"sqlite": ("replica",), "postgres": ("cells",)}
FILES = sorted(file.stem for file in SHARED.glob("*.sql"))


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("name", STORES)
def test_store_has_every_query_with_all_placeholders_filled(name: str, file: str) -> None:
    queries = STORES[name]
    for query in queries.names(file):
        sql = queries(file)[query]
        for slot in PLACEHOLDERS:
            sql = sql.replace(f"{{{slot}}}", "")
        assert sql, query
        assert not re.search(r"\{\w", sql), query
        assert name == "postgres" or "::" not in sql, query


@pytest.mark.parametrize("name", STORES)
def test_store_overrides_only_queries_that_differ(name: str, tmp_path: Path) -> None:
    queries = STORES[name]
    own = queries.dialect.folder / "sql"
    assert {file.stem for file in own.glob("*.sql")} <= {*FILES, *OWN.get(name, ())}
    for file in own.glob("*.sql"):
        alone = Queries(msgspec.structs.replace(queries.dialect, folder=tmp_path))
        blocks = file.read_text().split("-- name: ")[1:]
        for block in blocks:
            query = block.partition("\n")[0].strip()
            try:
                same = alone(file.stem)[query] == queries(file.stem)[query]
            except LookupError:  # the shared file declares it without a body, or not at all
                same = False
            assert not same, f"{query} of {file} is the same in {SHARED}"


def test_missing_query_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(LookupError, match=r"lacks the queries .*postings.* of lexical\.sql"):
        Queries(msgspec.structs.replace(SQLITE.dialect, folder=tmp_path))("lexical")


def test_misspelled_placeholder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "sql").mkdir()
    (tmp_path / "sql" / "accounts.sql").write_text("-- name: user\nSELECT {colums} FROM account;\n")
    own = "-- name: has_all_tags\ntrue;\n-- name: tags\nSELECT 1;\n-- name: day_of_creation\n1;\n"
    (tmp_path / "sql" / "visible.sql").write_text(own)
    queries = Queries(msgspec.structs.replace(SQLITE.dialect, folder=tmp_path))
    with pytest.raises(LookupError, match=r"accounts\.sql names \{colums\}"):
        queries("accounts")["user"]


@pytest.mark.parametrize("name", STORES)
def test_migrations_are_numbered_without_gaps(name: str) -> None:
    folder = STORES[name].dialect.folder
    numbers = sorted(int(file.stem) for file in (folder / "migrations").glob("*.sql"))
    assert numbers == list(range(1, latest_version(folder) + 1))
    assert all(step(folder, number).sql for number in numbers)
