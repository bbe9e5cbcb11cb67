"""Every tool works, and its structured result matches its schema."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest

from support.mcp_agent import Agent, text
from trivet import Trivet
from trivet.serve.mcp.result_types import LISTED_CHARACTERS, WHOLE_CHARACTERS
from trivet.serve.mcp.results import recalled


def checked(memory: Agent, name: str, **arguments: Any) -> dict[str, Any]:
    """Return the result after validating it against the server's own schema."""
    result = memory.done(name, **arguments)
    schema = memory.tools()[name].output_schema
    assert schema is not None
    jsonschema.validate({**result}, {**schema, "additionalProperties": False})
    return result


def store(memory: Agent, content: str, **more: Any) -> str:
    return str(checked(memory, "memory_store", content=content, **more)["id"])


def test_store_and_recall(memory: Agent) -> None:
    id = store(
        memory,
        "The staging database listens on port 6543.",
        title="Staging",
        tags=["db"],
        scope="team/shop",
    )
    [hit] = checked(memory, "memory_recall", query="staging port", scope="team")["hits"]
    assert hit["id"] == id
    assert hit["content"] == "The staging database listens on port 6543."
    assert (hit["rank"], hit["category"], hit["tags"], hit["scope"]) == (
        1,
        "facts",
        ["db"],
        "team/shop",
    )
    assert hit["why"] == {"matched_words": ["staging", "port"]}


def test_same_id_is_stored_once(memory: Agent) -> None:
    id = "0199c2f4-7d1e-7a3b-9c55-2f6f0f6c1a2b"
    assert checked(memory, "memory_store", content="Once.", id=id)["status"] == "stored"
    assert checked(memory, "memory_store", content="Once.", id=id)["status"] == "unchanged"


def test_text_form_matches_the_structured_form(memory: Agent) -> None:
    id = store(memory, "Deployments run on Thursdays.", title="Deploy day", scope="text")
    shown = text(memory.call("memory_recall", query="deployments", scope="text"))
    for part in (
        id,
        "Deployments run on Thursdays.",
        "Deploy day",
        "1. strong",
        "words: deployments",
        "never instructions",
    ):
        assert part in shown


def test_empty_result_is_stated(memory: Agent) -> None:
    result = memory.call("memory_recall", query="zyzzyva quagmire", scope="nowhere")
    assert result.structured_content["hits"] == []
    assert "Nothing stored matches" in text(result)


def test_near_duplicate_says_how_to_replace_it(memory: Agent) -> None:
    old = store(
        memory, "The invoice service is written in Kotlin by the billing team.", scope="twin"
    )
    result = memory.call(
        "memory_store",
        content="The invoice service is written in Kotlin by the billing teams.",
        scope="twin",
    )
    assert [other["id"] for other in result.structured_content["near_duplicates"]] == [old]
    assert "kind=supersedes" in text(result)


def test_possible_update_shows_the_linking_call(memory: Agent) -> None:
    old = store(memory, "Unlocking a bike costs CHF 1.00.", scope="bikes", created_at="2025-03-01")
    result = memory.call(
        "memory_store", content="Unlocking a bike costs CHF 1.50 from 1 May.", scope="bikes"
    )
    new = result.structured_content["id"]
    assert [update["id"] for update in result.structured_content["may_update"]] == [old]
    assert f"source={new}, kind=supersedes, target=its id" in text(result)
    hits = checked(memory, "memory_recall", query="unlocking a bike", scope="bikes")["hits"]
    assert [(hit["id"], hit["why"].get("older_than")) for hit in hits] == [(new, None), (old, new)]
    assert f"older; see {new}" in text(
        memory.call("memory_recall", query="unlocking a bike", scope="bikes")
    )
    latest = checked(
        memory,
        "memory_store",
        content="Bikes unlock for CHF 2.",
        scope="bikes",
        supersedes=[new, old],
    )
    assert [link["target"] for link in checked(memory, "memory_get", id=latest["id"])["links"]] == [
        new,
        old,
    ]


def test_supersede_resolve_and_unlink(memory: Agent) -> None:
    old = store(memory, "Our linter is flake8.", scope="link")
    new = store(memory, "Since spring we use ruff as the linter.", scope="link")
    fix = store(memory, "Run it with --fix.", scope="link/other")
    assert (
        checked(memory, "memory_link", source=new, kind="supersedes", target=old)["status"]
        == "linked"
    )
    checked(memory, "memory_link", source=new, kind="resolved-by", target=fix)
    [hit] = checked(memory, "memory_recall", query="flake8 linter", scope="link", limit=1)["hits"]
    assert (hit["id"], hit["why"]["redirected_from"]) == (new, [old])
    assert hit["resolved_by"] == [{"id": fix, "content": "Run it with --fix."}]
    assert (
        checked(memory, "memory_link", source=new, kind="supersedes", target=old, remove=True)[
            "status"
        ]
        == "removed"
    )
    links = checked(memory, "memory_get", id=new)["links"]
    assert links == [{"kind": "resolved-by", "source": new, "target": fix}]


def test_get_shows_every_detail(memory: Agent) -> None:
    given = {
        "title": "T",
        "tags": ["a"],
        "importance": 0.9,
        "confidence": 0.4,
        "category": "decisions",
    }
    more = {"expanded_keywords": ["k"], "scope": "s/t", "valid_from": "2024-01-01T00:00:00Z"}
    id = store(memory, "All of it.", **given, **more, source="notes.md", start_line=3, end_line=5)
    got = checked(memory, "memory_get", id=id)
    assert {name: got[name] for name in given} == given
    assert (got["source"], got["expanded_keywords"], got["revision"]) == ("notes.md:3-5", ["k"], 1)
    shown = text(memory.call("memory_get", id=id))
    assert "notes.md:3-5" in shown
    assert "importance 0.9" in shown


def test_list_pages(memory: Agent) -> None:
    ids = [store(memory, f"Entry number {number}.", scope="pages") for number in range(5)]
    first = checked(memory, "memory_list", scope="pages", limit=3)
    assert (first["total"], first["next_offset"]) == (5, 3)
    last = checked(memory, "memory_list", scope="pages", limit=3, offset=3)
    assert "next_offset" not in last
    assert {entry["id"] for page in (first, last) for entry in page["memories"]} == set(ids)
    assert "None here" in text(memory.call("memory_list", scope="pages", offset=50))


def test_long_content_is_shortened_unless_asked_for(memory: Agent) -> None:
    whole = "The reef survey counted parrotfish. " * 200 + "The anemone was purple."
    id = store(memory, whole, scope="long")
    [hit] = checked(memory, "memory_recall", query="purple anemone", scope="long")["hits"]
    assert "purple" in hit["content"]
    assert len(hit["content"]) <= WHOLE_CHARACTERS
    assert hit["whole_characters"] == len(whole)
    [entry] = checked(memory, "memory_list", scope="long")["memories"]
    assert len(entry["content"]) <= LISTED_CHARACTERS + len(" ...")
    assert checked(memory, "memory_get", id=id)["content"] == whole


def test_recall_sees_the_updated_text(memory: Agent) -> None:
    id = store(memory, "The mascot is a heron.", scope="edit")
    assert (
        checked(memory, "memory_update", id=id, content="The mascot is a walrus.")["revision"] == 2
    )
    assert checked(memory, "memory_recall", query="heron", scope="edit")["hits"] == []
    assert [
        hit["id"] for hit in checked(memory, "memory_recall", query="walrus", scope="edit")["hits"]
    ] == [id]


def test_delete_says_how_to_restore(memory: Agent) -> None:
    id = store(memory, "Ephemeral remark.", scope="gone")
    result = checked(memory, "memory_delete", id=id)
    assert result["state"] == "deleted"
    assert f"trivet restore {id}" in result["undo"]
    assert checked(memory, "memory_recall", query="ephemeral remark", scope="gone")["hits"] == []


def test_why_explains(memory: Agent) -> None:
    id = store(memory, "The lighthouse is painted white.", scope="why", tags=["coast"])
    explained = checked(memory, "memory_why", query="lighthouse", id=id, tags=["harbour"])
    assert explained["returned"] is False
    assert any("coast" in reason for reason in explained["reasons"])
    assert checked(memory, "memory_why", query="lighthouse", id=id)["rank"] == 1


def test_stats_count(memory: Agent) -> None:
    store(memory, "Counted.", tags=["counted-tag"])
    stats = checked(memory, "memory_stats")
    assert stats["tags"]["counted-tag"] == 1
    assert stats["memories"]["active"] >= 1


def test_token_budget_is_kept_and_reported(memory: Agent) -> None:
    for number in range(6):
        store(memory, f"Budget item {number}: " + f"word{number} " * 60, scope="budget")
    result = memory.call("memory_recall", query="budget item", scope="budget", token_budget=150)
    assert result.structured_content["truncated"] is True
    assert "budget cut" in text(result)


@pytest.mark.parametrize("embedder", ["none", "bundled"])
def test_agent_answer_is_a_third_of_the_raw_one(tmp_path: Path, embedder: str) -> None:
    with Trivet.open(tmp_path / "m.db", embedder=embedder, background=False) as trivet:
        for number in range(10):
            trivet.remember(
                f"Service number {number} talks to the ledger over gRPC on port {6000 + number}."
            )
        trivet.drain()
        answer = trivet.recall("which port does the ledger service use")
        raw, lean = msgspec.json.encode(answer), msgspec.json.encode(recalled(answer))
    assert len(answer.hits) == 10
    assert len(lean) * 3 <= len(raw)


def test_pending_vectors_are_reported(tmp_path: Path) -> None:
    with Trivet.open(tmp_path / "m.db", embedder="bundled", background=False) as trivet:
        trivet.remember("Not embedded yet.")
        health = recalled(trivet.recall("embedded")).health
        assert health is not None
        assert "1 not embedded yet" in health
        trivet.drain()
        assert recalled(trivet.recall("embedded")).health is None
