"""The index file beside an SQLite store: a store at `memory.db` has it in the folder `memory.db.index`.

Every process that opens the store sees the same folder, so the database names one file, or that all must go.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from trivet.store.relational.index_files import IndexFiles

if TYPE_CHECKING:
    from trivet.store.relational.database import WriteTransaction
    from trivet.store.sqlite.database import Database

# In the table of single values: which file is current, or that all must go.
_INDEX = "index"
_DISOWNED = "disowned"


class SqliteIndexFiles(IndexFiles):
    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._sqlite = database
        self._beside = database.path.with_name(f"{database.path.name}.index")

    @property
    def folder(self) -> Path:
        return self._beside

    def disown(self, connection: WriteTransaction) -> None:
        connection.execute(connection.sql("maintenance")["set_meta"], {"name": _INDEX, "value": _DISOWNED})

    def disowned(self) -> bool:
        return self._noted() == _DISOWNED

    def remove_disowned(self) -> bool:
        if not self.disowned():
            return True
        if not self._removed_all():
            return False
        sql = self._sqlite.sql("maintenance")["drop_meta"]
        self._sqlite.read().execute(sql, {"name": _INDEX, "value": _DISOWNED})
        return True

    def _named(self) -> str | None:
        noted = self._noted()
        return None if noted == _DISOWNED else noted

    def _moment(self) -> str | None:
        return self._noted()

    def _adopted(self, named: str, before: object) -> bool:
        """Nor is it named where another file was named since."""
        with self._sqlite.write() as connection:
            if self._noted() != before:
                return False
            connection.execute(connection.sql("maintenance")["set_meta"], {"name": _INDEX, "value": named})
            return True

    def _noted(self) -> str | None:
        with self._sqlite.errors():
            sql = self._sqlite.sql("maintenance")["get_meta"]
            row = self._sqlite.read().execute(sql, {"name": _INDEX}).fetchone()
        return None if row is None else str(row[0])
