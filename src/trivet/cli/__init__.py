"""The command line: thin commands over the facade, their options generated from the contract."""

from __future__ import annotations

from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and returns the exit status. Imports wait until here, so that `import trivet.cli` is free."""
    from trivet.cli.run import run

    return run(arguments)
