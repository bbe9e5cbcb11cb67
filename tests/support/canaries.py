"""Secrets that must appear nowhere, and the places to search for them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from support.invented_secrets import github, letters, password

# Shorter pieces may occur by chance.
PIECE = 7


class Canaries:
    """Generator of secrets that remembers each one."""

    def __init__(self) -> None:
        self.made: list[str] = []

    def token(self, name: str) -> str:
        return self._kept(github(name))

    def word(self, name: str) -> str:
        return self._kept(password(name))

    def private(self, name: str) -> str:
        return f"<private>{self._kept(letters(name, 20))}</private>"

    def fields(self, name: str) -> dict[str, Any]:
        """Return one secret for every field that takes free text, plus a private part."""
        return {
            "content": f"The bot of {name} logs in with {self.token(f'{name} content')}, password: "
            f"{self.word(f'{name} password')}, {self.private(f'{name} private')}.",
            "title": f"Bot {self.token(f'{name} title')}",
            "tags": [self.token(f"{name} tag"), "bots"],
            "expanded_keywords": [
                self.token(f"{name} keyword"),
                f"<private>{self._kept(letters(name + 'k', 20))}</private>",
            ],
            "source": f"https://bot:{self.word(f'{name} source')}@git.acme.dev/{self.token(f'{name} path')}",
        }

    def found_in(self, text: str) -> list[str]:
        """Return the secrets that the text holds completely or in part."""
        lower = text.lower()
        return [one for one in self.made if any(piece in lower for piece in _pieces(one.lower()))]

    def _kept(self, secret: str) -> str:
        self.made.append(secret)
        return secret


def _pieces(secret: str) -> Iterator[str]:
    tail = secret.removeprefix("ghp_")
    yield from (tail[at : at + PIECE] for at in range(len(tail) - PIECE + 1))


def everything_stored(path: Path) -> str:
    """Return every cell of every table, including shadow tables."""
    connection = sqlite3.connect(path)
    connection.text_factory = bytes
    names = [
        row[0].decode()
        for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    ]
    rows = [row for name in names for row in connection.execute(f"SELECT * FROM [{name}]")]
    connection.close()
    return "\n".join(_text(cell) for row in rows for cell in row)


def everything_on_disk(folder: Path) -> str:
    return "\n".join(_text(file.read_bytes()) for file in folder.rglob("*") if file.is_file())


def _text(cell: Any) -> str:
    return cell.decode("latin-1") if isinstance(cell, bytes) else str(cell)
