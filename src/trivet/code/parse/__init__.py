"""Parses a file into definitions and chunks."""

from trivet.code.parse.file import parse, prepare

__all__ = ["parse", "prepare"]
