"""Segments find chunks by term and definitions by name, and survive snapshots."""

from pathlib import Path

import numpy as np
import pytest

from trivet.analyse.terms import hashed
from trivet.code.index.segment import Segment
from trivet.code.index.snapshot import load_snapshot, save_snapshot

from ..trees import parsed, tree


@pytest.fixture
def segment() -> Segment:
    return tree(
        {
            "src/retry.py": parsed(
                ("parse_retry", "retry after seconds"), ("sleep", "seconds seconds")
            ),
            "src/app.py": parsed(("main", "run the app")),
        }
    )


def test_term_finds_its_chunks(segment: Segment) -> None:
    span = segment.words.span(hashed("second"))

    assert segment.words.holders[span].tolist() == [0, 1]
    assert segment.words.counts[span].tolist() == [1, 2]
    assert segment.words.span(hashed("nowhere")) == slice(0, 0)


def test_name_finds_its_definition(segment: Segment) -> None:
    (row,) = segment.symbols.rows("parseretry")

    assert segment.symbols.name.at(row) == "parse_retry"
    assert segment.path.at(int(segment.file[segment.symbols.chunk[row]])) == "src/retry.py"


def test_empty_tree_is_a_segment() -> None:
    empty = tree({})

    assert empty.chunks == 0
    assert len(empty.path) == 0


def test_snapshot_round_trips(segment: Segment, tmp_path: Path) -> None:
    save_snapshot(tmp_path / "a.snapshot", segment)

    loaded = load_snapshot(tmp_path / "a.snapshot")

    assert loaded is not None
    assert loaded.path.at(1) == "src/app.py"
    assert loaded.symbols.name.at(0) == segment.symbols.name.at(0)
    np.testing.assert_array_equal(loaded.words.holders, segment.words.holders)


@pytest.mark.parametrize("damage", ["cut", "changed", "empty", "text"])
def test_damaged_snapshot_is_ignored(segment: Segment, tmp_path: Path, damage: str) -> None:
    file = tmp_path / "a.snapshot"
    save_snapshot(file, segment)
    data = file.read_bytes()
    file.write_bytes(
        {
            "cut": data[:-1],
            "changed": data[:20] + b"x" + data[21:],
            "empty": b"",
            "text": b"hello" * 99,
        }[damage]
    )

    assert load_snapshot(file) is None


def test_missing_snapshot_is_none(tmp_path: Path) -> None:
    assert load_snapshot(tmp_path / "none") is None
