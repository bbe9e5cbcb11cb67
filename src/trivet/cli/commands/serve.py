"""Trivet for an agent, and Trivet to look at."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from trivet.cli.command import command
from trivet.cli.session import Session

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
        typer.Option("--as", help="The tools to offer: Trivet's own, or those of the MCP reference memory server."),
    ] = "trivet",
) -> None:
    from trivet.serve.mcp.greeting import run

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
    host: Annotated[str, typer.Option("--host", metavar="HOST", help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="The port; 0 takes any free one.")] = PORT,
    workers: Annotated[
        int,
        typer.Option("--workers", min=1, max=64, help="How many processes serve it: as many as there are cores, say."),
    ] = 1,
    demo: Annotated[
        bool, typer.Option("--demo", help="Serve the demo's memories instead of a store of yours.")
    ] = False,
) -> None:
    from trivet.cli.serve import serve_demo, serve_store

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
    only_print: Annotated[bool, typer.Option("--print", help="Print the link instead of opening a browser.")] = False,
) -> None:
    from trivet.cli.open_page import open_page

    open_page(session.path, only_print)


@command(
    "demo",
    "Show what Trivet does, on 400 memories of an invented company.",
    more="It works in a store of its own in the cache folder and never touches yours.",
    example="trivet demo",
)
def demo(session: Session) -> None:
    from trivet.cli.demo.command import show_demo

    show_demo(session)
