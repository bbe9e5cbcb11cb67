"""Trivet for an agent, and Trivet to look at."""

from __future__ import annotations

from trivet.cli.command import command
from trivet.cli.session import Session


@command(
    "mcp",
    "Serve the store to an AI agent over MCP.",
    more="It speaks on standard input and output. "
    "An agent's program starts this command by itself; name it in the agent's configuration.",
    example="claude mcp add trivet -- trivet mcp\ntrivet mcp --path ./project-memory.db",
)
def mcp(session: Session) -> None:
    from trivet.serve.mcp import run

    run(session.path)


@command(
    "demo",
    "Show what Trivet does, on 400 memories of an invented company.",
    more="It works in a store of its own in the cache folder and never touches yours.",
    example="trivet demo",
)
def demo(session: Session) -> None:
    from trivet.cli.demo import show_demo

    show_demo(session)
