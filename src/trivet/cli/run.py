"""From the words on the command line to an exit status. No error that we expect shows a stack trace."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import typer

from trivet.cli.app import root_command
from trivet.cli.terminal import INTERRUPTED, STOPPED, discard_output, report_error, report_usage
from trivet.errors import TrivetError


def run(arguments: Sequence[str] | None) -> int:
    given = [_as_typed(argument) for argument in (sys.argv[1:] if arguments is None else arguments)]
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
    """In a locale that is not UTF-8 Python marks the bytes it cannot read; as typed they are UTF-8 all the same."""
    try:
        return os.fsencode(argument).decode()
    except UnicodeError:
        return argument  # refused later, with the name of the field
