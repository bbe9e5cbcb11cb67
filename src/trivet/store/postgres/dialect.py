"""How PostgreSQL spells what the shared SQL leaves open."""

from __future__ import annotations

import re
from pathlib import Path

from trivet.store.relational.queries import Dialect, Queries

_name = re.compile(r"(?<![:\w]):([a-z_]+)")


def _for_psycopg(sql: str) -> str:
    return _name.sub(r"%(\1)s", sql.replace("%", "%%"))


# Lists travel as JSON; as_keys and as_texts, made by the first migration, turn them into arrays. Every key of a table
# begins with the tenant. A queue's rows that another process has locked are left to that process. The time of a queue
# is that of the server, which all its clients share.
DIALECT = Dialect(
    folder=Path(__file__).parent,
    spellings={
        "in_keys": "= ANY (as_keys(:{}))",
        "in_texts": "= ANY (as_texts(:{}))",
        "not_in_keys": "!= ALL (as_keys(:{}))",
        "each_key": "unnest(as_keys(:{})) WITH ORDINALITY AS wanted (value, key)",
        "each_text": "unnest(as_texts(:{})) WITH ORDINALITY AS wanted (value, key)",
        "position": "strpos",
        "epoch": "extract(epoch FROM statement_timestamp())::float8",
        "skip_locked": "FOR UPDATE OF {} SKIP LOCKED",
        "tenant": "tenant, ",
    },
    translate=_for_psycopg,
)
QUERIES = Queries(DIALECT)
