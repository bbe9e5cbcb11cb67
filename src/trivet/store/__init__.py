"""The store: memories and everything derived from them, on SQLite or PostgreSQL.

**The seam.** `relational/` holds one class per part, `sql/` their queries; `RelationalStore`
assembles them. All that differs between databases goes through `relational/database.py`.

**The write path.** One transaction (`database.write()`) writes the row, its revision, its lexical
entry, a job for each index filled later, and an entry in the change log. The worker drops results
for an old revision.

**The read path.** A recall reads within `store.moment()`. Indexes are cached in memory and ask
`Changes` which keys changed since, in any process. `Visibility` turns a filter into an array over
keys by the one predicate in sql/visible.sql; every index applies it while searching.
`seen_by(user)` limits a store to a user's rights.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trivet.store.relational.store import RelationalStore as Store

    __all__ = ["Store"]
