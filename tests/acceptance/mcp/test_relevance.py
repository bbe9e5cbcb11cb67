"""Agents get the best candidates, each rated, and learn when probably none is relevant."""

from __future__ import annotations

from pathlib import Path

from support.mcp_agent import agent, text
from trivet import Trivet

NOTES = (
    "The staging database listens on port 6543.",
    "Grandmother's soup needs carrots, leek and two hours of patience.",
    "Rotate the signing certificate every ninety days.",
)
FOREIGN = "supersonic flow over a blunt body at high mach numbers"


def store(path: Path) -> None:
    with Trivet.open(path, background=False) as trivet:
        trivet.remember_many({"content": note} for note in NOTES)
        trivet.drain()


def test_candidates_are_rated_and_no_match_is_announced(
    tmp_path: Path,
) -> None:
    store(tmp_path / "m.db")
    with agent(tmp_path / "m.db", TRIVET_EMBEDDER="bundled") as memory:
        weak = memory.call("memory_recall", query=FOREIGN)
        assert weak.structured_content["nothing_relevant"] is True
        assert {hit["strength"] for hit in weak.structured_content["hits"]} == {"weak"}
        assert text(weak).startswith("Probably nothing stored is relevant")
        everything = memory.call("memory_recall", query=FOREIGN, more={"relevance_at_least": 0})
        assert len(everything.structured_content["hits"]) == len(NOTES)
        found = memory.call("memory_recall", query="which port is the staging database on?")
        assert NOTES[0] in found.structured_content["hits"][0]["content"]
        assert found.structured_content["hits"][0]["strength"] == "strong"
        assert "nothing_relevant" not in found.structured_content
        refused = memory.call("memory_recall", query=FOREIGN, more={"relevance_at_least": 0.9})
        assert refused.structured_content["hits"] == []
        assert "relevance_at_least requires more" in text(refused)


def test_setting_shows_every_candidate(tmp_path: Path) -> None:
    store(tmp_path / "m.db")
    with agent(
        tmp_path / "m.db", TRIVET_EMBEDDER="bundled", TRIVET_RELEVANCE_AT_LEAST="0"
    ) as memory:
        assert len(memory.call("memory_recall", query=FOREIGN).structured_content["hits"]) == len(
            NOTES
        )
