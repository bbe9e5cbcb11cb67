"""One resident process runs at a time, can end in many ways and can always start again."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import trivet as trivet_package
from support.command_line import CommandLine
from support.resident_home import PATIENCE, Home, stopped
from support.waiting import LIMIT_SECONDS
from trivet import Trivet
from trivet.cli.processes import request_status
from trivet.serve.resident.client import is_warm
from trivet.sync.laptop import join

PORT = "The staging database listens on port 6543."
QUESTION = "which port does the staging database listen on?"


@pytest.fixture
def trivet(home: Home, monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    return CommandLine(monkeypatch)


def test_up_status_down(home: Home, trivet: CommandLine) -> None:
    process = home.up()
    assert stat.S_IMODE(home.socket.stat().st_mode) == 0o600
    assert stat.S_IMODE(home.socket.parent.stat().st_mode) == 0o700
    status = trivet.json("status")
    assert status["running"]
    assert status["resident"]["pid"] == process.pid
    assert status["resident"]["stores"] == [str(home.store)]
    assert 0 < status["resident"]["memory_mb"] < status["resident"]["memory_limit_mb"]
    for words in (["up"], ["up", "--background"]):
        second = trivet(*words)
        assert second.status == 4
        assert f"is already running, as process {process.pid}" in second.err
    assert trivet.json("down") == {"ended": "ended"}
    assert process.wait(PATIENCE) == 0
    assert not home.socket.exists()
    assert trivet("status").status == 1
    assert trivet.json("down") == {"ended": None}


def test_background_process_outlives_the_command(home: Home, trivet: CommandLine) -> None:
    pid = trivet.json("up", "--background")["pid"]
    try:
        assert home.status().pid == pid
        assert os.getsid(pid) == pid
    finally:
        assert trivet.json("down") == {"ended": "ended"}
        os.waitpid(pid, 0)


def test_process_that_cannot_start_says_why(home: Home, trivet: CommandLine) -> None:
    home.store.write_bytes(b"this is no database at all, and long enough to be one" * 100)
    ended = trivet("up")
    assert ended.status == 5
    assert str(home.store) in ended.err
    ended = trivet("up", "--background")
    assert ended.status == 5
    assert "resident.log" in ended.err
    assert str(home.store) in (home.socket.parent / "resident.log").read_text()


def test_killed_process_leaves_nothing_in_the_way(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRIVET_RERANK", "off")  # the model would only take time to load
    killed = home.up()
    killed.kill()
    killed.wait(LIMIT_SECONDS)
    assert home.socket.exists()
    assert request_status() is None
    id = home.remember(PORT)  # without the resident process
    process = home.up()
    with home.memory() as memory:
        assert memory.recall(QUESTION).hits[0].memory.id == id
    assert home.status().calls == 1
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE) == 0
    assert not home.socket.exists()


def test_hanging_process_is_killed_by_down(home: Home, trivet: CommandLine) -> None:
    process = home.up()
    with stopped(process):
        assert trivet.json("down") == {"ended": "killed"}
    assert process.wait(PATIENCE) == -signal.SIGKILL


def test_it_ends_when_idle(home: Home) -> None:
    assert home.up(TRIVET_RESIDENT_IDLE_SECONDS="0.05").wait(PATIENCE) == 0
    assert not home.socket.exists()


def test_it_ends_when_it_grows_too_large(home: Home) -> None:
    process = home.up(TRIVET_RESIDENT_MEMORY_MB="1")
    request_status()  # it checks its size after each call
    assert process.wait(PATIENCE) == 75
    assert not home.socket.exists()


def test_folder_open_to_others_is_not_used(home: Home, trivet: CommandLine) -> None:
    home.socket.parent.mkdir()
    home.socket.parent.chmod(0o755)
    ended = trivet("up")
    assert ended.status == 5
    assert "must belong to you" in ended.err
    assert not home.socket.exists()


IMPOSTOR = """
import os, socket, sys
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
os.setuid(65534)
listener.listen()
print("up", flush=True)
connection, _ = listener.accept()
print(len(connection.recv(100)), flush=True)
"""


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
def test_socket_of_another_user_is_not_used(home: Home) -> None:
    """The peer's user is checked before anything is sent, and the hook works without it."""
    home.remember(PORT)
    home.socket.parent.mkdir(mode=0o700)
    command = [sys.executable, "-c", IMPOSTOR, str(home.socket)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as impostor:
        assert impostor.stdout is not None
        assert impostor.stdout.readline() == "up\n"
        assert "6543" in home.prompt(QUESTION)
        assert impostor.stdout.readline() == "0\n"


STRANGER = """
import os, socket, sys
os.setuid(65534)
connection = socket.socket(socket.AF_UNIX)
connection.connect(sys.argv[1])
try:
    connection.sendall(bytes.fromhex("0000000a00000006") + b"status")
    print(len(connection.recv(100)))
except ConnectionError:
    print(0)
"""


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
def test_another_user_is_not_answered(home: Home) -> None:
    """Even where the permissions of folder and socket allow the connection."""
    home.up()
    assert home.status().pid
    for place, mode in ((home.folder, 0o711), (home.socket.parent, 0o711), (home.socket, 0o666)):
        place.chmod(mode)
    ended = subprocess.run(
        [sys.executable, "-c", STRANGER, str(home.socket)], capture_output=True, check=True
    )
    assert ended.stdout == b"0\n"
    home.socket.parent.chmod(0o700)
    assert home.status().failed == 1


def test_process_makes_room_after_an_upgrade(home: Home, tmp_path: Path) -> None:
    """It runs from a copy of the package where one file is replaced, as by an installer."""
    package = tmp_path / "installed" / "trivet"
    package.mkdir(parents=True)
    source = Path(trivet_package.__file__)
    for entry in source.parent.iterdir():
        if entry != source:
            (package / entry.name).symlink_to(entry)
    (package / "__init__.py").write_bytes(source.read_bytes())
    process = home.up(PYTHONPATH=str(package.parent))
    id = home.remember(PORT)
    (package / "__init__.py").write_bytes(source.read_bytes() + b"# upgraded\n")
    with home.memory() as memory:
        assert memory.get(id).content == PORT
        assert not is_warm(memory)  # no call went to code that is no longer there
    assert process.wait(PATIENCE) == 0


def test_systemd_unit_names_this_program_and_store(trivet: CommandLine) -> None:
    text = trivet("up", "--systemd", "--path", "/srv/100% mine.db").out
    assert f"ExecStart={sys.executable} -P -m trivet.cli up --path '/srv/100%% mine.db'" in text
    shipped = Path(__file__).parents[3] / "deploy" / "trivet-resident.service"

    def rest(unit: str) -> list[str]:
        return [row for row in unit.splitlines() if not row.startswith("ExecStart=")]

    assert rest(shipped.read_text()) == rest(text)


def test_status_as_text(home: Home, trivet: CommandLine) -> None:
    assert "does not run" in trivet("status").out
    log = home.store.parent / "data" / "trivet" / "hooks" / "failures.log"
    log.parent.mkdir(parents=True)
    log.write_text("1790000000 prompt no answer within 5 ms\nnot a row\n")
    assert trivet("status").out.count("no answer within 5 ms") == 1
    with Trivet.open(home.store, embedder="none", background=False) as store:
        join(store.engine, "http://server", "ana")
    status = json.loads(trivet("status", "--json").out)
    assert status["hook_failures"]["moments"] == {"prompt": 1}
    assert (status["sync"]["server"], status["sync"]["waiting"]) == ("http://server", 0)
    assert (
        "http://server as ana; the server was never reached; 0 operations wait"
        in trivet("status").out
    )
