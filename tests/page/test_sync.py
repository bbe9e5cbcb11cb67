"""A syncing laptop's page shows the distance to the server, conflicts and refused changes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.browser import Browser
from support.http_server import Served, served, settings_for
from trivet import Trivet
from trivet.sync import verbs


@pytest.fixture
def laptop(town: Served, stranger: Browser, tmp_path: Path) -> Iterator[Trivet]:
    """Wim's laptop with two offline edits.

    One memory changed meanwhile, the other became read-only.
    """
    owner, wim = town.client("local"), town.client("wim", "writer")
    settings = settings_for(tmp_path / "laptop.db", key=town.key("wim", "writer"))
    lent = owner.done("POST", "/v1/memories", json={"content": "The key hangs on a nail."})["id"]
    owner.done("POST", "/v1/shares", json={"user": "wim", "id": lent, "permission": "write"})
    with Trivet.open(settings=settings) as before:
        verbs.join(before.engine, town.address)
    with Trivet.open(settings=settings, background=False) as store:
        own = store.remember("The office is in Rostock.").id
        verbs.sync_now(store.engine)
        wim.done("PATCH", f"/v1/memories/{own}", json={"content": "The office is in Bremen."})
        owner.done("POST", "/v1/shares", json={"user": "wim", "id": lent, "permission": "read"})
        store.edit(own, content="The office is in Kiel.")
        store.edit(lent, content="The key is <b>gone</b>.")
        verbs.sync_now(store.engine)
        store.remember("This waits.")
        with served(settings) as running:
            stranger.address = running.address
            stranger.sign_in(running.key("local"))
            yield store
        stranger.address = town.address
        for client, id in ((owner, lent), (wim, own)):
            client.done("POST", f"/v1/memories/{id}/purge")


def test_conflict_and_refusal_are_resolved_on_the_page(laptop: Trivet, stranger: Browser) -> None:
    browser = stranger
    browser.go("#/health")
    browser.see(".sync", "as wim")
    browser.see(".sync", "1, the oldest since just now")
    browser.picture("health-of-a-laptop")
    assert (
        "The key hangs on a nail." in browser.see("main .refused", "The key is <b>gone</b>.").text
    )
    browser.see("main .finding button", "Discard").click()
    browser.see("dialog button", "Discard").click()
    browser.gone("main .refused")
    assert laptop.sync_refused() == ()
    browser.see("main .finding a", "The office is in Bremen.").click()
    browser.see(".conflicts del", "The office is in Bremen.")
    browser.see(".conflicts ins", "The office is in Kiel.")
    browser.picture("conflict")
    browser.see(".conflicts button", "Accept this edit").click()
    browser.see("main h1", "The office is in Kiel.")
    browser.gone(".conflicts")
    assert laptop.sync_conflicts() == ()
    assert [
        line for line in browser.complaints() if "SEVERE" in line and "favicon" not in line
    ] == []


def _conflict(laptop: Trivet, browser: Browser) -> None:
    """Open the page of the conflicting memory."""
    (clash,) = laptop.sync_conflicts()
    browser.go(f"#/memory/{clash.id}")
    browser.see(".conflicts h2", "A conflicting edit")


def test_conflict_can_keep_the_current_memory(laptop: Trivet, stranger: Browser) -> None:
    _conflict(laptop, stranger)
    stranger.see(".conflicts button", "Keep the memory as it is").click()
    stranger.gone(".conflicts")
    stranger.see("main h1", "The office is in Bremen.")
    assert laptop.sync_conflicts() == ()


def test_conflict_can_be_resolved_with_new_text(laptop: Trivet, stranger: Browser) -> None:
    """The text field starts with the edited text."""
    _conflict(laptop, stranger)
    stranger.see(".conflicts button", "Write another text").click()
    field = stranger.see("dialog textarea")
    assert field.get_attribute("value") == "The office is in Kiel."
    field.clear()
    field.send_keys("The office moves to <i>Kiel</i> in May.")
    stranger.see("dialog button", "Save").click()
    stranger.gone(".conflicts")
    stranger.see("main h1", "The office moves to <i>Kiel</i> in May.")
    assert laptop.sync_conflicts() == ()


def test_sensitive_conflict_is_masked_until_revealed(laptop: Trivet, stranger: Browser) -> None:
    (clash,) = laptop.sync_conflicts()
    laptop.edit(clash.id, sensitive=True)
    _conflict(laptop, stranger)
    stranger.see(".conflicts .masked button", "Reveal")
    assert "Kiel" not in stranger.text()
    assert "Bremen" not in stranger.text()
    assert not [one for one in stranger.all(".conflicts button") if one.text != "Reveal"]
    stranger.see(".conflicts .masked button", "Reveal").click()
    stranger.see(".conflicts ins", "The office is in Kiel.")
    stranger.see(".conflicts button", "Accept this edit").click()
    stranger.gone(".conflicts")
    assert laptop.get(clash.id, reveal=True).content == "The office is in Kiel."
