"""Commands that serve a store or control the resident process."""

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
    more="An agent starts this server and uses its standard input and output. With --as "
    "reference-memory it has the nine tools of the MCP reference memory server, and imports the "
    "file in MEMORY_FILE_PATH once.",
    example="claude mcp add trivet -- trivet mcp\ntrivet mcp --path ./project-memory.db\n"
    "trivet mcp --as reference-memory",
)
def mcp(
    session: Session,
    toolset: Annotated[
        Literal["trivet", "reference-memory"],
        typer.Option(
            "--as",
            help="The tools to offer.",
        ),
    ] = "trivet",
) -> None:
    from trivet.serve.mcp.quick_start import run

    run(session.path, toolset)


@command(
    "serve",
    "Serve the store over HTTP, and to agents over MCP, on one port.",
    more="Every user needs a key (`trivet key`). Traffic is not encrypted: for other machines, "
    "put a proxy with TLS in front. Settings that start with server_ set the limits. --demo uses "
    "a temporary store on the next free port.",
    example="trivet serve\ntrivet serve --port 8080 --path postgresql://trivet@db.example/trivet",
)
def serve(
    session: Session,
    host: Annotated[
        str, typer.Option("--host", metavar="HOST", help="The address to listen on.")
    ] = "127.0.0.1",
    port: Annotated[
        int,
        typer.Option(
            "--port", min=0, max=65535, metavar="NUMBER", help="The port; 0 chooses a free one."
        ),
    ] = PORT,
    workers: Annotated[
        int,
        typer.Option(
            "--workers",
            min=1,
            max=64,
            metavar="NUMBER",
            help="The number of server processes, for example one per core.",
        ),
    ] = 1,
    demo: Annotated[
        bool, typer.Option("--demo", help="Serve the demo's 400 memories instead of your store.")
    ] = False,
) -> None:
    from trivet.cli.processes import serve_demo, serve_store

    if demo:
        serve_demo(host, port)
    else:
        serve_store(session.path, host, port, workers)


@command(
    "open",
    "Open the store's web page in the browser: search, browse, correct.",
    more="The resident process serves the page if it runs or may start (setting `resident`); "
    "otherwise this command does, until Ctrl-C. The link works once, within five minutes. On a "
    "server's page (--path), sign in with a key.",
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
    more="Uses its own store in the cache folder and never touches yours.",
    example="trivet demo",
)
def demo(session: Session) -> None:
    from trivet.cli.demonstration import show_demo

    show_demo(session)


@command(
    "up",
    "Start the resident process, which keeps the model and the indexes loaded for all your "
    "programs.",
    more="The command line, `trivet mcp` and hooks use it if it runs. It listens on a socket "
    "that only you can use, and stops when it is idle for long or uses more memory than "
    "resident_memory_mb.",
    example="trivet up --background\n"
    "trivet up --systemd > ~/.config/systemd/user/trivet-resident.service",
)
def up(
    session: Session,
    background: Annotated[
        bool, typer.Option("--background", help="Run in the background; return once it answers.")
    ] = False,
    systemd: Annotated[
        bool, typer.Option("--systemd", help="Print a systemd unit and start nothing.")
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
    "Stop the resident process after it has finished its calls.",
    more="A process that no longer answers is killed; the store stays intact.",
    example="trivet down",
)
def down(session: Session) -> int:
    from trivet.cli.processes import stop_resident

    ended = stop_resident()
    text = {
        None: "The resident process was not running.",
        "ended": "The resident process stopped.",
        "killed": "The resident process did not answer and was killed.",
    }[ended]
    session.show({"ended": ended}, lambda: [line(text)])
    return 0


@command(
    "status",
    "Show the resident process, failed hooks, sync and the use of every budget.",
    more="The exit status is 1 if the resident process does not run.",
    example="trivet status",
)
def status(session: Session) -> int:
    from trivet.agents.hooks.event import failures
    from trivet.cli.processes import request_status

    found, failed = request_status(), failures()
    budgets, sync, error = _store_status(session)
    value = {
        "running": found is not None,
        "resident": found,
        "hook_failures": failed,
        "budgets": budgets,
        "sync": sync,
    }
    session.show(
        {**value, "store_error": error},
        lambda: [*_status_lines(found, failed), *_sync_lines(sync), *_budget_lines(budgets)],
    )
    if error:
        warn(error)
    return 0 if found is not None else STOPPED


@command(
    "hook",
    "Answer an agent's hook.",
    more="Reads the agent's JSON from standard input and writes what the agent should read. It "
    "never fails: on an error it prints nothing and exits with 0; `trivet status` counts the "
    "failure. `trivet install` sets up the hooks.",
    example="trivet hook prompt < what-the-agent-said.json",
)
def hook(
    session: Session,
    event: Annotated[
        str,
        typer.Argument(
            metavar="MOMENT",
            help="start, prompt, stop, compact or end; also session-start, pre-compact, "
            "session-end.",
        ),
    ],
) -> int:
    from trivet.serve.resident.hook_client import main

    return main([event, *(["--path", session.path] if session.path else [])])


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
        os.chdir("/")  # must not keep the user's folder in use

    def tell() -> None:
        if ready is not None:
            os.write(ready, READY)
            os.close(ready)
        else:
            session.show(
                {"socket": socket_file()},
                lambda: [
                    line(
                        f"The resident process listens on {socket_file()}. Press Ctrl-C to stop it."
                    )
                ],
            )

    return Server(settings, answer).run(tell)


def _start_in_background(session: Session) -> int:
    from trivet.serve.resident.client import start_resident
    from trivet.serve.resident.protocol import LOG, ensure_socket_folder, lock_holder

    folder = ensure_socket_folder()
    if (running := lock_holder()) is not None:
        raise Conflict(f"The resident process is already running, as process {running}.")
    if not start_resident(load_settings(path=session.path)):
        raise StoreError(f"The resident process did not start. {folder / LOG} says why.")
    session.show(
        {"pid": lock_holder()},
        lambda: [line(f"The resident process is running, as process {lock_holder()}.")],
    )
    return 0


def _status_lines(found: Any, failed: Any) -> Iterator[Line]:
    if found is None:
        yield line(
            "The resident process does not run. Hooks start it by themselves, and so does `trivet "
            "up --background`."
        )
    else:
        yield line(
            f"Up for {found.seconds:.0f} s, as process {found.pid}, version {found.version}."
        )
        yield line(f"memory        {found.memory_mb:.0f} of {found.memory_limit_mb} MB")
        limit = (
            f"stops after {found.idle_limit_seconds:.0f} s"
            if found.idle_limit_seconds
            else "no idle limit"
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
                f"hooks failed  {failed.count} {'time' if failed.count == 1 else 'times'} "
                f"({_counts(failed.moments)})",
                "yellow",
            )
        )
        yield line((f"the last time at {failed.last_at}: {failed.last}", "yellow"), indent=14)


def _store_status(session: Session) -> tuple[tuple[Budget, ...], SyncStatus | None, str | None]:
    """Return budgets and sync without creating a store, and any error as text."""
    from trivet.memory.admin.maintenance import following

    path = load_settings(path=session.path).path
    if is_server(path) or (is_file(path) and not Path(path).expanduser().exists()):
        return (), None, None
    try:
        budgets = session.memory.budgets()
        sync = following(session.memory.engine) if is_file(path) else None
    except TrivetError as error:
        return (), None, str(error)
    # The resident process reports its own memory; this process is about to end.
    return tuple(one for one in budgets if one.setting != "resident_memory_mb"), sync, None


def _sync_lines(sync: SyncStatus | None) -> Iterator[Line]:
    if sync is not None:
        yield line(f"sync          {sync.server} as {sync.user}; {sync.summary}")


def _budget_lines(budgets: tuple[Budget, ...]) -> Iterator[Line]:
    for number, one in enumerate(budgets):
        allowed = f" of {one.allowed:g}" if one.allowed is not None else ""
        use = "not in use" if one.allowed == 0 else f"{one.used:g}{allowed} {one.unit}"
        label = "" if number else "budgets"
        yield line(f"{label:<14}", (f"{one.name}: {use}", "yellow" if one.exceeded else ""))


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))
