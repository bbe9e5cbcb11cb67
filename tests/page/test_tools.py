"""The compare, health and people views work, and only admins see the restricted ones."""

from __future__ import annotations

import json
from pathlib import Path

from selenium.webdriver.common.keys import Keys

from support.browser import PHONE, Browser, axe_source
from support.http_server import Served


def test_comparing_two_recipes_and_grading_by_keys(town: Served, browser: Browser) -> None:
    browser.go("#/compare?query=staging+database&a=rrf+%7C+legs(lexical)&b=rrf+%7C+legs(graph)")
    browser.see("main .sides section:nth-child(2) h2", "Recipe B")
    browser.see("main [role=status]", "moved")
    browser.press(Keys.ESCAPE)
    browser.script("document.querySelector('h1').focus()")
    browser.press("j", "3")
    browser.see("main .grades button[aria-pressed=true]", "3")
    browser.press("j", "0")
    browser.see("main form", "2 grades on 1 query")
    first = browser.all("main .compared")[0].get_attribute("data-item")
    browser.driver.refresh()
    browser.see(f"[data-item='{first}'] .grades button[aria-pressed=true]", "3")
    browser.script(
        "window.saved = []; const real = Blob; window.Blob = class extends real {"
        "  constructor(parts, options) { super(parts, options); window.saved = parts; } }"
    )
    browser.see("main form button", "Save as a file").click()
    lines = [json.loads(line) for line in browser.script("return window.saved")]
    assert {"query": "staging database", "id": first, "grade": 3} in lines
    assert {line["grade"] for line in lines} == {0, 3}
    browser.see("main form button", "Delete them").click()
    browser.gone("main .grades button[aria-pressed=true]")


def test_lab_runs_can_be_compared_in_the_browser(browser: Browser, tmp_path: Path) -> None:
    def run(name: str, values: dict[str, float], top: list[str]) -> str:
        file = tmp_path / name / "per_query.jsonl"
        file.parent.mkdir()
        legs = {"lexical": {"score": 2.0, "rank": 1}}
        lines = [
            {
                "query": query,
                "text": f"<b>{query}</b> text",
                "measures": {"nDCG@10": value, "MRR": 1.0},
                "top": [{"document": one, "score": 1.0, "legs": legs} for one in top],
            }
            for query, value in values.items()
        ]
        file.write_text("".join(json.dumps(line) + "\n" for line in lines))
        return str(file)

    browser.go("#/compare?runs=files")
    browser.see("input[name=run-A]").send_keys(
        run("a", {"q1": 0.5, "q2": 1.0, "q3": 0.2}, ["d1", "d2"])
    )
    browser.see("input[name=run-B]").send_keys(
        run("b", {"q1": 0.6, "q2": 0.1, "q3": 0.2}, ["d2", "d3"])
    )
    browser.see("main .note", "3 queries: 1 better in B, 1 worse, 1 equal")
    rows = browser.all("main tbody tr")
    assert [row.get_attribute("data-item") for row in rows] == ["q2", "q1", "q3"]
    assert "−0.900" in rows[0].text or "-0.900" in rows[0].text
    rows[0].find_element("css selector", "button").click()
    browser.see("main tbody tr:first-child .relations", "d1 gone")
    assert "d2 up 1" in browser.text("main tbody tr:first-child .relations")
    assert "d3 new" in browser.text("main tbody tr:first-child .relations")
    browser.see("input[name=filter]").send_keys("q3")
    browser.until(lambda: len(browser.all("main tbody tr")) == 1, "the filter does nothing")
    assert browser.all("main tbody b") == []
    names = browser.script("return performance.getEntriesByType('resource').map(one => one.name)")
    assert not any("per_query" in name for name in names)


def test_health_shows_problems_and_repairs_them(town: Served, browser: Browser) -> None:
    memory = town.house.trivet(town.house.caller(town.key("local")))
    with memory.engine.store.memories._database.write() as connection:
        connection.execute("DELETE FROM lexical")
    browser.go("#/health")
    browser.see("main .finding", "memories missing from the lexical index")
    browser.see("main .figures", "Active")
    browser.see("main .budget", "store on disk")
    browser.see("main .finding button", "Rebuild the word index").click()
    browser.see("#status", "started")
    memory.engine.worker.errand.wait()
    browser.see("main button", "Check again").click()
    browser.see("main .note.good", "checks passed")


def click(browser: Browser, selector: str) -> None:
    """Click even if the status line covers the element for a moment."""
    browser.script("arguments[0].click()", browser.see(selector))


def test_admin_adds_a_user_and_sees_the_key_once(town: Served, browser: Browser) -> None:
    browser.go("#/people")
    browser.see("input[name=name]").send_keys("berta", Keys.ENTER)
    browser.see("main tbody th", "berta")
    browser.see("input[name=label]").send_keys("<i>laptop</i>")
    click(browser, "form[aria-label='Make a key'] button[type=submit]")
    key = browser.see("dialog .secret").text
    assert key.startswith("tvt.default.")
    browser.press(Keys.ESCAPE)
    browser.gone("dialog")
    assert key not in browser.driver.page_source + browser.script(
        "return JSON.stringify(localStorage)"
    )
    browser.see("main tbody th", "<i>laptop</i>")
    berta = town.with_key(key)
    assert {one["user"] for one in berta.done("GET", "/v1/keys")} == {"berta"}
    click(browser, "main button[aria-label^='Revoke the key'][aria-label$='of berta']")
    browser.see("dialog button.danger").click()
    browser.see("#status", "revoked")
    assert berta("GET", "/v1/keys").status_code == 401
    browser.complaints()
    click(browser, "main button[aria-label='Remove berta']")
    browser.see("dialog button.danger").click()
    browser.see("#status", "removed")


def test_non_admin_sees_no_people_and_no_repairs(town: Served, stranger: Browser) -> None:
    stranger.sign_in(town.key("wim", "writer"))
    for hash, text in {"#/people": "Only an admin", "#/health": "Active"}.items():
        stranger.go(hash)
        stranger.see("main", text)
        stranger.until(lambda: not stranger.all("[aria-busy]"), "it does not come to rest")
        assert "local" not in stranger.text("main")
        assert (
            stranger.all("main :is(.finding, .budget, table, form:not([aria-label='Share a tag']))")
            == []
        )


VIEWS = {
    "graph": ("#/graph?start=staging", "main .nodes li"),
    "graph-first": ("#/graph", "main .beginnings li"),
    "compare": ("#/compare?query=staging&a=rrf", "main .compared"),
    "compare-runs": ("#/compare?runs=files", "input[type=file]"),
    "health": ("#/health", "main .budget"),
    "people": ("#/people", "main tbody th"),
}
IN_BOTH = ("graph", "compare", "people")


def test_axe_finds_nothing(browser: Browser) -> None:
    """Check both color schemes; switching needs no request to the server."""
    axe = axe_source()
    found: dict[tuple[str, bool], list[str]] = {}
    for name, (hash, selector) in VIEWS.items():
        browser.look()
        browser.go(hash)
        browser.see(selector)
        browser.until(
            lambda: not browser.all(".picture[data-state=moving]"), "it does not come to rest"
        )
        for dark in (False, True) if name in IN_BOTH else (False,):
            browser.colours(dark)
            browser.picture(f"{name}-{'dark' if dark else 'light'}")
            found |= (
                {(name, dark): rules}
                if (rules := browser.unreachable(axe, only_colours=dark))
                else {}
            )
    assert found == {}


def test_views_fit_a_phone(browser: Browser) -> None:
    browser.look(PHONE)
    for name, (hash, selector) in VIEWS.items():
        browser.go(hash)
        browser.see(selector)
        browser.picture(f"{name}-phone")
        assert browser.script("return document.documentElement.scrollWidth") <= PHONE[0], name
