"""Trivet for an agent, and Trivet to look at.

The resident process: started, ended, looked at; and the hooks of agents that it answers.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from trivet.cli.command import command
from trivet.cli.session import Session
from trivet.cli.terminal import STOPPED, Line, line, warn, write_text
from trivet.errors import Conflict, StoreError, TrivetError
from trivet.settings import load_settings
from trivet.settings.locations import is_file, is_server
from trivet.types import Budget

if TYPE_CHECKING:
    from trivet.memory.admin.maintenance import SyncStatus


PORT = 7373


@command(
    "mcp",
    "Serve the store to an AI agent over MCP.",
    more="It speaks on standard input and output. "
    "An agent's program starts this command by itself; name it in the agent's configuration. "
    "With --as reference-memory it offers the nine tools of the MCP reference memory server instead of its own, and "
    "takes over the file that MEMORY_FILE_PATH names, once.",
    example="claude mcp add trivet -- trivet mcp\ntrivet mcp --path ./project-memory.db\n"
    "trivet mcp --as reference-memory",
)
def mcp(
    session: Session,
    form: Annotated[
        Literal["trivet", "reference-memory"],
        typer.Option(
            "--as",
            help="The tools to offer: Trivet's own, or those of the MCP reference memory server.",
        ),
    ] = "trivet",
) -> None:
    from trivet.serve.mcp.quick_start import run

    run(session.path, form)


@command(
    "serve",
    "Serve the store over HTTP, and to agents over MCP, on one port.",
    more="--path may be a file or the address of a PostgreSQL database (postgresql://...). Everyone needs a key; "
    "`trivet key` makes them. On another host than this machine's own the traffic is not encrypted: put a proxy with "
    "TLS in front. Settings that begin with server_ set its limits. --demo serves 400 memories of an invented company "
    "from a store that is removed at the end, on the next free port.",
    example="trivet serve\ntrivet serve --port 8080 --path postgresql://trivet@db.example/trivet",
)
def serve(
    session: Session,
    host: Annotated[
        str, typer.Option("--host", metavar="HOST", help="The address to listen on.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="The port; 0 takes any free one.")
    ] = PORT,
    workers: Annotated[
        int,
        typer.Option(
            "--workers",
            min=1,
            max=64,
            help="How many processes serve it: as many as there are cores, say.",
        ),
    ] = 1,
    demo: Annotated[
        bool, typer.Option("--demo", help="Serve the demo's memories instead of a store of yours.")
    ] = False,
) -> None:
    from trivet.cli.processes import serve_demo, serve_store

    if demo:
        serve_demo(host, port)
    else:
        serve_store(session.path, host, port, workers)


@command(
    "open",
    "Open the page in the browser, signed in: search, browse, correct.",
    more="The resident process serves it where it runs or may be started (the setting `resident`); else this command "
    "does, until Ctrl-C. The link signs in once, within five minutes. With a server's address as --path its page is "
    "opened, where you sign in with a key.",
    example="trivet open\ntrivet open --print",
)
def open_(
    session: Session,
    only_print: Annotated[
        bool, typer.Option("--print", help="Print the link instead of opening a browser.")
    ] = False,
) -> None:
    from trivet.cli.processes import open_page

    open_page(session.path, only_print)


@command(
    "demo",
    "Show what Trivet does, on 400 memories of an invented company.",
    more="It works in a store of its own in the cache folder and never touches yours.",
    example="trivet demo",
)
def demo(session: Session) -> None:
    from trivet.cli.demonstration import show_demo

    show_demo(session)


@command(
    "up",
    "Start the resident process, which keeps the model and the indexes warm for every program of yours.",
    more="The command line, `trivet mcp` and the hooks of agents use it where it runs, and work without it. It listens "
    "on a socket that is yours alone, and ends when it is idle for long or has more than resident_memory_mb in memory.",
    example="trivet up --background\ntrivet up --systemd > ~/.config/systemd/user/trivet-resident.service",
)
def up(
    session: Session,
    background: Annotated[
        bool, typer.Option("--background", help="Return as soon as it answers.")
    ] = False,
    systemd: Annotated[
        bool, typer.Option("--systemd", help="Print a unit for systemd, and start nothing.")
    ] = False,
    ready: Annotated[int | None, typer.Option("--ready", hidden=True)] = None,
) -> int:
    if systemd:
        from trivet.cli.processes import unit_text

        write_text(unit_text(session.path))
        return 0
    if background:
        return _start_in_background(session)
    return _run_in_foreground(session, ready)


@command(
    "down",
    "End the resident process, after it has answered what it was asked.",
    more="One that no longer answers is killed, which the store bears.",
    example="trivet down",
)
def down(session: Session) -> int:
    from trivet.cli.processes import stop_resident

    ended = stop_resident()
    told = {
        None: "It did not run.",
        "ended": "It has ended.",
        "killed": "It did not answer, and was killed.",
    }[ended]
    session.show({"ended": ended}, lambda: [line(told)])
    return 0


@command(
    "status",
    "Show the resident process, what became of the agents' hooks, how sync stands, and what is used of every budget.",
    more="The exit status is 1 if it does not run.",
    example="trivet status",
)
def status(session: Session) -> int:
    from trivet.agents.hooks.event import failures
    from trivet.cli.processes import request_status

    found, failed = request_status(), failures()
    used, stands, trouble = _store(session)
    value = {
        "running": found is not None,
        "resident": found,
        "hook_failures": failed,
        "budgets": used,
        "sync": stands,
    }
    session.show(
        {**value, "store_error": trouble},
        lambda: [*_status_lines(found, failed), *_sync_lines(stands), *_budget_lines(used)],
    )
    if trouble:
        warn(trouble)
    return 0 if found is not None else STOPPED


@command(
    "hook",
    "Answer a hook of an agent.",
    more="The agent's JSON comes on standard input; what it is to read goes to standard output. Whatever goes wrong, "
    "it is silent and exits with 0; `trivet status` counts the failures. `trivet install` sets the hooks up.",
    example="trivet hook prompt < what-the-agent-said.json",
)
def hook(
    session: Session,
    moment: Annotated[
        str,
        typer.Argument(
            help="start, prompt, stop, compact or end; also session-start, pre-compact, session-end."
        ),
    ],
) -> int:
    from trivet.serve.resident.hook_client import main

    return main([moment, *(["--path", session.path] if session.path else [])])


def _run_in_foreground(session: Session, ready: int | None) -> int:
    from trivet.agents.hooks.answer import answer
    from trivet.serve.resident.protocol import (
        READY,
        ensure_socket_folder,
        socket_file,
        with_absolute_path,
    )
    from trivet.serve.resident.server import Server, set_up_logs

    ensure_socket_folder()
    set_up_logs()
    settings = with_absolute_path(load_settings(path=session.path), Path.cwd())
    if ready is not None:
        os.chdir("/")  # in the background it holds no folder of the user's

    def tell() -> None:
        if ready is not None:
            os.write(ready, READY)
            os.close(ready)
        else:
            session.show(
                {"socket": socket_file()},
                lambda: [line(f"Trivet is up, at {socket_file()}. Ctrl-C ends it.")],
            )

    return Server(settings, answer).run(tell)


def _start_in_background(session: Session) -> int:
    from trivet.serve.resident.client import start_resident
    from trivet.serve.resident.protocol import LOG, ensure_socket_folder, lock_holder

    folder = ensure_socket_folder()
    if (running := lock_holder()) is not None:
        raise Conflict(f"The resident process runs already, as process {running}.")
    if not start_resident(load_settings(path=session.path)):
        raise StoreError(f"The resident process did not come up. {folder / LOG} says why.")
    session.show(
        {"pid": lock_holder()}, lambda: [line(f"Trivet is up, as process {lock_holder()}.")]
    )
    return 0


def _status_lines(found: Any, failed: Any) -> Iterator[Line]:
    if found is None:
        yield line(
            "The resident process does not run. `trivet up --background` starts it; hooks do so by themselves."
        )
    else:
        yield line(
            f"Up for {found.seconds:.0f} s, as process {found.pid}, version {found.version}."
        )
        yield line(f"memory        {found.memory_mb:.0f} of {found.memory_limit_mb} MB")
        limit = (
            f"ends after {found.idle_limit_seconds:.0f} s"
            if found.idle_limit_seconds
            else "never ends by itself"
        )
        yield line(f"idle          for {found.idle_seconds:.0f} s; {limit}")
        yield line(f"stores        {', '.join(found.stores)}")
        if found.code:
            yield line(f"code          {', '.join(found.code)}")
        yield line(f"calls         {found.calls}, of which {found.failed} failed")
        yield line(f"hooks         {_counts(found.hooks) or 'none yet'}")
    if failed.count:
        yield line(
            (
                f"hooks failed  {failed.count} {'time' if failed.count == 1 else 'times'} ({_counts(failed.moments)})",
                "yellow",
            )
        )
        yield line((f"the last time at {failed.last_at}: {failed.last}", "yellow"), indent=14)


def _store(session: Session) -> tuple[tuple[Budget, ...], SyncStatus | None, str | None]:
    """Budgets and sync of a store that is there; to look at it must not make one, and a broken one must not hide the
    rest."""
    from trivet.memory.admin.maintenance import following

    path = load_settings(path=session.path).path
    if is_server(path) or (is_file(path) and not Path(path).expanduser().exists()):
        return (), None, None
    try:
        used = session.memory.budgets()
        stands = following(session.memory.engine) if is_file(path) else None
    except TrivetError as error:
        return (), None, str(error)
    # That of the resident process is told with it; that of this one, which is about to end, tells nothing.
    return tuple(one for one in used if one.setting != "resident_memory_mb"), stands, None


def _sync_lines(stands: SyncStatus | None) -> Iterator[Line]:
    if stands is not None:
        yield line(f"sync          {stands.server} as {stands.user}; {stands.told}")


def _budget_lines(used: tuple[Budget, ...]) -> Iterator[Line]:
    for number, one in enumerate(used):
        allowed = f" of {one.allowed:g}" if one.allowed is not None else ""
        told = "not in use" if one.allowed == 0 else f"{one.used:g}{allowed} {one.unit}"
        label = "" if number else "budgets"
        yield line(f"{label:<14}", (f"{one.name}: {told}", "yellow" if one.exceeded else ""))


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))
