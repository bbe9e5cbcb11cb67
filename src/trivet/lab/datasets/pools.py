"""Pools of search results for a judge, made from several arms.

A pool's order does not reveal which arm found a document. Some pairs appear twice, to measure how
well the judge agrees with itself.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from random import Random
from typing import Annotated

import msgspec
from msgspec import Meta

from trivet.errors import InvalidInput
from trivet.lab.datasets.catalog import find_dataset
from trivet.lab.datasets.dataset import Dataset
from trivet.lab.datasets.plain_layout import load
from trivet.lab.datasets.read_files import raise_line_error, text_lines

DEPTH = 10
# Enough to tell agreement from chance without adding much work.
REPEATED_SHARE = 0.15
# Minimum number of pairs before a repetition, so the judge no longer remembers the first grade.
MIN_REPEAT_DISTANCE = 20


class Entry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A pair to judge; `again` marks its second appearance."""

    query: str
    document: str
    again: bool = False


class _PoolHeader(msgspec.Struct, frozen=True, kw_only=True):
    pool: Annotated[int, Meta(ge=1, le=1)]
    dataset: str
    dataset_sha256: str
    arms: int
    depth: int
    seed: int


class Pool(msgspec.Struct, frozen=True, kw_only=True):
    dataset: str
    dataset_sha256: str
    arms: int
    depth: int
    seed: int
    entries: tuple[Entry, ...]


def make_pool(
    dataset: Dataset,
    place: str,
    arms: Sequence[Path],
    *,
    depth: int = DEPTH,
    double: float = REPEATED_SHARE,
    seed: int = 0,
    only_unjudged: bool = False,
) -> Pool:
    """Pool the arms' runs.

    `place` is where the judge finds the dataset; `double` the share repeated.
    """
    pairs = {pair for arm in arms for pair in _read_run(arm / "run.trec", dataset, depth)}
    if only_unjudged:
        pairs -= {(row.query, row.document) for row in dataset.judgements}
    if not pairs:
        raise InvalidInput(
            "There is nothing to judge: every document the arms found is already judged."
        )
    return Pool(
        dataset=place,
        dataset_sha256=dataset.fingerprint,
        arms=len(arms),
        depth=depth,
        seed=seed,
        entries=tuple(_sequence(pairs, double, Random(seed))),
    )


def find_arms(folders: Iterable[Path]) -> list[Path]:
    """Return each folder that is an arm, or else the arms below it."""
    arms: list[Path] = []
    for folder in folders:
        found = (
            [folder]
            if (folder / "run.trec").is_file()
            else sorted(run.parent for run in folder.glob("*/run.trec"))
        )
        if not found:
            raise InvalidInput(
                f"{folder}: there is no run.trec in it or below. Give a folder that "
                "`trivet lab run` wrote."
            )
        arms.extend(found)
    return list(dict.fromkeys(arms))


def open_dataset(place: str) -> Dataset:
    """Open a dataset that may have queries without judgments."""
    return load(place, allow_unanswerable=True) if Path(place).is_dir() else find_dataset(place)


def write_pool(pool: Pool, path: Path) -> None:
    head = _PoolHeader(
        pool=1,
        dataset=pool.dataset,
        dataset_sha256=pool.dataset_sha256,
        arms=pool.arms,
        depth=pool.depth,
        seed=pool.seed,
    )
    path.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in (head, *pool.entries)))


def read_pool(path: Path) -> Pool:
    (_, first), *rest = list(text_lines(path)) or [(1, "")]
    try:
        head = msgspec.json.decode(first, type=_PoolHeader)
    except msgspec.DecodeError:
        raise_line_error(path, 1, "this is not a pool. Make one with `trivet lab pool`.")
    entries = []
    for number, text in rest:
        try:
            entries.append(msgspec.json.decode(text, type=Entry))
        except msgspec.DecodeError as error:
            raise_line_error(path, number, f"{error}.")
    fields = {
        name: getattr(head, name) for name in ("dataset", "dataset_sha256", "arms", "depth", "seed")
    }
    return Pool(**fields, entries=tuple(entries))


def dataset_of(pool: Pool) -> Dataset:
    """Open the pooled dataset. Raise if it has changed: the judge would grade other texts."""
    dataset = open_dataset(pool.dataset)
    if dataset.fingerprint != pool.dataset_sha256:
        raise InvalidInput(
            f"The dataset {pool.dataset} has changed since it was pooled. Pool its runs again."
        )
    return dataset


def fingerprint(pool: Pool) -> str:
    return hashlib.sha256(msgspec.json.encode(pool)).hexdigest()


def _sequence(pairs: Iterable[tuple[str, str]], double: float, random: Random) -> list[Entry]:
    by_query: dict[str, list[str]] = {}
    for query, document in sorted(pairs):
        by_query.setdefault(query, []).append(document)
    first: list[Entry] = []
    for query in random.sample(list(by_query), len(by_query)):
        documents = random.sample(by_query[query], len(by_query[query]))
        first.extend(Entry(query=query, document=document) for document in documents)
    placed = [(float(place), entry) for place, entry in enumerate(first)]
    for place in random.sample(range(len(first)), math.ceil(len(first) * double)):
        earliest = min(place + MIN_REPEAT_DISTANCE, len(first))
        when = random.uniform(earliest, len(first) + 1)
        placed.append((when, msgspec.structs.replace(first[place], again=True)))
    return [entry for _, entry in sorted(placed, key=lambda pair: pair[0])]


def _read_run(path: Path, dataset: Dataset, depth: int) -> set[tuple[str, str]]:
    known = {document.id for document in dataset.documents}
    found: dict[str, list[tuple[float, str]]] = {}
    for number, line in text_lines(path):
        fields = line.split()
        if len(fields) != 6:
            raise_line_error(
                path,
                number,
                f"{len(fields)} columns, not 6: query, Q0, document, rank, score and name.",
            )
        query, _, document, _, score, _ = fields
        if query not in dataset.grades:
            raise_line_error(
                path,
                number,
                f"there is no query {query!r} in the dataset {dataset.name!r}. "
                "Was the run made on another dataset?",
            )
        if document not in known:
            raise_line_error(
                path, number, f"there is no document {document!r} in the dataset {dataset.name!r}."
            )
        found.setdefault(query, []).append((_score(path, number, score), document))
    tops = {
        query: sorted(rows, key=lambda row: (-row[0], row[1]))[:depth]
        for query, rows in found.items()
    }
    return {(query, document) for query, rows in tops.items() for _, document in rows}


def _score(path: Path, number: int, text: str) -> float:
    try:
        score = float(text)
    except ValueError:
        score = math.nan
    if not math.isfinite(score):
        raise_line_error(path, number, f"score {text!r} is not a number.")
    return score
