"""From a memory to the concepts it mentions, by rules alone: no model, no network, the same result every time."""

from __future__ import annotations

import re
from collections.abc import Sequence

from trivet.graph.canonical import canonical, singular
from trivet.graph.code import definitions, without_code
from trivet.graph.dates import dates_in
from trivet.graph.marks import marks_in
from trivet.graph.names import is_name, names_in
from trivet.graph.values import Mention, Role
from trivet.types import ConceptKind

# A change to what is extracted needs a new version: stores notice it and rebuild their graph.
EXTRACTION_VERSION = 1
# The longest text is 32 KiB; what it mentions beyond this adds nothing to what it is about.
MOST_CONCEPTS = 200
LONGEST_TITLE_IN_WORDS = 8
# Longer ones are runs of punctuation or generated addresses.
LONGEST_LABEL = 160

# What people write in the plural as well.
SPOKEN: frozenset[ConceptKind] = frozenset({"name", "title", "tag", "quoted"})
# A quoted `src/main.py` is a path.
TOLD_BY_FORM: frozenset[ConceptKind] = frozenset({"identifier", "path", "code", "url"})

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
    _add_text(found, prose, "in")
    return tuple(found.values())[:MOST_CONCEPTS]


def _add_text(found: dict[str, Mention], text: str, role: Role) -> None:
    """Marks before names: what is written like an error code is one, though it has capitals."""
    dates, rest = dates_in(text)
    for date in dates:
        _add(found, date, "date", role)
    for mark, kind in marks_in(rest):
        _add(found, mark, kind, role)
    lower = set(_lower_word.findall(rest))
    for name in names_in(rest):
        if name.sure:
            _add(found, name.text, "name", role)
        elif name.text.lower() not in lower:  # the same word in lower case: it was the sentence's capital
            _add(found, name.text, "name", "maybe")


def _add_title(found: dict[str, Mention], title: str) -> None:
    whole = _parenthetical.sub("", title)
    if len(whole.split()) <= LONGEST_TITLE_IN_WORDS:
        _add(found, whole, "title", "about")
    _add_text(found, title, "about")


def _add(found: dict[str, Mention], text: str, kind: ConceptKind, role: Role) -> None:
    name = canonical(singular(text) if kind in SPOKEN else text)
    if len(name) < 2 or len(text) > LONGEST_LABEL or name.isdigit():
        return
    if kind not in ("tag", "title") and not is_name(text):
        return
    known = found.get(name)
    if known is None:
        found[name] = Mention(name=name, label=_label(text), kind=kind, role=role)
        return
    stronger = role if _STRENGTH[role] > _STRENGTH[known.role] else known.role
    truer = kind if known.kind == "quoted" and kind in TOLD_BY_FORM else known.kind
    found[name] = Mention(name=name, label=known.label, kind=truer, role=stronger)


def _label(text: str) -> str:
    return " ".join(text.split()).removesuffix("'s").removesuffix("\u2019s")
