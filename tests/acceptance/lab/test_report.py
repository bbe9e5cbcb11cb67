"""The report covers every arm and plot, is self-contained and parses as XML."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from xml.etree import ElementTree

import pytest

from support.command_line import CommandLine
from trivet.lab.report.page import Page, Paragraph, Plot, Section, Table, as_html, as_markdown
from trivet.lab.report.report import bar, leg_scores, separation
from trivet.lab.report.saved_runs import label, read_arms

from .conftest import CONFIGS

PLOTS = {"quality-latency", "strata", "sweep-1", "leg-scores"}
HTML = "{http://www.w3.org/1999/xhtml}"
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def written(arms: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("report")
    with pytest.MonkeyPatch.context() as patch:
        files = CommandLine(patch).json("lab", "report", str(arms), "--out", str(out))["files"]
    assert files == [str(out / "report.html"), str(out / "report.md")]
    return out


def page_of(folder: Path) -> ElementTree.Element:
    return ElementTree.fromstring(
        (folder / "report.html").read_text().removeprefix("<!DOCTYPE html>\n")
    )


def test_page_is_self_contained(written: Path) -> None:
    text = (written / "report.html").read_text()
    root = page_of(written)
    assert len(list(root.iter(f"{SVG}svg"))) == len(PLOTS)
    assert not list(root.iter(f"{HTML}script"))
    assert not list(root.iter(f"{HTML}img"))
    assert not list(root.iter(f"{HTML}link"))
    assert "@import" not in text
    ids = [element.get("id") for element in root.iter() if element.get("id")]
    assert len(ids) == len(set(ids))


def test_every_arm_and_section_is_present(written: Path) -> None:
    text = "\n".join(page_of(written).itertext())
    markdown = (written / "report.md").read_text()
    for number, config in enumerate(CONFIGS, 1):
        assert f"{number}: {config}" in text
        assert f"{number}: {config.replace('|', chr(92) + '|')}" in markdown
    for title in (
        "Summary",
        "Length of hits and answers",
        "Quality against latency",
        "By stratum",
        "Sweep: rrf",
        "Score distributions",
        "How it was",
    ):
        assert f"{title}" in text
        assert f"## {title}" in markdown
    manifest = json.loads(
        next(written.parent.glob("arms*/runs/1-default/manifest.json")).read_text()
    )
    assert manifest["dataset_sha256"] in text
    assert manifest["recipe"] in text


def test_plots_have_axes_units_and_text_alternatives(written: Path) -> None:
    drawings = {path.stem: path.read_text() for path in (written / "report-plots").glob("*.svg")}
    assert set(drawings) == PLOTS
    assert all(ElementTree.fromstring(drawing).tag == f"{SVG}svg" for drawing in drawings.values())
    assert "time for one recall (ms)" in drawings["quality-latency"]
    assert "share of the hits (%)" in drawings["leg-scores"]
    assert "stratum (number of queries)" in drawings["strata"]
    alternatives = [
        element.get("aria-label")
        for element in page_of(written).iter(f"{HTML}div")
        if element.get("role") == "img"
    ]
    assert len(alternatives) == len(PLOTS)
    assert all(alternatives)


def test_same_arms_give_the_same_report(
    written: Path, arms: Path, trivet: CommandLine, tmp_path: Path
) -> None:
    trivet.json("lab", "report", str(arms), "--out", str(tmp_path))
    assert (tmp_path / "report.html").read_text() == (written / "report.html").read_text()


def test_one_arm_without_judgments_is_a_report(
    trivet: CommandLine, arms: Path, tmp_path: Path
) -> None:
    shutil.copytree(arms / "1-default", tmp_path / "1-default")
    assert trivet("lab", "report", str(tmp_path)).status == 0
    text = (tmp_path / "report.md").read_text()
    assert "1 way to recall" in text
    assert "judgments of this dataset were not found" in text


def test_invalid_input_is_refused(trivet: CommandLine, arms: Path, tmp_path: Path) -> None:
    empty = trivet("lab", "report", str(tmp_path))
    assert empty.status == 2
    assert "trivet lab run" in empty.err
    copied = Path(shutil.copytree(arms, tmp_path / "copied"))
    sweep = json.loads((copied / "rrf.json").read_text())
    for bad in ({**sweep, "points": 3}, {**sweep, "dataset_sha256": "0"}):
        (copied / "rrf.json").write_text(json.dumps(bad))
        refused = trivet("lab", "report", str(copied))
        assert refused.status == 2
        assert "rrf.json" in refused.err


def test_leg_scores_match_the_traces(arms: Path) -> None:
    read = read_arms(arms)
    scores = leg_scores(read, {"q1": {"d0": 3}})
    assert set(scores) == {"lexical", "dense", "graph"}
    relevant, others = scores["dense"]
    (first,) = [hit for hit in read[0].queries["q1"].top if hit.document == "d0"]
    assert relevant == [first.legs["dense"].score]
    assert len(others) > len(relevant)


def test_separation_is_the_chance_of_the_right_order() -> None:
    assert separation([3, 4], [1, 2]) == 1
    assert separation([1], [1]) == 0.5
    assert separation([2, 0], [1, 1]) == 0.5
    assert separation([], [1]) is None


def test_bar_contains_its_mean() -> None:
    one = bar([0.0, 0.5, 1.0, 0.5])
    assert one.low <= one.value == 0.5 <= one.high
    assert bar([1.0]) == type(one)(1.0, 1.0, 1.0)


def test_text_is_never_markup() -> None:
    table = Table(("a|b", "<b>"), [("x|y", "1.0"), ("<script>", "–")], code=frozenset({0}))
    page = Page(
        "<i>",
        "a & b",
        [Section("S", [Paragraph("say `<x>`"), table, Plot("p", "<svg/>", '"told"', "c")])],
    )
    html = as_html(page)
    ElementTree.fromstring(html.removeprefix("<!DOCTYPE html>\n"))
    assert "<script>" not in html
    assert "<code>&lt;x&gt;</code>" in html
    markdown = as_markdown(page, "plots")
    assert "| `x\\|y` | 1.0 |" in markdown
    assert '!["told"](plots/p.svg)' in markdown


def test_long_recipe_is_cut_only_in_labels() -> None:
    assert label(2, "rrf") == "2: rrf"
    assert label(1, "x" * 80) == "1: " + "x" * 35 + "…"
