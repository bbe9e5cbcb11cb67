"""Links between notes: which memory each one means, and storing them.

All links of a vault are resolved together after a run, since a target may be read after the link. Only links made here
are removed again: the ledger tells them from those that people made.
"""

from __future__ import annotations

import posixpath
from collections import defaultdict
from collections.abc import Iterator, Sequence

import msgspec

from trivet.clock import moment, now
from trivet.decoding import known_type
from trivet.errors import Conflict, NotFound
from trivet.memory.engine import Engine
from trivet.sources.files.parts import About
from trivet.sources.files.readers.markdown import slug
from trivet.store.records import KnownLink, KnownPart
from trivet.types import Link


class _Known(msgspec.Struct, frozen=True):
    part: KnownPart
    about: About


class LinkResolver:
    """Finds parts of a vault by the names that links use: path, file name, title and alias, in this order."""

    def __init__(self, parts: Sequence[KnownPart]) -> None:
        self.parts = [_Known(part, msgspec.json.decode(part.about, type=known_type(About))) for part in parts]
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


class LinkChanges(msgspec.Struct, frozen=True):
    added: int = 0
    removed: int = 0
    problems: tuple[str, ...] = ()


def update_links(engine: Engine, vault: str) -> LinkChanges:
    """Runs after every ingest, also if no file changed: an earlier process may have been killed before this step."""
    vaults = engine.store.vaults
    wanted, known = set(LinkResolver(vaults.parts(vault)).links()), set(vaults.links(vault))
    possible = sorted(_possible(engine, wanted - known), key=_order)
    unwanted = sorted(known - wanted, key=_order)
    if not possible and not unwanted:
        return LinkChanges()
    problems: list[str] = []
    with engine.store.together():
        made = [link for link in possible if _link(engine, link, problems)]
        removed = sum(_unlink(engine, link) for link in unwanted)
        vaults.note_links(vault, made, unwanted)
    return LinkChanges(len(made), removed, tuple(problems))


def _possible(engine: Engine, links: set[KnownLink]) -> list[KnownLink]:
    """Links whose both ends exist; the others wait until they do."""
    ids = sorted({id for link in links for id in (link.source, link.target)})
    memories = engine.store.memories.get_many(ids) if ids else {}
    living = {id for id, memory in memories.items() if memory.state != "deleted"}
    return [link for link in links if link.source in living and link.target in living]


def _link(engine: Engine, link: KnownLink, problems: list[str]) -> bool:
    try:
        engine.store.links.add(Link(kind=link.kind, source=link.source, target=link.target, created_at=moment(now())))
    except Conflict as error:
        problems.append(f"a link was left out: {error}")
        return False
    return True


def _unlink(engine: Engine, link: KnownLink) -> bool:
    try:
        engine.store.links.remove(link.source, link.kind, link.target)
    except NotFound:  # a person removed it, or its memory was purged
        return False
    return True


def _order(link: KnownLink) -> tuple[str, str, str]:
    return link.source, link.kind, link.target
