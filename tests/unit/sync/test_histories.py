"""A few histories of laptops and a server over real stores, and faults that they must notice (soak/syncing)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from soak.syncing.faults import FAULTS, planted
from soak.syncing.world import World, make_team

STEPS = 70
MOST_SEEDS = 60
# Each with a seed whose history shows it; `python -m soak.syncing --faults` finds them, and plants the others too.
PLANTED = {
    "a clash overwrites": 39,
    "the loser of a clash is dropped": 39,
    "a repeated operation acts again": 2,
    "an answer is told before it is committed": 32,
    "the place moves on before the items are written": 8,
    "what is refused is dropped": 53,
    "nobody heals a server that was put back": 3,
    "purges are not sent": 2,
    "a full pull deletes what is one's own": 3,
    "what a user may not read is sent": 0,
    "sensitive memories are sent": 29,
    "edits that wait are not put on top": 0,
    "what was taken from a user stays": 0,
    "a purge leaves bytes behind": 2,
    "what is outside of a laptop's scopes is let go unsent": 1,
    "what is outside of a laptop's scopes is deleted": 2,
    "feedback is not sent": 0,
    "redactions are not sent": 20,
    "rights are not checked on the server": 53,
}


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return make_team(tmp_path_factory.mktemp("team"))


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    with TemporaryDirectory(dir=tmp_path) as made:
        yield Path(made)


@pytest.mark.parametrize("seed", [1, 13, 26])
def test_a_history_ends_with_everything_in_its_place(seed: int, folder: Path, team: dict[str, Path]) -> None:
    world = World(seed, folder, team, STEPS)
    world.looks_closely = 1.0
    world.run()


@pytest.mark.parametrize("name", PLANTED)
def test_a_rule_that_is_switched_off_is_noticed(name: str, tmp_path: Path, team: dict[str, Path]) -> None:
    """By the history that is known to show it, or, once that is told otherwise, by one of the next ones."""
    assert name in FAULTS
    assert any(noticed(name, seed, tmp_path, team) for seed in range(PLANTED[name], PLANTED[name] + MOST_SEEDS))


def noticed(name: str, seed: int, tmp_path: Path, team: dict[str, Path]) -> bool:
    with TemporaryDirectory(dir=tmp_path) as folder:
        world = World(seed, Path(folder), team, STEPS)
        try:
            with planted(name, world):
                world.run()
        except (AssertionError, KeyError):
            return True
    return False
