"""`trivet lab` commands do real runs on a small test set, for people and for programs."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support import library_dataset as library
from support.command_line import CommandLine, process
from trivet.cli.app import GROUPS
from trivet.lab.datasets.catalog import IMPORTERS

from .conftest import CONFIGS


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def copied(arms: Path, tmp_path: Path) -> Path:
    """Arms that a test may break."""
    return Path(shutil.copytree(arms, tmp_path / "copied"))


def worse(arm: Path, queries: set[str], **measures: float) -> None:
    """Write other values for some queries of an arm."""
    path = arm / "per_query.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        if line["query"] in queries:
            line["measures"].update(
                {name.replace("_", "@"): value for name, value in measures.items()}
            )
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_no_arguments_shows_help(trivet: CommandLine) -> None:
    shown = trivet("lab")
    assert shown.status == 0
    assert all(f"\n  {name} " in shown.out for name in GROUPS["lab"])
    assert "trivet lab run house" in shown.out


@pytest.mark.parametrize("name", GROUPS["lab"])
def test_help_has_an_example_and_no_unused_store_option(trivet: CommandLine, name: str) -> None:
    shown = trivet("lab", name, "--help")
    assert shown.status == 0
    assert f"Example:\n  trivet lab {name}" in shown.out.replace("    trivet", "  trivet").replace(
        "  Example", "Example"
    )
    assert ("--path" in shown.out) == (name == "from-store")


def test_help_does_not_load_the_lab() -> None:
    script = (
        "import sys\nfrom trivet.cli import main\nmain({})\nprint(*sys.modules, file=sys.stderr)"
    )
    for arguments in (["--help"], ["lab", "--help"], ["lab", "run", "--help"]):
        ended = subprocess.run(
            [sys.executable, "-c", script.format(arguments)],
            capture_output=True,
            text=True,
            check=True,
        )
        loaded = set(ended.stderr.split())
        assert not {"numpy", "matplotlib", "scipy", "trivet.lab"} & loaded


def test_help_names_the_existing_importers(trivet: CommandLine) -> None:
    # a name may be wrapped across lines
    shown = "".join(trivet("lab", "import", "--help").out.split())
    assert f"Collections:{','.join(IMPORTERS)}." in shown


def test_run_writes_an_arm_for_each_config(arms: Path) -> None:
    names = ["1-default", "2-rrf-k-60", "3-rrf-legs-lexical"]
    assert sorted(path.name for path in arms.iterdir() if path.is_dir()) == names
    for name, config in zip(names, CONFIGS, strict=True):
        files = {path.name for path in (arms / name).iterdir()}
        assert files == {"run.trec", "per_query.jsonl", "measures.json", "manifest.json"}
        assert json.loads((arms / name / "manifest.json").read_text())["config"] == config
    assert (arms / "qrels.tsv").read_text().startswith("q1\td0\t3\n")


def test_run_in_a_separate_process(tmp_path: Path) -> None:
    data = library.write(tmp_path / "data")
    shown = process("lab", "run", str(data), "--config", "default", "--out", str(tmp_path / "out"))
    assert (shown.status, shown.err) == (0, "")
    rows = [line.split() for line in shown.out.splitlines()]
    assert rows[0][:2] == ["1", "default"]
    assert rows[2] == ["nDCG@10", "queries", "1"]
    assert [row[:2] for row in rows[3:6]] == [["all", "6"], ["paraphrase", "3"], ["plain", "3"]]
    again = process("lab", "run", str(data), "--out", str(tmp_path / "out"), "--json").json()
    assert [arm["config"] for arm in again] == ["default"]
    assert f"{again[0]['overall']['nDCG@10']:.4f}" == rows[3][2]


def test_run_refuses_bad_input_before_it_works(
    trivet: CommandLine, tmp_path: Path, arms: Path
) -> None:
    data, out = str(library.write(tmp_path / "data")), str(tmp_path / "out")
    misspelt = trivet("lab", "run", data, "--config", "rff(k=60)", "--out", out)
    assert (misspelt.status, misspelt.out) == (2, "")
    assert "rff" in misspelt.err
    delivered = trivet("lab", "run", data, "--measure", "delivered@3", "--out", out)
    assert (delivered.status, delivered.out) == (2, "")
    assert "trivet lab delivery" in delivered.err
    assert not Path(out).exists()
    blocked = trivet("lab", "run", data, "--out", str(tmp_path / "data" / "qrels.tsv" / "x"))
    assert blocked.status == 5
    other = str(
        library.write(tmp_path / "other", qrels="".join(f"q{n}\td0\t1\n" for n in range(1, 7)))
    )
    mixed = trivet("lab", "run", other, "--out", str(arms))
    assert mixed.status == 2
    assert "other data" in mixed.err


@pytest.mark.parametrize(
    ("files", "place"),
    [
        ({"qrels": "q1\td99\t1\n"}, "qrels.tsv:1: "),
        ({"qrels": "q1\td0\t1\n"}, "queries.jsonl:2: "),
        (
            {"corpus": '{"id": "d0", "text": "one"}\n{"id": "d0", "text": "two"}\n'},
            "corpus.jsonl:2: ",
        ),
        ({"queries": None}, "queries.jsonl: "),
    ],
)
def test_bad_data_is_named_by_file_and_line(
    trivet: CommandLine, tmp_path: Path, files: dict[str, str | None], place: str
) -> None:
    data = library.write(tmp_path / "data", **files)
    shown = trivet("lab", "run", str(data), "--out", str(tmp_path / "out"), "--json")
    assert (shown.status, shown.out) == (2, "")
    assert shown.error()["message"].startswith(f"{data}/{place}")


def test_missing_dataset(trivet: CommandLine, tmp_path: Path) -> None:
    known = trivet("lab", "run", "scifact", "--out", str(tmp_path))
    assert known.status == 2
    assert "trivet lab import scifact" in known.err
    unknown = trivet("lab", "ablate", "../nonsense")
    assert unknown.status == 2
    assert "house" in unknown.err


def test_import_adds_a_collection(trivet: CommandLine, tmp_path: Path, cache: Path) -> None:
    originals = tmp_path / "originals" / "scifact"
    originals.mkdir(parents=True)
    refused = trivet("lab", "import", "scifact", "--data", str(tmp_path / "originals"))
    assert refused.status == 2
    assert "scifact" in refused.err
    library.write(cache / "trivet" / "lab" / "datasets" / "scifact")  # as if it had been imported
    ran = trivet.json(
        "lab", "run", "scifact", "--config", "rrf | legs(lexical)", "--out", str(tmp_path / "out")
    )
    assert ran[0]["queries"] == {"all": 6, "paraphrase": 3, "plain": 3}


def test_compare_as_text(trivet: CommandLine, arms: Path) -> None:
    shown = trivet("lab", "compare", str(arms / "1-default"), str(arms / "3-rrf-legs-lexical"))
    assert (shown.status, shown.err) == (0, "")
    assert "All 6 queries of data" in shown.out
    for word in (
        "recall@5",
        "any@1",
        "hits candidate",
        "condensed-nDCG@10",
        "95 % interval",
        "p (Holm)",
        "detectable",
        "paraphrase (3)",
    ):
        assert word in shown.out
    assert "q3 (paraphrase)" in shown.out
    assert "[2]*d2" in shown.out


def test_compare_as_json(trivet: CommandLine, arms: Path) -> None:
    value = trivet.json(
        "lab", "compare", str(arms / "1-default"), str(arms / "3-rrf-legs-lexical"), "--moved", "1"
    )
    one = value["overall"]["nDCG@10"]
    assert one["low"] <= one["difference"] <= one["high"]
    assert one["wins"] + one["losses"] + one["ties"] == 6
    assert set(value["by_stratum"]) == {"plain", "paraphrase"}
    (moved,) = value["moved"]
    assert moved["base_top"][0]["hit"]["legs"]
    same = trivet.json("lab", "compare", str(arms / "1-default"), str(arms / "1-default"))
    assert same["moved"] == []
    assert same["overall"]["MRR"]["detectable"] is None


def test_compare_refuses_unlike_arms(trivet: CommandLine, copied: Path) -> None:
    base, other = copied / "1-default", copied / "2-rrf-k-60"
    unknown = trivet("lab", "compare", str(base), str(other), "--measure", "nDCG@3")
    assert unknown.status == 2
    assert "nDCG@10" in unknown.err
    manifest = json.loads((other / "manifest.json").read_text())
    (other / "manifest.json").write_text(json.dumps({**manifest, "dataset_sha256": "0" * 64}))
    differs = trivet("lab", "compare", str(base), str(other))
    assert differs.status == 2
    assert "same data" in differs.err
    assert trivet("lab", "compare", str(base), str(copied / "none")).status == 2


def test_broken_line_of_an_arm_is_named(trivet: CommandLine, copied: Path) -> None:
    path = copied / "2-rrf-k-60" / "per_query.jsonl"
    lines = path.read_text().splitlines()
    for bad in ('{"query": "q2"}', "{", lines[0]):
        path.write_text("\n".join([lines[0], bad, *lines[2:]]) + "\n")
        shown = trivet("lab", "gate", str(copied / "1-default"), str(copied / "2-rrf-k-60"))
        assert (shown.status, shown.out) == (2, "")
        assert f"{path}:2: " in shown.err


def test_gate_status_says_what_failed(trivet: CommandLine, copied: Path) -> None:
    base, other = str(copied / "1-default"), copied / "changed"
    shutil.copytree(base, other)
    everything = {f"q{number}" for number in range(1, 7)}
    same = trivet("lab", "gate", base, str(other), "--no-gain-needed")
    assert (same.status, same.out) == (0, "Passed.\n")
    assert trivet("lab", "gate", base, str(other)).status == 2
    worse(other, everything, MRR=0.01)
    assert trivet("lab", "gate", base, str(other), "--no-gain-needed").status == 1
    worse(other, {"q1"}, any_5=0.0)
    shut = trivet("lab", "gate", base, str(other), "--json")
    assert shut.status == 7
    assert shut.json()["broken"] == ["q1"]
    assert len(shut.json()["reasons"]) == 3
    assert "MRR fell" in trivet("lab", "gate", base, str(other)).out
    means = json.loads((other / "measures.json").read_text())
    means["lengths"]["overall"] |= {"hits": 90.0, "ratio": 9.0}
    (other / "measures.json").write_text(json.dumps(means))
    assert trivet("lab", "gate", base, str(other)).status == 15


def test_sweep_ranks_every_combination(trivet: CommandLine, arms: Path, tmp_path: Path) -> None:
    written = json.loads((arms / "rrf.json").read_text())
    assert written["kind"] == "sweep"
    values = [point["overall"]["nDCG@10"] for point in written["points"]]
    assert len(values) == 4
    assert values == sorted(values, reverse=True)
    (base,) = [point for point in written["points"] if point["against_base"] is None]
    assert base["values"] == {"k": "10", "w": "1"}
    data = str(library.write(tmp_path / "data"))
    shown = trivet(
        "lab", "sweep", data, "--recipe", "rrf(k={k}) | legs(lexical)", "--vary", "k=10,60"
    )
    assert shown.status == 0
    assert shown.out.split()[:2] == ["k", "nDCG@10"]
    assert "\nbest  rrf(k=" in shown.out


@pytest.mark.parametrize(
    ("vary", "word"),
    [
        (["k"], "--vary k=10,20"),
        (["k=1", "k=2"], "twice"),
        (["k="], "values"),
        (["j=1"], "j"),
        (["k=x"], "k"),
    ],
)
def test_sweep_refuses_an_invalid_grid(
    trivet: CommandLine, tmp_path: Path, vary: list[str], word: str
) -> None:
    data = str(library.write(tmp_path / "data"))
    options = [part for one in vary for part in ("--vary", one)]
    shown = trivet("lab", "sweep", data, "--recipe", "rrf(k={k})", *options)
    assert (shown.status, shown.out) == (2, "")
    assert word in shown.err


def test_ablate_removes_each_part(trivet: CommandLine, tmp_path: Path) -> None:
    data, out = str(library.write(tmp_path / "data")), tmp_path / "runs" / "ablation.json"
    report = trivet.json("lab", "ablate", data, "--out", str(out))
    assert json.loads(out.read_text()) == report
    assert report["environment"]["versions"]
    whole, *rest = report["ablations"]
    assert whole["name"] == "whole"
    assert whole["against_whole"] is None
    assert {"without lexical", "without dense"} <= {one["name"] for one in rest}
    for one in rest:
        compared = one["against_whole"]
        assert compared["candidate"] == pytest.approx(one["overall"]["nDCG@10"])
        assert compared["base"] == pytest.approx(whole["overall"]["nDCG@10"])
    assert [one["leg"] for one in report["overlaps"]] == ["lexical", "dense"]
    shown = trivet(
        "lab", "ablate", data, "--config", "rrf(k=60) | legs(lexical, dense)", "--embedder", "none"
    )
    assert (shown.status, shown.err) == (0, "")
    assert "Measured without dense" in shown.out


@pytest.mark.parametrize(
    ("package", "command"),
    [("scipy", "run"), ("scipy", "compare"), ("scipy", "gate"), ("matplotlib", "report")],
)
def test_missing_package_is_named(
    trivet: CommandLine,
    arms: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    package: str,
    command: str,
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    two = [str(arms / "1-default"), str(arms / "2-rrf-k-60")]
    arguments = {
        "run": ["house", "--out", str(tmp_path)],
        "report": [str(arms), "--out", str(tmp_path)],
    }
    shown = trivet("lab", command, *arguments.get(command, two))
    assert (shown.status, shown.out) == (1, "")
    assert package in shown.err
    assert "pip install 'trivet[lab]'" in shown.err
