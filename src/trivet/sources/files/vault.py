"""Which vault a path belongs to: one that the store knows, or a new one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import msgspec

from trivet.decoding import known_type
from trivet.errors import Conflict, InvalidInput
from trivet.sources.files.parts import Options
from trivet.store.records import KnownVault

_NOT_IN_NAME = re.compile(r"[^\w.-]+")


class Vault(msgspec.Struct, frozen=True):
    """A folder, and the part of it to ingest: a path from the root, or nothing for all of it."""

    name: str
    root: Path
    under: str
    options: Options
    moved: bool = False

    def covers(self, path: str) -> bool:
        return not self.under or path == self.under or path.startswith(f"{self.under}/")

    @property
    def entry(self) -> KnownVault:
        return KnownVault(self.name, str(self.root), msgspec.json.encode(self.options).decode())


def resolve_vault(path: Path, name: str | None, given: Options, known: Sequence[KnownVault]) -> Vault:
    asked = path.expanduser().resolve()
    if not asked.exists():
        raise InvalidInput(f"{path} is not there. Name a folder of notes, or a file.")
    covering = [vault for vault in known if asked.is_relative_to(vault.root)]
    if covering:
        return _within(asked, name, given, max(covering, key=lambda vault: len(vault.root)))
    root = asked if asked.is_dir() else asked.parent
    chosen = name or _NOT_IN_NAME.sub("-", root.name).strip("-")
    if not chosen or _NOT_IN_NAME.search(chosen):
        raise InvalidInput("A vault needs a name of letters, digits, dots, hyphens and underscores. Say --name NAME.")
    options = _merged(Options(), given)
    _refuse_inner(root, options, known)
    under = "" if asked == root else asked.name
    for vault in known:
        if vault.name == chosen:
            return _moved(vault, root, under, given)
    return Vault(chosen, root, under, options)


def _within(asked: Path, name: str | None, given: Options, vault: KnownVault) -> Vault:
    if name is not None and name != vault.name:
        raise Conflict(
            f"{asked} belongs to the vault {vault.name} ({vault.root}) already. Leave --name out, or drop that vault "
            f"first: trivet ingest --drop {vault.name}"
        )
    under = asked.relative_to(vault.root).as_posix()
    return Vault(vault.name, Path(vault.root), "" if under == "." else under, _merged(_options(vault), given))


def _moved(vault: KnownVault, root: Path, under: str, given: Options) -> Vault:
    if Path(vault.root).exists():
        raise Conflict(f"There is a vault {vault.name} already, at {vault.root}. Give this one another --name.")
    return Vault(vault.name, root, under, _merged(_options(vault), given), moved=True)


def _refuse_inner(root: Path, options: Options, known: Sequence[KnownVault]) -> None:
    for vault in known:
        inner = Path(vault.root)
        if inner.is_relative_to(root) and inner.exists():
            within = inner.relative_to(root).as_posix()
            if not any(within == pattern.rstrip("/") for pattern in options.exclude):
                raise Conflict(
                    f"{inner} is the vault {vault.name} already, and would be ingested twice. Say --exclude {within}, "
                    f"or drop that vault first: trivet ingest --drop {vault.name}"
                )


def _options(vault: KnownVault) -> Options:
    return msgspec.json.decode(vault.options, type=known_type(Options))


def _merged(known: Options, given: Options) -> Options:
    """Options that are not given stay as they were."""
    changed = {name: value for name in Options.__struct_fields__ if (value := getattr(given, name))}
    return msgspec.structs.replace(known, **changed)
