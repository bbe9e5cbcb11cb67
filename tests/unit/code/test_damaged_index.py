"""A damaged code index is rebuilt."""

from pathlib import Path

import pytest

from trivet.code.code_index import CodeIndex


def test_damaged_index_is_rebuilt(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    for name in ("retry", "client", "table"):
        (tree / f"{name}.py").write_text(f"def {name}_first(header):\n    return header\n" * 40)
    with CodeIndex.open(tree) as index:
        whole = index.search("retry_first").hits
        file = index.file
    data = bytearray(file.read_bytes())
    data[4096:] = b"\xff" * (len(data) - 4096)
    file.write_bytes(data)

    with CodeIndex.open(tree) as index:
        index.refresh()

        assert index.search("retry_first").hits == whole
    assert "Rebuilding" in caplog.text
