"""Users sign in with a one-time link or a key, and anyone else sees nothing."""

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

# Maximum size of the first view's own bytes, promised for slow connections.
FIRST_VIEW_BYTES = 100_000


def test_link_signs_in_once(town: Served, stranger: Browser) -> None:
    link = link_to("", town.links).removeprefix("/")
    stranger.go(link)
    stranger.see("main li.memory")
    assert stranger.hash == "#/search"
    assert link.rpartition("/")[2] not in stranger.script("return JSON.stringify(localStorage)")
    stranger.forget()
    stranger.go(link)
    stranger.see("main [role=alert]", "already used")
    assert not stranger.all("main li.memory")


def test_signing_in_leads_to_the_requested_page(town: Served, stranger: Browser) -> None:
    stranger.go("#/search?query=staging+port")
    field = stranger.see("input[name=key]")
    assert "6543" not in stranger.driver.page_source
    assert stranger.all("nav#views a") == []
    field.send_keys("tvt.default.000000000000.wrong", Keys.ENTER)
    stranger.see("main [role=alert]", "unknown")
    field.clear()
    field.send_keys(town.key("local"), Keys.ENTER)
    stranger.see("main li.hit", "6543")
    assert stranger.hash == "#/search?query=staging+port"
    assert stranger.script(
        "return [sessionStorage, localStorage].map(one => 'trivet.key' in one)"
    ) == [True, False]


def test_signing_out_revokes_the_key(town: Served, stranger: Browser) -> None:
    key = town.key("local")
    stranger.sign_in(key)
    stranger.go("#/search")
    stranger.see(".corner button", "Sign out").click()
    stranger.see("input[name=key]")
    assert stranger.script("return localStorage.length") == 0
    town.with_key(key).refused(401, "GET", "/v1/memories")


def test_expired_key_leads_to_the_sign_in_page(town: Served, browser: Browser) -> None:
    browser.go("#/search")
    field = browser.see("input[name=query]")
    browser.see("main li.memory")
    browser.script("localStorage.setItem('trivet.key', 'tvt.default.000000000000.gone')")
    field.send_keys("staging")
    browser.see("input[name=key]")
    browser.complaints()  # the browser logs every 401


def test_wrong_links_are_refused_then_rate_limited(town: Served) -> None:
    """Use another local address with its own rate limit, so that the browser's is untouched."""
    import httpx2

    transport = httpx2.HTTPTransport(local_address="127.0.0.9")
    with httpx2.Client(base_url=town.address, transport=transport, trust_env=False) as client:
        asked = [
            client.post("/page/sign-in", json={"token": "guess"})
            for _ in range(MAX_WRONG_BURST + 1)
        ]
        assert [one.status_code for one in asked] == [401] * MAX_WRONG_BURST + [429]
        assert client.post("/page/sign-in", json={"token": town.links.make()}).status_code == 429


def test_links_expire_and_are_limited() -> None:
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


def test_every_file_has_the_policy_and_is_small(town: Served) -> None:
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


def test_policy_is_exactly_this() -> None:
    assert POLICY == (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
        "trusted-types 'none'"
    )


def test_first_view_is_small_and_loads_no_external_files(town: Served, browser: Browser) -> None:
    browser.go("#/search")
    browser.see("main li.memory")
    names = browser.script("return performance.getEntriesByType('resource').map(one => one.name)")
    assert all(name.startswith(town.address) for name in names)
    loaded = {name.removeprefix(town.address) for name in names} | {"/"}
    bytes = sum(len(file.body) for path, file in page_files().items() if path in loaded)
    assert 20_000 < bytes < FIRST_VIEW_BYTES
