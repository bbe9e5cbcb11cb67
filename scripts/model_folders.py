"""Folders of the bundled models, with their checksums."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

WEIGHTS = Path(__file__).resolve().parents[1] / "src" / "trivet" / "models" / "weights"


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def read_description(folder: Path) -> dict[str, Any]:
    description: dict[str, Any] = json.loads((folder / "model.json").read_text(encoding="utf-8"))
    return description


def write_description(folder: Path, description: dict[str, Any]) -> None:
    (folder / "model.json").write_text(json.dumps(description, indent=2) + "\n", encoding="utf-8")


def note_sums(folder: Path, *names: str) -> None:
    """Record the checksums of new files in the model's folder."""
    description = read_description(folder)
    description["sha256"] |= {name: sha256(folder / name) for name in names}
    write_description(folder, description)
