"""Every view is fully usable by keyboard, passes axe, escapes stored text, and fits a phone."""

from __future__ import annotations

from typing import Any

from selenium.webdriver.common.keys import Keys

from support.browser import PHONE, WIDE, Browser, axe_source
from support.http_server import Served

from .conftest import PORT

# Each view's address with content to show, and what the page shows once loaded.
VIEWS = {
    "search": ("#/search?query=staging+database", "main li.hit"),
    "first": ("#/search", "main li.memory"),
    "browse": ("#/browse?scope=acme", "main .long-list li.memory"),
    "memory": (f"#/memory/{PORT}", "main .revisions"),
    "inbox": ("#/inbox", "main li.proposal"),
}
OPENED: dict[str, str] = {
    "search": "document.querySelectorAll('[data-why], details.filters summary').forEach(one => one.click())",
    "browse": "document.querySelectorAll('details.filters:not([open]) summary').forEach(one => one.click())",
    "memory": "document.querySelector('main header button').click()",
    "inbox": "document.querySelector('[data-act=edit]').click()",
}
HOSTILE: tuple[dict[str, Any], ...] = (
    {
        "content": "hostile <img src=x onerror=\"window.hacked='img'\"> <script>window.hacked='script'</script>",
        "title": "<svg onload=\"window.hacked='svg'\"></svg> hostile title",
        "tags": ["<b>hostile</b>", "\"><iframe srcdoc='x'>"],
        "source": "javascript:window.hacked='source'",
    },
    {
        "content": "hostile [link](javascript:window.hacked='link') &lt;b&gt; {{7*7}} ${7*7}",
        "title": "hostile two",
    },
    {
        "content": "hostile \u202e\u2066 evil right to left \u202e",
        "title": "\u202ehostile three",
        "tags": ["\u202etag"],
    },
    {"content": "hostile " + "a" * 30_000},
    {
        "content": "hostile five",
        "title": "hostile" + "w" * 290,
        "source": "s" * 2000,
        "tags": ["t" * 64],
    },
)


def test_axe_finds_nothing(browser: Browser) -> None:
    """Check both color schemes; switching needs no request to the server."""
    axe = axe_source()
    found: dict[tuple[str, bool], list[str]] = {}
    for name, (hash, shown) in VIEWS.items():
        browser.look()
        browser.go(hash)
        browser.see(shown)
        browser.script(OPENED.get(name, ""))
        for dark in (False, True):
            browser.colours(dark)
            browser.picture(f"{name}-{'dark' if dark else 'light'}")
            found |= (
                {(name, dark): rules}
                if (rules := browser.unreachable(axe, only_colours=dark))
                else {}
            )
    assert found == {}


def test_axe_finds_nothing_on_the_sign_in_page(stranger: Browser) -> None:
    axe = axe_source()
    for dark in (False, True):
        stranger.look(WIDE, dark)
        stranger.go("#/sign-in")
        stranger.see("input[name=key]")
        stranger.picture(f"sign-in-{'dark' if dark else 'light'}")
        assert stranger.unreachable(axe, only_colours=dark) == []


def test_views_fit_a_phone(browser: Browser) -> None:
    browser.look(PHONE)
    for name, (hash, shown) in VIEWS.items():
        browser.go(hash)
        browser.see(shown)
        browser.script(OPENED.get(name, ""))
        browser.picture(f"{name}-phone")
        assert browser.script("return document.documentElement.scrollWidth") <= PHONE[0], name


def test_stored_text_is_escaped(town: Served, browser: Browser) -> None:
    client = town.client("local")
    stored = client.done("POST", "/v1/memories/batch", json={"memories": HOSTILE})
    try:
        for size in (WIDE, PHONE):
            browser.look(size)
            browser.go(
                "#/search?query=hostile&tags=%3Cimg%20src%3Dx%20onerror%3Dwindow.hacked%3D1%3E"
            )
            browser.see(".chips li", "<img src=x")
            browser.go("#/search?query=hostile")
            browser.until(
                lambda: len(browser.all("main li.hit")) == len(HOSTILE),
                "not all hostile memories came",
            )
            browser.script(OPENED["search"])
            browser.picture(f"hostile-{size[0]}")
            assert browser.script("return window.hacked ?? null") is None
            assert (
                browser.all("main :is(img, script, iframe, b, i, object, embed), main svg[onload]")
                == []
            )
            assert browser.all("a[href^='javascript' i]") == []
            assert browser.script("return document.documentElement.scrollWidth") <= size[0]
        assert "<script>window.hacked='script'</script>" in browser.text("main")
    finally:
        for one in stored:
            client.done("POST", f"/v1/memories/{one['id']}/purge")


def test_everything_is_reachable_by_keys(browser: Browser) -> None:
    browser.go("#/search?query=staging")
    browser.see("main li.hit")
    browser.press(Keys.ESCAPE, "?")
    browser.see("dialog .keys", "Why this hit")
    browser.press(Keys.ESCAPE)
    browser.gone("dialog")
    browser.press("j", "j")
    assert browser.focused.get_attribute("data-item") == browser.all("main li.hit")[
        1
    ].get_attribute("data-item")
    browser.press("k")
    assert browser.focused.get_attribute("data-item") == browser.all("main li.hit")[
        0
    ].get_attribute("data-item")
    browser.press("/")
    assert browser.focused.get_attribute("name") == "query"
    browser.press("j")  # an ordinary letter here
    browser.until(
        lambda: browser.hash == "#/search?query=stagingj", "the field does not take letters"
    )


def test_tab_visits_every_control(browser: Browser) -> None:
    browser.go("#/search?query=staging")
    browser.see("main li.hit")
    reachable = browser.script(
        "return [...document.querySelectorAll('a[href], button, input, select, summary')]"
        ".filter(one => one.checkVisibility({visibilityProperty: true}) && !one.disabled).length"
    )
    browser.script("document.activeElement.blur()")
    seen = set()
    for _ in range(reachable + 2):
        browser.press(Keys.TAB)
        seen.add(browser.focused.id)
    assert len(seen) >= reachable


def test_color_scheme_is_the_users_choice(browser: Browser) -> None:
    browser.go("#/search")
    browser.see("main li.memory")
    ground = "return getComputedStyle(document.body).backgroundColor"
    light = browser.script(ground)
    button = browser.see(".corner button.icon")
    button.click()
    assert browser.script(ground) == light
    button.click()
    dark = browser.script(ground)
    assert dark != light
    browser.driver.refresh()
    browser.see("main li.memory")
    assert browser.script(ground) == dark
