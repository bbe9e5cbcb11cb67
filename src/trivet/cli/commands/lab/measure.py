"""Commands of `trivet lab` that measure, compare and report recall recipes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from trivet.cli.command import command
from trivet.cli.session import Session
from trivet.cli.terminal import line

DATASET = typer.Argument(
    metavar="DATASET",
    help="A folder in the plain layout, an imported collection, `house`, `mixed/dev` or "
    "`mixed/test`.",
    show_default=False,
)
EMBEDDER = typer.Option("--embedder", metavar="SPEC", help="The embedder, as in the settings.")
BASE = typer.Argument(metavar="BASE", help="The folder of the baseline arm.", show_default=False)
CANDIDATE = typer.Argument(
    metavar="CANDIDATE", help="The folder of the arm to compare with it.", show_default=False
)


@command(
    "lab import",
    "Convert a public test collection to the plain layout.",
    more="Collections: cosqa, cranfield, hotpotqa, lihua, lihua-unanswerable, locomo, "
    "locomo-sessions, mixed-dialogue, mixed-everything, mixed-passages, musique, scifact, "
    "sessions. Their originals are read from --data, or from the folder in TRIVET_DATA; "
    "longmemeval and longmemeval-sessions from FILE, which may be larger than the memory. "
    "Nothing is downloaded.",
    example="trivet lab import scifact --data originals\n"
    "trivet lab import longmemeval longmemeval_s_cleaned.json --every 10 --out lme",
    uses_store=False,
)
def import_collection(
    session: Session,
    name: Annotated[str, typer.Argument(help="The collection.", show_default=False)],
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="[FILE]", help="LongMemEval's file, plain or gzipped.", show_default=False
        ),
    ] = None,
    data: Annotated[
        Path | None, typer.Option("--data", metavar="DIR", help="The folder of the originals.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="DIR", help="The folder to write; default: in the lab's cache."
        ),
    ] = None,
    every: Annotated[
        int,
        typer.Option(
            "--every", min=1, metavar="NUMBER", help="LongMemEval only: keep every Nth question."
        ),
    ] = 1,
) -> None:
    from trivet.cli.commands.lab.runs import import_from_file, import_from_folder
    from trivet.lab.datasets.catalog import FROM_FILE

    value = (
        import_from_file(name, file, data, out, every)
        if name in FROM_FILE
        else import_from_folder(name, file, data, out, every)
    )
    session.show(value, lambda: [line(value.summary())])


@command(
    "lab run",
    "Measure one or more recipes on a dataset and save every detail.",
    more="Each SPEC gets a folder N-SLUG in --out with run.trec, per_query.jsonl, measures.json "
    "and manifest.json. The cache folder keeps the loaded store. A leg or reranker that does not "
    "answer within ten minutes ends the run.",
    example="trivet lab run house --config default --config 'rrf(k=60)' --measure recall@20 "
    "--out runs",
    uses_store=False,
)
def run(
    session: Session,
    dataset: Annotated[str, DATASET],
    out: Annotated[
        Path,
        typer.Option("--out", metavar="DIR", help="The folder for the arms.", show_default=False),
    ],
    config: Annotated[
        list[str] | None,
        typer.Option(
            "--config",
            metavar="SPEC",
            help="A recall recipe, or `default`. Repeatable.",
            show_default=False,
        ),
    ] = None,
    measure: Annotated[
        list[str] | None,
        typer.Option(
            "--measure",
            metavar="NAME",
            help="Another measure to show: any@1, recall@20, all@5, MRR, ... Repeatable.",
            show_default=False,
        ),
    ] = None,
    embedder: Annotated[str, EMBEDDER] = "bundled",
) -> None:
    from trivet.cli.commands.lab.runs import run_configs
    from trivet.cli.commands.lab.tables import run_lines

    arms = run_configs(dataset, config or ["default"], out, embedder, measure or ())
    session.show(arms, lambda: run_lines(arms))


@command(
    "lab compare",
    "Compare two arms query by query: is the difference more than chance?",
    more="Intervals are 95 % by paired bootstrap; p is from a randomization test after Holm's "
    "correction. docs/lab.md explains the columns.",
    example="trivet lab compare runs/1-default runs/2-rrf-k-60",
    uses_store=False,
)
def compare(
    session: Session,
    base: Annotated[Path, BASE],
    candidate: Annotated[Path, CANDIDATE],
    measure: Annotated[
        str,
        typer.Option(
            "--measure",
            metavar="NAME",
            help="The measure for strata and moved queries.",
        ),
    ] = "nDCG@10",
    moved: Annotated[
        int,
        typer.Option(
            "--moved",
            min=0,
            max=10,
            metavar="NUMBER",
            help="The number of most changed queries to show.",
        ),
    ] = 5,
) -> None:
    from trivet.cli.commands.lab.tables import compared
    from trivet.lab.report.saved_runs import compare_arms

    value = compare_arms(base, candidate, measure, moved)
    session.show(value, lambda: compared(value))


@command(
    "lab gate",
    "Judge whether a change may be merged: nothing lost, something gained, nothing broken.",
    more="The exit status is 0 if it may, or the sum of 1: MRR fell by more than 2 %; 2: no "
    "measure gained 3 % with an interval above zero; 4: a query lost the last relevant hit in "
    "its first five; 8: the median hit, unlike the baseline's, is over 1.5 times as long or as "
    "short as the median answer. If the arms cannot be compared, standard output is empty.",
    example="trivet lab gate baseline/1-default runs/1-default --no-gain-needed",
    uses_store=False,
)
def gate(
    session: Session,
    base: Annotated[Path, BASE],
    candidate: Annotated[Path, CANDIDATE],
    no_gain_needed: Annotated[
        bool, typer.Option("--no-gain-needed", help="Check only for losses; status 2 cannot occur.")
    ] = False,
) -> int:
    from trivet.cli.commands.lab.tables import verdict_lines
    from trivet.lab.measure.gate import gate as judge
    from trivet.lab.optional_packages import MEASURING, need
    from trivet.lab.report.saved_runs import read_pair

    need(*MEASURING)
    before, after = read_pair(base, candidate)
    lengths = (before.lengths, after.lengths)
    verdict = judge(
        before.measured, after.measured, gain_needed=not no_gain_needed, lengths=lengths
    )
    value = {"passed": verdict.passed, "code": verdict.code, "reasons": verdict.reasons}
    session.show(
        {**value, "broken": verdict.broken, "mended": verdict.mended},
        lambda: verdict_lines(verdict),
    )
    return verdict.code


@command(
    "lab delivery",
    "Measure what reaches an agent on each surface: answers delivered, questions refused, tokens "
    "spent.",
    more="The surfaces are MCP's recall tool and the hooks before a prompt and at a session's "
    "start, with all their limits. `found` is the share of answers among the first candidates "
    "before those limits. DATASET may also be a folder of datasets, or the packaged `lives`, "
    "`lives/dev` or `lives/test`. Grade 2 or more is an answer.",
    example="trivet lab delivery\ntrivet lab delivery my-stores --out delivery.json",
    uses_store=False,
)
def delivery(
    session: Session,
    dataset: Annotated[str, DATASET] = "lives",
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="FILE", help="The JSON file for every outcome and a manifest."
        ),
    ] = None,
    embedder: Annotated[str, EMBEDDER] = "bundled",
    rerank: Annotated[
        str, typer.Option("--rerank", metavar="SPEC", help="The reranker, as in the settings.")
    ] = "auto",
    measure: Annotated[
        list[str] | None,
        typer.Option(
            "--measure",
            metavar="NAME",
            help="Another measure to show: delivered@K or found@K. Repeatable.",
            show_default=False,
        ),
    ] = None,
) -> None:
    from trivet.cli.commands.lab.runs import measure_delivery
    from trivet.cli.commands.lab.tables import delivery_lines

    value = measure_delivery(dataset, out, embedder, rerank, measure or ())
    session.show(value, lambda: delivery_lines(value, measure or ()))


@command(
    "lab report",
    "Write a report of the arms: report.html, self-contained, and report.md with its plots.",
    more="FOLDER holds the arms of one dataset, as `trivet lab run --out` writes them; the first "
    "is the baseline. Results of `trivet lab sweep --out` in FOLDER are drawn as curves.",
    example="trivet lab report runs --out docs/results/house",
    uses_store=False,
)
def report(
    session: Session,
    folder: Annotated[Path, typer.Argument(help="The folder of the arms.", show_default=False)],
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="The folder to write; default: FOLDER."),
    ] = None,
) -> None:
    from trivet.cli.commands.lab.runs import make_folder
    from trivet.lab.optional_packages import MEASURING, PLOTTING, need
    from trivet.lab.report.report import write_report

    need(*MEASURING, *PLOTTING)
    files = write_report(folder, make_folder(out or folder))
    session.show(
        {"files": [str(file) for file in files]}, lambda: [line(f"Wrote {file}") for file in files]
    )


@command(
    "lab sweep",
    "Measure every combination of the given values, ranked by nDCG@10.",
    more="Each combination is compared with the first, corrected for their number. The best of "
    "many looks better than it is: confirm it on other data.",
    example="trivet lab sweep house --recipe 'rrf(k={k}, lexical={w})' "
    "--vary k=10,20,60 --vary w=1,2 --out runs/rrf.json",
    uses_store=False,
)
def sweep(
    session: Session,
    dataset: Annotated[str, DATASET],
    recipe: Annotated[
        str,
        typer.Option(
            "--recipe", metavar="TEMPLATE", help="A recipe with {slots}.", show_default=False
        ),
    ],
    vary: Annotated[
        list[str],
        typer.Option(
            "--vary",
            metavar="SLOT=A,B,...",
            help="The values of one slot. Repeatable.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="The JSON file to write, which `report` draws."),
    ] = None,
    embedder: Annotated[str, EMBEDDER] = "bundled",
) -> None:
    from trivet.cli.commands.lab.runs import parse_variations, sweep_grid
    from trivet.cli.commands.lab.tables import sweep_lines

    result = sweep_grid(dataset, recipe, parse_variations(vary), out, embedder)
    session.show(result, lambda: sweep_lines(result))


@command(
    "lab ablate",
    "Remove each part of a recipe in turn and measure what it was worth.",
    more="The parts are the legs, the exact-match bonus, the importance prior and the first "
    "search for all words. For each leg that can search alone, it also judges the overlap with "
    "the others (docs/lab.md).",
    example="trivet lab ablate house --out runs/ablation.json",
    uses_store=False,
)
def ablate(
    session: Session,
    dataset: Annotated[str, DATASET],
    config: Annotated[
        str, typer.Option("--config", metavar="SPEC", help="A recall recipe.")
    ] = "default",
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="The JSON file to write.")
    ] = None,
    embedder: Annotated[str, EMBEDDER] = "bundled",
) -> None:
    from trivet.cli.commands.lab.runs import ablate_config
    from trivet.cli.commands.lab.tables import ablation_lines

    result = ablate_config(dataset, config, embedder, out)
    session.show(result, lambda: ablation_lines(result))


@command(
    "lab countings",
    "Count saved runs by others' definitions: by turn or session, and any, a share or all of it.",
    more="A document named SESSION:PLACE belongs to SESSION, as in locomo and longmemeval. "
    "Questions without an answer are counted both with the others and left out. "
    "docs/results/countings.md says who counts how.",
    example="trivet lab countings runs --out countings.json",
    uses_store=False,
)
def countings(
    session: Session,
    folder: Annotated[
        list[Path],
        typer.Argument(
            metavar="FOLDER...", help="The arms, or folders of arms.", show_default=False
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="The JSON file to write, with the manifests."),
    ] = None,
) -> None:
    from trivet.cli.commands.lab.runs import count_arms
    from trivet.cli.commands.lab.tables import countings_lines

    value = count_arms(folder, out)
    session.show(value, lambda: countings_lines(value))
