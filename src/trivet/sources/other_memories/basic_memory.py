"""Reader of basic-memory: Markdown notes with observations and relations in lists."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from trivet.errors import InvalidInput
from trivet.secrets.masking import private_spans
from trivet.sources.files.apply import LinkResolver
from trivet.sources.files.front_matter import split_front_matter, text_of
from trivet.sources.files.markdown import read_markdown
from trivet.sources.files.parts import Part
from trivet.sources.files.prepare import numbered
from trivet.sources.files.vault import list_files, read_text
from trivet.sources.other_memories.foreign import ForeignMemory, ForeignSystem
from trivet.store.records import VaultPart

_OBSERVATION = re.compile(
    r"^[ \t]*[-*] \[(?P<category>[^\[\]()\n]{2,40})\] (?P<text>\S.*)$", re.MULTILINE
)
_TAG = re.compile(r"(?<!\S)#([\w/-]+)")
_CHECKBOXES = frozenset(("x", "X", "-", " "))


def read(path: Path) -> Iterator[ForeignMemory]:
    """Yield a memory per observation and one for the other text under a heading."""
    if not path.is_dir():
        raise InvalidInput(
            f"{path} is not a folder. Use the folder of a basic-memory project, such as "
            "~/basic-memory."
        )
    root = path.resolve()
    notes = [file.path for file in list_files(root, ()).files if file.path.endswith(".md")]
    found = [one for name in notes for one in _note(root, name)]
    links = _links(found)
    for key, memory, _ in found:
        yield msgspec.structs.replace(
            memory, links=tuple(("see-also", target) for target in links.get(key, ()))
        )


Piece = tuple[str, ForeignMemory, VaultPart]


def _note(root: Path, name: str) -> Iterator[Piece]:
    text = read_text(root, name)
    front, _, _ = split_front_matter(text.text)
    permalink = text_of(front.get("permalink")) or name.removesuffix(".md")
    moment = datetime.fromtimestamp(text.modified / 10**9, UTC).isoformat()
    order = 0
    for part in numbered(read_markdown(name, text.text)):
        for number, (place, content, tags) in enumerate(_pieces(part)):
            order += 1
            key = f"{permalink}#{place}"
            about = msgspec.structs.replace(
                part.about, order=order, wiki=() if number else part.about.wiki
            )
            yield (
                key,
                ForeignMemory(
                    kind="observation" if tags else "text",
                    key=key,
                    content=content,
                    title=str(part.fields["title"]),
                    category=_category(tags),
                    tags=tuple(dict.fromkeys((*part.fields["tags"], *tags))),
                    created_at=str(part.fields.get("created_at") or moment),
                    updated_at=moment,
                ),
                VaultPart(key, name, place, "", "", msgspec.json.encode(about).decode()),
            )


def _pieces(part: Part) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    hidden = private_spans(part.content)
    observations = [
        one
        for one in _OBSERVATION.finditer(part.content)
        if one["category"] not in _CHECKBOXES
        and not any(a < one.end() and one.start() < b for a, b in hidden)
    ]
    rest = part.content
    for one in observations:
        rest = rest.replace(one[0], "", 1)
    if rest.strip():
        yield part.place, rest.strip(), ()
    for number, one in enumerate(observations, 1):
        yield (
            f"{part.place} • {number}",
            one["text"].strip(),
            (one["category"], *_TAG.findall(one["text"])),
        )


def _links(found: list[Piece]) -> dict[str, list[str]]:
    links: dict[str, list[str]] = {}
    for link in LinkResolver([known for _, _, known in found]).links():
        links.setdefault(link.source, []).append(link.target)
    return links


def _category(tags: tuple[str, ...]) -> str:
    kind = tags[0].lower() if tags else ""
    return {"decision": "decisions", "preference": "preferences", "problem": "problems"}.get(
        kind, "references"
    )


SYSTEM = ForeignSystem(
    "basic-memory",
    "the folder of a project (Markdown)",
    read,
    (
        ("note title and heading", "title"),
        ("- [category] observation #tag", "a separate memory; category and tags become tags"),
        ("other text under a heading", "a memory"),
        ("relations and [[wiki links]]", "see-also links from the note's section"),
        ("front matter: tags, permalink", "tags; permalink keeps the memory's id through renames"),
    ),
)
