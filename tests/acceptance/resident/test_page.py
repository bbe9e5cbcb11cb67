"""`trivet open` gives a one-time sign-in link to the resident process's page of the same store."""

from __future__ import annotations

import httpx2
import pytest

from support.command_line import CommandLine
from support.resident_home import Home


def test_resident_process_serves_the_page_of_a_store(
    warm: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli = CommandLine(monkeypatch)
    warm.remember("The staging database listens on port 6543.")
    link, again = (cli("open", "--print").out.strip() for _ in range(2))
    address, _, token = link.partition("/#/sign-in/")
    assert again.startswith(f"{address}/#/sign-in/")
    with httpx2.Client(base_url=address, trust_env=False) as client:
        assert "Trivet" in client.get("/").text
        key = client.post("/page/sign-in", json={"token": token}).json()["key"]
        assert client.post("/page/sign-in", json={"token": token}).status_code == 401
        client.headers["Authorization"] = f"Bearer {key}"
        own = client.get("/v1/keys/own").json()
        assert (own["user"], own["label"]) == ("local", "page")
        assert own["expires_at"] is not None
        [memory] = client.get("/v1/memories").json()["memories"]
        assert "6543" in memory["content"]


def test_page_of_a_server_is_its_address(monkeypatch: pytest.MonkeyPatch) -> None:
    cli = CommandLine(monkeypatch)
    assert (
        cli("open", "--print", "--path", "https://memory.example.org").out
        == "https://memory.example.org\n"
    )
