"""Ingest of a vault: list files, read what changed, match parts with memories, store, link.

Each file is a transaction. New files are stored first and missing ones forgotten last, so that a
moved part always has a file and a killed run can continue.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from trivet.errors import Conflict, InvalidInput, NotFound
from trivet.memory.engine import Engine
from trivet.sources.files.apply import AssignedPart, apply, apply_gone, plan_change, update_links
from trivet.sources.files.parts import Ingested, Options, Skipped
from trivet.sources.files.prepare import (
    Match,
    ParsedFile,
    UnmatchedParts,
    match_moved,
    match_within,
    new_id_of,
    prepare,
    stamps,
)
from trivet.sources.files.vault import (
    NOTHING,
    FileStatus,
    Listing,
    Vault,
    list_files,
    read_text,
    resolve_vault,
)
from trivet.store.records import VaultFile, VaultPart, VaultRecord
from trivet.trivet import Trivet
from trivet.types import Progress

DEFAULT_OPTIONS = Options()


def ingest(
    memory: Trivet,
    path: str | Path,
    *,
    name: str | None = None,
    options: Options = DEFAULT_OPTIONS,
    dry_run: bool = False,
    begin: Callable[[int], None] | None = None,
    progress: Progress | None = None,
) -> Ingested:
    """Update the store from the files under `path`, reading only what has changed.

    `begin` is called with the number of files to read, `progress` after each of them.
    """
    engine = _engine(memory)
    vault = resolve_vault(Path(path), name, options, engine.store.vaults.vaults())
    changes = Changes(engine, vault, list_files(vault.root, vault.options.exclude), dry_run)
    changes.check_not_missing()
    if not dry_run and not changes.is_empty:
        engine.store.vaults.keep(vault.entry)
    if begin is not None:
        begin(changes.to_read)
    changes.store(progress or (lambda _: None))
    return changes.report()


def drop(memory: Trivet, name: str) -> int:
    """Forget a vault and its memories, which can be restored, and return how many."""
    vault = next((one for one in vaults(memory) if one.name == name), None)
    if vault is None:
        known = ", ".join(one.name for one in vaults(memory)) or "none yet"
        raise NotFound(f"This store has no vault {name}. Known vaults: {known}.")
    engine = _engine(memory)
    with engine.store.together():
        count = apply_gone(
            engine,
            Vault(name, Path(vault.root), "", Options()),
            "",
            engine.store.vaults.parts(name),
        )
        engine.store.vaults.drop(name)
    return count


def vaults(memory: Trivet) -> tuple[VaultRecord, ...]:
    return _engine(memory).store.vaults.vaults()


def _engine(memory: Trivet) -> Engine:
    if memory.server is not None:
        raise InvalidInput(
            f"Files must be ingested where the store is, and {memory.server} is a server. Run "
            "`trivet ingest` on its machine, or ingest into a local store and send its "
            "`trivet export` to the server."
        )
    return memory.engine


OTHER_JSON = "JSON that is not a conversation"
NO_CONTENT = "nothing to remember"


class PlannedFile(msgspec.Struct, frozen=True):
    """An already ingested file and its parts; `left` are those it no longer has."""

    parsed: ParsedFile
    assigned: Sequence[AssignedPart]
    left: Sequence[VaultPart]


class Changes:
    def __init__(self, engine: Engine, vault: Vault, listing: Listing, dry_run: bool) -> None:
        self._engine, self._vault, self._dry_run = engine, vault, dry_run
        self._parts: dict[str, list[VaultPart]] = defaultdict(list)
        for part in engine.store.vaults.parts(vault.name):
            self._parts[part.path].append(part)
        self._ids_in_use: dict[str, VaultPart | None] = {
            part.id: part for parts in self._parts.values() for part in parts
        }
        self._skipped = [one for one in listing.skipped if vault.covers(one.path.rstrip("/"))]
        self._sort_files(
            {file.path: file for file in engine.store.vaults.files(vault.name)}, listing
        )
        self._counts: Counter[str] = Counter()
        self._redacted: Counter[str] = Counter()
        self._problems = [
            problem for problem in listing.problems if vault.covers(problem.partition(": ")[0])
        ]

    def _sort_files(self, known: dict[str, VaultFile], listing: Listing) -> None:
        current = stamps(self._vault.options)
        self._present = {file.path: file for file in listing.files if self._vault.covers(file.path)}
        self._new = [file for file in self._present.values() if file.path not in known]
        self._changed = [
            file
            for path, file in self._present.items()
            if path in known
            and (path == self._vault.under or not _same(file, known[path], current))
        ]
        read_again = {file.path for file in self._changed}
        self._skipped += [
            Skipped(path, OTHER_JSON)
            for path in self._present
            if path in known
            and path not in read_again
            and known[path].reader.startswith(NOTHING.name)
        ]
        self._any_known = any(path in known for path in self._present)
        unknown = tuple("" if folder == "." else f"{folder}/" for folder in listing.unknown)
        # With parts left without a file entry by a run that failed on the file they moved to.
        self._gone = [
            path
            for path in sorted({*known, *self._parts})
            if self._vault.covers(path)
            and path not in self._present
            and not path.startswith(unknown)
        ]

    @property
    def to_read(self) -> int:
        return len(self._new) + len(self._changed)

    @property
    def is_empty(self) -> bool:
        """Return whether there are no files, now or before: such a folder is no vault."""
        return not self._present and not self._parts

    def check_not_missing(self) -> None:
        """Raise if all known files are missing, as on an unmounted disk."""
        name, root = self._vault.name, self._vault.root
        if not self._present and (root / self._vault.under).is_file():
            raise InvalidInput(
                f"{root / self._vault.under} is not of a supported file type. "
                "docs/ingest.md lists them."
            )
        if self._gone and not self._present:
            raise Conflict(
                f"All {len(self._gone)} files that were ingested from {root} are missing. "
                "Is it mounted? Nothing was changed; if the files are really gone, run: "
                f"trivet ingest --drop {name}"
            )
        if self._vault.moved and not self._any_known:
            raise Conflict(
                f"A vault {name} already exists at another place, and {root} has none of its "
                "files. "
                "Nothing was changed; choose another --name."
            )

    def store(self, progress: Progress) -> None:
        unmatched = UnmatchedParts(part for path in self._gone for part in self._parts[path])
        planned = self._plan(unmatched, progress)
        for file in self._new:
            self._store_new(file, unmatched)
            progress(1)
        unmatched_ids = {part.id for part in unmatched.left}
        where = {one.id: plan.parsed.path for plan in planned for one in plan.assigned}
        for plan in planned:
            transferred = [
                msgspec.structs.replace(part, path=where[part.id])
                for part in plan.left
                if part.id in where
            ]
            with self._collecting_problems(plan.parsed.path):
                self._write(
                    plan.parsed,
                    plan.assigned,
                    [part for part in plan.left if part.id in unmatched_ids],
                    transferred,
                )
        for path in self._gone:
            self._forget_gone(
                path, [part for part in self._parts[path] if part.id in unmatched_ids]
            )
        if not self._dry_run:
            settled = update_links(self._engine, self._vault.name)
            self._counts.update(links_added=settled.added, links_removed=settled.removed)
            self._problems += settled.problems

    def report(self) -> Ingested:
        return Ingested(
            vault=self._vault.name,
            dry_run=self._dry_run,
            files_unchanged=len(self._present) - self.to_read,
            redacted=dict(self._redacted),
            problems=tuple(self._problems),
            skipped=tuple(self._skipped),
            **self._counts,
        )

    def _plan(self, unmatched: UnmatchedParts, progress: Progress) -> list[PlannedFile]:
        matched = []
        for file in self._changed:
            if parsed := self._parsed(file):
                matches, left = match_within(file.path, parsed.parts, self._parts[file.path])
                matched.append((parsed, matches, left))
                unmatched.add(left)
            progress(1)
        planned = []
        for parsed, matches, left in matched:
            with self._collecting_problems(parsed.path):
                planned.append(
                    PlannedFile(
                        parsed, self._assign(parsed.path, match_moved(matches, unmatched)), left
                    )
                )
        return planned

    def _store_new(self, file: FileStatus, unmatched: UnmatchedParts) -> None:
        if parsed := self._parsed(file):
            matches, left = match_within(file.path, parsed.parts, self._parts[file.path])
            with self._collecting_problems(file.path):
                self._write(
                    parsed, self._assign(parsed.path, match_moved(matches, unmatched)), left
                )

    def _parsed(self, file: FileStatus) -> ParsedFile | None:
        parsed = None
        with self._collecting_problems(file.path):
            parsed = prepare(
                self._engine, file.path, read_text(self._vault.root, file.path), self._vault.options
            )
            if not parsed.format.takes and self._vault.under == file.path:
                raise InvalidInput(
                    "its content has no known format. docs/ingest.md lists what can be ingested"
                )
            if not parsed.parts:
                self._skipped.append(
                    Skipped(file.path, NO_CONTENT if parsed.format.takes else OTHER_JSON)
                )
        return parsed

    def _assign(self, path: str, matches: Sequence[Match]) -> list[AssignedPart]:
        assigned = []
        for match in matches:
            known = match.known or self._purged(path, match)
            own = known.id if known else str(match.prepared.part.fields.get("id", ""))
            if not known and own in self._ids_in_use:
                raise InvalidInput(
                    f"another file of the vault already has the id {own}. Remove the id from one"
                )
            id = own or new_id_of(self._vault.name, path, match.prepared.place, self._ids_in_use)
            self._ids_in_use[id] = None
            assigned.append(AssignedPart(id, match.prepared, known))
        return assigned

    def _purged(self, path: str, match: Match) -> VaultPart | None:
        own = str(match.prepared.part.fields.get("id", ""))
        found = self._ids_in_use.get(
            own or new_id_of(self._vault.name, path, match.prepared.place, {})
        )
        return found if found is not None and not found.said else None

    def _write(
        self,
        parsed: ParsedFile,
        assigned: Sequence[AssignedPart],
        gone: Sequence[VaultPart] = (),
        transferred: Sequence[VaultPart] = (),
    ) -> None:
        work = plan_change(self._engine, self._vault, parsed, assigned, gone, transferred)
        if not self._dry_run:
            apply(self._engine, self._vault, work)
        self._counts.update(work.counts)
        self._counts["files_read"] += 1
        self._redacted.update(work.redacted)

    def _forget_gone(self, path: str, parts: Sequence[VaultPart]) -> None:
        forgotten = (
            len(parts) if self._dry_run else apply_gone(self._engine, self._vault, path, parts)
        )
        self._counts.update(forgotten=forgotten, files_gone=1)

    @contextmanager
    def _collecting_problems(self, path: str) -> Iterator[None]:
        try:
            yield
        except (InvalidInput, Conflict) as error:
            self._problems.append(
                self._engine.guard.without_secrets(f"{path}: {error}").rstrip(".")
            )


def _same(file: FileStatus, known: VaultFile, current: frozenset[str]) -> bool:
    return (known.size, known.modified) == (file.size, file.modified) and known.reader in current
