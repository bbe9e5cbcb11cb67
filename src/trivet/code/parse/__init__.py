"""Cuts a file up: its definitions by syntax, and chunks along them."""

from trivet.code.parse.file import parse, prepare

__all__ = ["parse", "prepare"]
