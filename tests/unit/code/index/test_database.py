"""The index database keeps facts by path, content and encoder, and recovers from damage."""

from pathlib import Path

import pytest

from trivet.code.index.database import IndexFile, key_of
from trivet.code.types import LeftOut

from ..trees import facts, parsed

KEY = key_of("a.py", "1f", "words/1")


def test_data_survives_reopening(tmp_path: Path) -> None:
    first = IndexFile(tmp_path / "folder" / "index.db")
    own = facts("a.py", parsed(("main", "run")))
    with first.writing():
        first.put_facts(KEY, own)
        first.put_facts(b"other", LeftOut("b.js", "minified"))
        first.put_tree("/tree", b"listing", 1.0)
    first.close()

    again = IndexFile(tmp_path / "folder" / "index.db")

    assert again.facts([KEY, b"other", b"none"]) == {KEY: own, b"other": "minified"}
    assert again.unknown([KEY, b"none"]) == {b"none"}
    assert again.tree("/tree") == b"listing"


def test_failed_batch_writes_nothing(tmp_path: Path) -> None:
    index = IndexFile(tmp_path / "index.db")

    def fail() -> None:
        with index.writing():
            index.put_facts(KEY, LeftOut("a", "b"))
            raise RuntimeError("in the middle")

    with pytest.raises(RuntimeError, match="in the middle"):
        fail()

    assert index.unknown([KEY]) == {KEY}


def test_damaged_file_is_rebuilt(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "index.db").write_bytes(
        b"this is no database, but long enough to be read as one" * 99
    )

    index = IndexFile(tmp_path / "index.db")

    assert index.count() == 0
    assert "Rebuilding" in caplog.text


def test_keys_depend_on_path_content_and_encoder() -> None:
    assert (
        len(
            {
                KEY,
                key_of("b.py", "1f", "words/1"),
                key_of("a.py", "2f", "words/1"),
                key_of("a.py", "1f", "words/2"),
            }
        )
        == 4
    )


def test_unused_facts_are_deleted(tmp_path: Path) -> None:
    index = IndexFile(tmp_path / "index.db")
    with index.writing():
        for key in (b"1", b"2", b"3"):
            index.put_facts(key, LeftOut("a", "b"))
        assert index.keep_only([b"2"]) == 2

    assert index.count() == 1
