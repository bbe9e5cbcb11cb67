"""Named queries and numbered migrations, read from `.sql` files.

A store's own folder adds to `store/sql`; every store must write a block that has no body. Braces
are replaced before use:

- `{visible}`: another block, of the same file or of visible.sql;
- `{memory}`: the columns of a memory (trivet/memory_fields.py);
- `{in_keys:ids}`: the dialect's spelling for the parameter `:ids`;
- `{order}` and the other PLACEHOLDERS: left to the caller.

A migration and its version number are one transaction, unless the file's first line says otherwise.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from trivet import memory_fields

_SHARED = Path(__file__).parent / "sql"
_MARK = "-- name: "
_BRACES = re.compile(r"\{(\w+)(?::(\w+))?\}")
PLACEHOLDERS = frozenset({"order", "statements", "within", "dimension"})


class Dialect(msgspec.Struct, frozen=True):
    """One database's spellings; `{}` stands for the parameter's name."""

    folder: Path  # holds `sql` and `migrations`
    spellings: Mapping[str, str]
    translate: Callable[[str], str]  # to the driver's parameter style


class Queries:
    """The queries of one store, `sql("memories")["by_id"]`, built on first use."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self._files: dict[str, _File] = {}
        self._ordered: dict[tuple[str, str, str], str] = {}

    def __call__(self, file: str) -> Mapping[str, str]:
        found = self._files.get(file)
        if found is None:
            found = self._files[file] = _File(
                self, file, _blocks(_SHARED, file) | _blocks(self._own, file)
            )
            if missing := [name for name, body in found.blocks.items() if not body]:
                raise LookupError(
                    f"{self._own} lacks the queries {', '.join(missing)} of {file}.sql."
                )
        return found

    def ordered(self, file: str, name: str, order: str) -> str:
        known = self._ordered.get((file, name, order))
        if known is None:
            known = self._ordered[file, name, order] = self(file)[name].replace("{order}", order)
        return known

    def names(self, file: str) -> tuple[str, ...]:
        self(file)
        return tuple(self._files[file].blocks)

    def block(self, file: str, name: str) -> str | None:
        """Return the unexpanded text of a block, looking in visible.sql too."""
        self(file)
        found = self._files[file].blocks.get(name)
        return self.block("visible", name) if found is None and file != "visible" else found

    @property
    def _own(self) -> Path:
        return self.dialect.folder / "sql"


class _File(dict[str, str]):
    def __init__(self, queries: Queries, file: str, blocks: dict[str, str]) -> None:
        super().__init__()
        self.blocks = blocks
        self._queries = queries
        self._file = file

    def __missing__(self, name: str) -> str:
        ready = self[name] = self._queries.dialect.translate(self._expanded(self.blocks[name]))
        return ready

    def _expanded(self, sql: str) -> str:
        return _BRACES.sub(self._substitute, sql)

    def _substitute(self, found: re.Match[str]) -> str:
        name, parameter = found.groups()
        if name in PLACEHOLDERS:
            return found[0]
        spelling = self._queries.dialect.spellings.get(name)
        if spelling is not None:
            return spelling.replace("{}", parameter or "")
        body = memory_fields.sql_lists().get(name) or self._queries.block(self._file, name)
        if body is None:
            raise LookupError(
                f"{self._file}.sql names {found[0]}, which is neither a block nor a spelling."
            )
        return self._expanded(body)


def _blocks(folder: Path, file: str) -> dict[str, str]:
    path = folder / f"{file}.sql"
    if not path.exists():
        return {}
    parted = (block.partition("\n") for block in path.read_text(encoding="utf-8").split(_MARK)[1:])
    return {name.strip(): _body(text) for name, _, text in parted}


def _body(text: str) -> str:
    lines = (line for line in text.splitlines() if not line.lstrip().startswith("--"))
    return "\n".join(lines).strip().rstrip(";")


_OUTSIDE = "-- outside a transaction"


class MigrationStep(msgspec.Struct, frozen=True):
    number: int
    sql: str

    @property
    def in_transaction(self) -> bool:
        return not self.sql.startswith(_OUTSIDE)


def latest_version(folder: Path) -> int:
    """Count the migrations, which are numbered from 1 without a gap."""
    return sum(
        name.endswith(".sql")
        for name in os.listdir(folder / "migrations")  # noqa: PTH208
    )  # at every start


def step(folder: Path, number: int) -> MigrationStep:
    return MigrationStep(
        number, (folder / "migrations" / f"{number:04}.sql").read_text(encoding="utf-8")
    )


def steps(folder: Path, version: int, to: int) -> list[MigrationStep]:
    return [step(folder, number) for number in range(version + 1, to + 1)]
