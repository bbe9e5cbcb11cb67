"""The ledger of what was ingested: which files, as they were when they were read, and which memory is which part."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from trivet.store.records import KnownFile, KnownLink, KnownPart, KnownVault
from trivet.store.relational.database import Part


class Vaults(Part):
    file = "vaults"

    def vaults(self) -> tuple[KnownVault, ...]:
        return tuple(KnownVault(*row) for row in self._rows("vaults"))

    def keep(self, vault: KnownVault) -> None:
        with self._database.write() as connection:
            connection.execute(self._sql["put_vault"], msgspec.structs.asdict(vault))

    def drop(self, name: str) -> None:
        with self._database.write() as connection:
            connection.execute(self._sql["delete_vault"], {"name": name})

    def files(self, vault: str) -> tuple[KnownFile, ...]:
        return tuple(KnownFile(*row) for row in self._rows("files", vault=vault))

    def parts(self, vault: str) -> tuple[KnownPart, ...]:
        return tuple(KnownPart(*row) for row in self._rows("parts", vault=vault))

    def note_file(self, vault: str, file: KnownFile, parts: Sequence[KnownPart], gone: Sequence[str]) -> None:
        """A file as it is now. Of the parts that are gone, those that another file has taken over stay."""
        with self._database.write() as connection:
            connection.execute(self._sql["put_file"], {"vault": vault, **msgspec.structs.asdict(file)})
            for id in gone:
                connection.execute(self._sql["delete_part"], {"vault": vault, "id": id, "path": file.path})
            for part in parts:
                connection.execute(self._sql["put_part"], {"vault": vault, **msgspec.structs.asdict(part)})

    def forget_file(self, vault: str, path: str, gone: Sequence[str]) -> None:
        with self._database.write() as connection:
            connection.execute(self._sql["delete_file"], {"vault": vault, "path": path})
            for id in gone:
                connection.execute(self._sql["delete_part"], {"vault": vault, "id": id, "path": path})

    def set_lines(self, id: str, start: int | None, stop: int | None) -> None:
        """Where a part of a file is now. It says nothing new, so it is no revision."""
        with self._database.write() as connection:
            connection.execute(self._sql["set_lines"], {"id": id, "start": start, "stop": stop})

    def links(self, vault: str) -> tuple[KnownLink, ...]:
        return tuple(KnownLink(*row) for row in self._rows("links", vault=vault))

    def note_links(self, vault: str, added: Sequence[KnownLink], removed: Sequence[KnownLink]) -> None:
        with self._database.write() as connection:
            for link in added:
                connection.execute(self._sql["put_link"], {"vault": vault, **msgspec.structs.asdict(link)})
            for link in removed:
                connection.execute(self._sql["delete_link"], {"vault": vault, **msgspec.structs.asdict(link)})
