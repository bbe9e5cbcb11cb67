"""A key rotation that is killed midway loses no secret."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support.invented_secrets import github
from trivet import Trivet

# Rotates, and is killed after this many transactions.
KILLED = """
import os, signal, sys
import trivet.memory.sealed_secrets
from trivet import Trivet
from trivet.store.relational.tables.access import Secrets

trivet.memory.sealed_secrets.RESEAL_BATCH = 2
left = int(sys.argv[2])
def reseal(self, done, whole=Secrets.reseal):
    global left
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    left -= 1
    whole(self, done)
Secrets.reseal = reseal
Trivet.open(sys.argv[1], embedder="none", background=False).rotate_keys(drop_old=True)
"""


@pytest.mark.usefixtures("configuration")
@pytest.mark.parametrize("after", [0, 2])
def test_killed_rotation_loses_no_secret(trivet: Trivet, path: Path, after: int) -> None:
    ids = [trivet.remember(github(str(number))).id for number in range(6)]
    killed = subprocess.run([sys.executable, "-c", KILLED, str(path), str(after)])
    assert killed.returncode == -signal.SIGKILL
    assert [trivet.reveal(id).content for id in ids] == [github(str(number)) for number in range(6)]
    rotated = trivet.rotate_keys(drop_old=True)
    assert (rotated.resumed, rotated.resealed, rotated.dropped) == (True, 6 - 2 * after, 1)
    assert [trivet.reveal(id).content for id in ids] == [github(str(number)) for number in range(6)]
