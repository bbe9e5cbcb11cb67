"""The memory view reads, edits, forgets, links, judges and shares, and handles conflicts."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from selenium.webdriver.common.keys import Keys

from support.browser import Browser
from support.http_server import Client, Served

from .test_every_view import HOSTILE

Make = Callable[..., str]


@pytest.fixture(scope="module")
def client(town: Served) -> Client:
    return town.client("local")


@pytest.fixture
def make(client: Client, browser: Browser) -> Iterator[Make]:
    """Store a memory that is removed after the test.

    The page leaves it first, so that it no longer requests it.
    """
    made: list[str] = []

    def store(content: str, **more: object) -> str:
        made.append(client.done("POST", "/v1/memories", json={"content": content, **more})["id"])
        return made[-1]

    yield store
    browser.go("#/browse")
    for id in made:
        client("POST", f"/v1/memories/{id}/purge")


def now(client: Client, id: str, field: str) -> object:
    return client.done("GET", f"/v1/memories/{id}")[field]


def test_edit_is_a_revision_and_edit_and_forget_are_undone(
    browser: Browser, client: Client, make: Make
) -> None:
    id = make("The relay listens on port 7001.", tags=["net"])
    browser.go(f"#/memory/{id}")
    browser.see("main h1", "port 7001")
    browser.press("e")
    field = browser.see("form.edit textarea")
    field.clear()
    field.send_keys("The relay listens on port 7002.")
    browser.see("form.edit input[aria-label='Add a tag']").send_keys("prod", Keys.ENTER)
    field.send_keys(Keys.CONTROL, Keys.ENTER)
    browser.see("main h1", "port 7002")
    assert now(client, id, "tags") == ["net", "prod"]
    browser.see("#status button", "Undo").click()
    browser.see("main h1", "port 7001")
    assert (now(client, id, "tags"), now(client, id, "revision")) == (["net"], 3)
    browser.press("d")
    browser.see("main header .state", "forgotten")
    assert now(client, id, "state") == "deleted"
    browser.see("#status button", "Undo").click()
    browser.see("main header button", "Forget").click()
    browser.see("main header button", "Restore").click()
    browser.see("main header button", "Forget")
    assert now(client, id, "state") == "active"


def test_conflicting_edit_shows_both_versions(browser: Browser, client: Client, make: Make) -> None:
    id = make("The relay listens on port 7001.", title="Relay")
    browser.go(f"#/memory/{id}")
    browser.see("main h1", "Relay")
    browser.press("e")
    field = browser.see("form.edit textarea")
    client.done(
        "PATCH", f"/v1/memories/{id}", json={"content": "The relay is gone.", "title": "No relay"}
    )
    field.send_keys(" Mine.")
    browser.see("form.edit button[type=submit]").click()
    browser.see(".theirs", "Someone changed it")
    assert "The relay is gone." in browser.text(".theirs .text")
    assert now(client, id, "content") == "The relay is gone.", (
        "nothing is written before the user decides"
    )
    browser.complaints()  # the browser logs every 412
    browser.see("form.edit button[type=submit]", "Overwrite with yours").click()
    browser.see("main .text", "port 7001. Mine.")
    assert now(client, id, "title") == "No relay", (
        "fields the user did not edit keep the other version"
    )


def test_history_shows_differences_and_restores_a_revision(
    browser: Browser, client: Client, make: Make
) -> None:
    id = make("Port 7001.")
    for port in (7002, 7003):
        client.done("PATCH", f"/v1/memories/{id}", json={"content": f"Port {port}."})
    browser.go(f"#/memory/{id}")
    browser.see(".diff del", "Port 7002.")
    browser.see(".diff ins", "Port 7003.")
    browser.see("input[aria-label='From revision 1']").click()
    browser.see(".diff del", "Port 7001.")
    browser.see("button[aria-label='Restore revision 1']").click()
    browser.see("main h1", "Port 7001.")
    assert now(client, id, "revision") == 4
    browser.see("#status button", "Undo").click()
    browser.see("main h1", "Port 7003.")


def test_memory_is_linked_by_search_judged_and_shared(
    browser: Browser, town: Served, client: Client, make: Make
) -> None:
    reader = town.client("rea", "reader")
    old, middle, new = make("Heron one."), make("Heron two."), make("Heron three.")
    client.done("PUT", f"/v1/memories/{middle}/links/supersedes/{old}")
    browser.go(f"#/memory/{middle}")
    browser.see(".chain")
    browser.press("l")
    browser.see("dialog .offer", "Is superseded by").click()
    browser.see("dialog input[data-picker]").send_keys("heron three")
    browser.see("dialog .offer", "Heron three.").click()
    browser.until(lambda: len(browser.all(".chain li")) == 3, "the chain has not grown")
    said = [one.find_element("css selector", ".stored").text for one in browser.all(".chain li")]
    assert said == ["Heron three.", "Heron two.", "Heron one."]
    assert now(client, middle, "state") == "superseded"
    browser.see("button[aria-label='Remove the link: Is superseded by Heron three.']").click()
    browser.until(lambda: len(browser.all(".chain li")) == 2, "the link stays")
    browser.see("#status button", "Undo").click()
    browser.until(lambda: len(browser.all(".chain li")) == 3, "the link does not come back")
    assert [one["source"] for one in client.done("GET", f"/v1/memories/{new}/links")] == [new]
    browser.press("u")
    browser.see("main", "Found useful once")
    browser.see("input[aria-label='Share with']").send_keys("rea", Keys.ENTER)
    browser.see("button[aria-label='Stop sharing with rea']")
    assert reader.done("GET", f"/v1/memories/{middle}")["content"] == "Heron two."
    browser.see("#status button", "Undo").click()
    browser.gone("button[aria-label='Stop sharing with rea']")
    reader.refused(404, "GET", f"/v1/memories/{middle}")


def test_tag_is_shared_and_shares_are_listed(browser: Browser, town: Served, make: Make) -> None:
    reader = town.client("rea", "reader")
    tagged, other = make("Heron four.", tags=["birds"]), make("Heron five.", tags=["birds"])
    browser.go(f"#/memory/{tagged}")
    browser.see("select[aria-label='What']").send_keys("all with")
    browser.see("input[aria-label='Share with']").send_keys("rea", Keys.ENTER)
    browser.see("button[aria-label='Stop sharing the tag birds with rea']")
    assert reader.done("GET", f"/v1/memories/{other}")["content"] == "Heron five."
    browser.go("#/people")
    row = browser.see(".shares li", "rea may read all with the tag birds")
    row.find_element("css selector", "button").click()
    browser.see("#status", "No longer shared.")
    reader.refused(404, "GET", f"/v1/memories/{other}")
    browser.see("form[aria-label='Share a tag'] input[name=tag]").send_keys("birds")
    browser.see("form[aria-label='Share a tag'] input[name=user]").send_keys("rea", Keys.ENTER)
    browser.see(".shares li", "rea may read all with the tag birds")
    town.client("local").done(
        "POST", "/v1/shares", json={"user": "*", "id": tagged, "permission": "write"}
    )
    browser.sign_in(town.key("rea", "reader"))
    browser.go("#/people")
    browser.see(".shares li", "local lets you read all with the tag birds")
    browser.see(".shares li", "local lets everyone read and edit Heron four.")
    browser.picture("shares")
    assert browser.all(".shares button, form") == []
    town.client("local").done("DELETE", "/v1/shares?user=rea&tag=birds")


def test_reader_sees_no_forbidden_actions(browser: Browser, town: Served, make: Make) -> None:
    id = make("Heron one.")
    town.client("local").done("POST", "/v1/shares", json={"user": "*", "id": id})
    browser.sign_in(town.key("rea", "reader"))
    browser.go(f"#/memory/{id}")
    browser.see("main .revisions")
    assert browser.all("main :is(button, form)") == []
    browser.press("d", "e")
    assert browser.all("form") == []
    browser.go("#/inbox")
    browser.see("main .empty", "Nothing is waiting")
    browser.go("#/memory/01990000-0000-7000-8000-000000000000")
    browser.see("main h1", "No such memory")
    browser.complaints()  # the browser logs every 404


def test_sensitive_memory_is_edited_only_after_reveal(
    browser: Browser, client: Client, make: Make
) -> None:
    id = make("The door opens with 4711.", sensitive=True)
    browser.go(f"#/memory/{id}")
    browser.see("main .masked button", "Reveal")
    assert "4711" not in browser.driver.page_source
    browser.press("e")
    browser.see("form.edit .note", "masked")
    assert browser.all("form.edit textarea") == []
    browser.see("form.edit button", "Cancel").click()
    browser.see("main .masked button", "Reveal").click()
    browser.see("main .text", "4711")
    browser.press("e")
    assert browser.see("form.edit textarea").get_attribute("value") == "The door opens with 4711."
    assert client.done("GET", "/v1/audit?limit=1")[0]["act"] == "reveal"


def test_hostile_text_is_escaped_in_every_view(
    browser: Browser, client: Client, make: Make
) -> None:
    ids = [make(**{**one, "content": one["content"].replace("\0", "")}) for one in HOSTILE[:3]]
    client.done("PUT", f"/v1/memories/{ids[0]}/links/supersedes/{ids[1]}")
    client.done("PATCH", f"/v1/memories/{ids[0]}", json={"expanded_keywords": ["<i>keyword</i>"]})
    proposal = {
        "content": f"Zebras say: {HOSTILE[0]['content']}",
        "reason": "<b>reason</b>",
        "tags": ["<b>tag</b>"],
        "source": "<i>.jsonl",
        "action": "supersede",
        "memory": ids[2],
    }
    made = client.done("POST", "/v1/inbox", json=proposal)
    assert made["status"] == "waiting"
    for hash, there in {
        "#/browse?scope=default": ".long-list li.memory",
        f"#/memory/{ids[0]}": ".diff ins",
        f"#/memory/{ids[1]}": ".chain",
        "#/inbox": "li.proposal .concerned",
    }.items():
        browser.go(hash)
        browser.see(there)
        assert browser.script("return window.hacked ?? null") is None
        assert (
            browser.all("main :is(img, script, iframe, b, i, object, embed), main svg[onload]")
            == []
        )
        assert browser.all("a[href^='javascript' i]") == []
        assert browser.script("return document.documentElement.scrollWidth <= innerWidth"), hash
    assert "<script>window.hacked" in browser.text("main")
    client.done("POST", "/v1/reject", json={"ids": [made["id"]]})
