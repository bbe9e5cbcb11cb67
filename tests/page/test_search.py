"""Search runs while typing, keeps filters in the address, and explains results."""

from __future__ import annotations

from selenium.webdriver.common.keys import Keys

from support.browser import Browser
from support.http_server import Served


def test_typing_searches_and_updates_the_address(browser: Browser) -> None:
    browser.go("#/search")
    browser.see("input[name=query]").send_keys("port of the staging database")
    hit = browser.see("main li.hit:first-child", "6543")
    assert [mark.text for mark in hit.find_elements("css selector", "mark")] == [
        "staging",
        "database",
        "port",
    ]
    assert hit.find_elements("css selector", ".bars[aria-label^='Place by words #1']")
    assert browser.hash == "#/search?query=port+of+the+staging+database"
    assert (
        browser.script("return document.title") == "port of the staging database · Search · Trivet"
    )


def test_older_answer_never_replaces_a_newer_one(browser: Browser) -> None:
    """The first query's answer is held back until the second one's is shown."""
    browser.go("#/search")
    browser.see("main li.memory")
    browser.script(
        "const real = window.fetch; window.held = 0;"
        "window.fetch = (path, request) => {"
        "  if (!request.body?.includes('gateway')) return real(path, request);"
        "  window.held += 1;"
        "  return new Promise((resolve, reject) => request.signal.addEventListener("
        "    'abort', () => { window.held -= 1; reject(new DOMException('', 'AbortError')); }));"
        "};"
    )
    field = browser.see("input[name=query]")
    field.send_keys("gateway")
    browser.until(
        lambda: browser.script("return window.held") == 1, "the first question is not asked"
    )
    field.clear()
    field.send_keys("backup")
    browser.see("main li.hit", "02:15")
    assert browser.script("return window.held") == 0


def test_probably_irrelevant_results_are_announced(browser: Browser) -> None:
    browser.go("#/search?query=volcano+insurance")
    browser.see("main .results > *:first-child", "othing")


def test_filters_are_in_the_address_and_survive_a_reload(browser: Browser) -> None:
    browser.go("#/search?query=database")
    browser.see("main li.hit", "6543")
    browser.see("details.filters summary").click()
    browser.see("input[name=tags]").send_keys("staging", Keys.ENTER)
    browser.see(".chips li", "staging")
    browser.until(lambda: len(browser.all("main li.hit")) == 1, "the filter does nothing")
    assert browser.hash == "#/search?query=database&tags=staging"
    browser.driver.refresh()
    browser.see(".chips li", "staging").find_element("css selector", "button").click()
    browser.until(lambda: len(browser.all("main li.hit")) > 1, "the filter stays")
    assert browser.hash == "#/search?query=database"


def test_link_with_many_filters_restores_them(browser: Browser) -> None:
    browser.go("#/search?query=runs&scope=acme/shop&category=facts&state=active&created_after=7d")
    browser.see("main li.hit", "02:15")
    assert len(browser.all(".chips li")) == 4
    assert "6543" not in browser.text("main li.hit:first-child")


def test_why_opens_by_keyboard_with_the_whole_path(browser: Browser) -> None:
    browser.go("#/search?query=database+port")
    browser.see("main li.hit")
    browser.press(Keys.ESCAPE, "j", "w")
    panel = browser.see("main li.hit:first-child .why", "All legs fused")
    assert "words" in panel.text
    assert "#1" in panel.text
    assert "Relevance:" in panel.text
    browser.press("w")
    browser.until(lambda: not panel.is_displayed(), "why stays open")


def test_superseded_memory_is_named_by_title(town: Served, browser: Browser) -> None:
    client = town.client("local")
    told = [
        {"content": "Ferrets sleep in the shed.", "title": "Ferrets of old"},
        {"content": "They moved to the attic."},
    ]
    old, new = (
        one["id"] for one in client.done("POST", "/v1/memories/batch", json={"memories": told})
    )
    client.done("PUT", f"/v1/memories/{new}/links/supersedes/{old}")
    browser.go("#/search?query=ferrets+shed")
    browser.see("main li.hit", "They moved to the attic.")
    browser.see("main .relations a", "Ferrets of old")
    for id in (old, new):
        client.done("POST", f"/v1/memories/{id}/purge")


def test_why_not_is_asked_by_picking_or_by_id(town: Served, browser: Browser) -> None:
    browser.go("#/search?query=port+of+staging&tags=staging")
    browser.see("main li.hit")
    browser.press(Keys.ESCAPE, "n")
    field = browser.see("dialog input[data-picker]")
    field.send_keys("payment gateway")
    browser.see("dialog .offers button", "times out").click()
    browser.see("dialog .note", "filter")
    [found] = town.client("local").done("GET", "/v1/memories?tags=staging&tags=database")[
        "memories"
    ]
    field.clear()
    field.send_keys(found["id"])
    browser.see("dialog .note.good", "rank")
    browser.press(Keys.ESCAPE)
    browser.gone("dialog")


def test_sensitive_text_is_masked_until_an_audited_reveal(town: Served, browser: Browser) -> None:
    browser.go("#/search?query=keys+of+the+office+printer")
    hit = browser.see("main li.hit", "masked")
    assert "Bert" not in browser.driver.page_source
    hit.find_element("css selector", ".masked button").click()
    browser.see("main li.hit .revealed", "Bert keeps")
    assert "reveal" in str(town.client("local").done("GET", "/v1/audit")[0])


def test_degraded_answer_is_reported(town: Served, browser: Browser) -> None:
    """This store has no embedder, so only words find its memories."""
    answer = town.client("local").done("POST", "/v1/recall", json={"query": "staging"})
    browser.go("#/search?query=staging")
    browser.see("main li.hit")
    for leg in answer["health"]["legs"]:
        assert leg["answered"] or leg["reason"] in browser.text("main .note")
