"""What has changed in a vault since the store last looked, and taking it in.

New files go first and those that are gone last, so that a part that has moved is never without a place: a process that
is killed in between leaves a store from which the next run goes on.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import msgspec

from trivet.errors import Conflict, InvalidInput
from trivet.memory.engine import Engine
from trivet.sources.files.apply import Chosen, apply, apply_gone, work_of
from trivet.sources.files.plan import Lost, Match, match_moved, match_within, new_id_of
from trivet.sources.files.prepare import Opened, prepare, stamps
from trivet.sources.files.settle_links import settle_links
from trivet.sources.files.values import Ingested
from trivet.sources.files.vault import Vault
from trivet.sources.files.walk import Looked, Seen, read
from trivet.store.records import KnownFile, KnownPart
from trivet.types import Progress


class Planned(msgspec.Struct, frozen=True):
    """A file that was there before, with its parts; `left` are those that it no longer has."""

    opened: Opened
    chosen: Sequence[Chosen]
    left: Sequence[KnownPart]


class Changes:
    def __init__(self, engine: Engine, vault: Vault, looked: Looked, dry_run: bool) -> None:
        self._engine, self._vault, self._dry_run = engine, vault, dry_run
        self._parts: dict[str, list[KnownPart]] = defaultdict(list)
        for part in engine.store.vaults.parts(vault.name):
            self._parts[part.path].append(part)
        self._taken: dict[str, KnownPart | None] = {part.id: part for parts in self._parts.values() for part in parts}
        self._sort_files({file.path: file for file in engine.store.vaults.files(vault.name)}, looked)
        self._counts: Counter[str] = Counter()
        self._redacted: Counter[str] = Counter()
        self._problems = [problem for problem in looked.problems if vault.covers(problem.partition(": ")[0])]

    def _sort_files(self, known: dict[str, KnownFile], looked: Looked) -> None:
        current = stamps(self._vault.options)
        self._seen = {file.path: file for file in looked.files if self._vault.covers(file.path)}
        self._fresh = [file for file in self._seen.values() if file.path not in known]
        self._changed = [
            file
            for path, file in self._seen.items()
            if path in known and (path == self._vault.under or not _same(file, known[path], current))
        ]
        self._were_there = any(path in known for path in self._seen)
        unknown = tuple("" if folder == "." else f"{folder}/" for folder in looked.unknown)
        # Also of parts without a file: they are left from a run that came to grief on the file they had moved to.
        self._gone = [
            path
            for path in sorted({*known, *self._parts})
            if self._vault.covers(path) and path not in self._seen and not path.startswith(unknown)
        ]

    @property
    def to_read(self) -> int:
        return len(self._fresh) + len(self._changed)

    @property
    def nothing_there(self) -> bool:
        """Neither now nor before: a folder that need not be remembered."""
        return not self._seen and not self._parts

    def check_there(self) -> None:
        """A disk that is not mounted looks like a folder from which everything was deleted."""
        name, root = self._vault.name, self._vault.root
        if not self._seen and (root / self._vault.under).is_file():
            raise InvalidInput(
                f"{root / self._vault.under} is of no kind that can be ingested. docs/ingest.md lists them."
            )
        if self._gone and not self._seen:
            raise Conflict(
                f"None of the {len(self._gone)} files that were ingested from {root} is there any more. Is it mounted? "
                f"Nothing was changed; if they are really gone, say: trivet ingest --drop {name}"
            )
        if self._vault.moved and not self._were_there:
            raise Conflict(
                f"There is a vault {name} already, which was at another place, and none of its files is in {root}. "
                "Give this one another --name."
            )

    def take(self, progress: Progress) -> None:
        lost = Lost(part for path in self._gone for part in self._parts[path])
        planned = self._plan(lost, progress)
        for file in self._fresh:
            self._take_fresh(file, lost)
            progress(1)
        nowhere = {part.id for part in lost.left}
        where = {one.id: plan.opened.path for plan in planned for one in plan.chosen}
        for plan in planned:
            over = [msgspec.structs.replace(part, path=where[part.id]) for part in plan.left if part.id in where]
            with self._forgiving(plan.opened.path):
                self._write(plan.opened, plan.chosen, [part for part in plan.left if part.id in nowhere], over)
        for path in self._gone:
            self._take_gone(path, [part for part in self._parts[path] if part.id in nowhere])
        if not self._dry_run:
            settled = settle_links(self._engine, self._vault.name)
            self._counts.update(links_added=settled.added, links_removed=settled.removed)
            self._problems += settled.problems

    def report(self) -> Ingested:
        return Ingested(
            vault=self._vault.name,
            dry_run=self._dry_run,
            files_unchanged=len(self._seen) - self.to_read,
            redacted=dict(self._redacted),
            problems=tuple(self._problems),
            **self._counts,
        )

    def _plan(self, lost: Lost, progress: Progress) -> list[Planned]:
        """Files that were there before: first their own parts, in all of them, and then what came from elsewhere."""
        matched = []
        for file in self._changed:
            if opened := self._opened(file):
                matches, left = match_within(file.path, opened.parts, self._parts[file.path])
                matched.append((opened, matches, left))
                lost.add(left)
            progress(1)
        planned = []
        for opened, matches, left in matched:
            with self._forgiving(opened.path):
                planned.append(Planned(opened, self._chosen(opened.path, match_moved(matches, lost)), left))
        return planned

    def _take_fresh(self, file: Seen, lost: Lost) -> None:
        if opened := self._opened(file):
            matches, left = match_within(file.path, opened.parts, self._parts[file.path])
            with self._forgiving(file.path):
                self._write(opened, self._chosen(opened.path, match_moved(matches, lost)), left)

    def _opened(self, file: Seen) -> Opened | None:
        opened = None
        with self._forgiving(file.path):
            opened = prepare(self._engine, file.path, read(self._vault.root, file.path), self._vault.options)
            if not opened.format.takes and self._vault.under == file.path:
                raise InvalidInput("no reader knows what is in it. docs/ingest.md lists what can be ingested")
        return opened

    def _chosen(self, path: str, matches: Sequence[Match]) -> list[Chosen]:
        chosen = []
        for match in matches:
            known = match.known or self._purged(path, match)
            own = known.id if known else str(match.prepared.part.fields.get("id", ""))
            if not known and own in self._taken:
                raise InvalidInput(f"another file of the vault is the memory {own} already. Take its id away")
            id = own or new_id_of(self._vault.name, path, match.prepared.place, self._taken)
            self._taken[id] = None
            chosen.append(Chosen(id, match.prepared, known))
        return chosen

    def _purged(self, path: str, match: Match) -> KnownPart | None:
        """Of a memory that was purged by hand the ledger knows only the id, and that is made of the place."""
        own = str(match.prepared.part.fields.get("id", ""))
        found = self._taken.get(own or new_id_of(self._vault.name, path, match.prepared.place, {}))
        return found if found is not None and not found.said else None

    def _write(
        self,
        opened: Opened,
        chosen: Sequence[Chosen],
        gone: Sequence[KnownPart] = (),
        handed_over: Sequence[KnownPart] = (),
    ) -> None:
        work = work_of(self._engine, self._vault, opened, chosen, gone, handed_over)
        if not self._dry_run:
            apply(self._engine, self._vault, work)
        self._counts.update(work.counts)
        self._counts["files_read"] += 1
        self._redacted.update(work.redacted)

    def _take_gone(self, path: str, parts: Sequence[KnownPart]) -> None:
        forgotten = len(parts) if self._dry_run else apply_gone(self._engine, self._vault, path, parts)
        self._counts.update(forgotten=forgotten, files_gone=1)

    @contextmanager
    def _forgiving(self, path: str) -> Iterator[None]:
        """A bad file costs only itself. What befalls the store ends the run."""
        try:
            yield
        except (InvalidInput, Conflict) as error:
            self._problems.append(self._engine.guard.without_secrets(f"{path}: {error}").rstrip("."))


def _same(file: Seen, known: KnownFile, current: frozenset[str]) -> bool:
    return (known.size, known.modified) == (file.size, file.modified) and known.reader in current
