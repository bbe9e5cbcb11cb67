"""The command line and MCP work with a server address in place of a file."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest
from mcp import ClientSession
from mcp.client.stdio import StdioServerParameters, stdio_client

from support.command_line import CommandLine, process
from trivet import Trivet


@pytest.fixture
def command(address: str, key: str, monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    monkeypatch.setenv("TRIVET_PATH", address)
    monkeypatch.setenv("TRIVET_KEY", key)
    return CommandLine(monkeypatch)


def test_commands_work_on_a_server(command: CommandLine, tmp_path: Path) -> None:
    id = command.json("remember", "The relay listens on port 7001.", "--tag", "net")["id"]
    assert [hit["id"] for hit in command.json("recall", "relay")["hits"]] == [id]
    assert command("edit", id, "--content", "The relay moved.").status == 0
    assert "moved" in command("get", id).out
    assert "+The relay moved." in command("diff", id).out
    assert command.json("list", "--tag", "net")["total"] == 1
    assert command("export", "--output", str(tmp_path / "out.jsonl")).status == 0
    assert command("forget", id).status == 0
    assert command("restore", id).status == 0
    assert command.json("import", str(tmp_path / "out.jsonl"))["unchanged"] == 1
    assert command("purge", id, "--yes").status == 0
    assert command.json("stats")["memories"] == {}


def test_address_for_one_command(
    address: str, key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command writes no store of its own."""
    monkeypatch.setenv("TRIVET_KEY", key)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    result = process("--path", address, "remember", "zebra text")
    assert (result.status, result.err) == (0, "")
    assert "zebra" in process("recall", "zebra", "--path", address).out
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["get", "0199c2f4-7d1e-7a3b-9c55-2f6f0f6c1a2b"], 3, "no memory"),
        (["backup", "copy.db"], 2, "server's machine"),
        (["backup", "--restore", "copy.db"], 2, "where the server's store is"),
        (["reindex"], 2, "server's machine"),
        (["tune", "--rollback"], 2, "where the server's store is"),
        (["serve", "--port", "0"], 2, "where the store is"),
    ],
)
def test_commands_that_need_a_local_store(
    command: CommandLine, arguments: list[str], status: int, message: str
) -> None:
    result = command(*arguments)
    assert result.status == status
    assert message in result.err


def test_wrong_key_has_its_own_exit_status(
    command: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRIVET_KEY", "tvt.default.none.very-secret")
    result = command("recall", "text", "--json")
    assert result.status == 8
    assert result.error()["kind"] == "Unauthorised"
    assert "very-secret" not in result.err


def test_configuration_does_not_show_the_key(command: CommandLine, key: str) -> None:
    for arguments in (["config"], ["config", "--json"]):
        result = command(*arguments)
        assert result.status == 0
        assert key not in result.out
        assert "[hidden]" in result.out


def test_local_agent_uses_the_team_server(address: str, key: str, tmp_path: Path) -> None:
    """`trivet mcp` needs no store of its own."""

    async def talk() -> list[str]:
        own = {"TRIVET_PATH": address, "TRIVET_KEY": key, "XDG_DATA_HOME": str(tmp_path / "data")}
        server = StdioServerParameters(
            command=sys.executable, args=["-m", "trivet.cli", "mcp"], env=own
        )
        async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
            await session.initialize()
            stored = await session.call_tool(
                "memory_store", {"content": "The relay listens on port 7001."}
            )
            found = await session.call_tool("memory_recall", {"query": "relay"})
            return [str(result.structured_content) for result in (stored, found)]

    stored, found = asyncio.run(talk())
    assert "stored" in stored
    assert "7001" in found
    assert not (tmp_path / "data").exists()
    with Trivet.open(address, key=key) as trivet:
        assert trivet.list().total == 1


def test_admin_manages_users_and_the_store_remotely(command: CommandLine) -> None:
    """The command line uses an admin's key."""
    assert command("user", "add", "berta").out.startswith("Added berta, writer.")
    made = command("key", "add", "berta")
    assert made.out.startswith("tvt.")
    again = command("key", "add", "berta")
    assert "their private memories" in again.err
    assert "berta" in command("user", "list").out
    assert "legs" in command("doctor").out
