"""Bytes of a file as text, whatever their encoding."""

from __future__ import annotations

import codecs

_UTF16 = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}


def decode(source: bytes) -> str:
    """UTF-8, UTF-16 if it says so, and Latin-1 otherwise, which any bytes are. Lines end in a newline alone."""
    text = _decoded(source)
    return text.replace("\r\n", "\n") if "\r" in text else text


def _decoded(source: bytes) -> str:
    for mark, encoding in _UTF16.items():
        if source.startswith(mark):
            return source[len(mark) :].decode(encoding, "replace")
    try:
        return source.removeprefix(codecs.BOM_UTF8).decode("utf-8")
    except UnicodeDecodeError:
        return source.decode("latin-1")


def lines_of(text: str) -> list[str]:
    """As tree-sitter and editors count them; a newline at the end begins no further line."""
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    return lines
