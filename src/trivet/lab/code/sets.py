"""Code-search sets: a tree, queries about it, and the files that answer them."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Literal

import msgspec

from trivet.errors import InvalidInput
from trivet.lab.datasets.dataset import NO_STRATUM, RELEVANT, Identifier, Written
from trivet.lab.datasets.read_files import (
    content,
    find_file,
    json_lines,
    raise_line_error,
    text_lines,
    with_unique_ids,
)

Scope = Literal["root", "whole"]
QUERIES, GRADES, META, TREE = "queries.jsonl", "qrels.tsv", "meta.json", "tree"
LAYOUT = f"A set is a folder with {TREE}/, {QUERIES}, {GRADES} and {META}"
_whole_number = re.compile(r"[+-]?[0-9]{1,9}")


class CodeQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A query about a tree. Other fields are ignored."""

    id: Identifier
    text: Written
    stratum: Written = NO_STRATUM


class _Meta(msgspec.Struct, frozen=True):
    root: str = ""


@dataclass(frozen=True, kw_only=True)
class CodeSet:
    """A tree with queries, and grades by query and path (from `tree`).

    A file of grade 0 or less is forbidden: it must not be found.
    """

    name: str
    tree: Path
    root: str
    queries: tuple[CodeQuery, ...]
    grades: Mapping[str, Mapping[str, int]]

    def folder(self, scope: Scope) -> Path:
        return self.tree / self.prefix(scope)

    def prefix(self, scope: Scope) -> str:
        """Return what turns a path in that folder into its path in the tree."""
        return f"{self.root}/" if scope == "root" and self.root else ""


def read_sets(folder: Path, only: Collection[str] = ()) -> tuple[CodeSet, ...]:
    """Read a set, or the sets below a folder. Query ids are made unique."""
    if not folder.is_dir():
        raise InvalidInput(
            f"{folder}: there is no such folder. {LAYOUT}; give one, or a folder of them."
        )
    found = (
        [folder] if _is_set(folder) else sorted(path for path in folder.iterdir() if _is_set(path))
    )
    if not found:
        raise InvalidInput(
            f"{folder}: there is no set in it. {LAYOUT}; give one, or a folder of them."
        )
    names = [path.resolve().name for path in found]
    if unknown := sorted(set(only) - set(names)):
        raise InvalidInput(
            f"{folder}: there is no set {unknown[0]!r}. There are: {', '.join(names)}."
        )
    sets = _unique(
        [
            read_set(path)
            for path, name in zip(found, names, strict=True)
            if not only or name in only
        ]
    )
    if not any(
        grade >= RELEVANT
        for one in sets
        for grades in one.grades.values()
        for grade in grades.values()
    ):
        raise InvalidInput(
            f"{folder}: no query has a file of grade 1 or more in {GRADES}, "
            "so nothing can be measured."
        )
    return sets


def read_set(folder: Path) -> CodeSet:
    tree = folder / TREE
    if not tree.is_dir():
        raise InvalidInput(f"{tree}: there is no such folder. {LAYOUT}.")
    queries = _queries(find_file(folder, QUERIES))
    grades = _grades(find_file(folder, GRADES), {query.id for query in queries})
    return CodeSet(
        name=folder.resolve().name,
        tree=tree,
        root=_root(folder / META, tree),
        queries=queries,
        grades=grades,
    )


def fingerprint(sets: Sequence[CodeSet], scope: Scope) -> str:
    """Hash queries and grades; runs with the same hash are comparable."""
    asked = [(one.name, one.prefix(scope), one.queries, sorted(one.grades.items())) for one in sets]
    return hashlib.sha256(msgspec.json.encode(asked)).hexdigest()


def _is_set(folder: Path) -> bool:
    """Accept any of the parts, so that an incomplete set is refused, not skipped."""
    return any((folder / name).exists() for name in (TREE, QUERIES, f"{QUERIES}.gz", GRADES))


def _queries(path: Path) -> tuple[CodeQuery, ...]:
    found = with_unique_ids(path, json_lines(path, CodeQuery))
    queries = tuple(query for _, query in found)
    if not queries:
        raise InvalidInput(f"{path}: there is no query in it.")
    return queries


def _grades(path: Path, queries: Collection[str]) -> dict[str, dict[str, int]]:
    grades: dict[str, dict[str, int]] = {query: {} for query in queries}
    for number, line in text_lines(path):
        fields = [field.strip() for field in line.split("\t")]
        if len(fields) != 3:
            raise_line_error(
                path,
                number,
                f"{len(fields)} columns, not 3: query, path and grade, separated by tabs.",
            )
        query, file, grade = fields
        if number == 1 and query not in queries and not _whole_number.fullmatch(grade):
            continue  # a header line
        if query not in queries:
            raise_line_error(path, number, f"there is no query {query!r} in {QUERIES}.")
        if not _whole_number.fullmatch(grade):
            raise_line_error(
                path,
                number,
                f"grade {grade!r} is not a whole number. Higher is better; 0 is forbidden.",
            )
        if file in grades[query]:
            raise_line_error(
                path, number, f"query {query!r} and file {file!r} were judged on an earlier line."
            )
        grades[query][file] = int(grade)
    return grades


def _root(path: Path, tree: Path) -> str:
    try:
        root = msgspec.json.decode(content(path), type=_Meta).root
    except (msgspec.DecodeError, msgspec.ValidationError, UnicodeDecodeError) as error:
        raise InvalidInput(
            f'{path}: {error}. It is a JSON object such as {{"root": "src"}}.'
        ) from None
    parts = PurePosixPath(root).parts
    if root.startswith("/") or ".." in parts or not (tree / root).is_dir():
        raise InvalidInput(
            f"{path}: root {root!r} is no folder in {tree}. Name a sub-folder, or leave it empty."
        )
    return "/".join(parts)


def _unique(sets: Sequence[CodeSet]) -> tuple[CodeSet, ...]:
    seen = Counter(query.id for one in sets for query in one.queries)
    return tuple(_renamed(one, {id for id, times in seen.items() if times > 1}) for one in sets)


def _renamed(one: CodeSet, repeated: Collection[str]) -> CodeSet:
    names = {
        query.id: f"{one.name}/{query.id}" if query.id in repeated else query.id
        for query in one.queries
    }
    queries = tuple(msgspec.structs.replace(query, id=names[query.id]) for query in one.queries)
    return replace(
        one, queries=queries, grades={names[query]: grades for query, grades in one.grades.items()}
    )
