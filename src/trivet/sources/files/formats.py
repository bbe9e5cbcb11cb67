"""Which reader reads which file: by its name, and for JSON by its content."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

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
from trivet.sources.files.parts import About, Part, cuts, pieces

Read = Callable[[str, str], Iterator[Part]]


class Format(msgspec.Struct, frozen=True):
    """A kind of file. A higher version reads every file of the kind again; `category` is for files that name none."""

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
    """A plain text: one part, or as many as its length needs."""
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
# Other JSON, which many folders hold. The ledger notes it, so that it is not read at every run.
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
        return CLAUDE_CODE if _any_claude_code(first, text) else CODEX if is_codex(first) else NOTHING
    if name.endswith(".json"):
        return CHATS if conversations_in(text) is not None else NOTHING
    return _BY_ENDING["." + name.rpartition(".")[2]]


def _any_claude_code(first: dict[str, object], text: str) -> bool:
    """A transcript may begin with snapshots of files."""
    return is_claude_code(first) or (first.get("type") == "file-history-snapshot" and '"sessionId"' in text)
