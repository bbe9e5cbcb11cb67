"""Taking over what another memory keeps: shown first, then imported like any lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from trivet.cli.failure import INVALID
from trivet.cli.output import Line, line, one_line
from trivet.cli.progress import LateProgress
from trivet.cli.session import Session
from trivet.cli.views import memories as views
from trivet.errors import InvalidInput
from trivet.secrets.detect import find
from trivet.sources.other_memories.foreign import ForeignMemory, ForeignSystem, SystemName
from trivet.sources.other_memories.systems import SYSTEMS, lines_of

EXAMPLES = 3


def take_over(session: Session, name: SystemName, path: Path, scope: str | None, dry_run: bool) -> int:
    system = SYSTEMS[name]
    if not path.exists():
        raise InvalidInput(f"{path} is not there. For {system.label}, name {system.reads}.")
    found = list(system.read(path))
    settings = session.memory.settings
    rows = list(lines_of(name, found, scope or settings.scope, settings.categories))
    kinds = Counter(one.kind for one in found)
    mapping = dict(system.mapping)
    if dry_run:
        value = {"from": name, "found": kinds, "mapping": mapping, "lines": len(rows)}
        session.show(value, lambda: _preview(system, found, kinds))
        return 0
    with LateProgress("importing", lambda _: len(rows)) as progress:
        imported = session.memory.import_(iter(rows), progress=progress)
    value = {"from": name, "found": kinds, "mapping": mapping, **msgspec.structs.asdict(imported)}
    session.show(value, lambda: [*_summary(system, kinds), *views.imported(imported)])
    if session.memory.server is None:
        session.embed_waiting()
    return INVALID if imported.errors else 0


def _summary(system: ForeignSystem, kinds: Counter[str]) -> Iterator[Line]:
    counts = ", ".join(f"{count} of the kind {kind}" for kind, count in sorted(kinds.items())) or "nothing"
    yield line(f"{system.label}: {counts}.")
    for theirs, ours in system.mapping:
        yield line((theirs, "bold"), f" -> {ours}", indent=4)


def _preview(system: ForeignSystem, found: Sequence[ForeignMemory], kinds: Counter[str]) -> Iterator[Line]:
    yield from _summary(system, kinds)
    for one in found[:EXAMPLES]:
        title, content = (one_line(_masked(text)) for text in (one.title, one.content))
        facts = [one.category, " ".join(f"#{tag}" for tag in one.tags), "sensitive" if one.sensitive else title]
        yield line(("for example ", "dim"), " · ".join(filter(None, facts)), indent=4)
        yield line("[sensitive]" if one.sensitive else content[:160], indent=8)
    yield line("Nothing was written. Leave --dry-run out to import them.")


def _masked(text: str) -> str:
    for secret in reversed(find(text)):
        text = f"{text[: secret.start]}[{secret.kind}]{text[secret.stop :]}"
    return text
