"""A listing of a tree of which a part was looked at again.

Processes that parse a share of a large tree each, and keep it in the index file themselves.

Several processes may fill one index anyway, so nothing comes back from them: one that dies has done less, and whoever
asked parses what is missing then. They end with the process that began them.

Brings the index file up to date with a tree: parses what it does not know yet, in batches that each are kept.

`python -m trivet.code.index.help`: parses the share of a tree that it is told of, and keeps it in the index.
"""

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
    """The listing with what is now at the paths `only`, and below them, in the place of what was there before."""
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

# Below this a process is hardly begun when the work is done.
MIN_SHARED_BYTES = 3_000_000
# So much longer than this process took for its own share the others may take: one that hangs holds nobody up.
HELPER_TIMEOUT_SECONDS = 30.0


class Share(msgspec.Struct, frozen=True, kw_only=True):
    """What one process parses."""

    index: Path
    root: Root
    files: Sequence[KeyedFile]
    began: float
    encoder: bool


def shares_of(files: Sequence[KeyedFile], encoder: Encoder | None) -> list[Sequence[KeyedFile]]:
    """One for each core that may be used, this process's first. A small tree, or another's encoder: one share."""
    small = sum(one.file.size for one in files) < MIN_SHARED_BYTES
    if small or not sys.executable or (encoder is not None and encoder is not bundled()):
        return [files]
    shares = worker_cores()
    return [files[first::shares] for first in range(shares)]


@contextmanager
def helper_processes(shares: Sequence[Share]) -> Iterator[None]:
    """While the caller parses its own share, the others are parsed. After it all are done, as well as it went."""
    began = time.monotonic()
    processes = [process for share in shares if (process := _started(share)) is not None]
    try:
        yield
        until = 2 * time.monotonic() - began + HELPER_TIMEOUT_SECONDS
        for process in processes:
            with suppress(subprocess.TimeoutExpired):  # what it has not done is parsed here
                process.wait(max(until - time.monotonic(), 0))
    finally:
        for process in processes:
            process.kill()
            process.wait()


def _started(share: Share) -> subprocess.Popen[bytes] | None:
    # -P: the folder that is indexed is a stranger's, and must not be able to pose as our package.
    command = [sys.executable, "-P", "-m", "trivet.code.index.refresh"]
    quiet = subprocess.DEVNULL
    try:
        with (
            tempfile.TemporaryFile() as told
        ):  # a pipe would make this process wait until the other reads
            told.write(msgspec.msgpack.encode(share, enc_hook=str))
            told.seek(0)
            return subprocess.Popen(command, stdin=told, stdout=quiet, stderr=quiet)
    except OSError as error:
        logger.warning(
            "No process can be begun to help with the index (%s): it takes longer.", error
        )
        return None


# Kept together: what a killed process loses, and how often others that index the same repository wait.
BATCH = 128

# The coarsest step of a file system's clock.
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
    """Parses the files whose facts are not kept, and keeps them; returns how many that were.

    `began` is when the tree was listed: what was written since is left for the next look.
    """
    unknown = index.unknown(one.key for one in files)
    waiting = [one for one in files if one.key in unknown]
    own, *others = shares_of(waiting, encoder)
    told = [
        Share(index=index.file, root=root, files=share, began=began, encoder=encoder is not None)
        for share in others
    ]
    with helper_processes(told):
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


def _batches(files: Sequence[KeyedFile]) -> Iterator[Sequence[KeyedFile]]:
    for start in range(0, len(files), BATCH):
        yield files[start : start + BATCH]


def _facts(
    root: Root, file: TreeFile, began: float, encoder: Encoder | None
) -> FileFacts | LeftOut | None:
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


def main() -> None:
    share = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=Share, dec_hook=_path)
    asked_by, index = os.getppid(), IndexFile(share.index)
    try:
        for _ in parse_batches(
            index, share.root, share.files, share.began, bundled() if share.encoder else None
        ):
            if os.getppid() != asked_by:  # it is gone, and with it whoever waits for this
                return
    finally:
        index.close()


def _path(kind: type, value: Any) -> Any:
    if kind is Path:
        return Path(value)
    raise NotImplementedError(kind)


if __name__ == "__main__":
    main()
