"""`trivet ingest` takes in folders as users run it, and a vault edited while it is watched."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.command_line import CommandLine, process
from support.notes import Write, everything
from support.watch_process import Watching
from trivet import Trivet


@pytest.fixture
def trivet(path: Path, monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    monkeypatch.setenv("TRIVET_PATH", str(path))
    monkeypatch.setenv("TRIVET_EMBEDDER", "none")
    return CommandLine(monkeypatch)


def test_output(trivet: CommandLine, write: Write, vault: Path) -> None:
    write("a.md", "# A\n\none\n\n## B\n\ntwo\n")
    write("bad.md", "---\n[\n---\n")
    first = trivet("ingest", str(vault), "--scope", "me/notes", "--tag", "x")
    assert first.status == 2
    assert "2 stored in 1 file read." in first.out
    assert "Skipped: bad.md: its front matter is not YAML (line" in first.out
    (vault / "bad.md").unlink()
    again = trivet("ingest", str(vault))
    assert (again.status, again.out) == (0, "Nothing new; 1 file unchanged.\n")
    assert trivet.json("list")["memories"][0]["tags"] == ["x"]
    assert trivet.json("ingest", "--list") == [
        {"name": "notes", "root": str(vault), "options": '{"scope":"me/notes","tags":["x"]}'}
    ]
    assert trivet.json("ingest", "--drop", "notes") == {"vault": "notes", "forgotten": 2}
    assert trivet.json("list")["memories"] == []


def test_skipped_files_are_named_with_the_reason(
    trivet: CommandLine, write: Write, vault: Path
) -> None:
    write("a.md", "# A\n\none\n")
    write("empty.md", "\n")
    write("data.json", '{"a": 1}')
    write("drafts/x.md", "# X\n\nx\n")
    write(".obsidian/b.md", "# B\n\nb\n")
    for number in range(7):
        write(f"picture{number}.png", "")
    done = trivet("ingest", str(vault), "--exclude", "drafts")
    assert done.status == 0
    assert "Skipped (hidden): .obsidian/.\n" in done.out
    assert "Skipped (excluded): drafts/.\n" in done.out
    assert "Skipped (nothing to remember): empty.md.\n" in done.out
    assert "picture4.png and 2 more.\n" in done.out
    skipped = {one["path"]: one["reason"] for one in trivet.json("ingest", str(vault))["skipped"]}
    assert (
        skipped["data.json"] == "JSON that is not a conversation"
    )  # also when the file is not read again
    assert skipped["picture6.png"] == "unsupported file type"
    assert "a.md" not in skipped


def test_empty_folder_is_reported_and_not_remembered(trivet: CommandLine, vault: Path) -> None:
    assert "No notes" in trivet("ingest", str(vault)).out
    assert trivet.json("ingest", "--list") == []


@pytest.mark.parametrize(
    "arguments", [(), ("x", "--list"), ("--list", "--drop", "y"), ("/no/such/place",)]
)
def test_refusals(trivet: CommandLine, arguments: tuple[str, ...]) -> None:
    assert trivet("ingest", *arguments).status == 2


def test_ingested_vault_is_found_by_meaning(path: Path, write: Write, vault: Path) -> None:
    """With the bundled model, as users have it: no vector is pending when the command ends."""
    write("a.md", "# Tea\n\nGreen leaves want water of eighty degrees.\n")
    assert process("ingest", str(vault), TRIVET_PATH=str(path)).status == 0
    answer = process("recall", "how hot for a brew", "--json", TRIVET_PATH=str(path)).json()
    assert answer["hits"][0]["source"]["uri"] == "notes/a.md"
    assert answer["health"]["not_embedded"] == 0


def until(watching: Watching, **counts: int) -> None:
    """Read reports until they add up: a burst may arrive as one or several."""
    totals = dict.fromkeys(counts, 0)
    while totals != counts:
        report = watching.report()
        totals = {name: totals[name] + report[name] for name in counts}


@pytest.fixture
def watching(vault: Path, path: Path, write: Write) -> Iterator[Watching]:
    write("first.md", "the first note")
    started = Watching("ingest", str(vault), TRIVET_PATH=str(path), TRIVET_EMBEDDER="none")
    yield started
    started.kill()


def test_edited_vault_is_followed_while_watched(
    watching: Watching, vault: Path, path: Path
) -> None:
    until(watching, stored=1)
    (vault / "second.md").write_text("the second note")  # may happen before the watch has started
    until(watching, stored=1)
    replaced = vault / "second.md.tmp"
    replaced.write_text("the second note, edited")
    replaced.replace(vault / "second.md")
    until(watching, updated=1)
    (vault / "sub").mkdir()
    (vault / "second.md").rename(vault / "sub" / "moved.md")
    until(watching, moved=1)
    (vault / "first.md").unlink()
    until(watching, forgotten=1)
    (vault / "bad.md").write_text("---\n[\n---\n")
    assert "bad.md" in watching.report()["problems"][0]
    (vault / "bad.md").write_text("good now")
    until(watching, stored=1)
    assert watching.end() == 0
    with Trivet.open(path, embedder="none", background=False) as memory:
        assert set(everything(memory)) == {"the second note, edited", "good now"}
