"""The named SQL of the embedded store."""

from __future__ import annotations

from importlib import resources

from trivet.store.relational.queries import Queries

QUERIES = Queries(__package__)


def migration(version: int) -> str:
    return resources.files(__package__).joinpath("sql", "migrations", f"{version:03}.sql").read_text(encoding="utf-8")
