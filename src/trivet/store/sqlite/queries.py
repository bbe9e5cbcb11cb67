"""Named SQL, read once from the .sql files beside this module."""

from __future__ import annotations

from functools import cache
from importlib import resources

_MARK = "-- name: "


@cache
def queries(file: str) -> dict[str, str]:
    """The queries of one file by name. A query ends where the next one's name begins."""
    text = resources.files(__package__).joinpath("sql", f"{file}.sql").read_text(encoding="utf-8")
    found: dict[str, str] = {}
    for block in text.split(_MARK)[1:]:
        name, _, body = block.partition("\n")
        found[name.strip()] = body.strip().rstrip(";")
    return found


@cache
def visible_query(name: str, order: str = "") -> str:
    """A query of visible.sql with the one visibility predicate put in."""
    blocks = queries("visible")
    return blocks[name].replace("{visible}", blocks["predicate"]).replace("{order}", order)


def migration(version: int) -> str:
    return resources.files(__package__).joinpath("sql", "migrations", f"{version:03}.sql").read_text(encoding="utf-8")
