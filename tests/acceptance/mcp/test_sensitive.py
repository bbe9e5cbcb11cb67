"""Sensitive memories are masked in all server output unless their owner allowed revealing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from mcp.shared.exceptions import MCPError

from support.mcp_agent import Agent, agent

CONTENT, TITLE, KEYWORD, SOURCE = (
    "canarycontent4711",
    "canarytitle4711",
    "canarykeyword4711",
    "canarysource4711",
)
CANARIES = (CONTENT, TITLE, KEYWORD, SOURCE)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sensitive") / "memory.db"


@pytest.fixture(scope="module")
def secret(store: Path) -> Iterator[tuple[Agent, str]]:
    with agent(store) as memory:
        given = {
            "content": f"The vault code is {CONTENT}.",
            "title": f"Vault {TITLE}",
            "source": f"/{SOURCE}/a.txt",
        }
        stored = memory.done("memory_store", **given, expanded_keywords=[KEYWORD], sensitive=True)
        yield memory, stored["id"]


def leaks(memory: Agent) -> list[str]:
    return [answer for answer in memory.heard for canary in CANARIES if canary in answer]


def test_no_output_shows_the_secret(secret: tuple[Agent, str], store: Path) -> None:
    memory, id = secret
    other = memory.done(
        "memory_store", content="The vault is in the cellar, and its code is written nowhere."
    )["id"]
    memory.done("memory_store", content="The vault code is something.")
    memory.done("memory_link", source=other, kind="resolved-by", target=id)
    assert {hit["id"] for hit in memory.done("memory_recall", query="vault code")["hits"]} >= {
        id,
        other,
    }
    memory.done("memory_recall", query="vault", token_budget=50)
    memory.done("memory_get", id=id)
    memory.done("memory_list")
    memory.done("memory_why", query="vault", id=id)
    memory.done("memory_why", query="aquarium", id=id, scope="elsewhere")
    memory.done("memory_stats")
    memory.done("memory_update", id=id, importance=0.9)
    memory.ask(memory.session.read_resource, f"trivet://memory/{id}")
    memory.ask(memory.session.read_resource, "trivet://stats")
    memory.ask(memory.session.get_prompt, "recall", {"query": "vault code"})
    memory.refused("memory_store", content="Another text under the same id.", id=id)
    memory.refused("memory_update", id=id, content="x", if_revision=99)
    memory.refused("memory_update", id=id, category="nonsense")
    memory.refused("memory_link", source=id, kind="part-of", target=id)
    with pytest.raises(MCPError):
        memory.ask(memory.session.read_resource, f"trivet://memory/{id}?reveal=true")
    memory.done("memory_delete", id=id)
    memory.refused("memory_update", id=id, content="too late")
    memory.done("memory_list", state=["deleted"])
    assert leaks(memory) == []
    assert store.with_suffix(".log").read_text() == ""


def test_it_cannot_be_revealed_or_made_public(secret: tuple[Agent, str]) -> None:
    memory, _ = secret
    id = memory.done("memory_store", content=f"Another {CONTENT}.", sensitive=True)["id"]
    for name in ("memory_get", "memory_list", "memory_recall", "memory_why"):
        needed = {
            "memory_get": {"id": id},
            "memory_recall": {"query": "x"},
            "memory_why": {"id": id, "query": "x"},
        }
        assert "TRIVET_MCP_REVEAL=1" in memory.refused(name, **needed.get(name, {}), reveal=True)
    assert "TRIVET_MCP_REVEAL=1" in memory.refused("memory_update", id=id, sensitive=False)
    assert memory.done("memory_get", id=id)["sensitive"] is True
    assert leaks(memory) == []


def test_why_hides_the_source_like_get(secret: tuple[Agent, str]) -> None:
    memory, _ = secret
    given = {"source": f"/{SOURCE}", "scope": "sources"}
    id = memory.done("memory_store", content="A vault.", **given, sensitive=True)["id"]
    public = memory.done("memory_store", content="A vault, a vault.", **given)["id"]
    memory.heard.clear()
    memory.done("memory_why", query="vault", id=id, source="/elsewhere", scope="sources")
    memory.done("memory_why", query="vault", id=id, per_source=1, scope="sources")
    assert leaks(memory) == []
    memory.done("memory_delete", id=public)
    memory.heard.clear()


def test_owner_may_allow_agents_to_reveal(tmp_path: Path) -> None:
    with agent(tmp_path / "memory.db", TRIVET_MCP_REVEAL="1") as memory:
        id = memory.done("memory_store", content=CONTENT, sensitive=True)["id"]
        assert memory.done("memory_get", id=id)["content"] != CONTENT
        assert memory.done("memory_get", id=id, reveal=True)["content"] == CONTENT
        memory.done("memory_update", id=id, sensitive=False)
        assert memory.done("memory_get", id=id)["content"] == CONTENT
