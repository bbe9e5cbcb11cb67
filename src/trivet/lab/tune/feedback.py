"""What a user or an agent said of an answer: in the store, and one JSON object a line in a file beside it.

    {"query": "which port is staging on?", "id": "0199c2f4-...", "useful": true, "at": "2026-05-01T10:00:00Z"}

`query` is what was asked, `id` a memory that came, `useful` whether it helped; `at` may be left out. The last word on
the same query and memory counts.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from trivet.contract import MAX_QUERY_CHARACTERS
from trivet.lab.read_files import json_lines
from trivet.lab.tune.probes import ITSELF, Probe
from trivet.memory.engine import Engine
from trivet.settings.address import is_file

SUFFIX = ".feedback.jsonl"
KIND = "feedback"


class Feedback(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One line of the file."""

    query: Annotated[str, Meta(min_length=1, max_length=MAX_QUERY_CHARACTERS, pattern=r"\S")]
    id: Annotated[str, Meta(min_length=1, max_length=64)]
    useful: bool
    at: str | None = None


class FeedbackProbes(msgspec.Struct, frozen=True):
    """The probes, and how many lines or queries could not be used and why."""

    probes: tuple[Probe, ...] = ()
    skipped: Mapping[str, int] = {}


def feedback_file(store: Path) -> Path:
    """In the store's own folder, which for the default store is the user's data folder."""
    return store.with_name(store.name + SUFFIX)


def read_feedback(path: Path) -> list[Feedback]:
    """The lines in order; nothing if there is no file. A line that is not as above is an error with its number."""
    return [line for _, line in json_lines(path, Feedback)] if path.exists() else []


def all_feedback(engine: Engine) -> list[Feedback]:
    """The file's lines, then what was said to the store, of which the last word counts."""
    path = engine.settings.path
    lines = read_feedback(feedback_file(Path(path).expanduser())) if is_file(path) else []
    said = engine.store.usage.judged()
    return lines + [Feedback(query=one.query, id=one.id, useful=one.verdict == "useful", at=one.at) for one in said]


def feedback_probes(lines: list[Feedback], usable: Container[str]) -> FeedbackProbes:
    """One probe for each query in which something was useful; what was not useful is judged 0."""
    judged: dict[str, dict[str, int]] = {}
    gone = 0
    for line in lines:
        if line.id not in usable:
            gone += 1
            continue
        judged.setdefault(" ".join(line.query.split()), {})[line.id] = ITSELF if line.useful else 0
    probes: list[Probe] = []
    for query, grades in sorted(judged.items()):
        useful = sorted(id for id, grade in grades.items() if grade)
        if useful:
            number = len(probes) + 1
            probes.append(
                Probe(id=f"{KIND}:{number}", query=query, kind=KIND, memory=useful[0], group=useful[0], grades=grades)
            )
    skipped = {"of a memory that is gone, superseded or sensitive": gone, "nothing useful": len(judged) - len(probes)}
    return FeedbackProbes(tuple(probes), {reason: count for reason, count in skipped.items() if count})
