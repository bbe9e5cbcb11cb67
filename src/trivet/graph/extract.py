"""From a memory to the concepts it mentions, by rules alone: no model, no network, the same result every time."""

from __future__ import annotations

import re
from collections.abc import Sequence

from trivet.graph.canonical import canonical
from trivet.graph.code import definitions, without_code
from trivet.graph.marks import marks_in
from trivet.graph.names import NOT_NAMES, names_in
from trivet.graph.values import Kind, Mention, Role

# A change to what is extracted needs a new version: stores notice it and rebuild their graph.
EXTRACTION_VERSION = 1
# The longest text is 32 KiB; what it mentions beyond this adds nothing to what it is about.
MOST_CONCEPTS = 200
LONGEST_TITLE_IN_WORDS = 8

_parenthetical = re.compile(r"\s*[(\[][^)\]]*[)\]]\s*$")
_lower_word = re.compile(r"(?<![\w'’])[a-z][a-z'’]+")
_STRENGTH: dict[Role, int] = {"about": 2, "in": 1, "maybe": 0}


def extract(title: str | None, content: str, tags: Sequence[str] = ()) -> tuple[Mention, ...]:
    """Every concept once, in the strongest role it has, in the order of first mention."""
    found: dict[str, Mention] = {}
    if title:
        _add_title(found, title)
    for tag in tags:
        _add(found, tag, "tag", "about")
    prose, code = without_code(content)
    for defined in definitions(code):
        _add(found, defined, "identifier", "about")
    lower = set(_lower_word.findall(prose))
    for name in names_in(prose):
        if not (len(name.words) == 1 and not name.sure and name.text.lower() in lower):
            _add(found, name.text, "name", "in" if name.sure else "maybe")
    for text, kind in marks_in(prose):
        _add(found, text, kind, "in")
    return tuple(found.values())[:MOST_CONCEPTS]


def _add_title(found: dict[str, Mention], title: str) -> None:
    whole = _parenthetical.sub("", title)
    if len(whole.split()) <= LONGEST_TITLE_IN_WORDS:
        _add(found, whole, "title", "about")
    for name in names_in(title):
        if name.sure:
            _add(found, name.text, "name", "about")
    for text, kind in marks_in(title):
        _add(found, text, kind, "about")


def _add(found: dict[str, Mention], text: str, kind: Kind, role: Role) -> None:
    name = canonical(text)
    if len(name) < 2 or name in NOT_NAMES or name.isdigit():
        return
    known = found.get(name)
    if known is None:
        found[name] = Mention(name=name, label=" ".join(text.split()), kind=kind, role=role)
    elif _STRENGTH[role] > _STRENGTH[known.role]:
        found[name] = Mention(name=name, label=known.label, kind=known.kind, role=role)

