"""The embedder of a study: taken from the command line, and its identity written beside the figures it made."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trivet.models.embed.registry import load

SHIPPED = "bundled"
# all-MiniLM-L6-v2, which the first releases shipped: what came later is compared with it.
MINILM = f"folder:{Path(__file__).parents[2] / 'tests' / 'models' / 'minilm'}"


def add_embedder(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--embedder",
        default=SHIPPED,
        help="whose vectors are measured, as in the settings; bundled if not given",
    )


def identity(embedder: str) -> str:
    """What the vectors were made by. A name such as `bundled` means another model after the next release."""
    model = load(embedder)
    return model.identity if model is not None else embedder


def check_same(results: Mapping[str, Any], embedder: str, output: Path) -> None:
    """Figures of two models are never put into one file: each row there is compared with the others."""
    measured = results.get("manifest", {}).get("embedder")
    if measured is not None and measured != identity(embedder):
        raise SystemExit(
            f"{output} was measured with {measured}, and {embedder} is {identity(embedder)}. "
            "Give another --output, or remove the file to measure everything anew."
        )
