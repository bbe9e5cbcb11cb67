"""The command line; `main` is the entry point of the `trivet` program."""

from trivet.cli.run import main

__all__ = ["main"]
