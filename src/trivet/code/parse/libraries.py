"""Unpacks grammars of several languages at once.

The package of grammars unpacks one when it is first asked for, and reads its whole archive each time: half a second
of processor time a language. Reading the archive once for all languages of a tree takes about as long as one of them.
"""

from __future__ import annotations

import hashlib
import os
import tarfile
import tempfile
from collections.abc import Iterable
from importlib import resources
from pathlib import Path
from typing import Any

import msgspec


def unpack(languages: Iterable[str]) -> int:
    """Unpacks what is not there yet, and says how many that were. A language without a grammar is passed over.

    Nothing depends on it: what fails here is unpacked when it is needed, or its files are cut by lines.
    """
    from semble_grammars.cache import cache_dir

    bundle = _bundle()
    if bundle is None:
        return 0
    folder, manifest = bundle
    target = cache_dir() / manifest["platform"]
    entries = (manifest["languages"].get(language) for language in set(languages))
    missing = {one["file"]: one["sha256"] for one in entries if one and not (target / one["file"]).exists()}
    if not missing:
        return 0
    try:
        return _extract(folder / manifest["archive"], target, missing)
    except (OSError, tarfile.TarError):  # a full disk, a folder that may not be written to
        return 0


def _bundle() -> tuple[Path, Any] | None:
    """The folder of this platform's grammars and its list; an installed package has one."""
    for folder in resources.files("semble_grammars").joinpath("grammars").iterdir():
        manifest = folder.joinpath("manifest.json")
        if folder.is_dir() and manifest.is_file():
            return Path(str(folder)), msgspec.json.decode(manifest.read_bytes())
    return None


def _extract(archive: Path, target: Path, missing: dict[str, str]) -> int:
    target.mkdir(parents=True, exist_ok=True)
    done = 0
    with tarfile.open(archive, "r:gz") as tar:
        for member in tar:
            expected = missing.get(member.name)
            file = None if expected is None else tar.extractfile(member)
            if file is None:
                continue
            content = file.read()
            if hashlib.sha256(content).hexdigest() == expected:
                _write(target / member.name, content)
                done += 1
            if done == len(missing):
                break
    return done


def _write(path: Path, content: bytes) -> None:
    """At once or not at all: another process may be loading it."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(name).chmod(0o755)
        Path(name).replace(path)
    finally:
        Path(name).unlink(missing_ok=True)
