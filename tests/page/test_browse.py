"""The browse view handles long lists and filters by day, source and tag, also by keyboard."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

import pytest

from support.browser import Browser
from support.http_server import Served

from .conftest import PORT

MANY = 130
LONG = "#/browse?scope=archive/long"


@pytest.fixture(scope="module")
def long_list(town: Served) -> list[str]:
    """The ids of more memories than a page holds, newest first, from two days in the past."""
    many = [
        {
            "content": f"Item {number} of a long list",
            "scope": "archive/long",
            "created_at": f"2001-02-0{1 + number // 100}T00:00:{number % 100 // 2:02}.{number % 2}Z",
            "source": f"lists/{number % 2}.md",
        }
        for number in range(MANY)
    ]
    made = town.client("local").done("POST", "/v1/memories/batch", json={"memories": many})
    return [one["id"] for one in reversed(made)]


def shown(browser: Browser) -> list[Any]:
    rows: list[Any] = browser.script(
        "return [...document.querySelectorAll('.long-list > li')].map(one => one.dataset.item)"
    )
    return rows


def offset(browser: Browser) -> int:
    """Return the first visible row according to the address."""
    found = re.search(r"offset=(\d+)", browser.hash)
    return int(found[1]) if found else 0


def _is_shown(browser: Browser, id: str) -> bool:
    return id in shown(browser)


def test_only_visible_rows_are_drawn_and_the_address_follows(
    browser: Browser, long_list: list[str]
) -> None:
    browser.go(LONG)
    browser.see(".count", f"{MANY} memories")
    browser.see(".long-list li.memory")
    assert shown(browser) == long_list[: len(shown(browser))]
    assert len(shown(browser)) < 40
    for place in (MANY - 1, 60, 20):
        browser.script("const row = 68; const list = document.querySelector('.long-list');"
                       "scrollTo(0, list.offsetTop + row * arguments[0])", place)  # fmt: skip
        wanted = long_list[place]
        browser.until(partial(_is_shown, browser, wanted), f"row {place} has not come")
        browser.until(lambda: None not in shown(browser), "rows still wait")
        first = long_list.index(shown(browser)[0])
        assert shown(browser) == long_list[first : first + len(shown(browser))], (
            "in order, without a gap"
        )
        assert len(shown(browser)) < 50
    browser.until(lambda: 0 < offset(browser) <= 20, "the address does not follow")
    browser.driver.refresh()
    browser.until(lambda: long_list[20] in shown(browser), "a reload leads elsewhere")


def test_keys_scroll_and_open_memories(browser: Browser, long_list: list[str]) -> None:
    browser.go(LONG)
    browser.see(".long-list li.memory")
    for _ in range(3):
        browser.press(*"jjjjjjjjjj")
        browser.until(lambda: None not in shown(browser), "rows still wait")
    assert browser.focused.get_attribute("data-item") == long_list[29]
    browser.press("\ue007")
    browser.see("main h1", "Item 100 of a long list")
    assert browser.hash == f"#/memory/{long_list[29]}"
    browser.driver.back()
    browser.until(lambda: long_list[29] in shown(browser), "Back leads elsewhere")


def test_filters_by_day_source_and_tag(browser: Browser, long_list: list[str]) -> None:
    browser.go(LONG)
    browser.see(".timeline a[aria-label='2 Feb 2001: 30 memories']")
    browser.press("t")
    browser.press("\ue012", "\ue007")  # one bar to the left, Enter
    browser.see(".count", "100 memories")
    assert (
        browser.hash
        == f"{LONG.replace('/long', '%2Flong')}&created_after=2001-02-01&created_before=2001-02-02"
    )
    browser.see(".facets a", "lists/1.md").click()
    browser.see(".count", "50 memories")
    browser.see(".facets a[aria-current]", "lists/1.md").click()
    browser.see(".count", "100 memories")


def test_tags_and_sources_filter_by_substring_and_sort(
    browser: Browser, long_list: list[str]
) -> None:
    browser.go("#/browse")
    browser.see(".facets a", "lists/0.md")
    browser.see(".facets input[type=search]").send_keys("DOCS")
    browser.until(lambda: "lists/0.md" not in browser.text(".facets"), "the sources stay")
    browser.see(".facets a", "docs/staging.md")
    browser.see(".facets a", "staging").click()
    browser.see(".count", "2 memories")
    assert browser.hash == "#/browse?tags=staging"
    newest = shown(browser)
    browser.see("select[name=sort]").send_keys("Most")
    browser.until(
        lambda: shown(browser) == [PORT, *(one for one in newest if one != PORT)], "the order stays"
    )
