"""The embedder of a study, from the command line; its identity accompanies the figures."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trivet.models.embed.registry import load

SHIPPED = "bundled"
# all-MiniLM-L6-v2, which the first releases shipped, for comparison.
MINILM = f"folder:{Path(__file__).parents[2] / 'tests' / 'models' / 'minilm'}"


def add_embedder(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--embedder",
        default=SHIPPED,
        help="embedder to measure, as in the settings (default: bundled)",
    )


def identity(embedder: str) -> str:
    """Return the model's identity. A name such as `bundled` changes meaning with releases."""
    model = load(embedder)
    return model.identity if model is not None else embedder


def check_same(results: Mapping[str, Any], embedder: str, output: Path) -> None:
    """Refuse to mix figures of two models in one file, whose rows are compared."""
    measured = results.get("manifest", {}).get("embedder")
    if measured is not None and measured != identity(embedder):
        raise SystemExit(
            f"{output} was measured with {measured}, and {embedder} is {identity(embedder)}. "
            "Give another --output, or remove the file to measure everything again."
        )
