"""Adopts a recipe in the user's settings file, and rolls it back."""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import msgspec

from trivet.common.clock import now
from trivet.common.files import OWNER_ONLY_FILE, atomic_write
from trivet.errors import Conflict, InvalidInput, NotFound, StoreError, TrivetError
from trivet.lab.datasets.read_files import json_lines
from trivet.lab.tune.tuning import Plan, Validation
from trivet.settings import config_path

SUFFIX = ".tune"
FOLDER_MODE = 0o700


def tune_folder(store: Path) -> Path:
    return store.with_name(store.name + SUFFIX)


def open_folder(store: Path) -> Path:
    """Return the folder, created if needed; refuse a link, which others may be able to read."""
    folder = tune_folder(store)
    try:
        folder.mkdir(mode=FOLDER_MODE, exist_ok=True)
        if folder.is_symlink() or not folder.is_dir():
            raise StoreError(
                f"{folder} is a link or not a folder. Move it away; probes are not written "
                "anywhere else."
            )
        folder.chmod(FOLDER_MODE)
    except OSError as error:
        raise StoreError(f"Cannot create {folder}: {error.strerror}.") from None
    return folder


def replace_file(target: Path, data: bytes, mode: int = OWNER_ONLY_FILE) -> None:
    """Write atomically; a link stays a link."""
    target = target.resolve()
    try:
        with atomic_write(target, mode) as file:
            file.write(data)
    except OSError as error:
        raise StoreError(f"Cannot write {target}: {error.strerror}. Nothing was changed.") from None


NEW_FILE_MODE = 0o600


def read_text(path: Path) -> str | None:
    """Return the text with its line endings, or None."""
    try:
        return path.read_bytes().decode()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"Cannot read {path}: {error}. Fix it or move it away.") from None


def setting_value(text: str | None, name: str) -> str | None:
    value = tomllib.loads(text).get(name) if text is not None else None
    return value if isinstance(value, str) else None


def with_setting(text: str, name: str, value: str) -> str:
    """Replace the line of a setting, but not its comment, or add one."""
    line = _line(name)
    quoted = json.dumps(value)
    if line.search(text):
        return line.sub(lambda match: f"{match['before']}{quoted}{match['after']}", text, count=1)
    end = "\r\n" if "\r\n" in text else "\n"
    # After the first table header, a setting would belong to the table.
    table = re.search(r"^[ \t]*\[", text, re.MULTILINE)
    place = table.start() if table else len(text)
    gap = end if place and not text[:place].endswith("\n") else ""
    return f"{text[:place]}{gap}{name} = {quoted}{end}{text[place:]}"


def without_setting(text: str, name: str) -> str:
    return re.sub(_line(name).pattern + r"(?:\r?\n|\Z)", "", text, count=1, flags=re.MULTILINE)


def write_setting(path: Path, name: str, value: str | None) -> None:
    """Set or remove the value, if nothing else in the file changes meaning."""
    text = read_text(path) or ""
    changed = with_setting(text, name, value) if value is not None else without_setting(text, name)
    wanted = {key: kept for key, kept in tomllib.loads(text).items() if key != name}
    if value is not None:
        wanted[name] = value
    if _parsed(changed) != wanted:
        line = f"{name} = {json.dumps(value)}" if value is not None else f"no {name}"
        raise InvalidInput(
            f"Cannot change {path} safely, so nothing was written. Change it by hand to: {line}"
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    mode = path.stat().st_mode & 0o777 if path.exists() else NEW_FILE_MODE
    replace_file(path, changed.encode(), mode)


def _line(name: str) -> re.Pattern[str]:
    key = rf"""(?:{name}|"{name}"|'{name}')"""
    text = r"""(?:"(?:[^"\\\r\n]|\\.)*"|'[^'\r\n]*')"""
    return re.compile(
        rf"^(?P<before>[ \t]*{key}[ \t]*=[ \t]*){text}(?P<after>[ \t]*(?:#[^\r\n]*)?)(?=\r?$)",
        re.MULTILINE,
    )


def _parsed(text: str) -> dict[str, object] | None:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None


HISTORY = "history.jsonl"
VARIABLE = "TRIVET_RECIPE"


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """A change; `before` is None if the settings had no recipe."""

    at: str
    action: Literal["applied", "rolled-back"]
    file: str
    before: str | None
    after: str | None


def save_results(store: Path, plan: Plan, validation: Validation) -> Path:
    folder = open_folder(store)
    lines = b"".join(msgspec.json.encode(probe) + b"\n" for probe in plan.probes)
    replace_file(folder / "probes.jsonl", lines)
    result = {
        "at": now(),
        "plan": {
            **msgspec.structs.asdict(msgspec.structs.replace(plan, probes=())),
            "kinds": plan.kinds,
        },
        "validation": validation,
        "passed": validation.passed,
    }
    replace_file(
        folder / "result.json", msgspec.json.format(msgspec.json.encode(result), indent=1) + b"\n"
    )
    return folder


def apply(store: Path, recipe: str, environment: Mapping[str, str] | None = None) -> Change:
    """Record the previous value and write the recipe into the user's settings."""
    environment = os.environ if environment is None else environment
    if VARIABLE in environment:
        raise InvalidInput(
            f"{VARIABLE} is set and overrides the settings file, so a recipe there would have no "
            "effect. Unset it first."
        )
    file = config_path(environment)
    before = setting_value(read_text(file), "recipe")
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
    """Restore the previous value, unless the user changed it since."""
    environment = os.environ if environment is None else environment
    history = _history(store)
    undone = sum(change.action == "rolled-back" for change in history)
    applied = [change for change in history if change.action == "applied"]
    if undone >= len(applied):
        raise NotFound("There is no tuning of this store to roll back.")
    last = _last_active_change(history)
    file = Path(last.file)
    found = setting_value(read_text(file), "recipe")
    if found != last.after:
        raise Conflict(
            f"The recipe in {file} was changed since the tuning, so it stays: {found!r}. "
            f"Before the tuning it was {json.dumps(last.before) if last.before else 'not set'}."
        )
    write_setting(file, "recipe", last.before)
    change = Change(
        at=now(), action="rolled-back", file=last.file, before=last.after, after=last.before
    )
    _write_history(store, [*history, change])
    return change


def _last_active_change(history: list[Change]) -> Change:
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
    replace_file(open_folder(store) / HISTORY, data)
