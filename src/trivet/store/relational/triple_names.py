"""What readings by a language model need of the store: known names, names like them, and the day's budget."""

from __future__ import annotations

from collections.abc import Sequence

from trivet.clock import now
from trivet.graph.canonical import canonical, form
from trivet.store.relational.database import Database
from trivet.store.relational.rows import as_json

# A word that more memories hold says little about a name; the newest are enough to find its neighbours.
MEMORIES_LOOKED_AT = 50


def means(database: Database, labels: Sequence[str]) -> dict[str, str]:
    """The canonical name of the concept that earlier readings took each label to mean, for the labels they met."""
    sql = database.sql("triples")
    with database.errors():
        connection = database.read()
        forms = connection.execute(sql["means"], {"forms": as_json({form(label) for label in labels})}).fetchall()
        names = {"names": as_json({canonical(label) for label in labels})}
        read = {row[0] for row in connection.execute(sql["read_names"], names)}
    by_form = {row[0]: row[1] for row in forms if row[1] is not None}
    own = {label: canonical(label) for label in labels if canonical(label) in read}
    return own | {label: by_form[form(label)] for label in labels if form(label) in by_form}


def names_with(database: Database, terms: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Names (as written, and the concept's canonical one) that memories with any of these terms mention."""
    found: set[tuple[str, str]] = set()
    with database.errors():
        for term in terms:
            parameters = {"term": term, "memories": MEMORIES_LOOKED_AT}
            found.update(
                (row[0], row[1]) for row in database.read().execute(database.sql("triples")["names_with"], parameters)
            )
    return tuple(sorted(found))


def spend(database: Database, tokens: int, most: int) -> bool:
    """Takes tokens out of today's budget, shared by all processes. False, and nothing taken, if they would not fit."""
    if tokens > most:
        return False
    with database.write() as connection:
        parameters = {"name": _today(), "tokens": tokens, "most": most}
        taken = connection.execute(connection.sql("triples")["spend"], parameters).rowcount > 0
        connection.execute(connection.sql("triples")["forget_earlier_days"], {"name": _today()})
    return taken


def spent(database: Database) -> int:
    with database.errors():
        row = database.read().execute(database.sql("triples")["spent"], {"name": _today()}).fetchone()
    return int(row[0]) if row else 0


def _today() -> str:
    return f"language model tokens {now()[:10]}"
