"""Invalid files affect only themselves, links are not followed, and no table holds secrets."""

from __future__ import annotations

import json
import os
import sqlite3
import time
from pathlib import Path

import pytest

from support.notes import Take, Write, everything
from trivet import Trivet
from trivet.errors import InvalidInput
from trivet.sources.files import Options, ingest
from trivet.sources.files.ingestion import Changes
from trivet.sources.files.markdown import read_markdown
from trivet.sources.files.vault import Listing, list_files, resolve_vault

# Deeper than Python's recursion limit.
DEEP = 1_100
SECRET = "ghp_" + "x7Kq2Lm9Pz4Rt6Vw8Yb1Nc3Df5Gh0JsAeUiT"


# A message with a time outside the calendar range.
LATE = json.dumps(
    {
        "author": {"role": "user"},
        "create_time": 1e30,
        "content": {"content_type": "text", "parts": ["See you at the end of time."]},
    }
)


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("yaml.md", "---\ntags: [a\n---\ntext\n", "front matter is not YAML"),
        ("latin.md", "caf\udce9", "not UTF-8"),
        ("nul.txt", "a\x00b", "NUL"),
        ("chat.json", '[{"mapping": ', "not JSON"),
        (
            "chat2.json",
            '[{"mapping": {"a": {"message": {"author": 3}}}, "current_node": "a"}]',
            "apparent format",
        ),
        (
            "chat3.json",
            f'[{{"mapping": {{"a": {{"message": {LATE}}}}}, "current_node": "a"}}]',
            "apparent format",
        ),
        ("x.jsonl", '{"sessionId": "1", "type": "user"}\nnot json\n{}\n', "line 2 is not JSON"),
        (f"{SECRET}.md", "text", "looks like a secret"),
        ("mirror.md", "---\ntrivet: 1\nid: nonsense\n---\ntext", "not a UUID"),
    ],
)
def test_invalid_file_is_named_and_skipped(
    memory: Trivet, write: Write, take: Take, vault: Path, name: str, text: str, reason: str
) -> None:
    write("good.md", "good words")
    (vault / name).write_bytes(text.encode(errors="surrogateescape"))
    done = take()
    assert (done.stored, len(done.problems)) == (1, 1)
    assert reason in done.problems[0]
    assert set(everything(memory)) == {"good words"}
    assert SECRET not in done.problems[0]


def test_newly_invalid_file_keeps_its_memories(memory: Trivet, write: Write, take: Take) -> None:
    write("a.md", "# A\n\nfirst\n\n## B\n\nsecond\n")
    take()
    write("a.md", "---\n: [\n---\n# A\n\nother\n")
    assert len(take().problems) == 1
    assert set(everything(memory)) == {"first", "second"}
    write("a.md", "# A\n\nother\n")
    assert (take().updated, set(everything(memory))) == (1, {"other"})


def test_file_is_never_partly_ingested(path: Path, write: Write, vault: Path) -> None:
    """The settings refuse the secret in one section, so no section may be stored."""
    write("a.md", f"# A\n\nharmless\n\n## B\n\ntoken {SECRET}\n")
    write("b.md", "fine")
    with Trivet.open(path, embedder="none", background=False, secrets="refuse") as memory:
        done = ingest(memory, vault)
        assert (done.stored, len(done.problems)) == (1, 1)
        assert set(everything(memory)) == {"fine"}


def test_secrets_are_redacted_in_every_table(
    memory: Trivet, write: Write, take: Take, path: Path
) -> None:
    write("a.md", f"# Key {SECRET}\n\nThe token is {SECRET}, see [[{SECRET}]].\n")
    assert sum(take().redacted.values()) >= 1
    write("a.md", f"# Key {SECRET}\n\nThe token is still {SECRET}.\n")
    assert take().updated == 1
    connection = sqlite3.connect(path)
    assert SECRET not in "\n".join(connection.iterdump())
    connection.close()


def test_symbolic_links_are_not_followed(
    memory: Trivet, write: Write, take: Take, vault: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.md").write_text("not for you")
    (vault / "link.md").symlink_to(outside / "secret.md")
    (vault / "folder").symlink_to(outside)
    write("good.md", "good words")
    done = take()
    assert sorted(done.problems) == [
        "folder: a symbolic link, which is not followed",
        "link.md: a symbolic link, which is not followed",
    ]
    assert set(everything(memory)) == {"good words"}


def test_hidden_folders_and_unknown_files_are_skipped(
    memory: Trivet, write: Write, take: Take, vault: Path
) -> None:
    for name in (".obsidian/x.md", ".git/y.md", "node_modules/z.md", "package.json", "photo.jpg"):
        write(name, "{}")
    os.mkfifo(vault / "pipe.md")
    write("good.md", "good words")
    done = take()
    assert (done.problems, set(everything(memory))) == ((), {"good words"})
    with pytest.raises(InvalidInput, match="does not exist"):
        take(vault / "missing.md")
    assert "no known format" in take(vault / "package.json").problems[0]
    with pytest.raises(InvalidInput, match="not of a supported file type"):
        take(vault / "photo.jpg")


def test_unreadable_folder_does_not_delete_memories(
    memory: Trivet, write: Write, take: Take, vault: Path
) -> None:
    write("closed/a.md", "inside")
    write("open.md", "outside")
    take()
    whole = list_files(vault, ())
    seen = tuple(file for file in whole.files if file.path == "open.md")
    settled = resolve_vault(vault, None, Options(), memory.engine.store.vaults.vaults())
    for unknown in ("closed", "."):
        Changes(memory.engine, settled, Listing(seen, (), (unknown,)), False).store(lambda _: None)
        assert len(everything(memory)) == 2
    Changes(memory.engine, settled, Listing(seen, (), ()), False).store(lambda _: None)
    assert set(everything(memory)) == {"outside"}


def test_purge_removes_memory_from_ledger(
    memory: Trivet, write: Write, take: Take, path: Path
) -> None:
    write("a.md", "# Plans\n\nintro\n\n## Zanzibar\n\nthe hidden plan, see [[Xanadu]]\n")
    take()
    memory.purge(everything(memory)["the hidden plan, see [[Xanadu]]"].id)
    for again in ("", "longer", "longer still"):
        write(
            "a.md",
            f"# Plans\n\nintro {again}\n\n## Zanzibar\n\nthe hidden plan, see [[Xanadu]] {again}\n",
        )
        assert (take().left_forgotten, set(everything(memory))) == (1, {f"intro {again}".strip()})
        for data in (file.read_bytes() for file in path.parent.glob("memory.db*")):
            assert b"Zanzibar" not in data
            assert b"Xanadu" not in data
    assert not take().changed


def test_ingesting_into_server_is_rejected(vault: Path) -> None:
    with (
        Trivet.open("http://127.0.0.1:9", key="k") as memory,
        pytest.raises(InvalidInput, match=r"is a server\. Run `trivet ingest` on its machine"),
    ):
        ingest(memory, vault)


def test_note_with_many_sections_is_read_quickly() -> None:
    note = "".join(
        f"## Part {number}\n\nWords with a #tag{number % 7} in them.\n\n" for number in range(4_000)
    )
    start = time.perf_counter()
    parts = list(read_markdown("many.md", note))
    assert time.perf_counter() - start < 6
    assert len(parts) == 4_000
    assert parts[9].fields["tags"] == ("tag2",)


LONG = f"open words <private>{'filler words ' * 3_000}Zanzibar</private> open words"
NOTE = """# Diary

open words <private>

## Zanzibar

Zanzibar #zanzibar [[Zanzibar]] </private>

## After

open words
"""


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("note.md", NOTE),
        (
            "heading.md",
            "# A\n\nopen words\n\n## B <private>\n\nZanzibar\n\n</private> open words\n",
        ),
        ("long.txt", LONG),
        (
            "talk.jsonl",
            json.dumps(
                {"sessionId": "1", "type": "user", "uuid": "2", "message": {"content": LONG}}
            )
            + "\n",
        ),
    ],
)
def test_private_text_is_hidden_in_every_resulting_memory(
    memory: Trivet, write: Write, take: Take, name: str, text: str
) -> None:
    write(name, text)
    done = take()
    assert not done.problems
    kept = memory.list(limit=100).memories
    assert sum("open words" in one.content for one in kept) == 2
    assert not [one for one in kept if "zanzibar" in str(one).lower()]
    assert take().problems == (), "the ledger must stay readable"


def test_private_section_across_bullets_is_rejected(write: Write, take: Take) -> None:
    write("CLAUDE.md", "<private>\n- one\n- two\n</private>\n")
    (problem,) = take().problems
    assert "Mark each line" in problem


def test_unclosed_private_tag_does_not_break_ledger(write: Write, take: Take) -> None:
    write("open.md", "# About <private> marks\n\nwords\n")
    take()
    assert take().problems == ()


def test_tags_links_and_headings_in_private_section_are_hidden(
    memory: Trivet, write: Write, take: Take
) -> None:
    write("zanzibar.md", "words")
    private = "<private>#zanzibar [[Zanzibar]] [x](zanzibar.md)</private>"
    write("a.md", f"# A\n\n## B <private>zanzibar</private>\n\n#open {private}")
    take()
    (kept,) = (one for one in memory.list().memories if "open" in one.tags)
    assert kept.tags == ("open",)
    assert "zanzibar" not in str(kept).lower()
    assert not memory.links(kept.id)
    (part,) = (one for one in memory.engine.store.vaults.parts("notes") if one.id == kept.id)
    assert "zanzibar" not in str(part).lower()


def test_deep_folders_are_walked(memory: Trivet, write: Write, take: Take, vault: Path) -> None:
    write("good.md", "good words")
    folders = [f"{vault}/" + "d/" * depth for depth in range(1, DEEP)]
    for folder in folders:
        os.mkdir(folder)  # noqa: PTH102
    note = f"{folders[-1]}deep.md"
    try:
        Path(note).write_text("deep words")
        done = take()
    finally:
        os.unlink(note)  # noqa: PTH108
        for folder in reversed(folders):
            os.rmdir(folder)  # noqa: PTH106
    assert (done.stored, len(done.problems)) == (1, 1)
    assert "deep.md: source" in done.problems[0], "the path is too long for a memory's source"
    assert set(everything(memory)) == {"good words"}
