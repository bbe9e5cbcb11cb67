"""A memory as a Markdown file and back: its fields as front matter, its content as the text, to the last character."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any, get_args

import yaml

from trivet.errors import InvalidInput
from trivet.ids import check_id
from trivet.sources.files.front_matter import text_of, words
from trivet.sources.files.parts import About, Part
from trivet.types import Link, LinkKind, Memory

FORMAT = "1"
_UNSAFE = re.compile(r"[\x00-\x1f\x7f-\xa0\u2028\u2029\ufeff\ufffe\uffff]")
_DIGEST = re.compile(r"^digest: [0-9a-f]{32}\n", re.MULTILINE)
_TEXTS = ("title", "category", "scope", "valid_from", "valid_to", "source")
_NUMBERS: Mapping[str, type[float] | type[int]] = {
    "importance": float,
    "confidence": float,
    "start_line": int,
    "end_line": int,
}


class _Dumper(yaml.SafeDumper):
    """Plain where it can be; what YAML would fold or take for a line end is quoted with escapes."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"' if _UNSAFE.search(text) else None)


_Dumper.add_representer(str, _text)


def is_mirror(front: Mapping[str, Any]) -> bool:
    return "trivet" in front and "id" in front


def written(memory: Memory, links: Sequence[Link]) -> str:
    fields: dict[str, Any] = {"trivet": FORMAT, "id": memory.id}
    source = memory.source
    values = {
        "title": memory.title,
        "category": memory.category,
        "tags": list(memory.tags),
        "keywords": list(memory.expanded_keywords),
        "importance": memory.importance,
        "confidence": memory.confidence,
        "scope": memory.scope,
        "source": source.uri if source else None,
        "start_line": source.start_line if source else None,
        "end_line": source.end_line if source else None,
        "created": memory.created_at,
        "valid_from": memory.valid_from,
        "valid_to": memory.valid_to,
        "state": "archived" if memory.state == "archived" else None,
        "sensitive": "true" if memory.sensitive else None,
        "links": [f"{link.kind} {link.target}" for link in links],
    }
    fields |= {name: value for name, value in values.items() if value not in (None, [])}
    body = memory.content
    if "\r" in body:  # reading a text takes it for a line end
        fields["content"], body = body, ""
    front = yaml.dump(fields, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=2**31)
    return sealed(f"---\n{front}---\n{body}\n")


def sealed(text: str) -> str:
    """With a digest of its own, which tells later whether somebody has edited it."""
    opening, _, rest = text.partition("\n---\n")
    return f"{opening}\ndigest: {_digest(text)}\n---\n{rest}"


def is_as_written(text: str) -> bool:
    found = _DIGEST.search(text)
    return found is not None and found[0] == f"digest: {_digest(_DIGEST.sub('', text, count=1))}\n"


def says_the_same(one: str, other: str) -> bool:
    """But for the digest, which an edit leaves behind."""
    return _DIGEST.sub("", one, count=1) == _DIGEST.sub("", other, count=1)


def mirrored(front: Mapping[str, Any], body: str) -> Part:
    if text_of(front["trivet"]) != FORMAT:
        raise InvalidInput(
            f"it is a mirror of format {front['trivet']}, and this Trivet reads {FORMAT}. Upgrade Trivet"
        )
    fields: dict[str, Any] = {"id": check_id(text_of(front["id"])), "source": None, "title": None}
    fields |= {name: front[name] for name in _TEXTS if isinstance(front.get(name), str)}
    fields |= {name: _number(name, front[name]) for name in _NUMBERS if name in front}
    fields |= {"tags": _list(front, "tags"), "expanded_keywords": _list(front, "keywords")}
    if created := text_of(front.get("created")):
        fields["created_at"] = created
    fields["sensitive"] = text_of(front.get("sensitive")) == "true"
    fields["state"] = "archived" if text_of(front.get("state")) == "archived" else "active"
    content = front["content"] if isinstance(front.get("content"), str) else body.removesuffix("\n")
    return Part("memory", content, fields, None, About(note=fields["title"] or "", ids=_links(front)))


def _list(front: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """A list keeps its items as they are; a text that somebody wrote by hand is taken apart."""
    value = front.get(name)
    return tuple(str(item) for item in value) if isinstance(value, list) else words(value)


def _number(name: str, value: Any) -> float | int:
    try:
        return _NUMBERS[name](value)
    except (TypeError, ValueError):
        raise InvalidInput(f"{name}: {value!r} is not a number") from None


def _links(front: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    found = []
    for entry in words(front.get("links")):
        kind, _, target = entry.partition(" ")
        if kind not in get_args(LinkKind):
            raise InvalidInput(f"links: {entry!r} does not begin with one of {', '.join(get_args(LinkKind))}")
        found.append((kind, check_id(target.strip(), "links")))
    return tuple(found)


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
