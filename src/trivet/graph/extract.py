"""Finds the concepts that a memory mentions, by rules: no model, no network, the same result every time."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile

from trivet.graph.code import definitions, split_code
from trivet.graph.concepts import Mention, Role, TimeBudget, canonical, singular
from trivet.graph.names import is_name, names_in
from trivet.graph.patterns import dates_in, find_patterns
from trivet.types import ConceptKind

# Concepts kept of one memory. A text has at most 32 KiB; further ones say nothing more about its subject.
MAX_CONCEPTS = 200
LONGEST_TITLE_IN_WORDS = 8
# In characters. Longer ones are runs of punctuation or generated addresses.
MAX_LABEL_CHARACTERS = 160

# Kinds that people also write in the plural.
MAY_BE_PLURAL: frozenset[ConceptKind] = frozenset({"name", "title", "tag", "quoted"})
# Kinds known by their form: a quoted `src/main.py` is a path.
KNOWN_BY_FORM: frozenset[ConceptKind] = frozenset({"identifier", "path", "code", "url"})

_parenthetical = re.compile(r"[(\[][^()\[\]]*[)\]]$")
_lower_word = re.compile(r"(?<![\w'’])[a-z][a-z'’]+")
_STRENGTH: dict[Role, int] = {"about": 2, "in": 1, "maybe": 0}


def extract(
    title: str | None, content: str, tags: Sequence[str] = (), time: TimeBudget | None = None
) -> tuple[Mention, ...]:
    """Every concept once, in the strongest role it has, in the order of first mention.

    Those that were found when `time` is over; the title and the tags come first.
    """
    time = time or TimeBudget()
    found: dict[str, Mention] = {}
    if title:
        _add_title(found, title, time)
    for tag in tags:
        _add(found, tag, "tag", "about")
    prose, code = split_code(content)
    for defined in takewhile(lambda _: time.has_time_left(), definitions(code)):
        _add(found, defined, "identifier", "about")
    _add_text(found, prose, "in", time)
    return tuple(found.values())[:MAX_CONCEPTS]


def _add_text(found: dict[str, Mention], text: str, role: Role, time: TimeBudget) -> None:
    """Marks come before names: an error code stays one, although it has capitals."""
    dates, rest = dates_in(text)
    for date in dates:
        _add(found, date, "date", role)
    for mark, kind in takewhile(lambda _: time.has_time_left(), find_patterns(rest)):
        _add(found, mark, kind, role)
    lower = set(_lower_word.findall(rest))
    for name in takewhile(lambda _: time.has_time_left(), names_in(rest)):
        if name.sure:
            _add(found, name.text, "name", role)
        elif name.text.lower() not in lower:  # else it is capitalised only because it begins the sentence
            _add(found, name.text, "name", "maybe")


def _add_title(found: dict[str, Mention], title: str, time: TimeBudget) -> None:
    whole = _parenthetical.sub("", title.rstrip()).rstrip()
    if len(whole.split()) <= LONGEST_TITLE_IN_WORDS:
        _add(found, whole, "title", "about")
    _add_text(found, title, "about", time)


def _add(found: dict[str, Mention], text: str, kind: ConceptKind, role: Role) -> None:
    if len(text) > MAX_LABEL_CHARACTERS:
        return
    name = canonical(singular(text) if kind in MAY_BE_PLURAL else text)
    if len(name) < 2 or name.isdigit():
        return
    if kind not in ("tag", "title") and not is_name(text):
        return
    known = found.get(name)
    if known is None:
        found[name] = Mention(name=name, label=_label(text), kind=kind, role=role)
        return
    stronger = role if _STRENGTH[role] > _STRENGTH[known.role] else known.role
    truer = kind if known.kind == "quoted" and kind in KNOWN_BY_FORM else known.kind
    found[name] = Mention(name=name, label=known.label, kind=truer, role=stronger)


def _label(text: str) -> str:
    return " ".join(text.split()).removesuffix("'s").removesuffix("\u2019s")
