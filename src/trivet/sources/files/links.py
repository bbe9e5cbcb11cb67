"""Which memory a link of a note means. All links of a vault are settled together, since a target may come later."""

from __future__ import annotations

import posixpath
from collections import defaultdict
from collections.abc import Iterator, Sequence

import msgspec

from trivet.sources.files.readers.markdown import slug
from trivet.sources.files.values import About
from trivet.store.records import KnownLink, KnownPart


class _Known(msgspec.Struct, frozen=True):
    part: KnownPart
    about: About


class Directory:
    """The parts of a vault by the names that links use: path, file name, title and alias, in this order."""

    def __init__(self, parts: Sequence[KnownPart]) -> None:
        self.parts = [_Known(part, msgspec.json.decode(part.about, type=About)) for part in parts]
        self._by_path: dict[str, list[_Known]] = defaultdict(list)
        self._by_name: dict[str, list[str]] = defaultdict(list)
        self._ids = {part.id for part in parts}
        for known in self.parts:
            self._by_path[known.part.path.casefold()].append(known)
        for path, inside in self._by_path.items():
            names = (_stem(path), *(name.casefold() for name in (inside[0].about.note, *inside[0].about.aliases)))
            for name in dict.fromkeys(names):
                self._by_name[name].append(path)

    def links(self) -> Iterator[KnownLink]:
        for known in self.parts:
            targets = [*(self._wiki(name) for name in known.about.wiki)]
            targets += [self._file(known.part.path, target) for target in known.about.files]
            for target in dict.fromkeys(targets):
                if target is not None and target != known.part.id:
                    yield KnownLink(known.part.id, "see-also", target)
            for kind, id in known.about.ids:
                yield KnownLink(known.part.id, kind, id)  # type: ignore[arg-type]  # the reader has checked it

    def _wiki(self, written: str) -> str | None:
        name, _, heading = written.partition("#")
        name = name.strip().casefold()
        for path in (f"{name}.md", name):
            if path in self._by_path:
                return self._part(path, heading)
        within = "/" in name
        ends = [path for path in self._by_path if within and path.removesuffix(".md").endswith(f"/{name}")]
        candidates = ends or self._by_name.get(name, [])
        return self._part(min(candidates, key=lambda path: (path.count("/"), path)), heading) if candidates else None

    def _file(self, source: str, written: str) -> str | None:
        target, _, anchor = written.partition("#")
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target.partition("?")[0])).casefold()
        return self._part(path, anchor) if path in self._by_path else None

    def _part(self, path: str, heading: str) -> str | None:
        """The part under a heading; the first one if none is named or it is not there."""
        inside = self._by_path[path]
        wanted = slug(heading.rpartition("#")[2])
        named = (known for known in inside if wanted and known.about.heading == wanted)
        first = min(inside, key=lambda known: known.about.order)
        return next(named, first).part.id


def _stem(path: str) -> str:
    return posixpath.basename(path).rpartition(".")[0] or posixpath.basename(path)
