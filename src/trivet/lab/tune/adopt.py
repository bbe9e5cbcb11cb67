"""Adopting a recipe in the user's own settings, and taking it back."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import msgspec

from trivet.clock import now
from trivet.errors import Conflict, InvalidInput, NotFound, TrivetError
from trivet.lab.read_files import json_lines
from trivet.lab.tune.folder import open_folder, tune_folder, write_whole
from trivet.lab.tune.plan import Plan
from trivet.lab.tune.toml_line import read_text, value_in, write_setting
from trivet.lab.tune.validate import Validation
from trivet.settings import config_path

HISTORY = "history.jsonl"
VARIABLE = "TRIVET_RECIPE"


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the history. `before` is None where the settings named no recipe."""

    at: str
    action: Literal["applied", "rolled-back"]
    file: str
    before: str | None
    after: str | None


def keep_results(store: Path, plan: Plan, validation: Validation) -> Path:
    """Writes the probes and what was found into the private folder, and nowhere else."""
    folder = open_folder(store)
    lines = b"".join(msgspec.json.encode(probe) + b"\n" for probe in plan.probes)
    write_whole(folder / "probes.jsonl", lines)
    result = {
        "at": now(),
        "plan": {**msgspec.structs.asdict(msgspec.structs.replace(plan, probes=())), "kinds": plan.kinds},
        "validation": validation,
        "passed": validation.passed,
    }
    write_whole(folder / "result.json", msgspec.json.format(msgspec.json.encode(result), indent=1) + b"\n")
    return folder


def apply(store: Path, recipe: str, environment: Mapping[str, str] | None = None) -> Change:
    """Writes the recipe into the user's settings; what was there is on file before it is replaced."""
    environment = os.environ if environment is None else environment
    if VARIABLE in environment:
        raise InvalidInput(
            f"{VARIABLE} is set and wins over the settings file, so a recipe there would have no effect."
        )
    file = config_path(environment)
    before = value_in(read_text(file), "recipe")
    change = Change(at=now(), action="applied", file=str(file), before=before, after=recipe)
    history = _history(store)
    _write_history(store, [*history, change])
    try:
        write_setting(file, "recipe", recipe)
    except TrivetError:
        _write_history(store, history)
        raise
    return change


def roll_back(store: Path, environment: Mapping[str, str] | None = None) -> Change:
    """Puts back what was there before the last apply, unless someone has changed it since."""
    environment = os.environ if environment is None else environment
    history = _history(store)
    undone = sum(change.action == "rolled-back" for change in history)
    applied = [change for change in history if change.action == "applied"]
    if undone >= len(applied):
        raise NotFound("There is no tuning of this store to roll back.")
    last = _last_standing(history)
    file = Path(last.file)
    found = value_in(read_text(file), "recipe")
    if found != last.after:
        raise Conflict(
            f"The recipe in {file} is not the one that tuning wrote, so it was changed since and stays: {found!r}. "
            f"Before the tuning it was {json.dumps(last.before) if last.before else 'not set'}."
        )
    write_setting(file, "recipe", last.before)
    change = Change(at=now(), action="rolled-back", file=last.file, before=last.after, after=last.before)
    _write_history(store, [*history, change])
    return change


def _last_standing(history: list[Change]) -> Change:
    standing: list[Change] = []
    for change in history:
        if change.action == "applied":
            standing.append(change)
        else:
            standing.pop()
    return standing[-1]


def _history(store: Path) -> list[Change]:
    path = tune_folder(store) / HISTORY
    return [change for _, change in json_lines(path, Change)] if path.exists() else []


def _write_history(store: Path, changes: list[Change]) -> None:
    data = b"".join(msgspec.json.encode(change) + b"\n" for change in changes)
    write_whole(open_folder(store) / HISTORY, data)
