"""Programs get the same answers through the resident process and lose nothing if it dies."""

from __future__ import annotations

import json
import os
import socket
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

import trivet
from support.command_line import CommandLine
from support.resident_home import Home
from support.waiting import ended
from trivet import InvalidInput, NotFound, Settings, Trivet, UnknownFate
from trivet.cli.processes import request_status
from trivet.serve.resident import hook_client
from trivet.serve.resident import protocol as calls
from trivet.serve.resident.client import ResidentStore, is_older
from trivet.serve.resident.protocol import call_environment
from trivet.settings.systems import ExternalSystem
from trivet.types import Answer

PORT = "The staging database listens on port 6543."
UNKNOWN = "0199c2f4-7d1e-7a3b-9c55-2f6f0f6c1a2b"


def without_times(answer: Answer) -> Answer:
    legs = tuple(msgspec.structs.replace(leg, took_ms=0.0) for leg in answer.health.legs)
    health = msgspec.structs.replace(answer.health, legs=legs)
    return msgspec.structs.replace(answer, took_ms=0.0, stages_ms={}, health=health)


def both_answers(home: Home, ask: Callable[[Trivet], Any]) -> tuple[Any, Any]:
    """Return the answers of the resident process and of the store itself."""
    before = home.status().calls
    with home.memory() as memory:
        by_resident = ask(memory)
    assert home.status().calls == before + 1
    with Trivet.open() as memory:
        return by_resident, ask(memory)


def test_answers_are_the_same_with_and_without_it(warm: Home) -> None:
    id = warm.remember(PORT, tags=["db"])
    warm.remember("Deployments to production are frozen on Fridays.", scope="acme")
    with warm.memory() as memory:
        memory.drain()  # otherwise the concept graph may become ready between the two answers
    for ask in (
        lambda memory: without_times(memory.recall("which port is staging on?")),
        lambda memory: memory.list(limit=1),
        lambda memory: msgspec.structs.replace(
            memory.stats(), notes=()
        ),  # these fields describe the answering process
        lambda memory: memory.tags(),
        lambda memory: memory.get(id),
        lambda memory: memory.history(id),
        lambda memory: memory.why_not("friday", id).verdict,
        lambda memory: memory.concepts(),
    ):
        by_resident, alone = both_answers(warm, ask)
        assert by_resident == alone


def test_writes_reach_the_store(warm: Home) -> None:
    with warm.memory() as memory, Trivet.open() as own:
        one, other = memory.remember(PORT).id, memory.remember("It moved to port 7654.").id
        assert memory.edit(one, title="Staging").title == own.get(one).title == "Staging"
        memory.link(other, "supersedes", one)
        assert [link.kind for link in own.links(one)] == ["supersedes"]
        memory.unlink(other, "supersedes", one)
        assert memory.forget(one).state == own.get(one).state == "deleted"
        memory.purge(other)
        with pytest.raises(NotFound):
            own.get(other)
        assert isinstance(memory.remote, ResidentStore)
        assert memory.remote.warm
        assert memory.server is None


def test_write_is_embedded_when_the_command_returns(
    warm: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRIVET_EMBEDDER", "bundled")
    trivet = CommandLine(monkeypatch)
    before = warm.status().calls
    trivet.json("remember", "The feline sleeps on the sofa.")
    found = trivet.json("recall", "cat on the couch")
    assert found["health"]["not_embedded"] == 0
    assert found["hits"][0]["why"]["legs"]["dense"]["rank"] == 1
    assert warm.status().calls > before + 2


def test_its_errors_match_the_store(warm: Home) -> None:
    def error_message(
        kind: type[Exception], ask: Callable[[Trivet], Any]
    ) -> Callable[[Trivet], str]:
        def message_of(memory: Trivet) -> str:
            with pytest.raises(kind) as raised:
                ask(memory)
            return str(raised.value)

        return message_of

    by_resident, alone = both_answers(
        warm, error_message(NotFound, lambda memory: memory.get(UNKNOWN))
    )
    assert by_resident == alone
    with warm.memory() as memory, pytest.raises(InvalidInput, match="query"):
        memory.recall(" ")


def test_each_caller_has_its_own_store_and_settings(warm: Home) -> None:
    """One process holds several stores; it closes idle ones and reopens them on demand."""
    paths = [str(warm.store.with_name(f"{number}.db")) for number in range(6)]
    for number, path in enumerate(paths):
        with warm.memory(path=path, scope=f"scope{number}") as memory:
            memory.remember(f"Fact number {number}.")
    for number, path in enumerate(paths):
        with warm.memory(path=path) as memory:
            (found,) = memory.list().memories
            assert (found.content, found.scope) == (f"Fact number {number}.", f"scope{number}")
    assert len(warm.status().stores) <= 4


def test_path_is_relative_to_the_callers_folder(
    warm: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(warm.store.parent)
    with warm.memory(path="here.db") as memory:
        memory.remember(PORT)
    assert warm.store.with_name("here.db").exists()


def test_caller_with_other_settings_files_works_alone(
    warm: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Secret keys lie next to the settings, so the caller could not reveal what it stored."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(warm.store.parent / "other"))
    with warm.memory() as memory:
        stored = memory.remember("The key is AKIAIOSFODNN7EXAMPLQ, says Ana.")
        assert stored.redacted
        assert isinstance(memory.remote, ResidentStore)
        assert not memory.remote.warm
    monkeypatch.setenv("TRIVET_RESIDENT", "off")
    with warm.memory() as memory:
        assert "AKIAIOSFODNN7EXAMPLQ" in memory.reveal(stored.id).content


def test_verbs_that_need_the_store_work_beside_it(
    warm: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    trivet = CommandLine(monkeypatch)
    id = warm.remember(PORT)
    with warm.memory() as memory:
        memory.edit(id, content="It listens on port 7654.")
    assert trivet("doctor").status == 0
    assert "7654" in trivet("diff", id).out
    assert "7654" in trivet("export").out


def test_concurrent_calls(warm: Home) -> None:
    with warm.memory() as memory, ThreadPoolExecutor(12) as threads:
        list(threads.map(lambda number: memory.remember(f"Fact number {number}."), range(40)))
        assert memory.stats().memories == {"active": 40}


def test_mcp_uses_it(warm: Home) -> None:
    id = warm.remember(PORT)
    about = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    }
    call = {"name": "memory_recall", "arguments": {"query": "staging port"}}
    messages: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": about},
        {"id": 2, "method": "tools/call", "params": call},
    ]
    lines = "".join(json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in messages)
    before = warm.status().calls
    command = [sys.executable, "-m", "trivet.cli", "mcp"]
    ended = subprocess.run(command, input=lines, capture_output=True, text=True, check=True)
    (answer,) = [
        reply for row in ended.stdout.splitlines() if (reply := json.loads(row)).get("id") == 2
    ]
    assert answer["result"]["structuredContent"]["hits"][0]["id"] == id
    assert warm.status().calls > before


def test_socket_in_an_unsafe_folder_is_ignored(warm: Home) -> None:
    warm.socket.parent.chmod(0o755)
    try:
        assert request_status() is None
    finally:
        warm.socket.parent.chmod(0o700)
    assert warm.status().pid


def test_it_is_not_used_when_switched_off(warm: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIVET_RESIDENT", "off")
    before = warm.status().calls
    with warm.memory() as memory:
        memory.remember(PORT)
    assert PORT in warm.prompt("which port does the staging database listen on?")
    assert warm.status().calls == before + 1  # the hook asked and was told to work alone
    assert str(warm.store) not in warm.status().stores


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\0\0\0\1",
        b"\xff\xff\xff\xff",
        hook_client.pack([b"x"]),
        hook_client.pack([b"call", b"1"]),
    ],
)
def test_garbage_on_the_socket_is_survived(warm: Home, message: bytes) -> None:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(warm.socket))
        connection.sendall(message)
        connection.shutdown(socket.SHUT_WR)
        connection.recv(100)
    assert warm.status().pid


Answering = tuple[bytes, ...] | Callable[[list[bytes]], tuple[bytes, ...]]


@contextmanager
def impostor(home: Home, *answers: Answering) -> Iterator[list[list[bytes]]]:
    """A fake process on the socket that gives these answers and hangs up when it has none."""
    home.socket.parent.mkdir(mode=0o700, exist_ok=True)
    requests: list[list[bytes]] = []
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(home.socket))
        listener.listen()

        def serve() -> None:
            for answer in answers:
                connection, _ = listener.accept()
                with connection:
                    requests.append(hook_client.receive(connection))
                    reply = answer(requests[-1]) if callable(answer) else answer
                    if reply:
                        connection.sendall(hook_client.pack(reply))

        thread = threading.Thread(target=serve)
        thread.start()
        yield requests
        ended(thread)


def test_write_sent_to_a_dying_process_happens_once(home: Home) -> None:
    """The client chooses the id, so there is one memory whether or not the process stored it."""
    with Trivet.open() as own, impostor(home, ()) as requests, home.memory() as memory:
        stored = memory.remember(PORT)
        sent = json.loads(requests[0][2])
        assert sent["request"]["id"] == stored.id
        assert own.get(stored.id).content == PORT
        assert own.remember(PORT, id=stored.id).status == "unchanged"


def test_write_done_before_the_process_died_is_answered(home: Home) -> None:
    """The answer is stored with the write; repeating any of these would be refused or act twice."""

    def act_then_die(parts: list[bytes]) -> tuple[bytes, ...]:
        calls.perform(own, msgspec.json.decode(parts[2], type=calls.Call))
        return ()

    def through_dying_process(act: Callable[[Trivet], Any]) -> Any:
        home.socket.unlink(missing_ok=True)
        with impostor(home, act_then_die), home.memory() as memory:
            return act(memory)

    with Trivet.open() as own:
        id, other = own.remember(PORT).id, own.remember("It moved to port 7654.").id
        assert (
            through_dying_process(lambda memory: memory.remember("Stored once.")).status == "stored"
        )
        assert (
            through_dying_process(
                lambda memory: memory.edit(id, title="Staging", if_revision=1)
            ).revision
            == 2
        )
        own.forget(id)
        assert through_dying_process(lambda memory: memory.restore(id)).revision == 4
        assert (
            through_dying_process(lambda memory: memory.link(other, "supersedes", id)).kind
            == "supersedes"
        )
        assert through_dying_process(lambda memory: memory.unlink(other, "supersedes", id)) is None
        assert through_dying_process(lambda memory: memory.purge(other)).id == other
        assert [one.action for one in own.history(id)] == ["remember", "edit", "forget", "restore"]


def test_write_to_a_locked_store_has_an_unknown_outcome(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRIVET_BUSY_TIME_LIMIT_MS", "50")
    with Trivet.open() as own:
        id = own.remember(PORT).id
        with (
            impostor(home, ()),
            home.memory() as memory,
            closing(sqlite3.connect(home.store)) as holding,
        ):
            holding.execute("BEGIN IMMEDIATE")
            with pytest.raises(UnknownFate, match="not known"):
                memory.edit(id, title="Staging")


@pytest.mark.parametrize(("version", "ends"), [("0.0.1", True), ("999.0.0", False)])
def test_older_process_is_replaced_and_newer_one_kept(home: Home, version: str, ends: bool) -> None:
    answers = [(b"version", version.encode()), *([(b"ok", b"")] if ends else [])]
    with impostor(home, *answers) as requests, home.memory() as memory:
        assert memory.stats().memories == {}
    assert [parts[0] for parts in requests] == ([b"call", b"end"] if ends else [b"call"])


def test_versions_are_compared_as_numbers(warm: Home) -> None:
    assert is_older("0.0.9")
    assert not is_older(trivet.__version__)
    assert not is_older("0.10.0")
    status, version = hook_client.ask(os.environb, (b"call", b"0.0.1", b"{}"))
    assert (status, version) == (b"version", trivet.__version__.encode())


def test_importing_the_package_loads_nothing_heavy() -> None:
    """A hook run as `trivet hook` starts with this import."""
    code = "import sys, trivet, trivet.cli, trivet.serve.resident.hook_client; print('msgspec' in sys.modules)"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout == "False\n"
    assert set(trivet.__all__) <= set(dir(trivet))
    assert all(getattr(trivet, name) for name in trivet.__all__)
    assert Path(hook_client.__file__).is_file()


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("TRIVET_LLM_API_KEY", {"capture_llm": "openai:small@http://127.0.0.1:1/v1"}),
        (
            "WIKI_PASS",
            {
                "federation": {
                    "wiki": ExternalSystem(
                        http="https://wiki.example/?q={query}", key_env="WIKI_PASS"
                    )
                }
            },
        ),
        (
            "NOTES",
            {
                "federation": {
                    "notes": ExternalSystem(command=("notes", "{query}"), environment=("NOTES",))
                }
            },
        ),
    ],
)
def test_keys_of_every_service_are_compared(name: str, settings: dict[str, Any]) -> None:
    """A program with another key than the process does its work itself."""
    one, other = (
        call_environment(Settings(**settings), {name: value}) for value in ("one", "other")
    )
    assert one != other
