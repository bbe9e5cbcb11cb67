"""Processes that parse a share of a large tree each, and keep it in the index file themselves.

Several processes may fill one index anyway, so nothing comes back from them: one that dies has done less, and whoever
asked parses what is missing then. They end with the process that began them.
"""

from __future__ import annotations

import logging
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from trivet.code.encoder import Encoder, bundled
from trivet.code.tree import Root
from trivet.code.types import Keyed
from trivet.cores import usable_cores

logger = logging.getLogger("trivet.code")

# Below this a process is hardly begun when the work is done.
FEWEST_BYTES = 3_000_000
# So much longer than this process took for its own share the others may take: one that hangs holds nobody up.
PATIENCE_S = 30.0


class Share(msgspec.Struct, frozen=True, kw_only=True):
    """What one process parses."""

    index: Path
    root: Root
    files: Sequence[Keyed]
    began: float
    encoder: bool


def shares_of(files: Sequence[Keyed], encoder: Encoder | None) -> list[Sequence[Keyed]]:
    """One for each core that may be used, this process's first. A small tree, or another's encoder: one share."""
    small = sum(one.file.size for one in files) < FEWEST_BYTES
    if small or not sys.executable or (encoder is not None and encoder is not bundled()):
        return [files]
    shares = usable_cores()
    return [files[first::shares] for first in range(shares)]


@contextmanager
def helped(shares: Sequence[Share]) -> Iterator[None]:
    """While the caller parses its own share, the others are parsed. After it all are done, as well as it went."""
    began = time.monotonic()
    processes = [process for share in shares if (process := _started(share)) is not None]
    try:
        yield
        until = 2 * time.monotonic() - began + PATIENCE_S
        for process in processes:
            with suppress(subprocess.TimeoutExpired):  # what it has not done is parsed here
                process.wait(max(until - time.monotonic(), 0))
    finally:
        for process in processes:
            process.kill()
            process.wait()


def _started(share: Share) -> subprocess.Popen[bytes] | None:
    # -P: the folder that is indexed is a stranger's, and must not be able to pose as our package.
    command = [sys.executable, "-P", "-m", "trivet.code.index.help"]
    quiet = subprocess.DEVNULL
    try:
        with tempfile.TemporaryFile() as told:  # a pipe would make this process wait until the other reads
            told.write(msgspec.msgpack.encode(share, enc_hook=str))
            told.seek(0)
            return subprocess.Popen(command, stdin=told, stdout=quiet, stderr=quiet)
    except OSError as error:
        logger.warning("No process can be begun to help with the index (%s): it takes longer.", error)
        return None
