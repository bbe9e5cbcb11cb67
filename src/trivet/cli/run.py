"""The entry point: runs one command and returns its exit status.

An agent waits for `trivet hook` before every prompt, so this module imports nothing else for it.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # typing and collections.abc take milliseconds that a hook must not wait for
if TYPE_CHECKING:
    from collections.abc import Sequence

# Files may hold memories, so only the user may read them.
PRIVATE_UMASK = 0o077
# A second BLAS thread only spins on a core that the model needs: with it, a recall over long
# memories took 1.6 times the processor time.
SINGLE_BLAS_THREAD = ("OPENBLAS_NUM_THREADS", "1")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    if words[:1] == ["hook"] and not {"-h", "--help"} & set(words):
        from trivet.serve.resident.hook_client import main as hook

        return hook(words[1:])
    os.environ.setdefault(*SINGLE_BLAS_THREAD)
    before = os.umask(PRIVATE_UMASK)
    try:
        return run(words)
    finally:
        os.umask(before)


def run(arguments: Sequence[str]) -> int:
    """Run any other command than a hook."""
    import typer

    from trivet.cli.app import root_command
    from trivet.cli.terminal import (
        INTERRUPTED,
        STOPPED,
        discard_output,
        report_error,
        report_usage,
    )
    from trivet.errors import TrivetError

    given = [_as_typed(argument) for argument in arguments]
    as_json = "--json" in given
    try:
        status = root_command().main(args=given, prog_name="trivet", standalone_mode=False)
        sys.stdout.flush()
    except typer.TyperException as error:
        return report_usage(error, as_json)
    except TrivetError as error:
        return report_error(error, as_json)
    except BrokenPipeError:
        discard_output()
        return 0
    except typer.Abort:
        return STOPPED
    except KeyboardInterrupt:
        return INTERRUPTED
    return status if isinstance(status, int) else 0


def _as_typed(argument: str) -> str:
    """Undo the surrogate escapes of a locale that is not UTF-8."""
    try:
        return os.fsencode(argument).decode()
    except UnicodeError:
        return argument  # validation rejects it later and names the field
