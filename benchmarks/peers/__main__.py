r"""Compare Trivet with its peers on the same texts and vectors in one run.

PYTHONPATH=benchmarks .venv/bin/python -m peers --data FOLDER --work FOLDER \
    --quality --kills --load
PYTHONPATH=benchmarks .venv/bin/python -m peers --data FOLDER --work FOLDER --times

--data takes the folder of `trivet lab import`. Environments, vectors and answers stay below --work,
so a stopped run can continue. Each part replaces its figures in docs/results/peers.json, which
peers.md is made from. `--times` needs an idle machine.
"""

from __future__ import annotations

import argparse
import json
import os
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from manifest import manifest
from peers.corpora import CORPORA, read
from peers.environments import python_of, versions
from peers.kills import killed
from peers.loads import loaded
from peers.page import COMMAND, page
from peers.process import DriverFailed
from peers.products import ARMS, LEFT_OUT, OURS, PRODUCTS, Arm
from peers.quality import Bench, answers, earlier_answers, figures
from peers.vectors import KeptVectors
from trivet.lab.datasets.dataset import Dataset
from trivet.lab.report.page import as_markdown

RESULTS = Path(__file__).parents[2] / "docs" / "results"
LOADED = "locomo"

Result = dict[str, Any]


def main() -> None:
    given = _options()
    file = given.out / "peers.json"
    result: Result = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    arms = [arm for arm in ARMS if not given.products or arm.product.name in given.products]
    benches = _benches(arms, given.work)
    result["arms"] = {arm.name: {"title": arm.title, "given": arm.given} for arm in ARMS}
    result["products"] = {**result.get("products", {}), **_described(benches)}
    result["left_out"] = dict(LEFT_OUT)
    for part, measure in _parts(given, arms, benches).items():
        result[part] = {**result.get(part, {}), **measure()}
        made = {
            **manifest(),
            "command": f"{COMMAND} --{part}",
            "load": round(os.getloadavg()[1], 1),
        }
        result.setdefault("manifests", {})[part] = made
        file.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    (given.out / "peers.md").write_text(as_markdown(page(result), ""), encoding="utf-8")


def _parts(
    given: argparse.Namespace, arms: Sequence[Arm], benches: Mapping[str, Bench]
) -> dict[str, Callable[[], Result]]:
    turns = read(LOADED, given.data)

    def quality() -> Result:
        return {
            name: _quality(read(name, given.data), given.work, benches) for name in given.corpora
        }

    def kills() -> Result:
        given_vectors = [arm for arm in arms if arm.given]  # A store is as safe with any model.
        return _by_arm(
            "kills",
            given_vectors,
            lambda arm: killed(benches[arm.product.name], arm, turns.documents),
        )

    def load() -> Result:
        return _by_arm(
            "load", arms, lambda arm: _without_times(loaded(benches[arm.product.name], arm, turns))
        )

    def times() -> Result:
        return _by_arm(
            "times", arms, lambda arm: loaded(benches[arm.product.name], arm, turns)["times"]
        )

    return {
        part.__name__: part
        for part in (quality, kills, load, times)
        if getattr(given, part.__name__)
    }


def _described(benches: Mapping[str, Bench]) -> Result:
    return {
        one.name: {
            "title": one.title,
            "setting": one.setting,
            "versions": versions(one, benches[one.name].python),
        }
        for one in PRODUCTS
        if one.name in benches
    }


def _by_arm(part: str, arms: Sequence[Arm], measure: Callable[[Arm], Any]) -> Result:
    found = {}
    for arm in arms:
        print(f"{part}: {arm.title}", flush=True)
        try:
            found[arm.name] = measure(arm)
        except DriverFailed as failed:
            found[arm.name] = {"error": type(failed).__name__}
            traceback.print_exc()
    return found


def _quality(dataset: Dataset, work: Path, benches: Mapping[str, Bench]) -> Result:
    """Include products asked in earlier runs, whose answers are in the work folder."""
    asked = {}
    for arm in ARMS:
        print(f"{dataset.name}: {arm.title}", flush=True)
        name = arm.product.name
        try:
            found = (
                answers(benches[name], arm, dataset)
                if name in benches
                else earlier_answers(work / name, arm, dataset)
            )
        except DriverFailed:
            traceback.print_exc()
        else:
            asked.update({arm.name: found} if found else {})
    if OURS not in asked:
        raise SystemExit(
            f"Cannot compare with {OURS}, which was never measured. Add it to --products."
        )
    return {
        "documents": len(dataset.documents),
        "queries": len(dataset.queries) - len(dataset.unanswerable),
        "dataset_sha256": dataset.fingerprint,
        "arms": figures(dataset, asked, OURS),
    }


def _without_times(figures: Result) -> Result:
    return {name: value for name, value in figures.items() if name != "times"}


def _benches(arms: Sequence[Arm], work: Path) -> dict[str, Bench]:
    vectors = KeptVectors(work / "vectors")
    return {
        arm.product.name: Bench(
            python=python_of(arm.product, work / "venvs"),
            work=work / arm.product.name,
            vectors=vectors,
        )
        for arm in arms
    }


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data", type=Path, required=True, help="the folder of the public collections"
    )
    parser.add_argument(
        "--work", type=Path, required=True, help="where environments, vectors and answers are kept"
    )
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument(
        "--products", nargs="+", choices=[one.name for one in PRODUCTS], help="these alone"
    )
    parser.add_argument("--corpora", nargs="+", choices=CORPORA, default=list(CORPORA))
    parser.add_argument("--quality", action="store_true", help="ask every question of the corpora")
    parser.add_argument("--kills", action="store_true", help="kill -9 in the middle of writes")
    parser.add_argument("--load", action="store_true", help="disk and memory of one large store")
    parser.add_argument(
        "--times", action="store_true", help="the same store's times; on a quiet machine"
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
