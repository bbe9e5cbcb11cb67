"""The inbox can be worked by keys alone: accept, edit, reject, batch, link and undo."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from selenium.webdriver.common.keys import Keys

from support.browser import Browser
from support.http_server import Client, Served

SAID = (
    "Otters sleep at noon.",
    "Badgers dig by night.",
    "Foxes cross the yard at six.",
    "Owls nest in the barn.",
)


@pytest.fixture
def client(town: Served) -> Iterator[Client]:
    """A client whose inbox holds only these, last first.

    Accepted memories are removed after the test.
    """
    client = town.client("local")
    waiting = client.done("GET", "/v1/inbox")["proposals"]
    if waiting:
        client.done("POST", "/v1/reject", json={"ids": [one["id"] for one in waiting]})
    made = [
        client.done("POST", "/v1/inbox", json={"content": text, "kind": "told"})["id"]
        for text in SAID
    ]
    yield client
    for id in made:
        # Deleting the memory deletes the proposal, so the next test can propose the same text.
        if client("GET", f"/v1/inbox/{id}").json()["state"] != "accepted":
            client.done("PATCH", f"/v1/inbox/{id}", json={"action": "add"}) if _waits(
                client, id
            ) else None
            client.done("POST", "/v1/accept", json={"ids": [id]})
        stored = client.done("GET", f"/v1/inbox/{id}")["stored"]
        client.done("POST", f"/v1/memories/{stored}/purge")
    if waiting:
        client.done("POST", "/v1/reopen", json={"ids": [one["id"] for one in waiting]})


def _waits(client: Client, id: str) -> bool:
    return bool(client.done("GET", f"/v1/inbox/{id}")["state"] == "waiting")


def shown(browser: Browser) -> list[str]:
    return [one.text for one in browser.all("li.proposal .said")]


def decided(client: Client, state: str) -> set[str]:
    return {
        one["content"]
        for one in client.done("GET", f"/v1/inbox?state={state}&limit=4")["proposals"]
    }


def test_decisions_by_keys_alone(browser: Browser, client: Client) -> None:
    browser.go("#/inbox")
    browser.see("li.proposal", SAID[0])
    assert shown(browser) == list(reversed(SAID))
    browser.press("j", "a")
    browser.until(lambda: len(shown(browser)) == 3, "it was not accepted")
    assert SAID[3] in decided(client, "accepted")
    browser.press("j", "r")  # the focus is already on the next one, and j continues from there
    browser.until(lambda: len(shown(browser)) == 2, "it was not rejected")
    assert SAID[1] in decided(client, "rejected")
    browser.press("z")
    browser.until(lambda: len(shown(browser)) == 3, "it was not taken back")
    browser.press("e")
    field = browser.see("li.proposal textarea")
    assert field.get_attribute("value") == SAID[1], "the restored proposal has the focus"
    field.send_keys(Keys.END, " In the wood.", Keys.CONTROL, Keys.ENTER)
    browser.gone("li.proposal textarea")
    browser.until(lambda: len(shown(browser)) == 2, "the edited one was not accepted")
    assert f"{SAID[1]} In the wood." in decided(client, "accepted")
    [foxes] = [
        one for one in client.done("GET", "/v1/inbox")["proposals"] if one["content"] == SAID[2]
    ]
    client.done("POST", "/v1/accept", json={"ids": [foxes["id"]]})  # another client, meanwhile
    browser.press("k", "r")
    browser.see("#status .wrong", "was accepted already")
    browser.complaints()  # the browser logs every 409


def test_batch_decisions_undo_and_history(browser: Browser, client: Client) -> None:
    browser.go("#/inbox")
    browser.see("li.proposal", SAID[0])
    browser.press("j", "x", "j", "j", "x")
    browser.see(".selection", "2 selected")
    browser.press("a")
    browser.see("#status", "Accepted: 2.")
    assert {SAID[3], SAID[1]} <= decided(client, "accepted")
    browser.see("#status button", "Undo").click()
    browser.until(lambda: len(shown(browser)) == 4, "they were not taken back")
    assert not {SAID[3], SAID[1]} & decided(client, "accepted")
    browser.press("r")  # the first of the two, which has the focus
    browser.until(lambda: len(shown(browser)) == 3, "it was not rejected")
    browser.see(".tabs a", "Rejected").click()
    browser.see("li.proposal", SAID[3]).find_element("css selector", "[data-act=reopen]").click()
    browser.until(lambda: SAID[3] not in shown(browser), "it stays rejected")
    assert browser.hash == "#/inbox?state=rejected"
    browser.see(".tabs a", "Waiting").click()
    browser.until(lambda: len(shown(browser)) == 4, "it does not wait")
    browser.complaints()  # a rejected proposal may refer to a removed memory: a logged 404


def test_likely_update_is_linked_by_one_click(browser: Browser, client: Client) -> None:
    old = client.done(
        "POST", "/v1/memories", json={"content": "Otters sleep at midnight, in the reeds."}
    )["id"]
    [otters] = [
        one for one in client.done("GET", "/v1/inbox")["proposals"] if one["content"] == SAID[0]
    ]
    client.done("PATCH", f"/v1/inbox/{otters['id']}", json={"action": "supersede", "memory": old})
    browser.go("#/inbox")
    item = browser.see("li.proposal", "This may update:")
    assert "Otters sleep at midnight" in item.text
    item.find_element("css selector", "[data-act=accept]").click()
    browser.until(lambda: len(shown(browser)) == 3, "it was not accepted")
    assert client.done("GET", f"/v1/memories/{old}")["state"] == "superseded"
    browser.press("z")
    browser.until(lambda: len(shown(browser)) == 4, "it was not taken back")
    assert client.done("GET", f"/v1/memories/{old}")["state"] == "active"
    browser.go("#/inbox")
    browser.see("li.proposal", SAID[3])
    browser.press("u")  # the first one: it updates another, which the user searches for
    field = browser.see("dialog input[data-picker]")
    field.clear()
    field.send_keys("otters reeds")
    browser.see("dialog .offer", "midnight").click()
    browser.until(lambda: len(shown(browser)) == 3, "it was not accepted")
    [link] = client.done("GET", f"/v1/memories/{old}/links")
    assert (link["kind"], link["target"]) == ("supersedes", old)
    client.done("POST", f"/v1/memories/{old}/purge")
