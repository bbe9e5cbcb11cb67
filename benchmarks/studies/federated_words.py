r"""Measure what `grep` adds to Trivet or to its dense leg: `trivet lab federation` on corpora.

TRIVET_DATA=data python benchmarks/studies/federated_words.py docs/results/federation.json \
    scifact lihua
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import quote

from embedder import add_embedder, identity

from trivet.lab.datasets.catalog import import_original, imported_folder
from trivet.lab.datasets.dataset import Dataset
from trivet.lab.datasets.plain_layout import save
from trivet.lab.measure.run import environment

CONFIGS = {"trivet": "default", "dense leg alone": "rrf(k=60) | legs(dense)"}


def as_files(dataset: Dataset, folder: Path) -> Path:
    """Write one file per document, like a vault, and return the map from names to ids."""
    folder.mkdir()
    lines = []
    for document in dataset.documents:
        name = quote(document.id, safe="")
        (folder / name).write_text(f"{document.title or ''}\n{document.text}\n", encoding="utf-8")
        lines.append(f"{folder}/{name}\t{document.id}\n")
    map = folder.with_suffix(".tsv")
    map.write_text("".join(lines), encoding="utf-8")
    return map


def settings_of(folder: Path, map: Path) -> dict[str, Any]:
    command = ["grep", "-rniE", "-e", "{words}", str(folder)]
    return {"grep": {"command": command, "format": "lines", "map": str(map), "time_limit_ms": 60_000,
                      "most_bytes": 2**28}}  # fmt: skip


def measured(name: str, config: str, work: Path, embedder: str) -> Any:
    folder = work / name
    if not folder.exists():
        dataset = import_original(name, None)
        imported_folder(name).mkdir(parents=True, exist_ok=True)
        save(dataset, imported_folder(name))
        as_files(dataset, folder)
    federation = json.dumps(settings_of(folder, folder.with_suffix(".tsv")))
    command = [
        sys.executable,
        "-m",
        "trivet.cli",
        "lab",
        "federation",
        name,
        "--member",
        "grep",
        "--config",
        config,
    ]
    command += ["--embedder", embedder]
    done = subprocess.run(
        [*command, "--json"],
        env={**os.environ, "TRIVET_FEDERATION": federation},
        capture_output=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(done.stderr.decode())
    return without_places(json.loads(done.stdout), work)


def without_places(result: Any, work: Path) -> Any:
    """Remove local paths from the result."""
    return json.loads(json.dumps(result).replace(f"{work}/", ""))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", type=Path)
    parser.add_argument("names", nargs="+")
    add_embedder(parser)
    options = parser.parse_args()
    results: dict[str, Any] = {"manifest": environment() | {"embedder": identity(options.embedder)}}
    with tempfile.TemporaryDirectory() as folder:
        for name in options.names:
            results[name] = {
                label: measured(name, config, Path(folder), options.embedder)
                for label, config in CONFIGS.items()
            }
    options.out.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
