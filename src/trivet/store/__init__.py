"""The store: memories and everything derived from them, on SQLite or PostgreSQL.

`RelationalStore` assembles the parts in `relational/`; `relational/database.py` is the seam to each
database.

One transaction writes a row, its revision, its lexical entry, a job for each index filled later,
and an entry in the change log. A recall reads within `store.moment()`: `Visibility` turns its
filter into an array over keys, and every index applies it while searching.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trivet.store.relational.store import RelationalStore as Store

    __all__ = ["Store"]
