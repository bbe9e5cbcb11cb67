"""Named SQL, read once from the .sql files of a store."""

from __future__ import annotations

from collections.abc import Callable
from importlib import resources

_MARK = "-- name: "


class Queries:
    """The queries of one store: `sql("memories")["by_id"]`. A query ends where the next one's name begins."""

    def __init__(self, package: str, spoken: Callable[[str], str] = str) -> None:
        self._package = package
        self._spoken = spoken  # into what the driver expects
        self._files: dict[str, dict[str, str]] = {}
        self._woven: dict[tuple[str, str, str], str] = {}

    def __call__(self, file: str) -> dict[str, str]:
        found = self._files.get(file)
        if found is None:
            found = self._files[file] = self._read(file)
        return found

    def visible(self, name: str, order: str = "") -> str:
        """A query of visible.sql with the one visibility predicate put in."""
        return self.within("visible", name, order)

    def within(self, file: str, name: str, order: str = "") -> str:
        """A query of any file with the one visibility predicate put in."""
        woven = self._woven.get((file, name, order))
        if woven is None:
            blocks = self(file)
            woven = blocks[name].replace("{squeezed}", blocks.get("squeezed", ""))
            woven = woven.replace("{visible}", self("visible")["predicate"]).replace("{order}", order)
            self._woven[file, name, order] = woven
        return woven

    def _read(self, file: str) -> dict[str, str]:
        columns, readable = self._parts("memories").get("columns", ""), self._parts("visible")["readable"]
        return {
            name: body.replace("{columns}", columns).replace("{readable}", readable)
            for name, body in self._parts(file).items()
        }

    def _parts(self, file: str) -> dict[str, str]:
        text = resources.files(self._package).joinpath("sql", f"{file}.sql").read_text(encoding="utf-8")
        blocks = (block.partition("\n") for block in text.split(_MARK)[1:])
        return {name.strip(): self._spoken(body.strip().rstrip(";")) for name, _, body in blocks}
