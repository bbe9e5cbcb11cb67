"""Server threads share few C library memory arenas, as reported by the C library itself."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys

import pytest

from trivet.serve.http.server import MAX_ARENAS, limit_arenas

# Twelve threads must allocate at once, or one arena would be enough.
ALLOCATING = """
import ctypes, threading
from concurrent.futures import ThreadPoolExecutor
from trivet.serve.http.server import limit_arenas

print(limit_arenas(), flush=True)
libc, meeting = ctypes.CDLL(None), threading.Barrier(12)
libc.malloc.restype = ctypes.c_void_p

def allocate(_):
    meeting.wait(30)
    libc.malloc(ctypes.c_size_t(100_000))

with ThreadPoolExecutor(12) as pool:
    list(pool.map(allocate, range(12)))
libc.fdopen.restype = ctypes.c_void_p
libc.malloc_info(0, ctypes.c_void_p(libc.fdopen(1, b"w")))
libc.fflush(None)
"""


@pytest.mark.skipif(
    not hasattr(ctypes.CDLL(None), "malloc_info"), reason="this C library has no arenas"
)
def test_twelve_threads_use_few_arenas() -> None:
    environment = {name: value for name, value in os.environ.items() if name != "MALLOC_ARENA_MAX"}
    done = subprocess.run(
        [sys.executable, "-c", ALLOCATING], capture_output=True, text=True, env=environment
    )
    assert done.stdout.startswith("True\n"), done.stderr
    assert 1 <= done.stdout.count("<heap nr=") <= MAX_ARENAS


def test_user_setting_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MALLOC_ARENA_MAX", "7")
    assert not limit_arenas()
