"""The named SQL of the PostgreSQL store, written with :names as in the embedded one."""

from __future__ import annotations

import re

from trivet.store.relational.queries import Queries

_name = re.compile(r"(?<![:\w]):([a-z_]+)")


def spoken(sql: str) -> str:
    """As psycopg takes it."""
    return _name.sub(r"%(\1)s", sql.replace("%", "%%"))


QUERIES = Queries(__package__, spoken)
