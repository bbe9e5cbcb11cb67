"""Export, import, backup and restore work on the command line."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from support.command_line import CommandLine


def test_export_and_import_round_trip(trivet: CommandLine, staging: str, tmp_path: Path) -> None:
    trivet("edit", staging, "--importance", "0.9")
    other = trivet.json("remember", "改行\u2028と [bold]絵文字[/bold] 🦑")["id"]
    trivet("link", other, "see-also", staging)
    exported = trivet("export").out
    file = tmp_path / "out.jsonl"
    assert trivet.json("export", "--output", str(file)) == {"path": str(file), "lines": 5}
    assert file.read_text(encoding="utf-8") == exported
    assert file.stat().st_mode & 0o077 == 0
    elsewhere = ("--path", str(tmp_path / "elsewhere.db"))
    assert trivet.json(*elsewhere, "import", str(file))["stored"] == 2
    assert trivet(*elsewhere, "export").out == exported
    assert "2 unchanged" in trivet(*elsewhere, "import", "-", stdin=exported.encode()).out


def test_export_leaves_out_sensitive_memories(trivet: CommandLine) -> None:
    trivet("remember", "The diagnosis is 4711.", "--sensitive")
    assert "4711" not in trivet("export").out
    assert "4711" in trivet("export", "--include-sensitive").out


def test_import_names_bad_lines_and_takes_the_rest(trivet: CommandLine) -> None:
    good = (
        b'\xef\xbb\xbf{"content": "Lunch is at noon."}\r\n',
        b'\n{"content": "Tea is at four."}\n',
    )
    lines = good[0] + b'not json\n{"content": "\xff"}\n' + good[1]
    result = trivet("import", "-", "--json", stdin=lines)
    assert result.status == 2
    assert result.json()["stored"] == 2
    assert [error.split(":")[0] for error in result.json()["errors"]] == ["line 2", "line 3"]


def test_export_skips_and_names_a_damaged_memory(
    trivet: CommandLine, staging: str, store: Path, tmp_path: Path
) -> None:
    good = trivet.json("remember", "Lunch is at noon.")["id"]
    folder = tmp_path / "notes"
    assert trivet("export", "--markdown", str(folder)).status == 0
    with sqlite3.connect(store) as connection:
        connection.execute("UPDATE memory SET tags = '[' WHERE id = ?", (staging,))
    for where in ((), ("--output", str(tmp_path / "out.jsonl")), ("--markdown", str(folder))):
        result = trivet("export", *where)
        assert result.status == 5
        assert staging in result.err
        assert "Traceback" not in result.err
    assert good in (tmp_path / "out.jsonl").read_text()
    assert len(list(folder.rglob("*.md"))) == 2, "an unreadable memory stays in its file"
    cut = (tmp_path / "out.jsonl").read_text().splitlines()[:-1]
    imported = trivet(
        "--path", str(tmp_path / "new.db"), "import", "-", stdin="\n".join(cut).encode()
    )
    assert imported.status == 2
    assert f"line {len(cut)}: the export is cut off here" in imported.out


def test_failed_export_keeps_the_old_file(
    trivet: CommandLine, staging: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "folder"
    file.mkdir()
    assert trivet("export", "--output", str(file)).status == 5
    assert sorted(path.name for path in tmp_path.glob("*.partial")) == []


def test_backup_and_restore(trivet: CommandLine, staging: str, store: Path, tmp_path: Path) -> None:
    copy = str(tmp_path / "copy.db")
    assert trivet("backup", copy).status == 0
    assert trivet("backup", copy).status == 5
    trivet("purge", staging, "--yes")
    refused = trivet("backup", "--restore", copy)
    assert refused.status == 4
    assert "--force" in refused.err
    restored = trivet.json("backup", "--restore", copy, "--force")
    assert trivet.json("get", staging)["title"] == "Staging port"
    assert trivet("--path", restored["moved_aside"], "get", staging).status == 3
    assert all(finding["ok"] for finding in trivet.json("doctor"))
    new = str(tmp_path / "new" / "memory.db")
    assert trivet.json("--path", new, "backup", "--restore", copy)["moved_aside"] is None
    assert trivet.json("--path", new, "get", staging)["title"] == "Staging port"


def _stranger(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE notes (text)")
    connection.close()


def _damaged(path: Path, backup: Path) -> None:
    content = bytearray(backup.read_bytes())
    content[4096 : 4096 * 6] = b"\x5a" * (4096 * 5)
    path.write_bytes(content)


@pytest.mark.parametrize("kind", ["missing", "empty", "text", "stranger", "damaged"])
def test_invalid_backup_is_refused(
    trivet: CommandLine, staging: str, store: Path, tmp_path: Path, kind: str
) -> None:
    bad, good = tmp_path / "bad.db", tmp_path / "good.db"
    trivet("backup", str(good))
    if kind == "empty":
        bad.touch()
    elif kind == "text":
        bad.write_text("this is a text, and no store at all, however long it may be\n" * 100)
    elif kind == "stranger":
        _stranger(bad)
    elif kind == "damaged":
        _damaged(bad, good)
    result = trivet("backup", "--restore", str(bad), "--force")
    assert result.status == (2 if kind == "missing" else 5)
    assert "Traceback" not in result.err
    assert trivet.json("get", staging)["title"] == "Staging port"
    assert not list(tmp_path.glob("*.partial*"))
    assert not list(tmp_path.glob("*.before-*"))


def test_damaged_store_is_moved_aside(
    trivet: CommandLine, staging: str, store: Path, tmp_path: Path
) -> None:
    good = tmp_path / "good.db"
    trivet("backup", str(good))
    store.write_bytes(b"rubbish" * 1000)
    assert trivet("stats").status == 5
    assert trivet("backup", "--restore", str(good), "--force").status == 0
    assert trivet.json("get", staging)["title"] == "Staging port"


def test_device_is_written_to_and_never_replaced(trivet: CommandLine, staging: str) -> None:
    assert trivet("export", "--output", "/dev/null").status == 0
    assert Path("/dev/null").is_char_device()


def test_file_without_line_ends_is_refused_early(
    trivet: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trivet.cli.terminal.LONGEST_LINE", 1000)
    endless = tmp_path / "endless.jsonl"
    endless.write_text("x" * 5000)
    result = trivet("import", str(endless))
    assert result.status == 2
    assert "longer than 1,000 characters" in result.err


def test_pending_memories_are_embedded_on_demand(trivet: CommandLine, staging: str) -> None:
    assert trivet.json("embed")["waiting"] == 0
