"""Where memories live.

**The seam.** All stores are relational, and nearly all of their code is shared: `relational/` holds one class for each
part (memories, links, the lexical index, vectors, graph, jobs, ...), `sql/` their queries, written once, and
`RelationalStore` puts the parts together. What differs between databases goes through one seam,
`relational/database.py`: a database gives connections and transactions, spells a few words of SQL its own way (its
`Dialect`), and brings the few things that it does otherwise, such as its search among vectors. `sqlite/` (one file) and
`postgres/` (a server with many tenants) fill that seam: a connection, a dialect, the queries that truly differ in
their `sql/`, and numbered migrations. A third database would be a third such folder and a line in
settings/address.py.

**The write path.** A write opens one transaction (`database.write()`; within another it is part of that one). It writes
the memory's row and its revision, the words of its lexical index and a job for each index that is filled later: vectors
by an embedder, concepts by the rules or a language model. In the same transaction it puts the memory's key on the
record of changes (`connection.note_change`), in the order of commits. The worker leases jobs (`jobs`, `graph`), works
without a transaction, and finishes them in another write, which drops what was made for an old revision.

**The read path.** A recall reads within `store.moment()`. Each index keeps in memory what it needs (posting lists,
vectors, the graph, who may see what) and asks `Changes` which keys were changed since, whichever process changed them:
one question to the database serves all caches of a recall. `Visibility` turns the caller's filter into an array over
keys, by the one predicate of sql/visible.sql, and every index applies it while it searches. What is found are keys;
`Ids` turns them into ids, and `memories.get_many` reads the rows. For a user of a server `seen_by(user)` gives the same
store with the parts that hold words limited to what that user may read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trivet.store.relational.store import RelationalStore as Store

    __all__ = ["Store"]
