"""Changes of settings files: planned for all files of an agent first, then each is written atomically."""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Sequence
from pathlib import Path

import msgspec

from trivet.agents.install.agents import Wanted
from trivet.agents.install.edit import has_ours, is_empty, same_but_ours, with_ours, without_ours
from trivet.atomic_write import OWNER_ONLY, atomic_write
from trivet.decoding import known_type
from trivet.errors import Conflict, InvalidInput, StoreError
from trivet.private_folder import private_folder


class Change(msgspec.Struct, frozen=True):
    """A file's text before and after; None stands for a file that does not exist."""

    file: str
    before: str | None
    after: str | None

    @property
    def needed(self) -> bool:
        return self.before != self.after

    @property
    def diff(self) -> str:
        rows = difflib.unified_diff(
            (self.before or "").splitlines(), (self.after or "").splitlines(), self.file, self.file, n=2, lineterm=""
        )
        return "\n".join(rows)


class ChangeRecord(msgspec.Struct, frozen=True):
    """The record from which a change is undone exactly: the text before, and the digest of the text after."""

    file: str
    before: str | None
    after: str


def plan_install(wanted: Sequence[Wanted]) -> list[Change]:
    return [_planned(one, installing=True) for one in wanted]


def plan_uninstall(wanted: Sequence[Wanted], records: Path) -> list[Change]:
    """Restores the old text if the file is still as we left it, else removes our entries from the present one."""
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
                f"{file} was changed meanwhile, by another program it seems. Nothing was written; try again."
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


def _planned(wanted: Wanted, installing: bool) -> Change:
    before = _read(wanted.file)
    if wanted.text:
        return _planned_whole(wanted, before, installing)
    try:
        if not installing:
            return Change(str(wanted.file), before, _taken_out(before, wanted))
        after = with_ours(before or "", wanted)
        if not same_but_ours(before or "", after, wanted):
            raise InvalidInput("it has a form that cannot be changed safely. Add Trivet by hand, see docs/mcp.md")
    except InvalidInput as error:
        raise InvalidInput(f"{wanted.file} was left as it is: {str(error).rstrip('.')}.") from None
    return Change(str(wanted.file), before, after)


def _planned_whole(wanted: Wanted, before: str | None, installing: bool) -> Change:
    """Of a file that is ours alone. It is known by its first line, wherever that stands now."""
    mark = wanted.text.partition("\n")[0]
    is_ours = before is not None and mark in before
    if installing and before is not None and not is_ours:
        raise InvalidInput(f"{wanted.file} was left as it is: it is not Trivet's. Move it away, or say --no-hooks.")
    after = wanted.text if installing else None if is_ours else before
    return Change(str(wanted.file), before, after)


def _taken_out(before: str | None, wanted: Wanted) -> str | None:
    if before is None or not has_ours(before, wanted):
        return before  # nothing of ours: empty lists in it are the user's
    after = without_ours(before, wanted)
    return None if after != before and is_empty(after, wanted) else after


def _read(file: Path) -> str | None:
    try:
        return file.read_bytes().decode()
    except FileNotFoundError:
        return None
    except UnicodeDecodeError:
        raise InvalidInput(f"{file} was left as it is: it is not UTF-8.") from None
    except OSError as error:
        raise StoreError(f"{file} cannot be read: {error.strerror}. Nothing was changed.") from None


def _replace(file: Path, text: str) -> None:
    """The file keeps its mode."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        mode = file.stat().st_mode & 0o777 if file.exists() else OWNER_ONLY
        with atomic_write(file, mode) as stream:
            stream.write(text.encode())
    except OSError as error:
        raise StoreError(f"{file} cannot be written: {error.strerror}. It was left as it is.") from None


def _write_record(records: Path, change: Change) -> None:
    """Writes the record. Only its owner may read it: settings may hold keys of other programs."""
    private_folder(records)
    file = _record_file(records, Path(change.file))
    known = _record(records, Path(change.file))
    before = change.before
    if known is not None and before is not None and _digest(before) == known.after:
        before = known.before  # installed twice: undoing goes back to before the first time
    assert change.after is not None
    record = ChangeRecord(change.file, before, _digest(change.after))
    _replace(file, msgspec.json.format(msgspec.json.encode(record), indent=1).decode())


def _record(records: Path, file: Path) -> ChangeRecord | None:
    try:
        return msgspec.json.decode(_record_file(records, file).read_bytes(), type=known_type(ChangeRecord))
    except (OSError, msgspec.DecodeError):
        return None


def _record_file(records: Path, file: Path) -> Path:
    return records / f"{file.name}-{_digest(str(file))[:12]}.json"


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
