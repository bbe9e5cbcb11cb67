"""Measurement of one recipe on one dataset, with a manifest to repeat it."""

from __future__ import annotations

import json
import platform
import re
import statistics
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import msgspec

from trivet.lab.datasets.dataset import Query
from trivet.lab.measure.bench import DEPTH, Bench
from trivet.lab.measure.complete_retrieval import left_out
from trivet.lab.measure.hit_analysis import LengthReport, lengths
from trivet.lab.measure.measures import STANDARD_MEASURES, Measured, Run, measure
from trivet.memory.answer.decision import Decision, Stopwatch
from trivet.search.recipe import parse_recipe
from trivet.types import Progress

# Hits per query in per_query.jsonl, with their score in every leg.
TRACED_HITS = 10
PACKAGES = ("trivet", "numpy", "onnxruntime", "tokenizers", "msgspec", "PyStemmer")


class Arm(msgspec.Struct, frozen=True, kw_only=True):
    config: str
    recipe: str
    run: Run
    traces: Mapping[str, list[dict[str, Any]]]
    measured: Measured
    times_ms: Mapping[str, Mapping[str, float]]
    lengths: LengthReport
    # Legs that cannot search without an embedder.
    left_out: tuple[str, ...] = ()


def run_arm(
    bench: Bench,
    config: str,
    measures: Iterable[str] = STANDARD_MEASURES,
    depth: int = DEPTH,
    progress: Progress | None = None,
    **options: Any,
) -> Arm:
    """Ask every query; `options` go to each recall, such as collapse=False."""
    absent = left_out(bench.trivet.engine, parse_recipe(config))
    recipe = str(parse_recipe(config))
    run: dict[str, list[tuple[str, float]]] = {}
    traces: dict[str, list[dict[str, Any]]] = {}
    times: dict[str, list[float]] = {}
    for query in bench.dataset.queries:
        watch = Stopwatch()
        decision = bench.ask(query, recipe, depth, watch, judge=False, **options)
        after_legs = sum(took for stage, took in watch.stages_ms.items() if stage != "legs")
        times.setdefault("decide", []).append(after_legs)
        run[query.id] = _strictly_decreasing(bench, decision)
        traces[query.id] = _trace(bench, decision)
        if progress is not None:
            progress(1)
    for leg in parse_recipe(config).legs:
        if leg not in absent:
            times[f"leg {leg}"] = bench.legs.leg_times(leg)
    return Arm(
        config=config,
        recipe=recipe,
        run=run,
        traces=traces,
        measured=measure(bench.dataset, run, measures),
        times_ms={name: _spread(values) for name, values in times.items()},
        lengths=lengths(bench.dataset, run),
        left_out=absent,
    )


def write_arm(arm: Arm, bench: Bench, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    rows = (
        f"{query} Q0 {document} {rank} {score:.9f} trivet\n"
        for query, answer in arm.run.items()
        for rank, (document, score) in enumerate(answer, 1)
    )
    (folder / "run.trec").write_text("".join(rows), encoding="utf-8")
    lines = (
        json.dumps(_query_line(arm, query), ensure_ascii=False) + "\n"
        for query in bench.dataset.queries
    )
    (folder / "per_query.jsonl").write_text("".join(lines), encoding="utf-8")
    means = {
        "overall": arm.measured.overall,
        "by_stratum": arm.measured.by_stratum,
        "times_ms": arm.times_ms,
    }
    _write_json(folder / "measures.json", {**means, "lengths": msgspec.to_builtins(arm.lengths)})
    _write_json(folder / "manifest.json", manifest(bench, arm))


def slug(number: int, config: str) -> str:
    words = re.sub(r"[^a-z0-9]+", "-", config.lower()).strip("-")
    return f"{number}-{words[:60].strip('-')}"


def manifest(bench: Bench, arm: Arm) -> dict[str, Any]:
    serving = bench.trivet.engine.embedding.serving()
    return {
        "config": arm.config,
        "recipe": arm.recipe,
        "dataset": bench.dataset.name,
        "dataset_sha256": bench.dataset.fingerprint,
        "documents": len(bench.dataset.documents),
        "queries": len(bench.dataset.queries),
        "embedder": serving.identity if serving else None,
        "left_out": list(arm.left_out),
        "settings": msgspec.to_builtins(msgspec.structs.replace(bench.trivet.settings, path="")),
        "times_ms": arm.times_ms,
        **environment(),
    }


def environment() -> dict[str, Any]:
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parent,
        check=False,
    )
    return {
        "commit": commit.stdout.strip() or None,
        "seed": 0,
        "python": platform.python_version(),
        "versions": {package: found for package in PACKAGES if (found := _version(package))},
        "date": time.strftime("%Y-%m-%d"),
    }


def _strictly_decreasing(bench: Bench, decision: Decision) -> list[tuple[str, float]]:
    """Lower equal scores, so that another tool cannot reorder ties."""
    answer: list[tuple[str, float]] = []
    for hit in decision.hits:
        score = hit.score if not answer else min(hit.score, answer[-1][1] - 1e-9)
        answer.append((bench.name_of(hit.memory.id), score))
    return answer


def _trace(bench: Bench, decision: Decision) -> list[dict[str, Any]]:
    return [
        {
            "document": bench.name_of(hit.memory.id),
            "score": round(hit.score, 4),
            "legs": {
                part.leg: {"rank": part.rank, "score": round(part.score, 4)}
                for part in hit.fused.contributions
            },
            "exactness": hit.exactness,
            "prior": round(hit.prior, 3),
        }
        for hit in decision.hits[:TRACED_HITS]
    ]


def _query_line(arm: Arm, query: Query) -> dict[str, Any]:
    per_query = arm.measured.per_query
    values = {
        name: round(by_query[query.id], 6)
        for name, by_query in per_query.items()
        if query.id in by_query
    }
    line = {"query": query.id, "text": query.text, "measures": values, "top": arm.traces[query.id]}
    return line | ({"stratum": query.stratum} if query.stratum else {})


def _spread(values: Sequence[float]) -> dict[str, float]:
    ordered = sorted(values) or [0.0]
    return {
        "p50": round(statistics.median(ordered), 3),
        "p95": round(ordered[int(len(ordered) * 0.95)], 3),
    }


def _write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
