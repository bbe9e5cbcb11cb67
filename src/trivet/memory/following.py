"""How a store that follows a server stands with it, read from the store alone: `doctor` and `trivet status` tell it."""

from __future__ import annotations

import msgspec

from trivet.memory.engine import Engine


class Following(msgspec.Struct, frozen=True, kw_only=True):
    """`contact` is when the server last answered, `hidden` whether others' memories are hidden since."""

    server: str
    user: str
    contact: str | None
    waiting: int
    oldest: str | None
    refused: int
    conflicts: int
    hidden: bool

    @property
    def told(self) -> str:
        contact = f"last contact {self.contact}" if self.contact else "the server was never reached"
        oldest = f", the oldest since {self.oldest}" if self.oldest else ""
        hidden = "; what others shared is hidden until the next contact" if self.hidden else ""
        questions = f"{self.refused} refused, {self.conflicts} conflicts"
        return f"{contact}; {self.waiting} operations wait{oldest}; {questions}{hidden}"


def following(engine: Engine) -> Following | None:
    """None for a store that follows nobody."""
    if not engine.follows:
        return None
    connection = engine.store.feed.database.read()
    [row] = connection.execute(connection.sql("replica")["standing"]).fetchall()
    return Following(
        server=row["server"],
        user=row["user"],
        contact=row["contact"] or None,
        waiting=row["waiting"],
        oldest=row["oldest"],
        refused=row["refused"],
        conflicts=row["conflicts"],
        hidden=bool(row["hidden"]),
    )
