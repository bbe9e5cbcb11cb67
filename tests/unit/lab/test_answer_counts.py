"""Known answers are counted by turn and by session, with and without unanswerable questions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.command_line import CommandLine

ANSWERS = {
    "both": ("c/D1:1", "c/D1:2", "c/D1:3", "c/D2:9", "c/D3:1", "c/D2:1"),
    "beside": ("c/D4:2", "c/D5:1", "c/D4:3", "c/D4:4", "c/D4:5", "c/D4:1"),
    "none": ("c/D1:1",),
}
QRELS = "both\tc/D1:1\t1\nboth\tc/D2:1\t1\nboth\tc/D3:1\t0\nbeside\tc/D4:1\t1\nnone\tc/D9:1\t1\n"


def arm(folder: Path, answers: dict[str, tuple[str, ...]], qrels: str) -> Path:
    """Write the parts of a `trivet lab run` result that the command reads."""
    (folder / "1-default").mkdir(parents=True)
    (folder / "qrels.tsv").write_text(qrels)
    rows = [
        f"{query} Q0 {document} {rank} {1 / rank:.9f} trivet\n"
        for query, found in answers.items()
        for rank, document in enumerate(found, 1)
    ]
    (folder / "1-default" / "run.trec").write_text("".join(rows))
    strata = {"none": "adversarial"}
    lines = [
        {
            "query": query,
            "text": "?",
            "measures": {"MRR": 0.5},
            "top": [],
            "stratum": strata.get(query, "single-hop"),
        }
        for query in answers
    ]
    (folder / "1-default" / "per_query.jsonl").write_text(
        "".join(json.dumps(line) + "\n" for line in lines)
    )
    manifest = {
        "config": "default",
        "recipe": "r",
        "dataset": "chats",
        "dataset_sha256": "0" * 64,
        "commit": "abc",
    }
    (folder / "1-default" / "manifest.json").write_text(json.dumps(manifest))
    return folder


@pytest.fixture
def trivet(monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    return CommandLine(monkeypatch)


def test_every_counting_of_same_answers(trivet: CommandLine, tmp_path: Path) -> None:
    runs = arm(tmp_path / "runs", ANSWERS, QRELS)
    (counted,) = trivet.json("lab", "countings", str(runs), "--out", str(tmp_path / "out.json"))
    assert json.loads((tmp_path / "out.json").read_text()) == [counted]
    assert (counted["dataset"], counted["manifest"]["commit"]) == ("chats", "abc")
    values = {(row["found"], row["questions"], row["measure"]): row for row in counted["rows"]}
    table = {
        key: [
            round(values[*key, measure]["value"] * values[*key, measure]["count"], 2)
            for measure in MEASURES
        ]
        for key in dict.fromkeys((row["found"], row["questions"]) for row in counted["rows"])
    }
    assert table == {
        ("the memory", "all"): [1, 2, 0.5, 2, 0, 2],
        ("the memory", "with an answer"): [1, 2, 0.5, 2, 0, 2],
        ("its session, among the first k sessions", "all"): [2, 2, 2, 2, 2, 2],
        ("its session, among the first k sessions", "with an answer"): [2, 2, 2, 2, 2, 2],
        ("its session, of the first k memories", "all"): [2, 2, 2, 2, 2, 2],
        ("its session, of the first k memories", "with an answer"): [2, 2, 2, 2, 2, 2],
    }
    assert [
        values["the memory", group, "any@5"]["count"] for group in ("all", "with an answer")
    ] == [3, 2]
    assert all(row["low"] <= row["value"] <= row["high"] for row in counted["rows"])


MEASURES = ("any@5", "any@10", "recall@5", "recall@10", "all@5", "all@10")


def test_first_sessions_reach_beyond_first_memories(trivet: CommandLine, tmp_path: Path) -> None:
    turns = (*(f"c/D1:{place}" for place in range(9)), "c/D2:1")
    runs = arm(tmp_path / "runs", {"late": turns}, "late\tc/D2:1\t1\n")
    (counted,) = trivet.json("lab", "countings", str(runs / "1-default"))
    found = {row["found"]: row["value"] for row in counted["rows"] if row["measure"] == "any@5"}
    assert found == {
        "the memory": 0.0,
        "its session, among the first k sessions": 1.0,
        "its session, of the first k memories": 0.0,
    }


def test_whole_sessions_are_counted_once(trivet: CommandLine, tmp_path: Path) -> None:
    runs = arm(tmp_path / "runs", {"q": ("c/D2", "c/D1")}, "q\tc/D1\t1\n")
    shown = trivet("lab", "countings", str(runs)).out
    assert ("the memory; all" in shown, "its session" in shown) == (True, False)


def test_invalid_run_is_rejected(trivet: CommandLine, tmp_path: Path) -> None:
    assert "no run.trec" in trivet("lab", "countings", str(tmp_path)).err
    runs = arm(tmp_path / "runs", ANSWERS, QRELS)
    (runs / "1-default" / "run.trec").write_text("both Q0 c/D1:1\n")
    assert "run.trec:1: 3 columns, not 6" in trivet("lab", "countings", str(runs)).err
    (runs / "qrels.tsv").unlink()
    assert "it holds no judgments" in trivet("lab", "countings", str(runs)).err
