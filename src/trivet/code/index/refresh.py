"""Brings the index file up to date with a tree: parses what it does not know yet, in batches that each are kept."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence

from trivet.code.encoder import Encoder
from trivet.code.index.database import IndexFile, key_of
from trivet.code.index.facts import FileFacts, facts_of
from trivet.code.index.helpers import Share, helped, shares_of
from trivet.code.parse import parse, prepare
from trivet.code.tree import Root, blob_of, read_file
from trivet.code.types import Keyed, LeftOut, TreeFile
from trivet.errors import TrivetError

logger = logging.getLogger("trivet.code")

# Kept together: what a killed process loses, and how often others that index the same repository wait.
BATCH = 128

# The coarsest step of a file system's clock.
TICK = 2.0

Progress = Callable[[int, int], None]


def keyed(files: Sequence[TreeFile], encoder: Encoder | None) -> list[Keyed]:
    identity = encoder.identity if encoder else ""
    return [Keyed(file, key_of(file.path, file.blob, identity)) for file in files]


def parse_missing(
    index: IndexFile,
    root: Root,
    files: Sequence[Keyed],
    began: float,
    encoder: Encoder | None,
    progress: Progress | None = None,
) -> int:
    """Parses the files whose facts are not kept, and keeps them; returns how many that were.

    `began` is when the tree was listed: what was written since is left for the next look.
    """
    unknown = index.unknown(one.key for one in files)
    waiting = [one for one in files if one.key in unknown]
    own, *others = shares_of(waiting, encoder)
    told = [
        Share(index=index.file, root=root, files=share, began=began, encoder=encoder is not None) for share in others
    ]
    with helped(told):
        for done in parse_batches(index, root, own, began, encoder):
            if progress:
                progress(min(done * (1 + len(others)), len(waiting)), len(waiting))
    helpers_left = index.unknown(one.key for share in others for one in share)
    for _ in parse_batches(index, root, [one for one in waiting if one.key in helpers_left], began, encoder):
        pass
    return len(waiting)


def parse_batches(
    index: IndexFile, root: Root, files: Sequence[Keyed], began: float, encoder: Encoder | None
) -> Iterator[int]:
    """Tells after each batch how many files are parsed and kept."""
    prepare(one.file.path for one in files)
    done = 0
    for batch in _batches(files):
        facts = [(one.key, _facts(root, one.file, began, encoder)) for one in batch]
        with index.writing():
            for key, found in facts:
                if found is not None:
                    index.put_facts(key, found)
        done += len(batch)
        yield done


def _batches(files: Sequence[Keyed]) -> Iterator[Sequence[Keyed]]:
    for start in range(0, len(files), BATCH):
        yield files[start : start + BATCH]


def _facts(root: Root, file: TreeFile, began: float, encoder: Encoder | None) -> FileFacts | LeftOut | None:
    """None where the file cannot be read now, or changed since it was listed: the next refresh looks again."""
    try:
        source = read_file(root, file.path)
    except TrivetError as error:
        logger.info("%s is not indexed: %s", file.path, error)
        return None
    if _changed_since(root, file.path, began) and blob_of(source, root.digest) != file.blob:
        return None
    parsed = parse(file.path, source)
    return parsed if isinstance(parsed, LeftOut) else facts_of(file.path, parsed, encoder)


def _changed_since(root: Root, path: str, began: float) -> bool:
    """Git's name for a file need not be that of its bytes (line ends, filters), so times are asked first."""
    try:
        found = (root.folder / path).lstat()
    except OSError:
        return True
    return max(found.st_mtime, found.st_ctime) >= began - TICK
