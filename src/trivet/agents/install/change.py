"""Changes of settings files: all are planned first, then each file is written atomically."""

from __future__ import annotations

import difflib
import hashlib
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import tomlkit
from tomlkit.exceptions import TOMLKitError

from trivet.agents.install import jsonc
from trivet.agents.install.agents import DesiredFile
from trivet.common.files import OWNER_ONLY_FILE, atomic_write, private_folder
from trivet.common.threads import prepared_type
from trivet.errors import Conflict, InvalidInput, StoreError

_MOMENT = r"['\"]? (?:prompt|start|stop|compact|end)\b"
# Older versions had `resident` outside of `serve`.
_SCRIPT = r"[/\\]trivet[/\\](?:serve[/\\])?resident[/\\]hook_client\.py"
_TRIVET_COMMAND = re.compile(
    r"(?:^|[/\\ '\"])trivet(?:\.exe)?['\"]? hook" + _MOMENT + "|" + _SCRIPT + _MOMENT
)


def with_trivet_entries(text: str, wanted: DesiredFile) -> str:
    if wanted.file.suffix == ".toml":
        return _toml_with(text, wanted)
    for path, value in wanted.values:
        if _at(jsonc.parse(text), path) != value:
            text = jsonc.put(text, path, value)
    for path, item in wanted.items:
        present = _trivet_entries_at(text, path)
        if [entry for _, entry in present] == [item]:
            continue
        for index, _ in reversed(present):
            text = jsonc.remove(text, path, index)
        text = jsonc.append(text, path, item)
    return text


def without_trivet_entries(text: str, wanted: DesiredFile) -> str:
    """Remove Trivet's entries, and objects and lists that become empty."""
    if wanted.file.suffix == ".toml":
        return _toml_without(text, wanted)
    for path, _ in wanted.items:
        for index, _ in reversed(_trivet_entries_at(text, path)):
            text = jsonc.remove(text, path, index)
        text = _without_empty(text, path)
    for path, _ in wanted.values:
        if len(path) > 1:
            text = _without_empty(jsonc.remove(text, path), path[:-1])
    return text


def has_trivet_entries(text: str, wanted: DesiredFile) -> bool:
    if wanted.file.suffix == ".toml":
        return without_trivet_entries(text, wanted) != text
    whole = jsonc.parse(text)
    ours = any(_trivet_entries_at(text, path) for path, _ in wanted.items)
    return ours or any(len(path) > 1 and _at(whole, path) is not None for path, _ in wanted.values)


def is_empty(text: str, wanted: DesiredFile) -> bool:
    """Return whether only top-level values set by Trivet are left."""
    if wanted.file.suffix == ".toml":
        return not text.strip()
    left = jsonc.parse(text).value
    marks = {path[0]: value for path, value in wanted.values if len(path) == 1}
    return "//" not in text and "/*" not in text and left in ({}, marks)


def _without_empty(text: str, path: tuple[str, ...]) -> str:
    for depth in range(len(path), 0, -1):
        if _at(jsonc.parse(text), path[:depth]) in ({}, []):
            text = jsonc.remove(text, path[:depth])
    return text


def _trivet_entries_at(text: str, path: tuple[str, ...]) -> list[tuple[int, Any]]:
    found = _at(jsonc.parse(text), path)
    entries = found if isinstance(found, list) else []
    return [
        (index, entry)
        for index, entry in enumerate(entries)
        if _TRIVET_COMMAND.search(_commands(entry))
    ]


def _commands(entry: Any) -> str:
    hooks = entry.get("hooks", [entry]) if isinstance(entry, dict) else []
    return "\n".join(str(hook.get("command", "")) for hook in hooks if isinstance(hook, dict))


def _at(node: jsonc.Node, path: tuple[str, ...]) -> Any:
    value = node.value
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _toml_with(text: str, wanted: DesiredFile) -> str:
    document: Any = _toml(text)
    for (outer, name), value in wanted.values:
        if outer not in document:
            document.add(outer, tomlkit.table(is_super_table=True))
        if not hasattr(document[outer], "keys"):
            raise InvalidInput(f"{outer} is not a table. Fix it first; nothing was changed.")
        if document[outer].get(name) == value:
            continue
        table = tomlkit.table()
        for key, inner in value.items():
            table.add(key, inner)
        document[outer][name] = table
    return str(tomlkit.dumps(document))


def _toml_without(text: str, wanted: DesiredFile) -> str:
    document: Any = _toml(text)
    for (outer, name), _ in wanted.values:
        if outer in document and name in document[outer]:
            document[outer].remove(name)
            if not document[outer]:
                document.remove(outer)
    return str(tomlkit.dumps(document))


def _toml(text: str) -> Any:
    try:
        return tomlkit.parse(text)
    except TOMLKitError as error:
        raise InvalidInput(f"it is not valid TOML: {error}") from None


def same_except_trivet(before: str, after: str, wanted: DesiredFile) -> bool:
    """Return whether both texts mean the same without Trivet's entries."""
    if wanted.file.suffix == ".toml":
        one, other = (
            _toml(without_trivet_entries(text, wanted)).unwrap() for text in (before, after)
        )
    else:
        one, other = (
            jsonc.parse(without_trivet_entries(text, wanted)).value for text in (before, after)
        )
        for path, _ in wanted.values:
            if len(path) == 1:
                one, other = ({**value, path[0]: None} for value in (one, other))
    return json.dumps(one, sort_keys=True, default=str) == json.dumps(
        other, sort_keys=True, default=str
    )


class Change(msgspec.Struct, frozen=True):
    """A file's text before and after; None if it does not exist."""

    file: str
    before: str | None
    after: str | None

    @property
    def needed(self) -> bool:
        return self.before != self.after

    @property
    def diff(self) -> str:
        rows = difflib.unified_diff(
            (self.before or "").splitlines(),
            (self.after or "").splitlines(),
            self.file,
            self.file,
            n=2,
            lineterm="",
        )
        return "\n".join(rows)


class ChangeRecord(msgspec.Struct, frozen=True):
    """The record for an exact undo; `after` is a digest."""

    file: str
    before: str | None
    after: str


def plan_install(wanted: Sequence[DesiredFile]) -> list[Change]:
    return [_planned(one, installing=True) for one in wanted]


def plan_uninstall(wanted: Sequence[DesiredFile], records: Path) -> list[Change]:
    """Restore the old text if the file is unchanged, otherwise remove Trivet's entries."""
    changes = []
    for one in wanted:
        record = _record(records, one.file)
        text = _read(one.file)
        if record is not None and text is not None and _digest(text) == record.after:
            changes.append(Change(str(one.file), text, record.before))
        else:
            changes.append(_planned(one, installing=False))
    return changes


def write(changes: Sequence[Change], records: Path, installing: bool) -> None:
    for change in changes:
        if not change.needed:
            continue
        file = Path(change.file)
        if _read(file) != change.before:
            raise Conflict(
                f"Another program seems to have changed {file}. Nothing was written; try again."
            )
        if installing:
            _write_record(records, change)
        if change.after is None:
            file.resolve().unlink()
        else:
            _replace(file.resolve(), change.after)
        if not installing:
            _record_file(records, file).unlink(missing_ok=True)


def backup_of(records: Path, file: Path) -> Path:
    return _record_file(records, file)


def _planned(wanted: DesiredFile, installing: bool) -> Change:
    before = _read(wanted.file)
    if wanted.text:
        return _planned_whole(wanted, before, installing)
    try:
        if not installing:
            return Change(str(wanted.file), before, _without_trivet(before, wanted))
        after = with_trivet_entries(before or "", wanted)
        if not same_except_trivet(before or "", after, wanted):
            raise InvalidInput(
                "its format cannot be changed safely. Add Trivet by hand, see docs/mcp.md"
            )
    except InvalidInput as error:
        raise InvalidInput(f"{wanted.file} was not changed: {str(error).rstrip('.')}.") from None
    return Change(str(wanted.file), before, after)


def _planned_whole(wanted: DesiredFile, before: str | None, installing: bool) -> Change:
    mark = wanted.text.partition("\n")[0]
    is_ours = before is not None and mark in before
    if installing and before is not None and not is_ours:
        raise InvalidInput(
            f"{wanted.file} was not changed: Trivet did not write it. Move it or use --no-hooks."
        )
    after = wanted.text if installing else None if is_ours else before
    return Change(str(wanted.file), before, after)


def _without_trivet(before: str | None, wanted: DesiredFile) -> str | None:
    if before is None or not has_trivet_entries(before, wanted):
        return before  # any empty lists in it are the user's
    after = without_trivet_entries(before, wanted)
    return None if after != before and is_empty(after, wanted) else after


def _read(file: Path) -> str | None:
    try:
        return file.read_bytes().decode()
    except FileNotFoundError:
        return None
    except UnicodeDecodeError:
        raise InvalidInput(f"{file} was not changed: it is not UTF-8. Convert it first.") from None
    except OSError as error:
        raise StoreError(f"{file} cannot be read: {error.strerror}. Nothing was changed.") from None


def _replace(file: Path, text: str) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        mode = file.stat().st_mode & 0o777 if file.exists() else OWNER_ONLY_FILE
        with atomic_write(file, mode) as stream:
            stream.write(text.encode())
    except OSError as error:
        raise StoreError(
            f"{file} cannot be written: {error.strerror}. It was not changed."
        ) from None


def _write_record(records: Path, change: Change) -> None:
    """Write the record for its owner only: settings may hold other programs' keys."""
    private_folder(records)
    file = _record_file(records, Path(change.file))
    known = _record(records, Path(change.file))
    before = change.before
    if known is not None and before is not None and _digest(before) == known.after:
        before = known.before  # installed twice: undo restores the text before the first time
    assert change.after is not None
    record = ChangeRecord(change.file, before, _digest(change.after))
    _replace(file, msgspec.json.format(msgspec.json.encode(record), indent=1).decode())


def _record(records: Path, file: Path) -> ChangeRecord | None:
    try:
        return msgspec.json.decode(
            _record_file(records, file).read_bytes(), type=prepared_type(ChangeRecord)
        )
    except (OSError, msgspec.DecodeError):
        return None


def _record_file(records: Path, file: Path) -> Path:
    return records / f"{file.name}-{_digest(str(file))[:12]}.json"


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
