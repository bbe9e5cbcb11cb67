"""The command line: thin commands over the facade, their options generated from the contract."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

# What a command writes may hold memories: nobody but its user reads it, wherever the user has it put.
PRIVATE_UMASK = 0o077
# The products of a recall are so small that numpy's second thread does nothing but wait in a loop, on a core that the
# model needs: a recall over long memories took 1.6 times the processor time.
SINGLE_BLAS_THREAD = ("OPENBLAS_NUM_THREADS", "1")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and returns the exit status. Imports wait until here, so that `import trivet.cli` is free."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    if words[:1] == ["hook"] and not {"-h", "--help"} & set(words):
        from trivet.serve.resident.hook_client import (
            main as hook,
        )  # an agent waits for it before every prompt

        return hook(words[1:])
    from trivet.cli.run import run

    os.environ.setdefault(*SINGLE_BLAS_THREAD)
    before = os.umask(PRIVATE_UMASK)
    try:
        return run(arguments)
    finally:
        os.umask(before)
