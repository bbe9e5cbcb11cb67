"""Which reader takes which file: by its name, and for JSON by what is in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from trivet.sources.files.readers.agent_files import NAMES, read_agent_file
from trivet.sources.files.readers.chat_exports import conversations_in, read_chats
from trivet.sources.files.readers.claude_code import is_claude_code, read_claude_code
from trivet.sources.files.readers.codex import is_codex, read_codex
from trivet.sources.files.readers.lines import first_object
from trivet.sources.files.readers.markdown import read_markdown
from trivet.sources.files.readers.plain import read_plain
from trivet.sources.files.values import Part

Read = Callable[[str, str], Iterator[Part]]


class Format(msgspec.Struct, frozen=True):
    """A kind of file. A higher version reads every file of the kind anew; `category` is for those that name none."""

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


MARKDOWN = Format("markdown", read_markdown, "references", version=2)
AGENT_FILE = Format("agent-file", read_agent_file, "procedures", version=2)
PLAIN = Format("text", read_plain, "references", version=2)
CLAUDE_CODE = Format("claude-code", read_claude_code, "events", version=2)
CODEX = Format("codex", read_codex, "events", version=2)
CHATS = Format("chats", read_chats, "events", version=2)
# JSON of some other kind, which lies about in many folders. It is noted, so that it is not read every time.
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
    if name in NAMES:
        return AGENT_FILE
    if name.endswith(".jsonl"):
        first = first_object(text)
        return CLAUDE_CODE if _any_claude_code(first, text) else CODEX if is_codex(first) else NOTHING
    if name.endswith(".json"):
        return CHATS if conversations_in(text) is not None else NOTHING
    return _BY_ENDING["." + name.rpartition(".")[2]]


def _any_claude_code(first: dict[str, object], text: str) -> bool:
    """Its first lines may be snapshots of files."""
    return is_claude_code(first) or (first.get("type") == "file-history-snapshot" and '"sessionId"' in text)
