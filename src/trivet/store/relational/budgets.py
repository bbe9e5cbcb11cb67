"""What language models may use up in a day, counted in the database and so shared by all processes."""

from __future__ import annotations

from typing import Literal

from trivet.clock import now
from trivet.store.relational.database import Database, Part

# "language model" reads memories for the graph, "capture" curates proposals.
Purpose = Literal["language model", "capture"]


class Budget(Part):
    """The tokens of one purpose. The count of each day has a row of its own, named by purpose and day."""

    file = "budgets"

    def __init__(self, database: Database, purpose: Purpose) -> None:
        super().__init__(database)
        self._purpose = purpose

    def spend(self, tokens: int, most: int) -> bool:
        """Takes tokens out of today's budget. False, and nothing taken, if they do not fit."""
        if tokens > most:
            return False
        with self._database.write() as connection:
            values = {"name": self._today, "tokens": tokens, "most": most}
            taken = connection.execute(self._sql["spend"], values).rowcount > 0
            names = {"name": self._today, "earlier": f"{self._purpose} tokens %"}
            connection.execute(self._sql["forget_earlier_days"], names)
        return taken

    def spent(self) -> int:
        row = self._row("spent", name=self._today)
        return int(row[0]) if row else 0

    @property
    def _today(self) -> str:
        return f"{self._purpose} tokens {now()[:10]}"
