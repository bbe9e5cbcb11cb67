"""Measure what a hook adds to a prompt, as multiples of a bare Python start in the same run.

python benchmarks/hooks.py --memories 10000 --output benchmarks/results/hooks.json

The ways take turns in every round, so that noise affects all alike. Each is a whole process that
reads a prompt from standard input; the resident process is warm. Every prompt has its own session,
so each gets memories.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from speed import manifest
from texts import memories, queries
from trivet import Trivet
from trivet.serve.resident import hook_client

ROUNDS = 60
BARE = "python3 -S -c pass"
INSTALLED = "installed hook"
SAMPLES = 2_000

Figures = dict[str, Any]


def main() -> None:
    options = _options()
    with tempfile.TemporaryDirectory(prefix="trivet-") as folder:
        environment = _environment(Path(folder))
        with Trivet.open(environment["TRIVET_PATH"]) as memory:
            memory.remember_many({"content": text} for text in memories(options.memories))
            memory.drain()
        trivet = [sys.executable, "-P", "-m", "trivet.cli"]
        subprocess.run(
            [*trivet, "up", "--background"], env=environment, check=True, stdout=subprocess.DEVNULL
        )
        try:
            times = _measured(options.rounds, environment)
            status = subprocess.run(
                [*trivet, "status", "--json"], env=environment, check=True, capture_output=True
            )
        finally:
            subprocess.run(
                [*trivet, "down"], env=environment, check=True, stdout=subprocess.DEVNULL
            )
    resident = json.loads(status.stdout)["resident"]
    command = f"hooks.py --memories {options.memories} --rounds {options.rounds}"
    result: Figures = {
        "manifest": manifest(
            command, rounds=options.rounds, memories=options.memories, system=platform.system()
        ),
        "ways": {name: _figures(took, times[BARE]) for name, took in times.items()},
        "resident_mb": resident["memory_mb"],
        "hooks": resident["hooks"],
    }
    for name, figures in result["ways"].items():
        print(f"{name:<28}", figures)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def _measured(rounds: int, environment: dict[str, str]) -> dict[str, list[float]]:
    ways = _ways()
    times: dict[str, list[float]] = {name: [] for name in ways}
    for number, query in enumerate(queries(rounds)):
        for name, command in ways.items():
            said = json.dumps(
                {
                    "session_id": f"{name} {number}",
                    "transcript_path": "/home/ana/.claude/projects/shop/1.jsonl",
                    "cwd": "/home/ana/shop",
                    "hook_event_name": "UserPromptSubmit",
                    "prompt": query,
                }
            ).encode()
            given = b"" if name == BARE else said
            start = time.perf_counter()
            ended = subprocess.run(
                command, input=given, capture_output=True, env=environment, check=False
            )
            times[name].append(time.perf_counter() - start)
            assert ended.returncode == 0
    return times


def _ways() -> dict[str, list[str]]:
    """Use the interpreter itself: a launcher would add to the baseline."""
    script = [sys.executable, "-S", "-I", hook_client.__file__]
    return {
        BARE: [sys.executable, "-S", "-c", "pass"],
        INSTALLED: ["/bin/sh", "-c", f"{shlex.join([*script, 'prompt'])} || exit 0"],
        "the same, nothing to tell": [*script, "stop"],
        "trivet hook prompt": [str(Path(sys.executable).with_name("trivet")), "hook", "prompt"],
    }


def _figures(took: list[float], bare: list[float]) -> Figures:
    draw = random.Random(7)
    ratios = []
    for _ in range(SAMPLES):
        rounds = draw.choices(range(len(took)), k=len(took))
        ratios.append(
            statistics.median(took[i] for i in rounds) / statistics.median(bare[i] for i in rounds)
        )
    ratios.sort()
    return {
        "p50_ms": round(1000 * statistics.median(took), 1),
        "p95_ms": round(1000 * sorted(took)[int(0.95 * len(took))], 1),
        "x": round(statistics.median(took) / statistics.median(bare), 2),
        "x_95": [round(ratios[int(0.025 * SAMPLES)], 2), round(ratios[int(0.975 * SAMPLES)], 2)],
    }


def _environment(folder: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TRIVET_")}
    places = {
        "XDG_RUNTIME_DIR": folder,
        "XDG_DATA_HOME": folder / "data",
        "XDG_CONFIG_HOME": folder / "config",
    }
    return {
        **kept,
        **{name: str(place) for name, place in places.items()},
        "TRIVET_PATH": str(folder / "memory.db"),
    }


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memories", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results/hooks.json"))
    return parser.parse_args()


if __name__ == "__main__":
    main()
