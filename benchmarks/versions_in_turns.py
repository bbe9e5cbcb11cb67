r"""Compare two versions of Trivet on the same memories, taking turns question by question.

git worktree add /tmp/before COMMIT
python benchmarks/versions_in_turns.py /tmp/before --stores /tmp/trivet-speed/10000.db \
    --output turns.json

Noise affects both alike, so this shows changes of a few percent that two runs of speed.py would
not. Each turn finds cold caches, so figures differ from those of speed.py. The version before must
be able to read the store. Each version gets a migrated copy with rebuilt word index. Answers are
compared too: ids, and scores to the ninth digit.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from manifest import manifest
from texts import queries

HERE = Path(__file__).parents[1]
QUERIES = 300
WARM = 60
# Answers a query per line with milliseconds by clock and processor, stages, ids and scores.
ASKED = """
import json, sys, time
from trivet import Trivet
with Trivet.open(sys.argv[1], background=False, changes="off", rerank=sys.argv[2]) as trivet:
    trivet.reindex(vectors=False, graph=False)
    trivet.drain()
    trivet.engine.store.upkeep.renew_index()
with Trivet.open(sys.argv[1], background=False, changes="off", rerank=sys.argv[2]) as trivet:
    print("ready", flush=True)
    for line in sys.stdin:
        began, used = time.perf_counter(), time.process_time()
        answer = trivet.recall(line.strip())
        took, used = time.perf_counter() - began, time.process_time() - used
        found = [(hit.id, round(hit.score, 9)) for hit in answer.hits]
        print(json.dumps([took * 1000, used * 1000, answer.stages_ms, found]), flush=True)
"""
Answer = list[Any]


class Version:
    def __init__(self, tree: Path, store: Path, copy: Path, rerank: str) -> None:
        for file in store.parent.glob(f"{store.name}*"):
            if file.is_file():
                shutil.copyfile(file, copy.with_name(file.name))
        command = [sys.executable, "-c", ASKED, str(copy), rerank]
        environment = {**os.environ, "PYTHONPATH": str(tree / "src")}
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        assert self._line() == "ready"

    def ask(self, query: str) -> Answer:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{query}\n")
        self._process.stdin.flush()
        answer: Answer = json.loads(self._line())
        return answer

    def close(self) -> None:
        self._process.communicate()

    def _line(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline().strip()
        if not line:
            raise SystemExit("a version ended without an answer; its output is above")
        return line


def main() -> None:
    given = _options()
    given.work.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=given.work) as work:
        figures = {
            store.name: _in_turns(given, store, Path(work) / store.stem) for store in given.stores
        }
    before = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=given.before, capture_output=True, text=True
    )
    told = {
        **manifest(),
        "before": before.stdout.strip(),
        "queries": given.queries,
        "rerank": given.rerank,
    }
    given.output.write_text(
        json.dumps({"manifest": told, "stores": figures}, indent=1) + "\n", encoding="utf-8"
    )


def _in_turns(given: argparse.Namespace, store: Path, work: Path) -> dict[str, Any]:
    with ExitStack() as running:
        versions = []
        for name, tree in (("before", given.before), ("after", HERE)):
            (work / name).mkdir(parents=True)
            version = Version(tree, store, work / name / store.name, given.rerank)
            running.callback(version.close)
            versions.append(version)
        asked = queries(given.queries)
        for query in asked[:WARM]:
            for version in versions:
                version.ask(query)
        pairs = []
        for number, query in enumerate(asked):
            order = versions if number % 2 else versions[::-1]
            answers = {version: version.ask(f"{query} {number + 500}") for version in order}
            pairs.append([answers[version] for version in versions])
    before, after = ([pair[at] for pair in pairs] for at in range(2))
    figures = {
        "wall ms": _compared([one[0] for one in before], [one[0] for one in after]),
        "processor ms": _compared([one[1] for one in before], [one[1] for one in after]),
        **{
            f"stage {stage}": _compared(
                [one[2].get(stage, 0.0) for one in before],
                [one[2].get(stage, 0.0) for one in after],
            )
            for stage in before[0][2]
        },
        "different answers": sum(one[3] != other[3] for one, other in pairs),
    }
    print(store.name, json.dumps(figures), flush=True)
    return figures


def _compared(before: Sequence[float], after: Sequence[float]) -> dict[str, float]:
    ratios = [late / early for early, late in zip(before, after, strict=True) if early]
    return {
        **{
            f"p50 {name}": round(statistics.median(values), 2)
            for name, values in _named(before, after)
        },
        **{
            f"p95 {name}": round(sorted(values)[int(0.95 * len(values))], 2)
            for name, values in _named(before, after)
        },
        "median of after / before": round(statistics.median(ratios), 3) if ratios else 1.0,
    }


def _named(before: Sequence[float], after: Sequence[float]) -> list[tuple[str, Sequence[float]]]:
    return [("before", before), ("after", after)]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "before", type=Path, help="a checkout of the version before; this one is the version after"
    )
    parser.add_argument("--stores", type=Path, nargs="+", required=True)
    parser.add_argument("--queries", type=int, default=QUERIES)
    parser.add_argument("--rerank", default="off")
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--output", type=Path, required=True)
    return parser.parse_args()


if __name__ == "__main__":
    main()
