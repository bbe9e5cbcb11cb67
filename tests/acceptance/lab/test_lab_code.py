"""`trivet lab code` measures, gates and compares code search on two small repositories."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from support.command_line import CommandLine

# A program that acts like the driver of semble: it returns the files of a tree in name order.
STAND_IN = """#!{python}
import json, pathlib, sys
print(json.dumps({{"version": "0.7.0", "model": False}}), flush=True)
for line in sys.stdin:
    job = json.loads(line)
    files = sorted(path.name for path in pathlib.Path(job["folder"]).rglob("*.py"))
    costs = {{"files": 5, "megabytes": 0.5, "chunks": 7, "processor_s": 2.0, "wall_s": 3.0}}
    times = [1.0] * len(job["texts"])
    print(json.dumps({{**costs, "ranked": [files] * len(times), "wall_ms": times, "processor_ms": times}}), flush=True)
"""
HTTP = {
    "lib/retry.py": 'def parse_retry_after(header):\n    """Seconds to wait."""\n    return int(header)\n',
    "lib/client.py": "from retry import parse_retry_after\n\n\ndef send(request):\n    "
    "return parse_retry_after(request.header)\n",
    "lib/colour.py": "def paint(shape):\n    return shape.hue\n",
    "lib/zebra.py": "def gallop(animal):\n    return animal.legs\n",
    "other/retry.py": "def parse_retry_after(header):\n    return header\n",
}
STORE = {
    f"{name}.py": f"def {name}(value):\n    return value.{name}_kept\n"
    for name in ("load", "save", "drop", "list")
}
SETS: Mapping[
    str,
    tuple[Mapping[str, str], str, Sequence[tuple[str, str, str]], Sequence[tuple[str, str, int]]],
] = {
    "http": (
        HTTP,
        "lib",
        [
            ("q1", "parse_retry_after", "symbol"),  # found first
            ("q2", "parse_retry_after", "nl"),  # the caller, which comes second
            ("q3", "xylophone", "nl"),  # no file has this word
            # generated, so not counted in the headline figures
            ("q4", "parse_retry_after", "symbol-auto"),
        ],
        [
            ("q1", "lib/retry.py", 2),
            ("q2", "lib/client.py", 1),
            ("q3", "lib/zebra.py", 1),
            ("q4", "lib/retry.py", 2),
        ],
    ),
    "store": (
        {**STORE, "readme.md": "# Store\n\nKeeps values.\n"},
        "",
        [("q1", "load_kept", "symbol"), ("s2", "save_kept", "issue")],
        [("q1", "load.py", 2), ("s2", "save.py", 2), ("s2", "drop.py", 0)],
    ),
}


def write_sets(folder: Path, **grades: Sequence[tuple[str, str, int]]) -> Path:
    for name, (files, root, queries, judged) in SETS.items():
        for path, text in files.items():
            file = folder / name / "tree" / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        lines = [
            {"id": id, "text": text, "stratum": stratum, "src": "hand"}
            for id, text, stratum in queries
        ]
        (folder / name / "queries.jsonl").write_text(
            "".join(json.dumps(line) + "\n" for line in lines)
        )
        rows = (f"{query}\t{path}\t{grade}\n" for query, path, grade in grades.get(name, judged))
        (folder / name / "qrels.tsv").write_text("".join(rows))
        (folder / name / "meta.json").write_text(
            json.dumps({"name": name, "root": root, "commit": "0"})
        )
    return folder


@pytest.fixture(scope="module")
def sets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_sets(tmp_path_factory.mktemp("sets"))


@pytest.fixture(scope="module")
def ran(sets: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One run with two recipes and a stand-in program, shared by several tests."""
    out = tmp_path_factory.mktemp("ran")
    program = out / "python"
    program.write_text(STAND_IN.format(python=sys.executable))
    program.chmod(0o755)
    recipes = ("--recipe", "default", "--recipe", "rrf(lexical=0, dense=0, definitions=0)")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRIVET_CODE_CACHE", str(out / "indexes"))
        shown = CommandLine(patch)(
            "lab",
            "code",
            str(sets),
            "--scope",
            "root",
            "--out",
            str(out),
            *recipes,
            "--semble",
            str(program),
        )
    assert (shown.status, shown.err) == (0, "")
    assert not (out / "indexes").exists()  # the user's own indexes are left alone
    (out / "shown").write_text(shown.out)
    return out


def measures(out: Path) -> Any:
    return json.loads((out / "measures.json").read_text())


def test_run_uses_paths_from_the_root_and_unique_ids(ran: Path) -> None:
    rows = [line.split(" ") for line in (ran / "run.trec").read_text().splitlines()]
    assert {row[0] for row in rows} == {
        "http/q1",
        "q2",
        "q4",
        "store/q1",
        "s2",
    }  # nothing answers q3
    assert all((row[1], row[5]) == ("Q0", "trivet") for row in rows)
    found = [row for row in rows if row[0] == "http/q1"]
    assert [row[2] for row in found][:2] == [
        "lib/retry.py",
        "lib/client.py",
    ]  # other/ is outside the root
    assert [row[3] for row in found] == [str(rank) for rank in range(1, len(found) + 1)]
    scores = [float(row[4]) for row in found]
    assert scores == sorted(set(scores), reverse=True)


def test_measures_match_hand_computed_values(ran: Path) -> None:
    value = measures(ran)
    groups = value["arms"][0]["groups"]
    second = 1 / math.log2(3)
    assert value["per_query"]["nDCG@10"] == pytest.approx(
        {"http/q1": 1, "q2": second, "q3": 0, "q4": 1, "store/q1": 1, "s2": 1}, abs=1e-6
    )
    headline = groups["headline"]["measures"]["nDCG@10"]
    assert (groups["headline"]["queries"], groups["headline"]["sets"]) == (5, 2)
    assert headline["mean"] == pytest.approx((3 + second) / 5)
    assert headline["by_set"] == pytest.approx(((1 + second) / 3 + 1) / 2)
    assert headline["low"] < headline["mean"] < headline["high"]
    assert groups["semble's own"]["queries"] == 4
    assert groups["nl"]["measures"]["recall@5"]["mean"] == 0.5
    assert value["arms"][0]["by_set"]["http"]["nl"]["nDCG@10"] == pytest.approx(second / 2)
    assert (value["arms"][0]["index"]["files"], value["scope"]) == (9, "root")


def test_recipes_and_other_program_are_compared_per_query(ran: Path) -> None:
    value = measures(ran)
    assert [arm["name"] for arm in value["arms"]][::2] == ["default", "semble"]
    assert [(one["base"], one["candidate"]) for one in value["differences"]] == [
        ("default", value["arms"][1]["name"]),
        ("semble", "default"),
    ]
    other, beside = (one["groups"]["headline"]["nDCG@10"] for one in value["differences"])
    worse, better = (
        arm["groups"]["headline"]["measures"]["nDCG@10"]["mean"] for arm in value["arms"][1:]
    )
    ours = value["arms"][0]["groups"]["headline"]["measures"]["nDCG@10"]["mean"]
    assert other["difference"] == pytest.approx(worse - ours)
    assert beside["difference"] == pytest.approx(ours - better)
    assert beside["low"] <= beside["difference"] <= beside["high"]
    assert value["arms"][2]["index"]["processor_s"] == 4
    assert value["manifest"]["semble"] == {"version": "0.7.0", "model": False}
    assert (ran / "semble.trec").read_text().startswith("http/q1 Q0 lib/client.py 1 ")
    assert len(list(ran.glob("2-*.trec"))) == 1
    for text in ((ran / "shown").read_text(), (ran / "report.md").read_text()):
        assert "without its model" in text
        assert "with a forbidden file have one among their first ten" in text


def test_gate(trivet: CommandLine, sets: Path, ran: Path, tmp_path: Path) -> None:
    def gated(baseline: Any, *more: str) -> tuple[int, Any]:
        (tmp_path / "baseline.json").write_text(json.dumps(baseline))
        arguments = (
            "--out",
            str(tmp_path / "out"),
            "--gate",
            str(tmp_path / "baseline.json"),
            *more,
            "--json",
        )
        shown = trivet("lab", "code", str(sets), *arguments)
        return shown.status, shown.json()["verdict"] if shown.out else shown.error()

    value = measures(ran)
    status, verdict = gated(value, "--scope", "root")
    assert (status, verdict["reasons"]) == (
        4,
        ["1 forbidden files are among the first ten: s2: drop.py at rank 2"],
    )
    better = {
        name: {query: one + 0.5 for query, one in found.items()}
        for name, found in value["per_query"].items()
    }
    status, verdict = gated({**value, "per_query": better}, "--scope", "root")
    assert status == 1 | 4
    assert verdict["reasons"][0].startswith("nDCG@10 of headline fell from ")
    status, error = gated(value, "--scope", "whole")
    assert (status, "another scope (root)" in error["message"]) == (2, True)


def test_finding_a_forbidden_file_fails(trivet: CommandLine, tmp_path: Path) -> None:
    judged = [("q1", "load.py", -1), ("q1", "readme.md", 1), ("s2", "save.py", 2)]
    folder = write_sets(tmp_path / "sets", store=judged) / "store"
    arguments = ("lab", "code", str(folder), "--out", str(tmp_path / "out"))
    assert trivet(*arguments).status == 0
    failed = trivet(*arguments, "--forbid")
    assert failed.status == 4
    assert "1 forbidden files are among the first ten: q1: load.py at rank 1" in failed.out


@pytest.mark.parametrize(
    ("path", "text", "message"),
    [
        ("http/tree", None, "tree: there is no such folder. A set is a folder with tree/"),
        ("http/qrels.tsv", None, "qrels.tsv: there is no such file"),
        ("http/qrels.tsv", "q1\tlib/retry.py\n", "qrels.tsv:1: 2 columns, not 3"),
        ("http/qrels.tsv", "q9\tlib/retry.py\t1\n", "qrels.tsv:1: there is no query 'q9'"),
        ("http/qrels.tsv", "q1\tlib/retry.py\tgood\n", "grade 'good' is not a whole number"),
        ("http/queries.jsonl", None, "queries.jsonl: there is no such file"),
        ("http/queries.jsonl", '{"id": "q1"}\n', "queries.jsonl:1: "),
        ("http/meta.json", '{"root": "../.."}', "root '../..' is no folder in"),
        ("http/meta.json", "{", "meta.json: "),
    ],
)
def test_wrong_layout_is_reported(
    trivet: CommandLine, tmp_path: Path, path: str, text: str | None, message: str
) -> None:
    place = write_sets(tmp_path / "sets") / path
    place.rename(tmp_path / "away")
    if text is not None:
        place.write_text(text)
    shown = trivet("lab", "code", str(tmp_path / "sets"), "--out", str(tmp_path / "out"))
    assert (shown.status, shown.out) == (2, "")
    assert message in shown.err
    assert not (tmp_path / "out").exists()


def test_impossible_runs_are_refused_before_the_work(
    trivet: CommandLine, sets: Path, tmp_path: Path
) -> None:
    def refusal(folder: Path, *more: str) -> str:
        shown = trivet("lab", "code", str(folder), "--out", str(tmp_path / "out"), *more)
        assert (shown.status, shown.out) == (2, "")
        return " ".join(shown.err.split())

    assert "there is no set in it" in refusal(tmp_path)
    assert "There are: http, store." in refusal(sets, "--repositories", "http,nothing")
    assert "Other steps: " in refusal(sets, "--recipe", "rff")
    assert "needs --semble PYTHON" in refusal(sets, "--beside", "semble")
    assert "pip install semble==0.7.0" in refusal(sets, "--semble", str(tmp_path / "none"))
    assert "pip install semble==0.7.0" in refusal(sets, "--semble", sys.executable)
    assert "Give the measures.json" in refusal(sets, "--gate", str(sets / "http" / "meta.json"))
