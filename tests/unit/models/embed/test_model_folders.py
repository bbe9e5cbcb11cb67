"""The folders of models in the package, and the one of the tests: whole, and never too large for a wheel."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

import trivet
from support.second_model import MINILM
from trivet.models import WEIGHTS

LARGEST_BYTES = 36_000_000
# All files of the package, of which the wheel has 72 %. Its bar is 90 MB (scripts/try_install.py).
LARGEST_PACKAGE_BYTES = 115_000_000
FOLDERS = [*sorted(path for path in WEIGHTS.iterdir() if path.is_dir()), MINILM]


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_folder_says_whose_it_is(folder: Path) -> None:
    assert "Apache License" in (folder / "LICENSE").read_text()
    assert (folder / "NOTICE.md").read_text().startswith("# ")


@pytest.mark.parametrize(
    "folder", [one for one in FOLDERS if (one / "model.onnx").exists()], ids=lambda one: one.name
)
def test_a_model_is_the_one_its_description_tells_of(folder: Path) -> None:
    description = json.loads((folder / "model.json").read_text())
    for name, expected in description["sha256"].items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == expected
    assert (folder / "model.onnx").stat().st_size <= LARGEST_BYTES


def test_the_package_stays_small_enough_for_its_wheel() -> None:
    files = [
        path
        for path in Path(trivet.__file__).parent.rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    ]
    assert sum(path.stat().st_size for path in files) <= LARGEST_PACKAGE_BYTES
