"""From judgements to a dataset: the new grades together with those it had."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import msgspec

from trivet.errors import InvalidInput
from trivet.lab.dataset import save
from trivet.lab.dataset_types import Dataset, Judgement
from trivet.lab.judge.pool import Pool


class Exported(msgspec.Struct, frozen=True, kw_only=True):
    """What the new judgements did to the old ones."""

    added: int
    changed: int
    confirmed: int
    kept: int


def final_grades(pool: Pool, grades: Mapping[int, int]) -> dict[tuple[str, str], int]:
    """One grade a pair. Where two looks differ the lower one stands: a set that flatters is worse than a strict one."""
    final: dict[tuple[str, str], int] = {}
    for place, grade in sorted(grades.items()):
        pair = (pool.entries[place].query, pool.entries[place].document)
        final[pair] = min(grade, final.get(pair, grade))
    return final


def merged(dataset: Dataset, final: Mapping[tuple[str, str], int]) -> tuple[Dataset, Exported]:
    """The rule: a pair judged here has the grade it got here; any other keeps the one it had."""
    old = {(row.query, row.document): row.grade for row in dataset.judgements}
    both = {**old, **final}
    rows = tuple(Judgement(query=query, document=document, grade=grade) for (query, document), grade in both.items())
    known = [pair for pair in final if pair in old]
    changed = sum(old[pair] != final[pair] for pair in known)
    told = Exported(
        added=len(final) - len(known), changed=changed, confirmed=len(known) - changed, kept=len(old) - len(known)
    )
    return replace(dataset, judgements=rows), told


def export(dataset: Dataset, pool: Pool, grades: Mapping[int, int], folder: Path) -> Exported:
    """Writes the merged dataset into a new folder; what is there already is never overwritten."""
    if not grades:
        raise InvalidInput("Nothing is judged yet, so there is nothing to export.")
    if folder.exists() and any(folder.iterdir()):
        raise InvalidInput(f"{folder} is not empty. Name a new folder; the original set stays as it is.")
    result, told = merged(dataset, final_grades(pool, grades))
    save(result, folder)
    return told
