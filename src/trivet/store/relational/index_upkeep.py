"""When the index file of a store is written anew, and what doctor says of it. The same for every database."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from trivet.errors import EmbedderError
from trivet.store.relational.database import Part, StoreDatabase
from trivet.store.relational.mapped_index import MOST_CHANGES
from trivet.types import Finding

if TYPE_CHECKING:
    from trivet.store.relational.vector_index import VectorIndex

logger = logging.getLogger("trivet.store")

# Smaller stores get no index file: they are loaded as fast from the database (docs/decisions/0037).
LEAST_MEMORIES = 2_000
# With so many changes since it was made, or after a day with any, an index file is made anew: each new process takes
# them in, and what was forgotten since is still in the file.
CHANGES_BEHIND = 500
LONGEST_SECONDS = 86_400.0


class IndexUpkeep(Part):
    file = "maintenance"

    def __init__(self, database: StoreDatabase, vectors: VectorIndex) -> None:
        super().__init__(database)
        self._whole = database
        self._vectors = vectors

    def renew(self, only_if_missing: bool) -> bool:
        try:
            self._whole.index_files.tidy()
            if not self._is_due(only_if_missing):
                return False
            from trivet.store.relational.build_index import write_index

            return self._whole.index_files.renew(
                lambda writer, mark: write_index(writer, self._whole, self._vectors, mark)
            )
        # The disk is full or read-only, or a row is not as we write them: recalls go on without.
        except (OSError, EmbedderError, ValueError) as error:
            logger.info("The index file of %s cannot be written: %s", self._database.name, error)
            return False

    def finding(self, whole: bool) -> Finding:
        """The checksums of every part are looked at with `whole`; a damaged file is thrown away."""
        check, index = "index file", self._whole.index_files.opened()
        if index is None:
            return Finding(check=check, ok=True, detail="none: indexes are loaded from the database")
        damaged = index.damaged() if whole else []
        if damaged:
            self._whole.index_files.throw_away()
            detail = f"damaged ({', '.join(damaged)}) and thrown away"
            remedy = "It is made anew by itself. Its disk may be failing: check it."
            return Finding(check=check, ok=False, detail=detail, remedy=remedy)
        return Finding(check=check, ok=True, detail=f"of {index.facts.memories:,} memories")

    def _is_due(self, only_if_missing: bool) -> bool:
        row = self._row("last_numbers")
        if row["memories"] < LEAST_MEMORIES:
            return False
        index = self._whole.mapped_index()
        behind = MOST_CHANGES + 1 if index is None else row["changes"] - index.sequence
        if only_if_missing:
            return bool(behind > MOST_CHANGES)
        return bool(behind > CHANGES_BEHIND or (index is not None and behind and index.age() > LONGEST_SECONDS))
