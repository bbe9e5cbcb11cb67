"""How SQLite spells what the shared SQL leaves open."""

from __future__ import annotations

import re
from pathlib import Path

from trivet.store.relational.queries import Dialect, Queries

_cast = re.compile(r"::[a-z0-9]+")
_LISTED = "(SELECT value FROM json_each(:{}))"
# Lists travel as JSON. One writer at a time needs no locks on rows, and a parameter no type.
DIALECT = Dialect(
    folder=Path(__file__).parent,
    spellings={
        "in_keys": f"IN {_LISTED}",
        "in_texts": f"IN {_LISTED}",
        "not_in_keys": f"NOT IN {_LISTED}",
        "each_key": "json_each(:{}) AS wanted",
        "each_text": "json_each(:{}) AS wanted",
        "position": "instr",
        "epoch": "((julianday('now') - 2440587.5) * 86400.0)",
        "skip_locked": "",
        "tenant": "",
    },
    translate=lambda sql: _cast.sub("", sql),
)
QUERIES = Queries(DIALECT)
