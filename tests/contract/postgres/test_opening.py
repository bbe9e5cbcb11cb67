"""A PostgreSQL store opens by address with the usual verbs, and never shows its password."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from support.postgres_server import PostgresServer
from support.stores import add, memory
from trivet import Trivet
from trivet.cli import main
from trivet.errors import InvalidInput, NotFound, StoreError, TrivetError
from trivet.settings.locations import database_of, without_password
from trivet.store.postgres import PostgresStore, Server

PASSWORD = "tr1cky-w0rd"


def test_facade_opens_a_tenant(url: str) -> None:
    with (
        Trivet.open(url, tenant="ann", embedder="none") as ann,
        Trivet.open(url, embedder="none") as default,
    ):
        stored = ann.remember("The relay listens on port 6543.")
        assert [hit.id for hit in ann.recall("which port is the relay on").hits] == [stored.id]
        assert default.recall("which port is the relay on").hits == ()
        assert ann.stats().path.endswith("(tenant ann)")
    with Trivet.open(url, tenant="ann", embedder="none") as again:
        assert again.get(stored.id).content == "The relay listens on port 6543."


def test_command_line_opens_a_tenant(
    url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TRIVET_EMBEDDER", "none")
    monkeypatch.setenv("TRIVET_TENANT", "ann")
    assert main(("--path", url, "remember", "The relay listens on port 6543.")) == 0
    assert main(("--path", url, "recall", "relay")) == 0
    assert "6543" in capsys.readouterr().out
    monkeypatch.setenv("TRIVET_TENANT", "bob")
    assert main(("--path", url, "recall", "relay")) == 0
    assert "6543" not in capsys.readouterr().out


def test_file_moves_there_once(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "memory.db"
    with Trivet.open(file, embedder="none") as laptop:
        stored = laptop.remember("The relay listens on port 6543.")
    assert main(("--path", str(file), "move", url, "--tenant", "ann")) == 0
    assert "1 memories" in capsys.readouterr().out
    with Trivet.open(url, tenant="ann", embedder="none") as there:
        assert [hit.id for hit in there.recall("relay").hits] == [stored.id]
    assert main(("--path", str(file), "move", url, "--tenant", "ann")) == 4
    assert "has memories already" in capsys.readouterr().err
    assert main(("--path", url, "move", url)) == 2
    assert main(("--path", str(tmp_path / "none.db"), "move", url)) == 2
    assert main(("--path", str(file), "move", "elsewhere.db")) == 2
    assert main(("--path", url, "backup", "--restore", str(file))) == 2
    assert not (tmp_path / "none.db").exists()


def test_missing_extra_says_what_to_install() -> None:
    script = (
        "import sys; sys.modules['psycopg'] = None\n"
        "from trivet import Trivet\n"
        "try: Trivet.open('postgresql://ann@localhost/none')\n"
        "except Exception as error: print(type(error).__name__, error)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert ended.stdout.startswith("InvalidInput")
    assert "pip install 'trivet[postgres]'" in ended.stdout


def with_password(url: str) -> str:
    return url.replace("trivet@", f"trivet:{PASSWORD}@")


def test_no_password_is_shown(
    url: str,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    address = with_password(url)
    monkeypatch.setenv("TRIVET_EMBEDDER", "none")
    assert main(("--path", address, "stats")) == 0
    assert main(("--path", address, "config", "--json")) == 0
    assert main(("--path", address, "doctor")) == 0
    assert main(("--path", address.replace("/test", "/nothing"), "stats")) == 5
    assert main(("--path", f"postgresql://trivet:{PASSWORD}@127.0.0.1:1/none", "stats")) == 5
    # Unescaped, these characters would make parts of the password look like a port, name or host.
    for broken in ("/", "@", ":", "%"):
        assert main(
            (
                "--path",
                f"postgresql://trivet:{PASSWORD}{broken}{PASSWORD}@127.0.0.1:1/none",
                "stats",
            )
        ) in (2, 5)
    shown = "".join(capfd.readouterr()) + caplog.text
    assert "trivet" in shown
    assert PASSWORD not in shown
    assert "w0rd" not in shown


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("memory.db", "memory.db"),
        (
            "postgresql://ann:secret@one,two:5433/db?sslmode=require",
            "postgresql://ann:***@one,two:5433/db?sslmode=require",
        ),
        ("postgres://ann@host/db?password=secret", "postgres://ann@host/db?password=***"),
        ("postgresql:///db?host=/run/pg", "postgresql:///db?host=/run/pg"),
    ],
)
def test_address_is_shown_without_its_password(address: str, shown: str) -> None:
    assert without_password(address) == shown
    assert (database_of(address) is not None) == (address != "memory.db")


def test_tenant_needs_a_name(url: str) -> None:
    for tenant in ("", "x" * 201, "a\x00b"):
        with pytest.raises(InvalidInput):
            Trivet.open(url, tenant=tenant, embedder="none")


def test_many_tenants_share_one_server(server: Server) -> None:
    stores = [PostgresStore(server, f"tenant {number}") for number in range(30)]
    for store in stores:
        add(store, memory("relay"))
    for store in stores:
        assert store.memories.stats().memories == {"active": 1}
        store.close()
    assert PostgresStore(server, "tenant 0").memories.stats().memories == {"active": 1}


def test_large_write_succeeds(store: PostgresStore) -> None:
    """With the driver alone, megabytes in one transaction would deadlock the client and server."""
    long = [memory(f"number {number} " + "lorem ipsum dolor " * 20_000) for number in range(12)]
    add(store, *long)
    assert [one.content for one in store.memories.everything()] == [one.content for one in long]


def test_prepared_statements_are_used_without_a_pooler(postgres: PostgresServer, url: str) -> None:
    prepared = "SELECT count(*) FROM pg_prepared_statements"
    for pooler, expected in (("auto", True), ("no", True), ("yes", False)):
        server = Server(url, max_connections=1, pooler=pooler)  # type: ignore[arg-type]
        store = PostgresStore(server)
        for _ in range(5):
            store.memories.stats()
        with server.connection() as connection:
            row = connection.execute(prepared).fetchone()
        assert row is not None
        assert bool(row[0]) == expected
        server.close()


def test_invalid_address_is_refused_before_connecting() -> None:
    with pytest.raises(TrivetError, match="cannot be read"):
        Server("postgresql://trivet@host:port/name")
    with pytest.raises(StoreError, match="lost"):
        Server("postgresql://trivet@127.0.0.1:1/name", patience=0.1)


def test_memory_and_supersession_are_stored_together(url: str) -> None:
    with Trivet.open(url, embedder="none") as memory:
        old = memory.remember("A ticket costs 4 euros.").id
        with pytest.raises(NotFound):
            memory.remember(
                "A ticket is free.", supersedes=[old, "0199c2f9-10aa-7d02-8d1f-5b0c7e3a9f44"]
            )
        assert memory.stats().memories == {"active": 1}
        new = memory.remember("A ticket costs 5 euros.", supersedes=[old]).id
        assert memory.get(old).state == "superseded"
        assert [hit.id for hit in memory.recall("ticket").hits] == [new]


def test_value_refused_by_the_server_is_not_retried(url: str) -> None:
    store = PostgresStore(url)
    database = store._database
    try:
        with (
            pytest.raises(StoreError, match="InvalidTextRepresentation 22P02") as refused,
            database.errors(),
        ):
            database.read().execute("SELECT 'my diagnosis'::int")
    finally:
        store.close()
    assert "diagnosis" not in str(refused.value)
