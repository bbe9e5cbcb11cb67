"""Brings the index file up to date: parses new files in batches, on several cores."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec

from trivet.code.encoder import Encoder, bundled
from trivet.code.index.database import IndexFile, key_of
from trivet.code.index.facts import FileFacts, facts_of
from trivet.code.parse import parse, prepare
from trivet.code.tree import Listing, Root, blob_of, read_file
from trivet.code.types import KeyedFile, LeftOut, Tree, TreeFile
from trivet.common.threads import worker_cores
from trivet.errors import TrivetError


def merge_listing(before: Listing, part: Listing, only: Collection[str]) -> Listing:
    """Return `before`, with what is at or below `only` replaced by `part`."""
    exact = frozenset(one.rstrip("/") for one in only)
    below = tuple(f"{one}/" for one in exact)

    def elsewhere(path: str) -> bool:
        return path not in exact and not path.startswith(below)

    files = [file for file in before.tree.files if elsewhere(file.path)]
    left_out = [one for one in before.tree.left_out if elsewhere(one.path.rstrip("/"))]
    tree = Tree(
        files=tuple(sorted([*files, *part.tree.files], key=lambda file: file.path)),
        left_out=(*left_out, *part.tree.left_out),
    )
    stats = {path: stat for path, stat in before.stats.items() if elsewhere(path)}
    return Listing(tree, {**stats, **part.stats})


logger = logging.getLogger("trivet.code")

# Parsing less takes no longer than starting a process.
MIN_SHARED_BYTES = 3_000_000
# Helpers may take this much longer than this process did, so that a hung one delays nobody for
# long.
HELPER_TIMEOUT_SECONDS = 30.0


class Share(msgspec.Struct, frozen=True, kw_only=True):
    index: Path
    root: Root
    files: Sequence[KeyedFile]
    began: float
    encoder: bool


def shares_of(files: Sequence[KeyedFile], encoder: Encoder | None) -> list[Sequence[KeyedFile]]:
    """Split files by available cores, this process first.

    A small tree gives one share.
    """
    small = sum(one.file.size for one in files) < MIN_SHARED_BYTES
    if small or not sys.executable or (encoder is not None and encoder is not bundled()):
        return [files]
    shares = worker_cores()
    return [files[first::shares] for first in range(shares)]


@contextmanager
def helper_processes(shares: Sequence[Share]) -> Iterator[None]:
    """Parse shares in other processes while the block runs; the caller parses the rest."""
    began = time.monotonic()
    processes = [process for share in shares if (process := _started(share)) is not None]
    try:
        yield
        until = 2 * time.monotonic() - began + HELPER_TIMEOUT_SECONDS
        for process in processes:
            with suppress(subprocess.TimeoutExpired):  # the caller parses what is left
                process.wait(max(until - time.monotonic(), 0))
    finally:
        for process in processes:
            process.kill()
            process.wait()


def _started(share: Share) -> subprocess.Popen[bytes] | None:
    # -P: the indexed folder is untrusted and must not be imported in place of this package.
    command = [sys.executable, "-P", "-m", "trivet.code.index.refresh"]
    quiet = subprocess.DEVNULL
    try:
        with tempfile.TemporaryFile() as stdin:  # a pipe would block until the helper reads
            stdin.write(msgspec.msgpack.encode(share, enc_hook=str))
            stdin.seek(0)
            return subprocess.Popen(command, stdin=stdin, stdout=quiet, stderr=quiet)
    except OSError as error:
        logger.warning("Cannot start a helper process (%s): indexing takes longer.", error)
        return None


# Files per commit. It bounds what a killed process loses, and how long other writers wait.
BATCH = 128

# Seconds: the coarsest step of a file system's clock.
TICK = 2.0

Progress = Callable[[int, int], None]


def with_keys(files: Sequence[TreeFile], encoder: Encoder | None) -> list[KeyedFile]:
    identity = encoder.identity if encoder else ""
    return [KeyedFile(file, key_of(file.path, file.blob, identity)) for file in files]


def parse_missing(
    index: IndexFile,
    root: Root,
    files: Sequence[KeyedFile],
    began: float,
    encoder: Encoder | None,
    progress: Progress | None = None,
) -> int:
    """Parse and store files without facts, and return their number.

    The next refresh takes files written after the listing `began`.
    """
    unknown = index.unknown(one.key for one in files)
    waiting = [one for one in files if one.key in unknown]
    own, *others = shares_of(waiting, encoder)
    helper_shares = [
        Share(index=index.file, root=root, files=share, began=began, encoder=encoder is not None)
        for share in others
    ]
    with helper_processes(helper_shares):
        for done in parse_batches(index, root, own, began, encoder):
            if progress:
                progress(min(done * (1 + len(others)), len(waiting)), len(waiting))
    helpers_left = index.unknown(one.key for share in others for one in share)
    for _ in parse_batches(
        index, root, [one for one in waiting if one.key in helpers_left], began, encoder
    ):
        pass
    return len(waiting)


def parse_batches(
    index: IndexFile, root: Root, files: Sequence[KeyedFile], began: float, encoder: Encoder | None
) -> Iterator[int]:
    """Yield the number of files stored so far."""
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


def _batches(files: Sequence[KeyedFile]) -> Iterator[Sequence[KeyedFile]]:
    for start in range(0, len(files), BATCH):
        yield files[start : start + BATCH]


def _facts(
    root: Root, file: TreeFile, began: float, encoder: Encoder | None
) -> FileFacts | LeftOut | None:
    """Return None for a changed or unreadable file; the next refresh retries."""
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
    """Compare times first: git's id need not match the bytes (filters)."""
    try:
        found = (root.folder / path).lstat()
    except OSError:
        return True
    return max(found.st_mtime, found.st_ctime) >= began - TICK


def main() -> None:
    share = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=Share, dec_hook=_path)
    parent, index = os.getppid(), IndexFile(share.index)
    try:
        for _ in parse_batches(
            index, share.root, share.files, share.began, bundled() if share.encoder else None
        ):
            if os.getppid() != parent:  # the caller is gone
                return
    finally:
        index.close()


def _path(kind: type, value: Any) -> Any:
    if kind is Path:
        return Path(value)
    raise NotImplementedError(kind)


if __name__ == "__main__":
    main()
