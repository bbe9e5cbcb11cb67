"""The soak campaign passes a sound round and detects data loss that is caused behind its back."""

from __future__ import annotations

import os
from collections.abc import Iterator
from random import Random

import pytest

from soak.injectors import kill_writers
from soak.invariants import check
from soak.world import FOLDERS, World, world


@pytest.fixture
def attacked(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    for name in (*FOLDERS, *(name for name in os.environ if name.startswith("TRIVET_"))):
        monkeypatch.setenv(name, os.environ[name])  # so that monkeypatch restores them
    with world("sqlite", Random(1), writers=2, seconds=1) as made:
        kill_writers.inject(made)
        yield made


def test_lost_duplicated_and_purged_writes_are_detected(attacked: World) -> None:
    assert not any(check(attacked, at_the_end=False).values())
    lost, doubled = [
        subject
        for subject, fate in attacked.ledger.fates.items()
        if fate.acknowledged.state == "active"
    ][:2]
    with attacked.open("none") as memory:
        found = {one.content.split()[0]: one for one in memory.engine.store.memories.everything()}
        memory.remember(found[doubled].content)
        memory.purge(found[lost].id)
    attacked.ledger.purged.append(doubled)
    wrong = check(attacked, at_the_end=True)
    told = wrong["every acknowledged write is there once, with its history"]
    assert {one.partition(", acknowledged was")[0] for one in told} == {
        f"{lost} is Said(text='', state='purged')",
        f"{doubled} is there 2 times",
    }
    assert wrong["nothing purged is in any file"] == [
        f"{doubled} was purged, and its letters are still stored"
    ]
    assert wrong["the doctor is clean"] == wrong["a stranger sees nothing"] == []
