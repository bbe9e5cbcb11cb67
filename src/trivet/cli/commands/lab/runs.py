"""The long-running work of `trivet lab`, with progress bars."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from trivet.cli.terminal import DelayedProgress, write_json_atomically
from trivet.errors import InvalidInput, StoreError
from trivet.lab.datasets import longmemeval
from trivet.lab.datasets.catalog import (
    FROM_FILE,
    find_collection,
    find_dataset,
    import_original,
    imported_folder,
)
from trivet.lab.datasets.dataset import Dataset, dataset_writer
from trivet.lab.datasets.plain_layout import save
from trivet.lab.datasets.pools import find_arms
from trivet.lab.measure.bench import DEPTH, Bench, open_bench
from trivet.lab.measure.delivery import DeliveryReport, Outcome, deliver, summarize_delivery
from trivet.lab.measure.delivery import measure_named as delivery_measure
from trivet.lab.measure.federation import Federation, Federations, measure_federation
from trivet.lab.measure.hit_analysis import LengthReport
from trivet.lab.measure.measures import STANDARD_MEASURES
from trivet.lab.measure.measures import parse as parse_measure
from trivet.lab.measure.recipe_variants import (
    Ablated,
    Sweep,
    ablate,
    ablations,
    grid,
    single_leg_recipes,
    summarise,
)
from trivet.lab.measure.recipe_variants import sweep as sweep_points
from trivet.lab.measure.run import Arm, environment, run_arm, slug, write_arm
from trivet.lab.optional_packages import MEASURING, need
from trivet.lab.report.countings import Countings, count_arm
from trivet.lab.report.saved_runs import PER_QUERY, read_arm, write_grades
from trivet.search.recipe import parse_recipe
from trivet.settings import load_settings
from trivet.settings.systems import check_systems

_delivered = re.compile(r"(?:delivered|found)(?:@\d+)?", re.IGNORECASE)


class ArmSummary(msgspec.Struct, frozen=True, kw_only=True):
    folder: str
    config: str
    recipe: str
    queries: Mapping[str, int]
    overall: Mapping[str, float]
    by_stratum: Mapping[str, Mapping[str, float]]
    times_ms: Mapping[str, Mapping[str, float]]
    lengths: LengthReport
    shown: tuple[str, ...] = ()  # the measures requested with --measure
    left_out: tuple[str, ...] = ()


def run_configs(
    name: str, configs: Sequence[str], out: Path, embedder: str, measures: Sequence[str] = ()
) -> list[ArmSummary]:
    need(*MEASURING)
    for config in configs:
        parse_recipe(config)  # report a misspelled recipe before hours of work
    shown = tuple(dict.fromkeys(measure_named(one) for one in measures))
    dataset = find_dataset(name)
    _check_same_dataset(dataset, make_folder(out))
    write_grades(dataset, out)
    with _opened(dataset, embedder) as bench:
        return [
            _run(bench, number, len(configs), config, out, shown)
            for number, config in enumerate(configs, 1)
        ]


def sweep_grid(
    name: str, template: str, values: Mapping[str, Sequence[str]], out: Path | None, embedder: str
) -> Sweep:
    need(*MEASURING)
    points = grid(template, values)
    if out is not None:
        make_folder(out.parent)
    with _opened(find_dataset(name), embedder) as bench:
        total = len(points) * len(bench.dataset.queries)
        with DelayedProgress(f"{len(points)} recipes", lambda _: total) as progress:
            arms = sweep_points(bench, points, progress)
        result = summarise(bench, template, values, points, arms)
    if out is not None:
        write_json_atomically(out, result)
    return result


def ablate_config(name: str, config: str, embedder: str, out: Path | None = None) -> Ablated:
    need(*MEASURING)
    recipes = len(ablations(config)) + len(single_leg_recipes(config))
    if out is not None:
        make_folder(out.parent)
    with _opened(find_dataset(name), embedder) as bench:
        total = recipes * len(bench.dataset.queries)
        with DelayedProgress(f"{recipes} recipes", lambda _: total) as progress:
            result = ablate(bench, config, progress)
    if out is not None:
        write_json_atomically(out, result)
    return result


def measure_members(
    name: str,
    members: Sequence[str],
    config: str,
    fetch_k: Sequence[int],
    weights: Sequence[float],
    k: int,
    out: Path | None,
    embedder: str,
) -> Federation | Federations:
    need(*MEASURING)
    declared = load_settings().federation
    check_systems(declared)
    for member in members:
        if member not in declared:
            known = ", ".join(declared) or "none"
            raise InvalidInput(
                f"--member {member}: the settings declare no such system. Known systems: {known}."
            )
    chosen = {member: declared[member] for member in members}
    parse_recipe(config, tuple(chosen))
    if out is not None:
        make_folder(out.parent)
    with (
        _opened(find_dataset(name), embedder) as bench,
        DelayedProgress(
            f"asking {', '.join(chosen)}", lambda _: len(chosen) * len(bench.dataset.queries)
        ) as progress,
    ):
        result = measure_federation(bench, chosen, config, fetch_k, weights, k, progress)
    if out is not None:
        write_json_atomically(out, result)
    return result


def measure_delivery(
    name: str, out: Path | None, embedder: str, rerank: str, measures: Sequence[str] = ()
) -> DeliveryReport:
    need(*MEASURING)
    more = [delivery_measure(one) for one in measures]
    datasets = find_collection(name)
    if out is not None:
        make_folder(out.parent)
    outcomes: list[Outcome] = []
    total = sum(len(dataset.queries) for dataset in datasets)
    with DelayedProgress(f"{len(datasets)} stores", lambda _: total) as progress:
        for dataset in datasets:
            with open_bench(dataset, None, embedder, rerank=rerank) as bench:
                outcomes += deliver(bench, progress=progress)
    result = summarize_delivery(outcomes, more)
    if out is not None:
        written = {
            "manifest": {"dataset": name, "rerank": rerank, **environment()},
            **msgspec.to_builtins(result),
        }
        write_json_atomically(out, written)
    return msgspec.structs.replace(result, outcomes=())


def count_arms(folders: Sequence[Path], out: Path | None) -> list[Countings]:
    counted = [count_arm(folder) for folder in find_arms(folders)]
    if out is not None:
        make_folder(out.parent)
        write_json_atomically(out, counted)
    return counted


def parse_variations(options: Sequence[str]) -> dict[str, list[str]]:
    """Parse options such as `k=10,20` into values by slot."""
    values: dict[str, list[str]] = {}
    for option in options:
        slot, equals, listed = option.partition("=")
        slot, items = slot.strip(), [item.strip() for item in listed.split(",")]
        if not equals or not slot or not all(items):
            raise InvalidInput(
                f"--vary {option!r}: name a slot and its values, such as --vary k=10,20,60."
            )
        if slot in values:
            raise InvalidInput(
                f"--vary {option!r}: {slot} was given twice. List all its values at once."
            )
        values[slot] = items
    return values


def make_folder(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(
            f"{folder} cannot be created: {error.strerror}. Name another folder."
        ) from None
    return folder


def _check_same_dataset(dataset: Dataset, out: Path) -> None:
    for path in out.glob(f"*/{PER_QUERY}"):
        if read_arm(path.parent).manifest.dataset_sha256 != dataset.fingerprint:
            raise InvalidInput(
                f"{path.parent} was measured on other data. Name another folder with --out."
            )


def _opened(dataset: Dataset, embedder: str) -> Bench:
    # A document counts twice: written and embedded.
    with DelayedProgress(
        f"loading {dataset.name}", lambda _: 2 * len(dataset.documents)
    ) as progress:
        return open_bench(dataset, embedder=embedder, progress=progress)


def measure_named(text: str) -> str:
    if _delivered.fullmatch(text.strip()):
        raise InvalidInput(
            f"--measure {text}: delivery is measured per surface; use `trivet lab delivery`."
        )
    measure = parse_measure(text)
    if measure.depth is not None and measure.depth > DEPTH:
        raise InvalidInput(
            f"--measure {text}: an arm keeps only {DEPTH} documents per query. Give a smaller "
            "depth."
        )
    return str(measure)


def _run(
    bench: Bench, number: int, of: int, config: str, out: Path, shown: tuple[str, ...]
) -> ArmSummary:
    queries = bench.dataset.queries
    with DelayedProgress(f"{number}/{of} {config}", lambda _: len(queries)) as progress:
        arm = run_arm(bench, config, dict.fromkeys((*STANDARD_MEASURES, *shown)), progress=progress)
    folder = out / slug(number, config)
    write_arm(arm, bench, folder)
    return _arm_summary(arm, folder, shown)


def _arm_summary(arm: Arm, folder: Path, shown: tuple[str, ...]) -> ArmSummary:
    measured = arm.measured
    return ArmSummary(
        folder=str(folder),
        config=arm.config,
        recipe=arm.recipe,
        queries={"all": len(measured.per_query["MRR"])}
        | {name: len(ids) for name, ids in measured.strata.items()},
        overall=measured.overall,
        by_stratum=measured.by_stratum,
        times_ms=arm.times_ms,
        lengths=arm.lengths,
        shown=shown,
        left_out=arm.left_out,
    )


class ImportedCollection(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    folder: str
    documents: int
    queries: int
    judgements: int
    sha256: str
    left_out: int = 0  # questions without evidence

    def summary(self) -> str:
        counts = {
            "documents": self.documents,
            "queries": self.queries,
            "judgements": self.judgements,
        }
        listed = ", ".join(f"{count:,} {what}" for what, count in counts.items())
        left_out = (
            f" {self.left_out:,} questions without evidence were skipped." if self.left_out else ""
        )
        return f"{self.name}: {listed} in {self.folder}.{left_out}"


def import_from_folder(
    name: str, file: Path | None, data: Path | None, out: Path | None, every: int
) -> ImportedCollection:
    if file is not None or every != 1:
        given = "FILE" if file is not None else "--every"
        raise InvalidInput(
            f"{given} works only with {' and '.join(FROM_FILE)}; {name} is read from --data."
        )
    dataset = import_original(name, data)
    folder = make_folder(out or imported_folder(name))
    save(dataset, folder)
    return ImportedCollection(
        name=name,
        folder=str(folder),
        documents=len(dataset.documents),
        queries=len(dataset.queries),
        judgements=len(dataset.judgements),
        sha256=dataset.fingerprint,
    )


def import_from_file(
    name: str, file: Path | None, data: Path | None, out: Path | None, every: int
) -> ImportedCollection:
    if file is None or data is not None:
        raise InvalidInput(
            f"{name} is read from one file, which is not downloaded: trivet lab import {name} "
            f"FILE. FILE is longmemeval_s_cleaned.json, or another file of {longmemeval.SOURCE}."
        )
    if not file.is_file():
        raise InvalidInput(f"{file} does not exist. LongMemEval is at {longmemeval.SOURCE}.")
    size = file.stat().st_size
    folder = make_folder(out or imported_folder(name))
    with (
        DelayedProgress(f"bytes of {file.name}", lambda _: size) as progress,
        dataset_writer(folder) as writer,
    ):
        imported = longmemeval.read(file, writer, FROM_FILE[name], every, progress)
    written = msgspec.structs.asdict(writer.written())
    return ImportedCollection(
        name=name, folder=str(folder), left_out=imported.without_evidence, **written
    )
