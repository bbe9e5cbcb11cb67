"""One browser and one server with memories of an invented team, shared by all page tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.browser import Browser, opened_browser
from support.http_server import Served, served, settings_for
from trivet.memory.admin.accounts import RIGHTS

PORT = "01980000-0000-7000-8000-000000006543"
MEMORIES: tuple[dict[str, Any], ...] = (
    {
        "id": PORT,
        "content": "The staging database listens on port 6543.",
        "tags": ["staging", "database"],
        "scope": "acme/shop",
        "importance": 0.6,
    },
    {
        "content": "Deployments to production are frozen on Fridays.",
        "category": "decisions",
        "tags": ["deploy"],
    },
    {
        "content": "Ana prefers tables to prose in reports.",
        "category": "preferences",
        "title": "Reports for Ana",
    },
    {
        "content": "The nightly backup of the database runs at 02:15.",
        "tags": ["database"],
        "scope": "acme/shop",
    },
    {
        "content": "Staging is rebuilt every Monday morning.",
        "tags": ["staging"],
        "source": "docs/staging.md",
    },
    {
        "content": "The payment gateway times out after 30 seconds.",
        "category": "problems",
        "scope": "acme/pay",
    },
    {"content": "Bert keeps the keys of the office printer.", "sensitive": True},
    *(
        {"content": f"Note {number}: sprint {number} ended with {number} open tasks."}
        for number in range(1, 15)
    ),
)


@pytest.fixture(scope="session")
def town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    settings = settings_for(tmp_path_factory.mktemp("page") / "memory.db", categories=CATEGORIES)
    with served(settings) as running:
        running.house.make_key("local", "admin", RIGHTS["admin"])
        running.client("local").done("POST", "/v1/memories/batch", json={"memories": MEMORIES})
        running.client("local").done(
            "POST", "/v1/inbox", json={"content": "The canteen opens at eleven."}
        )
        yield running


CATEGORIES = ("facts", "decisions", "preferences", "problems")


@pytest.fixture(scope="session")
def shared_browser(town: Served, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    folder: Path = tmp_path_factory.mktemp("browser")
    with opened_browser(folder) as browser:
        browser.address = town.address
        yield browser


@pytest.fixture
def stranger(shared_browser: Browser) -> Browser:
    """A browser without cookies or stored keys."""
    shared_browser.forget()
    shared_browser.look()
    return shared_browser


@pytest.fixture
def browser(town: Served, stranger: Browser) -> Iterator[Browser]:
    """A browser signed in as the owner.

    The test fails on script errors and content security policy violations.
    """
    stranger.sign_in(town.key("local"))
    yield stranger
    assert [
        line for line in stranger.complaints() if "SEVERE" in line and "favicon" not in line
    ] == []
