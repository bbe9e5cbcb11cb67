"""Which chunks may answer: by folder or pattern, language, kind of definition, and whether tests count."""

from __future__ import annotations

from fnmatch import fnmatch

import numpy as np

from trivet.code.index.facts import KINDS
from trivet.code.index.segment import Segment
from trivet.code.parse.languages import TEXT, language_of
from trivet.code.roles import Role
from trivet.code.search.view import Mask, View
from trivet.code.tree import Root
from trivet.code.types import CodeFilters
from trivet.errors import InvalidInput


def allowed(view: View, root: Root, filters: CodeFilters) -> Mask | None:
    """By chunk; None where all are."""
    if filters.kind and filters.kind not in KINDS:
        raise InvalidInput(f"There is no kind {filters.kind!r}; the kinds are {', '.join(KINDS)}.")
    if not root.prefix and filters == CodeFilters():
        return None
    languages = _languages(view, filters.lang) if filters.lang else frozenset()
    masks = []
    for segment in view.segments:
        paths = [segment.path.at(number) for number in range(len(segment.path))]
        files = np.array([_path_fits(path, root.prefix, filters.path) for path in paths], bool)
        if filters.lang:
            files &= np.array([segment.language.at(number) in languages for number in range(len(segment.path))], bool)
        if filters.tests is not None:
            files &= (segment.role == Role.TEST) == filters.tests
        chunks = files[segment.file] if len(files) else np.zeros(0, bool)
        if filters.kind:
            chunks &= _of_kind(segment, KINDS.index(filters.kind))
        masks.append(chunks)
    return np.concatenate(masks)


def _languages(view: View, named: str) -> frozenset[str]:
    """The language of that name, or that files of such an ending have: `python` and `py` alike."""
    lower = named.lower().removeprefix(".")
    there = {segment.language.at(number) for segment in view.segments for number in range(len(segment.path))}
    wanted = {lower, language_of(f"a.{lower}", b"")} - {TEXT} | ({lower} & {TEXT})
    if not wanted & there:
        raise InvalidInput(f"No file here is in {named!r}; there are {', '.join(sorted(there)) or 'none at all'}.")
    return frozenset(wanted)


def _of_kind(segment: Segment, kind: int) -> Mask:
    """By chunk: whether it is such a definition, or one begins in it: a small class is one chunk with its methods."""
    found: Mask = segment.kind == kind
    found[segment.symbols.chunk[segment.symbols.kind == kind]] = True
    return found


def _path_fits(path: str, prefix: str, pattern: str) -> bool:
    if not path.startswith(prefix):
        return False
    inner = path[len(prefix) :]
    if not pattern:
        return True
    if any(mark in pattern for mark in "*?["):
        return fnmatch(inner, pattern) or fnmatch(inner, f"*/{pattern}")
    folder = pattern.strip("/").removeprefix("./")
    return inner == folder or inner.startswith(folder + "/") or f"/{folder}/" in f"/{inner}"
