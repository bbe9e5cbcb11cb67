"""`trivet config` lists every setting and its origin."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.command_line import CommandLine
from trivet import Settings


def test_origins(trivet: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "config" / "trivet" / "trivet.toml"
    file.parent.mkdir(parents=True)
    file.write_text('scope = "acme"\nembedder = "bundled"\n')
    monkeypatch.delenv("TRIVET_PATH")
    value = trivet.json("config", "--path", "here.db")
    settings = {entry["name"]: (entry["value"], entry["origin"]) for entry in value["settings"]}
    assert value["path"] == str(file)
    assert list(settings) == list(Settings.__struct_fields__)
    assert settings["path"] == ("here.db", "option")
    assert settings["scope"] == ("acme", "file")
    assert settings["embedder"] == ("none", "environment")
    assert settings["background"] == (True, "default")
    assert "scope = acme  (file)" in trivet("config").out


def test_path_of_the_file(trivet: CommandLine, tmp_path: Path) -> None:
    expected = tmp_path / "config" / "trivet" / "trivet.toml"
    assert trivet("config", "path").out == f"{expected}\n"
    assert trivet.json("config", "path") == {"path": str(expected)}


def test_invalid_file_is_named(
    trivet: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "bad.toml"
    file.write_text("nonsense = 1\n")
    monkeypatch.setenv("TRIVET_CONFIG", str(file))
    for command in ("config", "stats"):
        result = trivet(command)
        assert result.status == 2
        assert str(file) in result.err


def test_config_opens_no_store(trivet: CommandLine, store: Path) -> None:
    trivet("config")
    assert not store.exists()
