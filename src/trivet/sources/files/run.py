"""An ingest: list files -> read what changed -> match parts with memories -> one transaction a file -> links."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from trivet.errors import InvalidInput, NotFound
from trivet.memory.engine import Engine
from trivet.sources.files.apply import apply_gone
from trivet.sources.files.changes import Changes
from trivet.sources.files.parts import Ingested, Options
from trivet.sources.files.vault import Vault, resolve_vault
from trivet.sources.files.walk import list_files
from trivet.store.records import KnownVault
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
    """Brings the store up to date with the files under `path`. A second run reads only what has changed.

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
    """Forgets every memory of a vault, which can be undone like any forgetting, and the vault itself."""
    vault = next((one for one in vaults(memory) if one.name == name), None)
    if vault is None:
        known = ", ".join(one.name for one in vaults(memory)) or "none yet"
        raise NotFound(f"There is no vault {name} in this store. Known: {known}.")
    engine = _engine(memory)
    with engine.store.together():
        count = apply_gone(engine, Vault(name, Path(vault.root), "", Options()), "", engine.store.vaults.parts(name))
        engine.store.vaults.drop(name)
    return count


def vaults(memory: Trivet) -> tuple[KnownVault, ...]:
    return _engine(memory).store.vaults.vaults()


def _engine(memory: Trivet) -> Engine:
    if memory.server is not None:
        raise InvalidInput(
            f"Files are ingested where the store is, and {memory.server} is a server. Run `trivet ingest` on its "
            "machine, or ingest into a store of your own and send `trivet export` to the server."
        )
    return memory.engine
