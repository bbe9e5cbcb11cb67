"""Only the server's owner learns where it keeps secret keys, even when a key fails."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from support.http_server import served, settings_for

TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


def test_key_failure_hides_its_path_from_users_but_logs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    keys = tmp_path / "secret-keys.json"
    keys.write_text("{}")
    keys.chmod(0o644)
    monkeypatch.setenv("TRIVET_CONFIG", str(tmp_path / "trivet.toml"))
    with (
        served(settings_for(tmp_path / "memory.db", secrets_keyring=False)) as server,
        caplog.at_level(logging.ERROR),
    ):
        detail = server.client("ana").refused(
            503, "POST", "/v1/memories", json={"content": f"the token is {TOKEN}"}
        )
    assert "trivet doctor" in detail
    assert str(tmp_path) not in detail
    assert f"chmod 600 {keys}" in caplog.text
