"""Vaults, their files, the reader of each file, and the watch for `ingest --watch`.

Files are listed and read only under the root, never through a symbolic link.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path
from threading import Event

import msgspec

from trivet.common.files import check_contained, read_regular_file
from trivet.common.threads import prepared_type
from trivet.errors import Conflict, InvalidInput
from trivet.sources.files.conversations import (
    conversations_in,
    first_object,
    is_claude_code,
    is_codex,
    read_chats,
    read_claude_code,
    read_codex,
)
from trivet.sources.files.markdown import AGENT_FILES, LONGEST_TITLE, read_agent_file, read_markdown
from trivet.sources.files.parts import About, Options, Part, Skipped, cuts, pieces
from trivet.store.records import VaultRecord

Read = Callable[[str, str], Iterator[Part]]


class Format(msgspec.Struct, frozen=True):
    """A file format. A higher version rereads its files; `category` is the default."""

    name: str
    read: Read
    category: str
    version: int = 1

    @property
    def takes(self) -> bool:
        return self.name != "nothing"

    @property
    def stamp(self) -> str:
        return f"{self.name}/{self.version}"


def read_plain(name: str, text: str) -> Iterator[Part]:
    title = name.rpartition("/")[2].rpartition(".")[0]
    position = 0
    for number, (cut, piece) in enumerate(zip(cuts(text), pieces(text), strict=True), 1):
        position = text.index(cut, position)
        row = text.count("\n", 0, position) + 1
        position += len(cut)
        lines = (row, row + cut.count("\n"))
        yield Part(str(number), piece, {"title": title[:LONGEST_TITLE]}, lines, About(note=title))


MARKDOWN = Format("markdown", read_markdown, "references", version=2)
AGENT_FILE = Format("agent-file", read_agent_file, "procedures", version=2)
PLAIN = Format("text", read_plain, "references", version=2)
CLAUDE_CODE = Format("claude-code", read_claude_code, "events", version=2)
CODEX = Format("codex", read_codex, "events", version=2)
CHATS = Format("chats", read_chats, "events", version=2)
# Other JSON. The ledger records it, so that not every run reads it.
NOTHING = Format("nothing", lambda name, text: iter(()), "facts")
FORMATS = (MARKDOWN, AGENT_FILE, PLAIN, CLAUDE_CODE, CODEX, CHATS, NOTHING)

_BY_ENDING = {
    **dict.fromkeys((".md", ".markdown", ".mdx"), MARKDOWN),
    **dict.fromkeys((".txt", ".text", ".rst", ".org", ".adoc"), PLAIN),
}
READABLE = (*_BY_ENDING, ".jsonl", ".json")


def is_readable(path: str) -> bool:
    return path.lower().endswith(READABLE)


def format_of(path: str, text: str) -> Format:
    name = path.rpartition("/")[2].lower()
    if name in AGENT_FILES:
        return AGENT_FILE
    if name.endswith(".jsonl"):
        first = first_object(text)
        return (
            CLAUDE_CODE if _any_claude_code(first, text) else CODEX if is_codex(first) else NOTHING
        )
    if name.endswith(".json"):
        return CHATS if conversations_in(text) is not None else NOTHING
    return _BY_ENDING["." + name.rpartition(".")[2]]


def _any_claude_code(first: dict[str, object], text: str) -> bool:
    return is_claude_code(first) or (
        first.get("type") == "file-history-snapshot" and '"sessionId"' in text
    )


_NOT_IN_NAME = re.compile(r"[^\w.-]+")


class Vault(msgspec.Struct, frozen=True):
    """A folder and the path in it to ingest, empty for all of it."""

    name: str
    root: Path
    under: str
    options: Options
    moved: bool = False

    def covers(self, path: str) -> bool:
        return not self.under or path == self.under or path.startswith(f"{self.under}/")

    @property
    def entry(self) -> VaultRecord:
        return VaultRecord(self.name, str(self.root), msgspec.json.encode(self.options).decode())


def resolve_vault(
    path: Path, name: str | None, given: Options, known: Sequence[VaultRecord]
) -> Vault:
    asked = path.expanduser().resolve()
    if not asked.exists():
        raise InvalidInput(f"{path} does not exist. Choose a folder of notes, or a file.")
    covering = [vault for vault in known if asked.is_relative_to(vault.root)]
    if covering:
        return _within(asked, name, given, max(covering, key=lambda vault: len(vault.root)))
    root = asked if asked.is_dir() else asked.parent
    chosen = name or _NOT_IN_NAME.sub("-", root.name).strip("-")
    if not chosen or _NOT_IN_NAME.search(chosen):
        raise InvalidInput(
            "A vault needs a name of letters, digits, dots, hyphens and underscores. Use --name "
            "NAME."
        )
    options = _merged(Options(), given)
    _reject_nested_vault(root, options, known)
    under = "" if asked == root else asked.name
    for vault in known:
        if vault.name == chosen:
            return _moved(vault, root, under, given)
    return Vault(chosen, root, under, options)


def _within(asked: Path, name: str | None, given: Options, vault: VaultRecord) -> Vault:
    if name is not None and name != vault.name:
        raise Conflict(
            f"{asked} already belongs to the vault {vault.name} ({vault.root}). Omit --name, or "
            "drop "
            f"that vault first: trivet ingest --drop {vault.name}"
        )
    under = asked.relative_to(vault.root).as_posix()
    return Vault(
        vault.name, Path(vault.root), "" if under == "." else under, _merged(_options(vault), given)
    )


def _moved(vault: VaultRecord, root: Path, under: str, given: Options) -> Vault:
    if Path(vault.root).exists():
        raise Conflict(
            f"A vault {vault.name} already exists, at {vault.root}. Choose another --name."
        )
    return Vault(vault.name, root, under, _merged(_options(vault), given), moved=True)


def _reject_nested_vault(root: Path, options: Options, known: Sequence[VaultRecord]) -> None:
    for vault in known:
        inner = Path(vault.root)
        if inner.is_relative_to(root) and inner.exists():
            within = inner.relative_to(root).as_posix()
            if not any(within == pattern.rstrip("/") for pattern in options.exclude):
                raise Conflict(
                    f"{inner} is already the vault {vault.name} and would be ingested twice. "
                    f"Use --exclude {within}, or drop that vault first: "
                    f"trivet ingest --drop {vault.name}"
                )


def _options(vault: VaultRecord) -> Options:
    return msgspec.json.decode(vault.options, type=prepared_type(Options))


def _merged(known: Options, given: Options) -> Options:
    changed = {name: value for name in Options.__struct_fields__ if (value := getattr(given, name))}
    return msgspec.structs.replace(known, **changed)


# Skipped, as they hold no notes.
NOT_NOTES = frozenset(("node_modules", "__pycache__", "site-packages"))
MAX_SHOWN_CHARACTERS = 200
MAX_TEXT_BYTES = 16 * 2**20
MAX_JSON_BYTES = 2 * 2**30
_ENCODINGS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))


class FileStatus(msgspec.Struct, frozen=True):
    path: str
    size: int
    modified: int


class TextFile(msgspec.Struct, frozen=True):
    """A file's text, with size and time from before it was read."""

    text: str
    size: int
    modified: int


class Listing(msgspec.Struct, frozen=True):
    """Files under a root. Known files in the unreadable folders `unknown` may still exist."""

    files: tuple[FileStatus, ...]
    problems: tuple[str, ...]
    unknown: tuple[str, ...]
    skipped: tuple[Skipped, ...] = ()


def list_files(root: Path, exclude: Sequence[str]) -> Listing:
    files: list[FileStatus] = []
    problems: list[str] = []
    troubles: list[OSError] = []
    skipped: list[Skipped] = []
    waiting = [root]  # os.walk is recursive in Python 3.11
    while waiting:
        here = waiting.pop()
        inner: list[Path] = []
        for name, is_folder in _entries(here, troubles):
            path = _from(root, here / name)
            if reason := _is_skipped(name, path, exclude, is_folder):
                skipped.append(Skipped(f"{path}/" if is_folder else path, reason))
            elif problem := _problem(here / name, path):
                problems.append(problem)
            elif is_folder:
                inner.append(here / name)
            elif found := _seen(here / name, path):
                files.append(found)
            else:
                skipped.append(Skipped(path, "not a regular file"))
        waiting.extend(reversed(inner))
    problems += [
        f"{_from(root, Path(error.filename))}: cannot be read ({error.strerror})"
        for error in troubles
    ]
    unknown = tuple(_from(root, Path(error.filename)) for error in troubles)
    return Listing(tuple(files), tuple(problems), unknown, tuple(skipped))


def _entries(folder: Path, troubles: list[OSError]) -> list[tuple[str, bool]]:
    try:
        with os.scandir(folder) as entries:
            return sorted((entry.name, entry.is_dir()) for entry in entries)
    except OSError as error:
        troubles.append(error)
        return []


def read_text(root: Path, path: str) -> TextFile:
    """Return the text of a file; only the root itself may be behind a link."""
    check_contained(root, path)
    most = MAX_JSON_BYTES if path.lower().endswith((".json", ".jsonl")) else MAX_TEXT_BYTES
    data, found = read_regular_file(root / path, most)
    return TextFile(_decoded(data), found.st_size, found.st_mtime_ns)


def _decoded(data: bytes) -> str:
    encoding = next((name for mark, name in _ENCODINGS if data.startswith(mark)), "utf-8")
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        raise InvalidInput(f"it is not UTF-8 (byte {error.start:,}). Save it as UTF-8") from None
    if "\x00" in text:
        raise InvalidInput("it contains NUL characters, so it is not text")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _seen(file: Path, path: str) -> FileStatus | None:
    try:
        found = file.lstat()
    except FileNotFoundError:
        return None
    return (
        FileStatus(path, found.st_size, found.st_mtime_ns) if stat.S_ISREG(found.st_mode) else None
    )


def _problem(whole: Path, path: str) -> str | None:
    try:
        if whole.is_symlink():
            return f"{path}: a symbolic link, which is not followed"
    except OSError as error:  # for example, the path is too long for the system
        return f"{path[:MAX_SHOWN_CHARACTERS]}: cannot be read ({error.strerror})"
    try:
        path.encode()
    except UnicodeEncodeError:
        return f"{os.fsencode(path).decode(errors='replace')}: its name is not UTF-8. Rename it"
    return None


def _is_skipped(name: str, path: str, exclude: Sequence[str], is_folder: bool) -> str | None:
    if name.startswith("."):
        return "hidden"
    if name in NOT_NOTES:
        return "program files, not notes"
    if not is_folder and not is_readable(name):
        return "unsupported file type"
    return "excluded" if _excluded(path, exclude) else None


def _excluded(path: str, patterns: Sequence[str]) -> bool:
    return any(
        fnmatch(path, pattern) or path.startswith(pattern.rstrip("/") + "/") for pattern in patterns
    )


def _from(root: Path, path: Path) -> str:
    return path.relative_to(root).as_posix()


# One run for all steps of a save, and all files of a checkout.
QUIET_MILLISECONDS = 300
MAX_DELAY_MILLISECONDS = 3_000
POLL_MILLISECONDS = 1_000


def changes(path: Path, stop: Event | None = None) -> Iterator[None]:
    """Yield once at the start, for earlier changes, and after each burst of changes.

    A single file is watched through its folder, as most programs save by replacing the file.
    """
    from watchfiles import Change, DefaultFilter, watch  # most runs watch nothing

    usual = DefaultFilter()

    def concerns(change: Change, path: str) -> bool:
        return usual(change, path) and (is_readable(path) or "." not in Path(path).name)

    begun = False
    for found in watch(
        path if path.is_dir() else path.parent,
        watch_filter=concerns,
        debounce=MAX_DELAY_MILLISECONDS,
        step=QUIET_MILLISECONDS,
        rust_timeout=POLL_MILLISECONDS,
        yield_on_timeout=True,
        stop_event=stop,
        raise_interrupt=False,
        recursive=path.is_dir(),
    ):
        if found or not begun:
            begun = True
            yield
