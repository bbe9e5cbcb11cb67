"""Runs parsers within a time limit, and unpacks grammars.

The grammar package reads its whole archive, 0.5 s of processor time, for each language; one reading
serves all.
"""

from __future__ import annotations

import hashlib
import os
import re
import tarfile
import tempfile
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from trivet.code.parse.chunks import Region
from trivet.code.parse.definitions import find_definitions
from trivet.code.parse.grammars.declarative import (
    CMAKE,
    DOCKERFILE,
    GRAPHQL,
    HCL,
    JUST,
    MAKE,
    PROTO,
    SCSS,
    SQL,
)
from trivet.code.parse.grammars.functional import (
    CLOJURE,
    ELIXIR,
    ERLANG,
    HASKELL,
    JSONNET,
    LISP,
    NIX,
    OCAML,
)
from trivet.code.parse.grammars.javascript import JAVASCRIPT
from trivet.code.parse.grammars.jvm import GROOVY, JAVA, KOTLIN, SCALA
from trivet.code.parse.grammars.object_oriented import CSHARP, DART, PHP, RUBY, SOLIDITY, SWIFT
from trivet.code.parse.grammars.scripting import (
    BASH,
    FORTRAN,
    JULIA,
    LUA,
    PERL,
    POWERSHELL,
    PYTHON,
    VIM,
    R,
)
from trivet.code.parse.grammars.systems import CPP, GO, OBJC, RUST, ZIG, C
from trivet.code.parse.syntax import Grammar

if TYPE_CHECKING:
    from tree_sitter import Range, Tree


def unpack_grammars(languages: Iterable[str]) -> int:
    """Unpack missing grammars and return their number.

    If this fails, files are split by lines.
    """
    from semble_grammars.cache import cache_dir

    bundle = _bundle()
    if bundle is None:
        return 0
    folder, manifest = bundle
    target = cache_dir() / manifest["platform"]
    entries = (manifest["languages"].get(language) for language in set(languages))
    missing = {
        one["file"]: one["sha256"] for one in entries if one and not (target / one["file"]).exists()
    }
    if not missing:
        return 0
    try:
        return _extract(folder / manifest["archive"], target, missing)
    except (OSError, tarfile.TarError):  # such as a full disk or a read-only folder
        return 0


def _bundle() -> tuple[Path, Any] | None:
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
    """Write atomically: another process may be loading the file."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(name).chmod(0o755)
        Path(name).replace(path)
    finally:
        Path(name).unlink(missing_ok=True)


GRAMMARS: Mapping[str, Grammar] = {
    "bash": BASH,
    "c": C,
    "clojure": CLOJURE,
    "cmake": CMAKE,
    "cpp": CPP,
    "csharp": CSHARP,
    "dart": DART,
    "dockerfile": DOCKERFILE,
    "elixir": ELIXIR,
    "erlang": ERLANG,
    "fortran": FORTRAN,
    "go": GO,
    "graphql": GRAPHQL,
    "groovy": GROOVY,
    "haskell": HASKELL,
    "hcl": HCL,
    "java": JAVA,
    "javascript": JAVASCRIPT,
    "jsonnet": JSONNET,
    "julia": JULIA,
    "just": JUST,
    "kotlin": KOTLIN,
    "lua": LUA,
    "make": MAKE,
    "nix": NIX,
    "objc": OBJC,
    "ocaml": OCAML,
    "perl": PERL,
    "php": PHP,
    "powershell": POWERSHELL,
    "proto": PROTO,
    "python": PYTHON,
    "r": R,
    "racket": LISP,
    "ruby": RUBY,
    "rust": RUST,
    "scala": SCALA,
    "scheme": LISP,
    "scss": SCSS,
    "solidity": SOLIDITY,
    "sql": SQL,
    "starlark": PYTHON,
    "swift": SWIFT,
    "tsx": JAVASCRIPT,
    "typescript": JAVASCRIPT,
    "vim": VIM,
    "zig": ZIG,
}


# Ordinary code parses in 0.1 to 0.5 microseconds per byte. Some grammars take quadratic time or
# worse to recover from nonsense (20 kB of `{-` take the JavaScript grammar 50 s); such a file is
# split by lines. The limit is wall-clock time, so it leaves room for a busy machine.
_BASE_MICROSECONDS = 2_000_000
_MICROSECONDS_PER_BYTE = 10

SCRIPTS = "typescript"  # the grammar for scripts in pages; it also reads JavaScript
_FRONT_MATTER = re.compile(rb"\A---\n(.*?)\n---", re.DOTALL)


def has_grammar(language: str) -> bool:
    return language in GRAMMARS


def regions_of(language: str, source: bytes) -> list[Region] | None:
    grammar = GRAMMARS.get(language)
    tree = None if grammar is None else _parse(language, source)
    if grammar is None or tree is None:
        return None
    return find_definitions(tree.root_node, source, grammar)


def regions_of_scripts(source: bytes) -> list[Region] | None:
    scripts = list(_scripts(source))
    if not scripts:
        return []
    tree = _parse(SCRIPTS, source, _ranges(source, scripts))
    return None if tree is None else find_definitions(tree.root_node, source, GRAMMARS[SCRIPTS])


def _scripts(source: bytes) -> Iterator[tuple[int, int]]:
    front = _FRONT_MATTER.match(source)
    if front is not None:
        yield front.span(1)
    lower, at = source.lower(), 0
    while (tag := lower.find(b"<script", at)) >= 0:
        start = lower.find(b">", tag) + 1
        at = lower.find(b"</script", start)
        if not start or at < 0:
            return
        yield start, at


def _ranges(source: bytes, spans: Sequence[tuple[int, int]]) -> list[Range]:
    from tree_sitter import Range

    found, row, at = [], 0, 0
    for start, end in spans:
        row, at = row + source.count(b"\n", at, start), start
        first = (row, start - (source.rfind(b"\n", 0, start) + 1))
        row, at = row + source.count(b"\n", at, end), end
        found.append(Range(first, (row, end - (source.rfind(b"\n", 0, end) + 1)), start, end))
    return found


def _parse(language: str, source: bytes, ranges: Sequence[Range] | None = None) -> Tree | None:
    from semble_grammars import get_language
    from tree_sitter import Parser

    limit = _BASE_MICROSECONDS + _MICROSECONDS_PER_BYTE * len(source)
    with warnings.catch_warnings():
        # Deprecated in favor of a callback, which crashes tree-sitter 0.25 and 0.26 before Python
        # 3.14.
        warnings.simplefilter("ignore", DeprecationWarning)
        parser = Parser(get_language(language), included_ranges=ranges, timeout_micros=limit)
    try:
        return parser.parse(source)
    except ValueError:  # "Parsing failed": out of time
        return None
