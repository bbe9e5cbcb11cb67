"""The text of a settings file with Trivet's entries in it, or without them."""

from __future__ import annotations

import json
import re
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from trivet.agents.install import jsonc
from trivet.agents.install.agents import Wanted
from trivet.errors import InvalidInput

# A hook is ours by the command it runs, wherever the program lies.
_MOMENT = r"['\"]? (?:prompt|start|stop|compact|end)\b"
# Older versions had `resident` outside of `serve`.
_SCRIPT = r"[/\\]trivet[/\\](?:serve[/\\])?resident[/\\]hook_client\.py"
_OURS = re.compile(r"(?:^|[/\\ '\"])trivet(?:\.exe)?['\"]? hook" + _MOMENT + "|" + _SCRIPT + _MOMENT)


def with_ours(text: str, wanted: Wanted) -> str:
    if wanted.file.suffix == ".toml":
        return _toml_with(text, wanted)
    for path, value in wanted.values:
        if _at(jsonc.parse(text), path) != value:
            text = jsonc.put(text, path, value)
    for path, item in wanted.items:
        present = _ours_at(text, path)
        if [entry for _, entry in present] == [item]:
            continue
        for index, _ in reversed(present):
            text = jsonc.remove(text, path, index)
        text = jsonc.append(text, path, item)
    return text


def without_ours(text: str, wanted: Wanted) -> str:
    """Removes our entries, and objects and lists that are empty afterwards."""
    if wanted.file.suffix == ".toml":
        return _toml_without(text, wanted)
    for path, _ in wanted.items:
        for index, _ in reversed(_ours_at(text, path)):
            text = jsonc.remove(text, path, index)
        text = _without_empty(text, path)
    for path, _ in wanted.values:
        if len(path) > 1:
            text = _without_empty(jsonc.remove(text, path), path[:-1])
    return text


def has_ours(text: str, wanted: Wanted) -> bool:
    if wanted.file.suffix == ".toml":
        return without_ours(text, wanted) != text
    whole = jsonc.parse(text)
    ours = any(_ours_at(text, path) for path, _ in wanted.items)
    return ours or any(len(path) > 1 and _at(whole, path) is not None for path, _ in wanted.values)


def is_empty(text: str, wanted: Wanted) -> bool:
    """Whether nothing is left in the file but values that we set at its top level."""
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


def _ours_at(text: str, path: tuple[str, ...]) -> list[tuple[int, Any]]:
    found = _at(jsonc.parse(text), path)
    entries = found if isinstance(found, list) else []
    return [(index, entry) for index, entry in enumerate(entries) if _OURS.search(_commands(entry))]


def _commands(entry: Any) -> str:
    hooks = entry.get("hooks", [entry]) if isinstance(entry, dict) else []
    return "\n".join(str(hook.get("command", "")) for hook in hooks if isinstance(hook, dict))


def _at(node: jsonc.Node, path: tuple[str, ...]) -> Any:
    value = node.value
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _toml_with(text: str, wanted: Wanted) -> str:
    document: Any = _toml(text)
    for (outer, name), value in wanted.values:
        if outer not in document:
            document.add(outer, tomlkit.table(is_super_table=True))
        if not hasattr(document[outer], "keys"):
            raise InvalidInput(f"{outer} is not a table there. Mend it first; nothing was changed.")
        if document[outer].get(name) == value:
            continue
        table = tomlkit.table()
        for key, inner in value.items():
            table.add(key, inner)
        document[outer][name] = table
    return str(tomlkit.dumps(document))


def _toml_without(text: str, wanted: Wanted) -> str:
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


def same_but_ours(before: str, after: str, wanted: Wanted) -> bool:
    """A check before writing: without our entries, both texts must mean the same."""
    if wanted.file.suffix == ".toml":
        one, other = (_toml(without_ours(text, wanted)).unwrap() for text in (before, after))
    else:
        one, other = (jsonc.parse(without_ours(text, wanted)).value for text in (before, after))
        for path, _ in wanted.values:
            if len(path) == 1:
                one, other = ({**value, path[0]: None} for value in (one, other))
    return json.dumps(one, sort_keys=True, default=str) == json.dumps(other, sort_keys=True, default=str)
