"""`trivet lab`: import a test set, run ways to recall on it, compare two of them, gate a change, report.

`trivet lab sweep` and `trivet lab ablate`: many recipes at once, each compared with one.

`trivet lab countings`: one run by everybody's way to count.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from trivet.cli.command import command
from trivet.cli.session import Session
from trivet.cli.terminal import line

DATASET = typer.Argument(
    metavar="DATASET",
    help="A folder in the plain layout, an imported name, `house`, `mixed/dev` or `mixed/test`.",
    show_default=False,
)
EMBEDDER = typer.Option("--embedder", metavar="SPEC", help="The embedder, as in the settings.")
BASE = typer.Argument(
    metavar="BASE", help="The folder of the arm to measure against.", show_default=False
)
CANDIDATE = typer.Argument(
    metavar="CANDIDATE", help="The folder of the arm to judge.", show_default=False
)


@command(
    "lab import",
    "Convert a public test collection to the plain layout.",
    more="Names: cosqa, cranfield, hotpotqa, lihua, lihua-unanswerable, locomo, locomo-sessions, mixed-dialogue, "
    "mixed-everything, mixed-passages, musique, scifact, sessions. The originals are "
    "read from below --data, or the folder that TRIVET_DATA names. longmemeval and longmemeval-sessions are read from "
    "FILE, a question at a time, so that it may be larger than the memory. Nothing is fetched.",
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
        Path | None, typer.Option("--data", metavar="DIR", help="Where the originals are.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="The folder to write; the lab's cache if none."),
    ] = None,
    every: Annotated[
        int, typer.Option("--every", min=1, help="Of LongMemEval: only each so many-th question.")
    ] = 1,
) -> None:
    from trivet.cli.commands.lab.runs import import_from_file, import_from_folder
    from trivet.lab.datasets.catalog import FROM_FILE

    value = (
        import_from_file(name, file, data, out, every)
        if name in FROM_FILE
        else import_from_folder(name, file, data, out, every)
    )
    session.show(value, lambda: [line(value.said())])


@command(
    "lab run",
    "Measure one or more ways to recall on a dataset, and write down everything about them.",
    more="The corpus goes through the real write path and every query through the real read path. Each SPEC gets a "
    "folder <n>-<slug> below --out with run.trec, per_query.jsonl, measures.json and manifest.json. The loaded store "
    "is kept in the cache folder. No time limit applies, and a leg or reranker that does not answer ends the run with "
    "an error that names it and the query. The lengths of hits and answers stand beside each other below the measures.",
    example='trivet lab run house --config default --config "rrf(k=60)" --out runs\n'
    "trivet lab run house --measure any@1 --measure recall@20 --out runs",
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
            help="A measure to show besides nDCG@10: any@1, recall@20, all@5, MRR, ... Repeatable.",
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
    more="Intervals are of 95 % by paired bootstrap; p is of a randomisation test after Holm's correction; "
    "`detectable` is the least true difference so many queries would show in four of five trials.",
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
            help="The measure for the strata and the queries that moved.",
        ),
    ] = "nDCG@10",
    moved: Annotated[
        int, typer.Option("--moved", min=0, max=10, help="How many queries that moved to show.")
    ] = 5,
) -> None:
    from trivet.cli.commands.lab.tables import compared
    from trivet.lab.report.saved_runs import compare_arms

    value = compare_arms(base, candidate, measure, moved)
    session.show(value, lambda: compared(value))


@command(
    "lab gate",
    "Judge whether a change may go in: nothing lost, something gained, nothing broken.",
    more="The exit status is 0 if it may, or the sum of 1: MRR fell by more than 2 %; 2: no measure gained 3 % with "
    "its interval above zero; 4: a query that had something relevant among its first five has not any more; 8: the "
    "median hit is more than 1.5 times as long as the median answer, or as short, and the base's is not. If the "
    "arms cannot be read or compared, the status is 2 as well, with an error on standard error and no verdict on "
    "standard output.",
    example="trivet lab gate baseline/1-default runs/1-default --no-gain-needed",
    uses_store=False,
)
def gate(
    session: Session,
    base: Annotated[Path, BASE],
    candidate: Annotated[Path, CANDIDATE],
    no_gain_needed: Annotated[
        bool, typer.Option("--no-gain-needed", help="Guard against loss alone; status 2 cannot be.")
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
    "Measure what reaches an agent: answers delivered, questions refused, tokens spent, on each surface.",
    more="Asked are the recall tool of MCP, the hook before a prompt and the hook at a session's start, with all that "
    "they gate, cut and shorten. `found` is the share of answers among the first candidates before that. "
    "DATASET is a folder in the plain layout, a folder of such folders, or the packaged `lives`, `lives/dev` or "
    "`lives/test`. From grade 2 on a memory answers.",
    example="trivet lab delivery\ntrivet lab delivery my-stores --out delivery.json",
    uses_store=False,
)
def delivery(
    session: Session,
    dataset: Annotated[str, DATASET] = "lives",
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="FILE", help="Write every outcome and a manifest there, as JSON."
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
            help="A measure to show besides the usual: delivered@K or found@K. Repeatable.",
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
    "Write what was measured as a page: report.html, self-contained, and report.md with its plots beside it.",
    more="FOLDER holds the arms of one dataset as `trivet lab run --out` writes them; the first is what the others are "
    "compared with. Files that `trivet lab sweep --out` wrote into FOLDER are drawn as curves.",
    example="trivet lab report runs\ntrivet lab report runs --out docs/results/house",
    uses_store=False,
)
def report(
    session: Session,
    folder: Annotated[Path, typer.Argument(help="The folder of the arms.", show_default=False)],
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Where to write; FOLDER itself if none."),
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
    "Measure every combination of the values given, and rank them by nDCG@10.",
    more="Each is compared with the first combination, corrected for how many there are. Legs are retrieved once for "
    "each way of retrieving, so fusions are cheap. The best of many looks better than it is: confirm it on other data.",
    example="trivet lab sweep house --recipe 'rrf(k={k}, lexical={w}) | depth({d})' "
    "--vary k=10,20,60 --vary w=1,2 --vary d=20,50 --out runs/rrf.json",
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
            help="The values of a slot. Repeatable.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="FILE", help="A JSON file for the result, which `report` draws."
        ),
    ] = None,
    embedder: Annotated[str, EMBEDDER] = "bundled",
) -> None:
    from trivet.cli.commands.lab.runs import parse_variations, sweep_grid
    from trivet.cli.commands.lab.tables import sweep_lines

    result = sweep_grid(dataset, recipe, parse_variations(vary), out, embedder)
    session.show(result, lambda: sweep_lines(result))


@command(
    "lab ablate",
    "Take each part out of a recipe in turn, and see what it was worth.",
    more="The parts are the legs, the exact-match bonus, the importance prior and the search for all words first. Each "
    "result is compared with the whole recipe. Beside it stands, for each leg that can search alone, where its hits "
    "overlap with those of the recipe without it, and what the rules of overlap say: see `trivet lab federation`.",
    example="trivet lab ablate house --config default\ntrivet lab ablate house --out runs/ablation.json",
    uses_store=False,
)
def ablate(
    session: Session,
    dataset: Annotated[str, DATASET],
    config: Annotated[
        str, typer.Option("--config", metavar="SPEC", help="A recall recipe.")
    ] = "default",
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="A JSON file for the result.")
    ] = None,
    embedder: Annotated[str, EMBEDDER] = "bundled",
) -> None:
    from trivet.cli.commands.lab.runs import ablate_config
    from trivet.cli.commands.lab.tables import ablation_lines

    result = ablate_config(dataset, config, embedder, out)
    session.show(result, lambda: ablation_lines(result))


@command(
    "lab countings",
    "Count what was measured in the ways in which others report: by turn or session, any, a share or all of it.",
    more="FOLDER is an arm that `trivet lab run` has written, or holds some. Found is the memory that holds evidence, "
    "or any memory of its session: a document named SESSION:PLACE belongs to SESSION, as in locomo and longmemeval. "
    "Questions that have no answer (adversarial, abstention) are counted with the others and left out. "
    "docs/results/countings.md says who counts how, and what none of these tell.",
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
        typer.Option(
            "--out", metavar="FILE", help="Write them with their manifests there, as JSON."
        ),
    ] = None,
) -> None:
    from trivet.cli.commands.lab.runs import count_arms
    from trivet.cli.commands.lab.tables import countings_lines

    value = count_arms(folder, out)
    session.show(value, lambda: countings_lines(value))
