"""Several processes can use one file without errors or lost writes and see each other's changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.waiting import heard

from .actions import open_store, words, write_and_recall
from .conftest import Start


@pytest.mark.parametrize(
    ("processes", "count"), [(2, 150), (6, 5)], ids=["two writing long", "six starting together"]
)
def test_no_error_and_no_lost_write(start: Start, path: Path, processes: int, count: int) -> None:
    """All processes start together, before the store exists."""
    names = [f"p{number}" for number in range(processes)]
    pipes = [start(write_and_recall, str(path), name, count)[1] for name in names]
    for pipe in pipes:
        assert heard(pipe) == "ready"
    for pipe in pipes:
        pipe.send("go")
    told = [heard(pipe) for pipe in pipes]
    assert [one for one in told if isinstance(one, str)] == []
    with open_store(str(path)) as trivet:
        assert trivet.list().total == processes * count
        assert all(finding.ok for finding in trivet.doctor())
        for name, ids in zip(names, told, strict=True):
            for number, id in enumerate(ids):
                edited = number % 5 == 3
                said = words(f"{name}edited", number) if edited else words(name, number)
                assert [hit.id for hit in trivet.recall(said).hits] == [id]
                assert trivet.get(id).revision == (2 if edited else 1)
