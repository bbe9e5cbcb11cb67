"""Making the links that the files of a vault speak of, and taking back those they no longer do.

Only links made here are taken back: the ledger tells them from those that people made.
"""

from __future__ import annotations

import msgspec

from trivet.clock import now
from trivet.errors import Conflict, NotFound
from trivet.memory.engine import Engine
from trivet.sources.files.links import Directory
from trivet.store.records import KnownLink
from trivet.types import Link


class Settled(msgspec.Struct, frozen=True):
    added: int = 0
    removed: int = 0
    problems: tuple[str, ...] = ()


def settle_links(engine: Engine, vault: str) -> Settled:
    """After every run, also one in which no file changed: a process may have been killed before it came to this."""
    vaults = engine.store.vaults
    wanted, known = set(Directory(vaults.parts(vault)).links()), set(vaults.links(vault))
    possible = sorted(_possible(engine, wanted - known), key=_order)
    unwanted = sorted(known - wanted, key=_order)
    if not possible and not unwanted:
        return Settled()
    problems: list[str] = []
    with engine.store.together():
        made = [link for link in possible if _link(engine, link, problems)]
        removed = sum(_unlink(engine, link) for link in unwanted)
        vaults.note_links(vault, made, unwanted)
    return Settled(len(made), removed, tuple(problems))


def _possible(engine: Engine, links: set[KnownLink]) -> list[KnownLink]:
    """A link to what is not there, or was forgotten, waits until it is."""
    ids = sorted({id for link in links for id in (link.source, link.target)})
    memories = engine.store.memories.get_many(ids) if ids else {}
    living = {id for id, memory in memories.items() if memory.state != "deleted"}
    return [link for link in links if link.source in living and link.target in living]


def _link(engine: Engine, link: KnownLink, problems: list[str]) -> bool:
    try:
        engine.store.links.add(Link(kind=link.kind, source=link.source, target=link.target, created_at=now()))
    except Conflict as error:
        problems.append(f"a link was left out: {error}")
        return False
    return True


def _unlink(engine: Engine, link: KnownLink) -> bool:
    try:
        engine.store.links.remove(link.source, link.kind, link.target)
    except NotFound:  # taken away by hand, or with its memory
        return False
    return True


def _order(link: KnownLink) -> tuple[str, str, str]:
    return link.source, link.kind, link.target
