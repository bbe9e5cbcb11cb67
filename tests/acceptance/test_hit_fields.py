"""A hit has the same fields with the same names on every surface."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from support.command_line import CommandLine
from support.http_server import served, settings_for
from trivet import Trivet
from trivet.serve.mcp.result_types import NOT_FOR_AGENTS, WHY_NOT_FOR_AGENTS, Found, WhyFound
from trivet.serve.mcp.tools import agent_tools, call
from trivet.types import Hit, Memory, Why

QUERY = "which port does staging use"
# Fields that only agents get: the full length of a shortened content.
FOR_AGENTS_ALONE = {"whole_characters"}


def names(value: Any, place: str = "") -> set[str]:
    """Return each field name in a JSON value with its path.

    Legs and paths are skipped as data, because the worker may not have read all memories yet.
    """
    if place in (".why.legs", ".why.path"):
        return set()
    if isinstance(value, dict):
        return {f"{place}.{name}" for name in value}.union(
            *(names(held, f"{place}.{name}") for name, held in value.items())
        )
    return (
        set().union(*(names(one, f"{place}[]") for one in value))
        if isinstance(value, (list, tuple))
        else set()
    )


def fill(memory: Trivet) -> None:
    old = memory.remember("Staging listens on port 6000.", title="Port").id
    new = memory.remember(
        "Staging listens on port 6543 now.", title="Port", tags=["net"], source="notes/ports.md"
    ).id
    fix = memory.remember("Restart the proxy after a change.").id
    memory.link(new, "supersedes", old)
    memory.link(new, "resolved-by", fix)


def test_every_surface_uses_the_same_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = settings_for(tmp_path / "memory.db")
    with served(settings) as server, Trivet.open(settings=settings) as own:
        fill(own)
        python = msgspec.to_builtins(own.recall(QUERY))["hits"][0]
        agent = call(own, agent_tools()["memory_recall"], {"query": QUERY}).structured["hits"][0]
        ana = server.client("ana")
        id = ana.done(
            "POST", "/v1/memories", json={"content": python["content"], "source": "notes/ports.md"}
        )["id"]
        fix = ana.done("POST", "/v1/memories", json={"content": "Restart the proxy."})["id"]
        ana.done("PUT", f"/v1/memories/{id}/links/resolved-by/{fix}")
        http = ana.done("POST", "/v1/recall", json={"query": QUERY})["hits"][0]
    monkeypatch.setenv("TRIVET_PATH", str(tmp_path / "memory.db"))
    monkeypatch.setenv("TRIVET_EMBEDDER", "none")
    printed = CommandLine(monkeypatch).json("recall", QUERY)["hits"][0]
    assert names(printed) == names(python)
    assert names(http) == names(python)
    assert names(agent) <= names(python) | {f".{name}" for name in FOR_AGENTS_ALONE}
    assert list(agent["why"]["redirected_from"]) == list(python["why"]["redirected_from"])


def test_agents_get_every_hit_field_except_the_listed() -> None:
    """A new field of a hit is given to agents or added to the list of exceptions."""
    assert (
        set(Found.__struct_fields__) - FOR_AGENTS_ALONE
        == set(Hit.__struct_fields__) - NOT_FOR_AGENTS
    )
    assert set(WhyFound.__struct_fields__) == set(Why.__struct_fields__) - WHY_NOT_FOR_AGENTS


def test_hit_has_the_fields_of_its_memory(tmp_path: Path) -> None:
    with Trivet.open(tmp_path / "memory.db", embedder="none") as own:
        fill(own)
        hit = own.recall(QUERY).hits[0]
        assert hit.memory == own.get(hit.id)
        assert isinstance(hit, Memory)
        assert type(hit.memory) is Memory
