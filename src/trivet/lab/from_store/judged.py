"""Questions that a person asked and judged on the page: each line of the file is a query, a memory's id and a grade."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Container
from pathlib import Path
from typing import Annotated

import msgspec

from trivet.errors import InvalidInput
from trivet.lab.read_files import json_lines
from trivet.lab.tune.probes import Probe

STRATUM = "judged"
ID_CHARACTERS = 12


class JudgedHit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One line: 0 does not help, 1 touches the matter, 2 helps, 3 answers."""

    query: Annotated[str, msgspec.Meta(min_length=1, max_length=8_000)]
    id: Annotated[str, msgspec.Meta(min_length=1, max_length=64)]
    grade: Annotated[int, msgspec.Meta(ge=0, le=3)]


class Judged(msgspec.Struct, frozen=True):
    probes: tuple[Probe, ...]
    skipped: dict[str, int]


def read_judged(path: Path) -> dict[str, dict[str, int]]:
    """The grades by query and memory. The last of two on the same counts: the person thought again."""
    if not path.is_file():
        raise InvalidInput(f"{path}: there is no such file. The page's Compare saves one.")
    found: dict[str, dict[str, int]] = {}
    for _, hit in json_lines(path, JudgedHit):
        found.setdefault(hit.query, {})[hit.id] = hit.grade
    if not found:
        raise InvalidInput(f"{path}: there is no grade in it.")
    return found


def judged_probes(grades: dict[str, dict[str, int]], known: Container[str]) -> Judged:
    """Of memories that are not to be written, such as sensitive ones, or no longer there, the grade is left out."""
    skipped: Counter[str] = Counter()
    probes = []
    for query, given in grades.items():
        kept = {id: grade for id, grade in given.items() if id in known}
        skipped["a memory that is not there, or not to be written"] += len(given) - len(kept)
        best = max(kept, key=lambda id: kept[id], default=None)
        if best is None or not kept[best]:
            skipped["nothing that answers"] += 1
            continue
        id = f"{STRATUM}-{hashlib.sha256(query.encode()).hexdigest()[:ID_CHARACTERS]}"
        probes.append(Probe(id=id, query=query, kind=STRATUM, memory=best, group=best, grades=kept))
    return Judged(tuple(probes), {reason: count for reason, count in skipped.items() if count})
