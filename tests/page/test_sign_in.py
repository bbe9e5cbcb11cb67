"""Signing in: by a link once, by a key, and what a stranger sees."""

from __future__ import annotations

from importlib.resources import files

from selenium.webdriver.common.keys import Keys

from support.browser import Browser
from support.http_server import Served
from trivet.serve.http.endpoints.page import (
    MAX_WRONG_BURST,
    POLICY,
    SignInLinks,
    link_to,
    page_files,
)

# What the first view may weigh, of our own bytes; the promise to whoever opens it over a slow line.
FIRST_VIEW_BYTES = 100_000


def test_a_link_signs_in_once(town: Served, stranger: Browser) -> None:
    link = link_to("", town.links).removeprefix("/")
    stranger.go(link)
    stranger.see("main li.memory")
    assert stranger.hash == "#/search"
    assert link.rpartition("/")[2] not in stranger.script("return JSON.stringify(localStorage)")
    stranger.forget()
    stranger.go(link)
    stranger.see("main [role=alert]", "used already")
    assert not stranger.all("main li.memory")


def test_a_stranger_sees_nothing_and_comes_where_they_wanted(
    town: Served, stranger: Browser
) -> None:
    stranger.go("#/search?query=staging+port")
    field = stranger.see("input[name=key]")
    assert "6543" not in stranger.driver.page_source
    assert stranger.all("nav#views a") == []
    field.send_keys("tvt.default.000000000000.wrong", Keys.ENTER)
    stranger.see("main [role=alert]", "not known")
    field.clear()
    field.send_keys(town.key("local"), Keys.ENTER)
    stranger.see("main li.hit", "6543")
    assert stranger.hash == "#/search?query=staging+port"
    assert stranger.script(
        "return [sessionStorage, localStorage].map(one => 'trivet.key' in one)"
    ) == [True, False]


def test_signing_out_makes_the_key_void(town: Served, stranger: Browser) -> None:
    key = town.key("local")
    stranger.sign_in(key)
    stranger.go("#/search")
    stranger.see(".corner button", "Sign out").click()
    stranger.see("input[name=key]")
    assert stranger.script("return localStorage.length") == 0
    town.with_key(key).refused(401, "GET", "/v1/memories")


def test_a_key_that_ends_leads_back_to_signing_in(town: Served, browser: Browser) -> None:
    browser.go("#/search")
    field = browser.see("input[name=query]")
    browser.see("main li.memory")
    browser.script("localStorage.setItem('trivet.key', 'tvt.default.000000000000.gone')")
    field.send_keys("staging")
    browser.see("input[name=key]")
    browser.complaints()  # the browser tells of every 401


def test_wrong_links_are_refused_and_soon_not_even_looked_at(town: Served) -> None:
    """From another address of this machine, which has a bucket of its own: the browser's stays full."""
    import httpx2

    transport = httpx2.HTTPTransport(local_address="127.0.0.9")
    with httpx2.Client(base_url=town.address, transport=transport, trust_env=False) as client:
        asked = [
            client.post("/page/sign-in", json={"token": "guess"})
            for _ in range(MAX_WRONG_BURST + 1)
        ]
        assert [one.status_code for one in asked] == [401] * MAX_WRONG_BURST + [429]
        assert client.post("/page/sign-in", json={"token": town.links.make()}).status_code == 429


def test_links_end_and_are_few() -> None:
    moment = 0.0
    links = SignInLinks(lambda: moment)
    first, last = links.make(), links.make()
    assert links.take(last)
    assert not links.take(last)
    for _ in range(16):
        last = links.make()
    assert not links.take(first)
    moment = 300.0
    assert not links.take(last)


def test_every_file_comes_under_the_policy_and_is_small(town: Served) -> None:
    client = town.with_key(None)
    for path, file in page_files().items():
        answer = client("GET", path)
        assert answer.status_code == 200
        assert answer.headers["content-security-policy"] == POLICY
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert client("GET", path, headers={"If-None-Match": file.etag}).status_code == 304
    assert client("GET", "/page/js/nothing.js").status_code == 404
    assert client("GET", "/page/../auth.py").status_code in (401, 404)
    assert (files("trivet") / "page" / "index.html").read_bytes() == page_files()["/"].body


def test_the_policy_is_exactly_this() -> None:
    assert POLICY == (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
        "trusted-types 'none'"
    )


def test_the_first_view_is_light_and_comes_from_here_alone(town: Served, browser: Browser) -> None:
    browser.go("#/search")
    browser.see("main li.memory")
    names = browser.script("return performance.getEntriesByType('resource').map(one => one.name)")
    assert all(name.startswith(town.address) for name in names)
    loaded = {name.removeprefix(town.address) for name in names} | {"/"}
    bytes = sum(len(file.body) for path, file in page_files().items() if path in loaded)
    assert 20_000 < bytes < FIRST_VIEW_BYTES
