"""One setting in a TOML file, set or taken out; every other byte of the file stays as it is."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

from trivet.errors import InvalidInput
from trivet.lab.tune.folder import write_whole

NEW_FILE_MODE = 0o600


def read_text(path: Path) -> str | None:
    """The text with its line ends as they are, or None if there is no file."""
    try:
        return path.read_bytes().decode()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path} cannot be read: {error}. Mend it or move it away.") from None


def value_in(text: str | None, name: str) -> str | None:
    value = tomllib.loads(text).get(name) if text is not None else None
    return value if isinstance(value, str) else None


def with_value(text: str, name: str, value: str) -> str:
    """The text with `name = "value"` in the place of the present line, whose comment stays, or in one of its own."""
    line = _line(name)
    quoted = json.dumps(value)
    if line.search(text):
        return line.sub(lambda match: f"{match['before']}{quoted}{match['after']}", text, count=1)
    end = "\r\n" if "\r\n" in text else "\n"
    table = re.search(r"^[ \t]*\[", text, re.MULTILINE)  # a setting after a table's head would belong to the table
    place = table.start() if table else len(text)
    gap = end if place and not text[:place].endswith("\n") else ""
    return f"{text[:place]}{gap}{name} = {quoted}{end}{text[place:]}"


def without(text: str, name: str) -> str:
    return re.sub(_line(name).pattern + r"(?:\r?\n|\Z)", "", text, count=1, flags=re.MULTILINE)


def write_setting(path: Path, name: str, value: str | None) -> None:
    """Sets it, or takes it out for None, having made sure that nothing else in the file changes its meaning."""
    text = read_text(path) or ""
    changed = with_value(text, name, value) if value is not None else without(text, name)
    wanted = {key: kept for key, kept in tomllib.loads(text).items() if key != name}
    if value is not None:
        wanted[name] = value
    if _parsed(changed) != wanted:
        line = f"{name} = {json.dumps(value)}" if value is not None else f"no {name}"
        raise InvalidInput(f"{path} is written in a way that cannot be changed safely. Put this into it: {line}")
    path.parent.mkdir(parents=True, exist_ok=True)
    mode = path.stat().st_mode & 0o777 if path.exists() else NEW_FILE_MODE
    write_whole(path, changed.encode(), mode)


def _line(name: str) -> re.Pattern[str]:
    key = rf"""(?:{name}|"{name}"|'{name}')"""
    text = r"""(?:"(?:[^"\\\r\n]|\\.)*"|'[^'\r\n]*')"""
    return re.compile(
        rf"^(?P<before>[ \t]*{key}[ \t]*=[ \t]*){text}(?P<after>[ \t]*(?:#[^\r\n]*)?)(?=\r?$)", re.MULTILINE
    )


def _parsed(text: str) -> dict[str, object] | None:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None
