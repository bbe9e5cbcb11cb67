"""Hooks reach memories on a server through the resident process, masked and bounded as usual."""

from __future__ import annotations

import pytest

from support.resident_home import Home
from support.served_stores import key_of, serve_stores
from trivet import Trivet
from trivet.agents.hooks.event import failures

PORT = "The staging database listens on port 6543."
QUESTION = "which port does the staging database listen on?"


def test_hooks_read_memories_of_a_server(warm: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        serve_stores() as running,
        running.at(warm.store, embedder="none", background=False) as (address, tenants),
    ):
        key = key_of(tenants)
        with Trivet.open(address, key=key) as memory:
            memory.remember(PORT)
            memory.remember("Ana wants short answers.", category="preferences")
        monkeypatch.setenv("TRIVET_PATH", address)
        monkeypatch.setenv("TRIVET_KEY", key)
        assert "short answers" in warm.start()
        assert PORT in warm.prompt(QUESTION)
        assert warm.prompt(QUESTION) == ""
        assert address in warm.status().stores
    assert warm.prompt(QUESTION, session="two") == ""  # the server is down
    last = failures().last
    assert last is not None
    assert key not in last
    assert "cannot be reached" in last
