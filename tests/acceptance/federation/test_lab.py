"""`trivet lab federation` counts overlap per query and reports the choice on other queries."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support import library_dataset as library
from support.command_line import CommandLine
from support.small_dataset import dataset
from trivet.lab.datasets.dataset import Dataset, Document, Judgement, Query
from trivet.lab.measure.federation import split_queries
from trivet.lab.measure.hit_analysis import apply_fusion_rules, overlap

from .systems import program, saying

# Stands for a system that understands paraphrases: the best document for some questions of the set.
KNOWS = {
    "feline": "d2",
    "hot drink": "d4",
    "nothing be released": "d6",
    "backups": "d9",
    "staging": "unheard-of",
}
CODE = f"""
import json, sys
query = sys.stdin.read()
print(json.dumps([{{"id": id, "score": 1}} for words, id in {KNOWS!r}.items() if words in query]))
"""


def test_one_system_is_measured_beside_trivet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    # No program starts within a millisecond, so this shows that the lab ignores time limits.
    member = {"command": program(CODE), "time_limit_ms": 1}
    monkeypatch.setenv("TRIVET_FEDERATION", json.dumps({"wise": member}))
    trivet = CommandLine(monkeypatch)
    data, out = str(library.write(tmp_path / "data")), tmp_path / "runs" / "wise.json"
    arguments = (
        "lab",
        "federation",
        data,
        "--embedder",
        "none",
        "--member",
        "wise",
        "--fetch-k",
        "1,5",
        "--weight",
        "1,4",
    )
    shown = trivet(*arguments, "--out", str(out))
    assert (shown.status, shown.err) == (0, "")
    assert "only wise" in shown.out
    assert (
        "By the rules of overlap: worth a trial. Both find something for 0% of the queries"
        in shown.out
    )
    result = json.loads(out.read_text())
    shares = {
        name: round(6 * share["mean"])
        for name, share in result["overlap"].items()
        if name not in ("k", "queries")
    }
    # Words alone find q1, q2 and q4; the system has q3, q5 and one of the two documents of q6.
    assert (shares["both"], shares["only_trivet"], shares["only_member"], shares["neither"]) == (
        0,
        3,
        3,
        0,
    )
    assert result["overlap"]["recall_union"]["mean"] == pytest.approx(5.5 / 6)
    assert (result["queries"], result["unknown"], result["silent"]) == (6, 1, 1)
    assert len(result["points"]) == 4
    assert result["chosen"] == result["points"][0]
    ndcg = next(
        one
        for one in result["held_out"]
        if (one["against"], one["measure"]) == ("trivet", "nDCG@10")
    )
    assert ndcg["queries"] == 3
    assert ndcg["difference"] > 0
    assert result["environment"]["versions"]
    unknown = trivet(*arguments[:-1], "1", "--json", "--member", "nobody")
    assert "no such system. Known systems: wise." in unknown.error()["message"]


def test_several_systems_are_measured_alone_and_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    members = {"wise": {"command": program(CODE)}, "stuck": saying('[{"id": "d0", "score": 1}]')}
    monkeypatch.setenv("TRIVET_FEDERATION", json.dumps(members))
    data = str(library.write(tmp_path / "data"))
    arguments = (
        "--embedder",
        "none",
        "--member",
        "wise",
        "--member",
        "stuck",
        "--fetch-k",
        "1",
        "--weight",
        "1",
    )
    result = CommandLine(monkeypatch).json("lab", "federation", data, *arguments)
    assert [one["member"] for one in result["members"]] == ["wise", "stuck"]
    against = {
        one["against"]: one
        for one in result["together"]["held_out"]
        if one["measure"] == "recall@10"
    }
    assert set(against) == {"trivet", "trivet with wise", "trivet with stuck"}
    # The system "wise" adds to Trivet and to the other system, which adds nothing to it.
    assert against["trivet"]["difference"] > 0
    assert against["trivet with stuck"]["difference"] > 0
    assert against["trivet with wise"]["difference"] == 0


@pytest.mark.parametrize(
    ("both", "only_ours", "only_theirs", "verdict"),
    [
        (3, 3, 4, "worth a trial"),
        (8, 1, 1, "not worth its time"),
        (6, 2, 2, "not settled"),
        (3, 6, 1, "not settled"),
    ],
)
def test_overlap_rules(both: int, only_ours: int, only_theirs: int, verdict: str) -> None:
    """With ten queries; the bounds are 60 % and .15, and 70 %."""
    ids = [f"q{number}" for number in range(10)]
    found = {id: [(id, 1.0)] for id in ids}
    ours = {id: found[id] if place < both + only_ours else [] for place, id in enumerate(ids)}
    other = {
        id: found[id]
        if place < both or both + only_ours <= place < both + only_ours + only_theirs
        else []
        for place, id in enumerate(ids)
    }
    rules = apply_fusion_rules(overlap(dataset({id: {id: 1} for id in ids}), ours, other, k=5))
    assert rules.verdict == verdict
    assert rules.sentence.startswith(f"By the rules of overlap: {verdict}.")


def test_failing_system_cannot_be_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv(
        "TRIVET_FEDERATION", json.dumps({"liar": saying("no JSON"), "mute": saying("[]")})
    )
    trivet = CommandLine(monkeypatch)
    data = str(library.write(tmp_path / "data"))
    for name, reason in (
        ("liar", "liar did not answer query q1"),
        ("mute", "mute found nothing for any query"),
    ):
        failed = trivet("lab", "federation", data, "--embedder", "none", "--member", name)
        assert failed.status != 0
        assert reason in failed.err


def test_overlap_is_counted_within_the_first_k() -> None:
    queries = [Query(id=id, text=id) for id in ("a", "b", "c", "d", "e")]
    documents = tuple(Document(id=f"{id}{n}", text=id) for id in "abcde" for n in (1, 2))
    judged = tuple(
        Judgement(query=id, document=f"{id}{n}", grade=1) for id in "abcd" for n in (1, 2)
    )
    five = Dataset(name="x", documents=documents, queries=tuple(queries), judgements=judged)
    ours = {
        "a": [("a1", 2.0), ("a2", 1.0)],
        "b": [("b1", 2.0)],
        "c": [("d1", 2.0), ("c1", 1.0)],
        "d": [],
        "e": [],
    }
    other = {
        "a": [("a1", 2.0)],
        "b": [("a1", 2.0)],
        "c": [("c2", 2.0)],
        "d": [("c1", 1.0)],
        "e": [],
    }
    found = overlap(five, ours, other, k=1)
    assert [
        share.mean for share in (found.both, found.only_trivet, found.only_member, found.neither)
    ] == [0.25] * 4
    assert (found.recall_trivet.mean, found.recall_member.mean, found.recall_union.mean) == (
        0.25,
        0.25,
        0.375,
    )
    assert found.both.low <= found.both.mean <= found.both.high


def test_halves_depend_only_on_the_queries() -> None:
    first, second = split_queries([f"q{number}" for number in range(21)])
    assert (len(first), len(second)) == (11, 10)
    assert not set(first) & set(second)
    assert split_queries([f"q{number}" for number in reversed(range(21))]) == (first, second)
