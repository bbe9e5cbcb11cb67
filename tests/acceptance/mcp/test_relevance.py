"""An agent is told plainly that nothing relevant is stored, and can ask to see the rest all the same."""

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
    with Trivet.open(path, embedder="stock", background=False) as trivet:
        trivet.remember_many({"content": note} for note in NOTES)
        trivet.drain()


def test_nothing_relevant_is_said_plainly(tmp_path: Path) -> None:
    store(tmp_path / "m.db")
    with agent(tmp_path / "m.db", TRIVET_EMBEDDER="stock") as memory:
        refused = memory.call("memory_recall", query=FOREIGN)
        assert refused.structured_content["hits"] == []
        assert refused.structured_content["nothing_relevant"] is True
        assert "Nothing relevant is stored for this query" in text(refused)
        assert "relevance_at_least=0" in text(refused)
        shown = memory.call("memory_recall", query=FOREIGN, relevance_at_least=0)
        assert len(shown.structured_content["hits"]) == len(NOTES)
        assert shown.structured_content["nothing_relevant"] is True
        found = memory.call("memory_recall", query="which port is the staging database on?")
        assert NOTES[0] in found.structured_content["hits"][0]["content"]
        assert found.structured_content["hits"][0]["relevance"] > 0.5
        assert "nothing_relevant" not in found.structured_content
        why = memory.call("memory_why", query=FOREIGN, id=shown.structured_content["hits"][0]["id"])
        assert "likely to be relevant" in text(why)


def test_the_setting_wins_over_the_calibrated_threshold(tmp_path: Path) -> None:
    store(tmp_path / "m.db")
    with agent(tmp_path / "m.db", TRIVET_EMBEDDER="stock", TRIVET_RELEVANCE_AT_LEAST="0") as memory:
        assert len(memory.call("memory_recall", query=FOREIGN).structured_content["hits"]) == len(NOTES)
