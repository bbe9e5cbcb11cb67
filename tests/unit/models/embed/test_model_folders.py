"""Model folders of the package and the tests are complete and fit the wheel."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

import trivet
from support.second_model import MINILM
from trivet.models import WEIGHTS

LARGEST_BYTES = 36_000_000
# All files of the package; the wheel holds 72% of that. Its limit is 90 MB
# (scripts/try_install.py).
LARGEST_PACKAGE_BYTES = 115_000_000
FOLDERS = [*sorted(path for path in WEIGHTS.iterdir() if path.is_dir()), MINILM]


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_folder_has_license_and_notice(folder: Path) -> None:
    assert "Apache License" in (folder / "LICENSE").read_text()
    assert (folder / "NOTICE.md").read_text().startswith("# ")


@pytest.mark.parametrize(
    "folder", [one for one in FOLDERS if (one / "model.onnx").exists()], ids=lambda one: one.name
)
def test_model_matches_its_description(folder: Path) -> None:
    description = json.loads((folder / "model.json").read_text())
    for name, expected in description["sha256"].items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == expected
    assert (folder / "model.onnx").stat().st_size <= LARGEST_BYTES


def test_package_fits_wheel_limit() -> None:
    files = [
        path
        for path in Path(trivet.__file__).parent.rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    ]
    assert sum(path.stat().st_size for path in files) <= LARGEST_PACKAGE_BYTES
