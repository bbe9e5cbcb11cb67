"""Tuning a whole store, from its probes to the settings file."""

from __future__ import annotations

import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from support.lab_fixtures import CANARY, SMALL
from trivet import Trivet
from trivet.cli import main
from trivet.lab.tune import adopt
from trivet.lab.tune.adopt import tune_folder
from trivet.lab.tune.probes import Probe
from trivet.lab.tune.search import Space
from trivet.lab.tune.tuning import Tuning, Validation, assign
from trivet.search.recipe import parse_recipe
from trivet.settings import Settings

Run = tuple[Path, Tuning, Validation, list[int]]


@pytest.fixture(scope="module")
def tuned(filled: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """One run over a copy of the store, with what it told of its progress."""
    folder = tmp_path_factory.mktemp("tuned")
    shutil.copytree(filled.parent, folder, dirs_exist_ok=True)
    path = folder / filled.name
    with Trivet.open(settings=Settings(path=str(path), background=False)) as memory:
        tuning = Tuning(memory.engine, space=SMALL)
        done: list[int] = []
        yield path, tuning, tuning.run(done.append), done


def test_each_fold_is_judged_by_a_recipe_chosen_without_it(tuned: Run) -> None:
    _, tuning, found, done = tuned
    folds = assign(tuning.plan.probes, 5, seed=0)
    sizes = [sum(fold == number for fold in folds.values()) for number in range(5)]
    assert max(sizes) - min(sizes) <= 1
    assert sum(done) <= tuning.plan.candidates * len(tuning.plan.probes)
    assert len(found.by_fold) == 5
    assert {gain.kind for gain in found.by_kind} == {probe.kind for probe in tuning.plan.probes}
    assert not found.passed  # the default is good: nothing here can gain three in a hundred and break no case


def test_what_is_kept_is_private(tuned: Run) -> None:
    store, tuning, found, _ = tuned
    folder = adopt.keep_results(store, tuning.plan, found)
    assert folder == tune_folder(store)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    files = sorted(folder.iterdir())
    assert [file.name for file in files] == ["probes.jsonl", "result.json"]
    assert all(stat.S_IMODE(file.stat().st_mode) == 0o600 for file in files)
    assert all(CANARY not in file.read_text(encoding="utf-8") for file in files)
    kept = [msgspec.json.decode(row, type=Probe) for row in files[0].read_text(encoding="utf-8").splitlines()]
    assert tuple(kept) == tuning.plan.probes


@pytest.fixture
def small_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    """The commands as they are over fewer values, for the sake of time."""
    for name, value in {"norms": ("zscore",), "dense_weights": (0.5,), "ks": (), "bs": (), "depths": (50,)}.items():
        monkeypatch.setitem(_DEFAULTS, name, value)
    monkeypatch.setattr("trivet.lab.tune.tuning.Space", lambda: Space(**_DEFAULTS))


_DEFAULTS: dict[str, Any] = {"bonuses": ()}


@pytest.mark.usefixtures("small_grid")
def test_the_command_adopts_on_proof_and_takes_it_back(
    store: Path, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config.parent.mkdir(parents=True)
    poor = str(parse_recipe("rrf(k=1000, dense=0.9, lexical=0.1)"))
    config.write_text(f'recipe = "{poor}"  # hardly listens to words\n')
    assert main(["--path", str(store), "tune", "--json"]) == 0
    found = msgspec.json.decode(capsys.readouterr().out)
    assert found["passed"], found["gate"]
    assert found["applied"] is None
    assert poor in config.read_text()
    assert main(["--path", str(store), "tune", "--apply"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("Plan")
    assert "Adopted in" in shown
    assert "convex(norm=spread" in config.read_text()
    assert config.read_text().endswith("# hardly listens to words\n")
    assert main(["--path", str(store), "tune", "--rollback"]) == 0
    assert poor in config.read_text()


@pytest.mark.usefixtures("small_grid")
def test_the_command_changes_nothing_where_nothing_is_proven(
    store: Path, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--path", str(store), "tune", "--apply"]) == 1
    assert "Adopted in" not in capsys.readouterr().out
    assert not config.exists()
    assert main(["--path", str(store), "tune", "--apply", "--rollback"]) == 2
