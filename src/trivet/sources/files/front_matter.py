"""YAML front matter of notes, and memories as Markdown files and back without loss."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any, get_args

import yaml

from trivet.common.clock import stamp_or_none
from trivet.common.ids import check_id
from trivet.errors import InvalidInput
from trivet.memory_fields import FIELDS, Field, Kind
from trivet.sources.files.parts import About, Part
from trivet.types import Link, LinkKind, Memory

MAX_FRONT_MATTER_CHARACTERS = 512 * 1024
_BETWEEN_ITEMS = re.compile(r"[,\n]")
_OPENING = re.compile(r"---[ \t]*\n")
_CLOSING = re.compile(r"^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.MULTILINE)


def split_front_matter(text: str) -> tuple[Mapping[str, Any], str, int]:
    """Return the fields, the text after them, and the number of lines before it.

    Values stay texts: `no` is "no", not False. Hyphens without fields are plain text.
    """
    opening = _OPENING.match(text)
    closing = _CLOSING.search(text, opening.end()) if opening else None
    if opening is None or closing is None or closing.start() > MAX_FRONT_MATTER_CHARACTERS:
        return {}, text, 0
    try:
        fields = yaml.load(text[opening.end() : closing.start()], Loader=yaml.BaseLoader)
    except yaml.YAMLError as error:
        raise InvalidInput(
            f"its front matter is not YAML ({_place(error)}). Fix it, or remove the first ---"
        ) from None
    except RecursionError:
        raise InvalidInput(
            "its front matter is nested too deeply. Fix it, or remove the first ---"
        ) from None
    if fields is not None and not isinstance(fields, dict):
        return {}, text, 0
    named = {str(name).strip().lower(): value for name, value in (fields or {}).items()}
    return named, text[closing.end() :], text[: closing.end()].count("\n")


def words(value: Any) -> tuple[str, ...]:
    """Return the items of a list, or of a text with commas as in Obsidian."""
    items = (
        value
        if isinstance(value, list)
        else _BETWEEN_ITEMS.split(value)
        if isinstance(value, str)
        else []
    )
    return tuple(item.strip() for item in items if isinstance(item, str) and item.strip())


def text_of(value: Any) -> str:
    return value.strip() if isinstance(value, str) else ""


def _place(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or "unreadable"
    return f"line {mark.line + 2}: {problem}" if mark is not None else str(problem)


FORMAT = "1"
_UNSAFE = re.compile(r"[\x00-\x1f\x7f-\xa0\u2028\u2029\ufeff\ufffe\uffff]")
_DIGEST = re.compile(r"^digest: [0-9a-f]{32}\n", re.MULTILINE)
_LINES = ("start_line", "end_line")


class _Dumper(yaml.SafeDumper):
    """A dumper that quotes texts which YAML would fold or split."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar(
        "tag:yaml.org,2002:str", text, style='"' if _UNSAFE.search(text) else None
    )


_Dumper.add_representer(str, _text)


def is_mirror(front: Mapping[str, Any]) -> bool:
    return "trivet" in front and "id" in front


def written(memory: Memory, links: Sequence[Link]) -> str:
    values: dict[str, Any] = {"trivet": FORMAT, "id": memory.id}
    for field in FIELDS:
        if field.front is not None:
            values |= _to_front(field.front, field.kind, getattr(memory, field.name))
    values["links"] = [f"{link.kind} {link.target}" for link in links]
    fields = {name: value for name, value in values.items() if value not in (None, [])}
    body = memory.content
    if "\r" in body:  # reading would turn it into a line end
        fields["content"], body = body, ""
    front = yaml.dump(fields, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=2**31)
    return sealed(f"---\n{front}---\n{body}\n")


def sealed(text: str) -> str:
    """Add a digest, which later shows whether the text was edited."""
    opening, _, rest = text.partition("\n---\n")
    return f"{opening}\ndigest: {_digest(text)}\n---\n{rest}"


def is_unmodified(text: str) -> bool:
    found = _DIGEST.search(text)
    return found is not None and found[0] == f"digest: {_digest(_DIGEST.sub('', text, count=1))}\n"


def same_memory(one: str, other: str) -> bool:
    """Compare the texts without their digest, which edits leave behind."""
    return _DIGEST.sub("", one, count=1) == _DIGEST.sub("", other, count=1)


def parse_mirror(front: Mapping[str, Any], body: str) -> Part:
    if text_of(front["trivet"]) != FORMAT:
        raise InvalidInput(
            f"it is a mirror of format {front['trivet']}, but this Trivet reads {FORMAT}. "
            "Upgrade Trivet"
        )
    # If the file omits these two, the memory has none.
    fields: dict[str, Any] = {"id": check_id(text_of(front["id"])), "source": None, "title": None}
    for field in FIELDS:
        if field.front is not None:
            fields |= _from_front(field, field.front, front)
    content = front["content"] if isinstance(front.get("content"), str) else body.removesuffix("\n")
    return Part(
        "memory", content, fields, None, About(note=fields["title"] or "", ids=_links(front))
    )


def _to_front(name: str, kind: Kind, value: Any) -> dict[str, Any]:
    match kind:
        case "texts":
            return {name: list(value)}
        case "flag":
            return {name: "true" if value else None}
        case "time":
            return {name: stamp_or_none(value)}
        case "state":  # files cannot delete or supersede a memory
            return {name: value if value == "archived" else None}
        case "source":
            return {
                name: value.uri if value else None,
                **{line: getattr(value, line, None) for line in _LINES},
            }
    return {name: value}


def _from_front(field: Field, name: str, front: Mapping[str, Any]) -> dict[str, Any]:
    value = front.get(name)
    match field.kind:
        case "texts":
            return {field.name: _list(value)}
        case "number":
            return {field.name: _number(name, value, float)} if name in front else {}
        case "flag":
            return {field.name: text_of(value) == "true"}
        case "state":
            return {field.name: "archived" if text_of(value) == "archived" else "active"}
        case "source":
            lines = {line: _number(line, front[line], int) for line in _LINES if line in front}
            return {field.name: value, **lines} if isinstance(value, str) else lines
        case "time" if field.bookkeeping:
            return {field.name: text_of(value)} if text_of(value) else {}
    return {field.name: value} if isinstance(value, str) else {}


def _list(value: Any) -> tuple[str, ...]:
    return tuple(str(item) for item in value) if isinstance(value, list) else words(value)


def _number(name: str, value: Any, kind: type[float] | type[int]) -> float | int:
    try:
        return kind(value)
    except (TypeError, ValueError):
        raise InvalidInput(f"{name}: {value!r} is not a number") from None


def _links(front: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    found = []
    for entry in words(front.get("links")):
        kind, _, target = entry.partition(" ")
        if kind not in get_args(LinkKind):
            raise InvalidInput(
                f"links: {entry!r} must begin with one of {', '.join(get_args(LinkKind))}"
            )
        found.append((kind, check_id(target.strip(), "links")))
    return tuple(found)


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
