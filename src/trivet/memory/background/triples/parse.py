"""Turns a model's answer into statements. Broken or hostile parts of it are skipped and counted."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from trivet.analyse import fold
from trivet.clock import parse_time
from trivet.errors import InvalidInput
from trivet.graph.canonical import LONGEST_NAME, canonical
from trivet.graph.mentions import Triple
from trivet.graph.names import NOT_NAMES
from trivet.memory.background.triples.names import SearchableText
from trivet.models.chat import BadAnswer

MOST_TRIPLES = 30
LONGEST_RELATION = 60

_year_or_month = re.compile(r"\d{4}(-\d{2})?")
_not_in_a_relation = re.compile(r"[\W_]+")
_invisible = ("Cc", "Cf", "Cs", "Co", "Cn")


class Skip(Exception):
    """The reason why one statement is skipped."""


class Parsed(msgspec.Struct, frozen=True):
    """The statements of each memory in the answer, by its place; and how many were skipped, by reason."""

    triples: Mapping[int, tuple[Triple, ...]]
    skipped: Counter[str]


def parse(answer: Any, texts: Sequence[str]) -> Parsed:
    """Reads an answer about these texts. BadAnswer if nothing of it can be read."""
    entries = answer.get("memories") if isinstance(answer, dict) else None
    if not isinstance(entries, list):
        raise BadAnswer('the answer is no object with a list of "memories"')
    triples: dict[int, tuple[Triple, ...]] = {}
    skipped: Counter[str] = Counter()
    for entry in entries:
        place = _place(entry, len(texts))
        if place is None:
            skipped["no number that was asked about"] += 1
        elif place in triples:
            skipped["a number twice"] += 1
        elif not isinstance(entry.get("triples"), list):
            skipped["no list of statements"] += 1
        else:
            triples[place] = _statements(entry["triples"], SearchableText(texts[place]), skipped)
    return Parsed(triples, skipped)


def _place(entry: Any, count: int) -> int | None:
    number = entry.get("number") if isinstance(entry, dict) else None
    if not isinstance(number, int) or isinstance(number, bool) or not 1 <= number <= count:
        return None
    return number - 1


def _statements(given: Sequence[Any], text: SearchableText, skipped: Counter[str]) -> tuple[Triple, ...]:
    found: dict[tuple[str, str, str], Triple] = {}
    for value in given[:MOST_TRIPLES]:
        try:
            triple = _statement(value, text, skipped)
        except Skip as reason:
            skipped[str(reason)] += 1
            continue
        found.setdefault((canonical(triple.subject), triple.relation, canonical(triple.object)), triple)
    if len(given) > MOST_TRIPLES:
        skipped["more statements than a memory may have"] += len(given) - MOST_TRIPLES
    return tuple(found.values())


def _statement(value: Any, text: SearchableText, skipped: Counter[str]) -> Triple:
    if not isinstance(value, dict) or not isinstance(value.get("single", False), bool):
        raise Skip("not of the shape asked for")
    subject, object_ = _end(value.get("subject"), text), _end(value.get("object"), text)
    if canonical(subject) == canonical(object_):
        raise Skip("subject and object are the same")
    valid_from, valid_to = _time(value.get("valid_from"), skipped), _time(value.get("valid_to"), skipped)
    if valid_from and valid_to and valid_to <= valid_from:
        skipped["a time that ends before it begins"] += 1
        valid_from = valid_to = None
    return Triple(
        subject=subject,
        relation=_relation(value.get("relation")),
        object=object_,
        single=value.get("single", False),
        valid_from=valid_from,
        valid_to=valid_to,
    )


def _end(value: Any, text: SearchableText) -> str:
    """A subject or object as the text writes it. The model cannot invent concepts: the text must contain the name."""
    label = _plain_text(value, LONGEST_NAME)
    name = canonical(label)
    if len(name) < 2 or name.isdigit() or (name in NOT_NAMES and not label.isupper()):  # "who", but not "WHO"
        raise Skip("an end that is no name")
    if not text.contains(label):
        raise Skip("an end that the memory does not name")
    return label


def _relation(value: Any) -> str:
    """Folded, with single spaces, so that `Works_At` and `works at` are one relation."""
    relation = _not_in_a_relation.sub(" ", fold(_plain_text(value, LONGEST_RELATION))).strip()
    if not relation:
        raise Skip("an empty relation")
    return relation


def _plain_text(value: Any, longest: int) -> str:
    if not isinstance(value, str):
        raise Skip("not of the shape asked for")
    if len(value) > 4 * longest:  # before anything is done with it
        raise Skip("a text that is too long")
    text = " ".join(value.split())
    if len(text) > longest:
        raise Skip("a text that is too long")
    if any(unicodedata.category(character) in _invisible for character in text):
        raise Skip("control characters")
    return text


def _time(value: Any, skipped: Counter[str]) -> str | None:
    """A time as it is stored. A bad one is dropped; the statement stays."""
    if value is None or value == "":
        return None
    if not isinstance(value, str) or len(value) > 40:
        skipped["a time that is none"] += 1
        return None
    text = value.strip()
    partial = _year_or_month.fullmatch(text)
    try:
        return parse_time(f"{text}{'-01' if partial and partial[1] else '-01-01' if partial else ''}", "time")
    except InvalidInput:
        skipped["a time that is none"] += 1
        return None
