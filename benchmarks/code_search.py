"""Code search on all sets: which fusion, and semble beside us. Keeps docs/results/code.json and code.md.

python benchmarks/code_search.py SETS --semble PYTHON

SETS is what `trivet lab code` takes. Whole trees are asked by every fusion over the same legs: those of the default
recipe with its weights, and words and vectors alone. The sub-folders are asked by the default. Half an hour.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from manifest import manifest
from trivet.code.recipe import DEFAULT
from trivet.lab.code.figures import HEADLINE, MEANING, MEASURES, Difference
from trivet.lab.code.measure import SEMBLE, CodeReport, Versus, measure_code
from trivet.lab.code.pages import by_set, cost, semble_note, table, write_code
from trivet.lab.code.sets import CodeSet, Scope, read_sets
from trivet.lab.document import Page, Paragraph, Section, Table, as_markdown
from trivet.search.fuse import Fusion, Options

RESULTS = Path("docs/results")
COMMAND = "python benchmarks/code_search.py SETS --semble PYTHON"
# What a later run is held against stays with the runs; a kept result needs the means alone.
NOT_KEPT = ("per_query", "strata")
BY_SET = ("by_set", "index_by_set", "query_ms_by_set")
PAIR = ("lexical", "dense")
NDCG = MEASURES[0]


def recipes() -> dict[str, str]:
    """By a short name. The first is the default; the weights of the others are the default's."""
    weights = DEFAULT.fusion.weights
    others = {leg: 0.0 for leg in weights if leg not in PAIR}
    return {
        "default": "default",
        **{name: str(fusion) for name, fusion in _others(weights).items()},
        f"{DEFAULT.fusion.method}, two legs": str(Fusion(DEFAULT.fusion.method, _with(others))),
        **{f"{name}, two legs": str(fusion) for name, fusion in _others({**weights, **others}).items()},
    }


def _with(weights: Mapping[str, float]) -> Options:
    return Options({**DEFAULT.fusion.options, **weights})


def _others(weights: Mapping[str, float]) -> dict[str, Fusion]:
    pair = sum(weights.get(leg, 1.0) for leg in PAIR)
    blend = {**weights, "dense": 0.75 * pair, "lexical": 0.25 * pair}
    return {
        "dbsf": Fusion("dbsf", Options(weights)),
        "rrf(k=60)": Fusion("rrf", Options({"k": 60.0, **weights})),
        "saturation": Fusion("saturation", Options({"half.lexical": 4.0, **blend})),
    }


def page(whole: CodeReport, root: CodeReport, names: Mapping[str, str], made: Mapping[str, Any]) -> Page:
    short = {recipe: name for name, recipe in names.items()}
    against = [one for one in whole.differences if one.base != SEMBLE]
    return Page(
        title="Code search",
        opening=f"{sum(whole.sets.values()):,} queries about {len(whole.sets)} repositories, by file. {MEANING} "
        f"Made by `benchmarks/code_search.py`; all figures are in [code.json](code.json).",
        sections=[
            Section("Which fusion", [Paragraph(_answer(against, short)), _fusions(whole, against, short)]),
            *(
                Section(
                    f"{title}, beside semble",
                    [
                        Paragraph(semble_note(report)),
                        *(_beside(report, measure) for measure in MEASURES),
                        *cost(_pair(report)).blocks,
                    ],
                )
                for title, report in (("Sub-folders", root), ("Whole trees", whole))
            ),
            by_set(_pair(whole)),
            Section("How it was made", [_made(whole, root, names, made)]),
        ],
    )


def _answer(against: list[Versus], short: Mapping[str, str]) -> str:
    said = [f"{short[one.candidate]} {_verdict(one.groups[HEADLINE][NDCG])}" for one in against]
    return (
        "The documents left open whether a saturation blend (`.75 vector + .25 lexical/(lexical+4)`, x .72 without "
        "lexical evidence) or DBSF is the better fusion. All are measured here over the same legs, with the weights of "
        "the default where they have any, on whole trees; `two legs` has words and vectors alone, as the documents "
        f"had. Against the default, in {NDCG} of the headline: {'; '.join(said)}."
    )


def _verdict(one: Difference) -> str:
    shown = "worse" if one.high < 0 else "better" if one.low > 0 else "no difference shown"
    return f"{one.difference:+.3f} ({one.low:+.3f} to {one.high:+.3f}), {shown}"


def _fusions(report: CodeReport, against: list[Versus], short: Mapping[str, str]) -> Table:
    first, *others = [arm for arm in report.arms if arm.name != SEMBLE]
    groups = list(first.groups)
    rows = [(short[first.name], *(f"{first.groups[group].measures[NDCG].mean:.3f}" for group in groups))]
    for arm, versus in zip(others, against, strict=True):
        cells = [(arm.groups[group].measures[NDCG].mean, versus.groups[group][NDCG]) for group in groups]
        rows.append((short[arm.name], *(f"{mean:.3f}{_mark(one)}" for mean, one in cells)))
    return Table((f"{NDCG} (- or +: its interval is below or above the default)", *groups), rows)


def _mark(one: Difference) -> str:
    return " -" if one.high < 0 else " +" if one.low > 0 else ""


def _pair(report: CodeReport) -> CodeReport:
    """The default and semble alone."""
    arms = tuple(arm for arm in report.arms if arm is report.arms[0] or arm.name == SEMBLE)
    return msgspec.structs.replace(report, arms=arms)


def _beside(report: CodeReport, measure: str) -> Table:
    shown = table(_pair(report), measure)
    found = {one.base: one.groups for one in report.differences}.get(SEMBLE)
    header = (measure, *shown.header[1:], *(("difference", "95 % interval") if found else ()))
    if not found:
        return Table(header, shown.rows)
    rows = [
        (*row, f"{found[row[0]][measure].difference:+.4f}", _interval(found[row[0]][measure])) for row in shown.rows
    ]
    return Table(header, rows)


def _interval(one: Difference) -> str:
    return f"{one.low:+.4f} to {one.high:+.4f}"


def _made(whole: CodeReport, root: CodeReport, names: Mapping[str, str], made: Mapping[str, Any]) -> Table:
    loads = {
        f"load on {report.scope}": f"{report.manifest['load_before']} to {report.manifest['load_after']}"
        for report in (whole, root)
    }
    facts = {**made, "versions": whole.manifest["versions"], **loads, **names}
    return Table(("", ""), [(key, str(value)) for key, value in facts.items()])


def kept(report: CodeReport) -> dict[str, Any]:
    """Each set is kept of the default and of semble alone; four digits are enough."""
    first = report.arms[0].name
    value = {key: found for key, found in msgspec.to_builtins(report).items() if key not in NOT_KEPT}
    value["arms"] = [
        {key: found for key, found in arm.items() if key not in BY_SET or arm["name"] in (first, SEMBLE)}
        for arm in value["arms"]
    ]
    rounded: dict[str, Any] = _rounded(value)
    return rounded


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _rounded(found) for key, found in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(found) for found in value]
    return round(value, 4) if isinstance(value, float) else value


def measured(sets: Sequence[CodeSet], scope: Scope, asked: Sequence[str], given: argparse.Namespace) -> CodeReport:
    measurement = measure_code(sets, scope, asked, given.semble, lambda _: print(end=".", flush=True))
    if given.runs:
        (given.runs / scope).mkdir(parents=True, exist_ok=True)
        write_code(measurement, given.runs / scope)
    return measurement.report


def earlier(file: Path) -> CodeReport:
    return msgspec.json.decode(file.read_bytes(), type=CodeReport)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", type=Path)
    parser.add_argument("--semble", type=Path)
    parser.add_argument("--repositories", default="")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--runs", type=Path, help="keep the runs and measures here as well")
    parser.add_argument("--root", type=Path, help="measures.json of the sub-folders, in place of measuring them")
    given = parser.parse_args()
    made, names = {**manifest(), "command": COMMAND}, recipes()
    sets = read_sets(given.sets, [name for name in given.repositories.split(",") if name])
    root = measured(sets, "root", ["default"], given) if given.root is None else earlier(given.root)
    whole = measured(sets, "whole", list(names.values()), given)
    value = {"manifest": made, "recipes": names, "root": kept(root), "whole": kept(whole)}
    (given.out / "code.json").write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    (given.out / "code.md").write_text(as_markdown(page(whole, root, names, made), ""), encoding="utf-8")


if __name__ == "__main__":
    main()
