"""The graph view supports keys, touch and past dates, and renders hostile names as text."""

from __future__ import annotations

import json
from collections.abc import Iterator
from math import dist
from typing import Any

import pytest
from selenium.webdriver.common.keys import Keys

from support.browser import Browser
from support.http_server import Served

HOSTILE = "<img src=x onerror=\"window.hacked='node'\">"
# A walk does not follow every concept of one memory, so many memories carry the data.
PIERS = [[f"`pier-{number}-{other}`" for other in range(25)] for number in range(13)]


@pytest.fixture(scope="module")
def ferries(town: Served) -> Iterator[dict[str, str]]:
    """Memories about ferries in their own scope, removed afterwards so that counts stay right."""
    client = town.client("local")
    texts: dict[str, dict[str, Any]] = {
        "old": {
            "content": "Clara Nordlicht steers the ferry Albatros.",
            "created_at": "2024-01-01",
        },
        "new": {
            "content": "Clara Nordlicht steers the ferry Kormoran.",
            "created_at": "2025-06-01",
        },
        "hostile": {
            "content": f"Clara Nordlicht wrote {HOSTILE} down.",
            "tags": [HOSTILE],
            "created_at": "2025-07-01",
        },
    }
    texts |= {
        f"many{at}": {"content": f"Otto Ostwind lists {', '.join(piers)}."}
        for at, piers in enumerate(PIERS)
    }
    stored = client.done(
        "POST",
        "/v1/memories/batch",
        json={"memories": [{"scope": "sea", **fields} for fields in texts.values()]},
    )
    ids: dict[str, str] = {name: one["id"] for name, one in zip(texts, stored, strict=True)}
    memory = town.house.trivet(town.house.caller(town.key("local")))
    memory.engine.worker.read_by_rules()
    client.done("PUT", f"/v1/memories/{ids['new']}/links/see-also/{ids['old']}")
    yield ids
    for id in ids.values():
        client.done("POST", f"/v1/memories/{id}/purge")


def shown(browser: Browser, hash: str) -> None:
    browser.go(hash)
    browser.see("main .nodes li")
    browser.until(
        lambda: browser.all(".picture[data-state=calm]"), "the picture does not come to rest"
    )


def start_of(browser: Browser) -> str:
    return str(browser.see("main .nodes li:first-child .node-name").text)


def test_keys_alone_walk_the_graph(ferries: dict[str, str], browser: Browser) -> None:
    browser.go("#/graph")
    field = browser.see("input[name=start]")
    browser.see("main .beginnings li")
    browser.press("/")
    field.send_keys("clara nordlicht", Keys.ENTER)
    browser.until(lambda: start_of(browser) == "Clara Nordlicht", "the concept is not shown")
    browser.until(
        lambda: browser.all(".picture[data-state=calm]"), "the picture does not come to rest"
    )
    browser.script("document.activeElement.blur()")
    browser.press("j", "j")
    there = browser.focused.get_attribute("data-item")
    browser.see(".pointed", "mentions Clara Nordlicht")
    assert browser.all(".node.memory.selected rect")
    browser.press(Keys.ENTER)
    browser.until(lambda: f"start={there}" in browser.hash, "Enter does not walk")
    browser.until(
        lambda: browser.all(".picture[data-state=calm]"), "the picture does not come to rest"
    )
    browser.script("document.querySelector('h1').focus()")
    browser.press("p", Keys.ARROW_RIGHT, Keys.ARROW_LEFT, Keys.ARROW_UP, Keys.ARROW_DOWN)
    label = browser.text(".pointed h2")
    browser.press(Keys.ENTER)
    browser.until(lambda: start_of(browser) == label, "the picture does not walk by keys")


def test_going_back_in_time_keeps_positions(ferries: dict[str, str], browser: Browser) -> None:
    shown(browser, "#/graph?start=Clara%20Nordlicht&depth=1&scope=sea")
    assert "Kormoran" in browser.text("main .nodes")
    where = (
        "return Object.fromEntries([...document.querySelectorAll('.node')]"
        ".map(one => [one.textContent, one.getAttribute('transform')]))"
    )
    before = browser.script(where)
    browser.until(lambda: browser.see("input[name=as_of]").is_enabled(), "the slider has no range")
    browser.script(
        "const slider = document.querySelector('input[name=as_of]');"
        "const days = Math.floor(Date.now() / 864e5) - Date.parse('2024-06-01') / 864e5;"
        "slider.value = slider.max - 1 - days;"
        "slider.dispatchEvent(new Event('input'))"
    )
    browser.until(lambda: "as_of=2024-06-01" in browser.hash, "the address does not say when")
    browser.until(
        lambda: "Kormoran" not in browser.text("main .nodes"), "what came later is still there"
    )
    assert "Albatros" in browser.text("main .nodes")
    browser.until(
        lambda: browser.all(".picture[data-state=calm]"), "the picture does not come to rest"
    )
    after = browser.script(where)
    assert after.items() <= before.items(), "remaining nodes keep their position"
    assert 2 <= len(after) < len(before)
    browser.driver.refresh()
    browser.see("main .nodes", "Albatros")
    browser.see("output", "2024-06-01")


def test_shapes_distinguish_memories_concepts_and_link_kinds(
    ferries: dict[str, str], browser: Browser
) -> None:
    shown(browser, f"#/graph?start={ferries['new']}&depth=2&scope=sea")
    assert len(browser.all(".node.memory rect")) + len(browser.all(".node.concept circle")) == len(
        browser.all("main .nodes li")
    )
    assert browser.all(".edges line.link.see-also[marker-end]")
    assert browser.all(".edges line.mention:not([marker-end])")
    browser.see(".legend", "statement")


def test_touch_moves_and_zooms_the_picture(ferries: dict[str, str], browser: Browser) -> None:
    shown(browser, "#/graph?start=Clara%20Nordlicht&depth=1&scope=sea")
    cdp = browser.driver.execute_cdp_cmd
    frame = browser.script(
        "return document.querySelector('.picture').getBoundingClientRect().toJSON()"
    )
    x, y = frame["x"] + 200, frame["y"] + 100

    def touch(kind: str, *points: tuple[float, float]) -> None:
        told = [{"x": one[0], "y": one[1], "id": number} for number, one in enumerate(points)]
        cdp("Input.dispatchTouchEvent", {"type": kind, "touchPoints": told})

    def places() -> list[tuple[float, float]]:
        told = browser.script(
            "return [...document.querySelectorAll('.node')].slice(0, 2).map(one => one.getAttribute('transform'))"
        )
        return [(float(one[0]), float(one[1])) for one in (text[10:-1].split(" ") for text in told)]

    def moved(before: list[tuple[float, float]]) -> list[tuple[float, float]]:
        return [
            (round(b[0] - a[0]), round(b[1] - a[1])) for a, b in zip(before, places(), strict=True)
        ]

    cdp("Emulation.setTouchEmulationEnabled", {"enabled": True, "maxTouchPoints": 2})
    try:
        before = places()
        touch("touchStart", (x, y))
        touch("touchMove", (x + 60, y + 30))
        touch("touchEnd")
        browser.until(lambda: moved(before) == [(60, 30)] * 2, "a finger does not move it")
        before = places()
        touch("touchStart", (x, y), (x + 80, y))
        touch("touchMove", (x - 40, y), (x + 120, y))
        touch("touchEnd")
        browser.until(
            lambda: abs(dist(*places()) - 2 * dist(*before)) < 0.5,
            "two fingers do not make it twice as large",
        )
    finally:
        cdp("Emulation.setTouchEmulationEnabled", {"enabled": False})
    assert start_of(browser) == "Clara Nordlicht", "the start node is unchanged"
    assert browser.script("return [visualViewport.scale, scrollY]") == [1, 0], (
        "the page itself does not zoom or scroll"
    )


def test_three_hundred_nodes_and_hostile_names(ferries: dict[str, str], browser: Browser) -> None:
    browser.driver.execute_cdp_cmd(
        "Emulation.setEmulatedMedia",
        {"features": [{"name": "prefers-reduced-motion", "value": "reduce"}]},
    )
    browser.go("#/graph?start=Otto%20Ostwind&depth=2&limit=300&scope=sea")
    count = "return document.querySelectorAll('.node').length"
    browser.until(lambda: browser.script(count) == 300, "not all are drawn")
    assert browser.all(".picture[data-state=calm]"), "with reduced motion the picture is still"
    overlap = json.loads(
        browser.script(
            "const at = [...document.querySelectorAll('.node')].map(one => one.getAttribute('transform'));"
            "return JSON.stringify([at.length, new Set(at).size, at.some(one => one.includes('NaN'))])"
        )
    )
    assert overlap[0] == overlap[1]
    assert overlap[2] is False
    browser.go(f"#/graph?start={ferries['hostile']}&scope=sea")
    browser.see("main .nodes", "<img src=x")
    assert browser.script("return window.hacked ?? null") is None
    assert browser.all("main img") == []


def test_unknown_name_suggests_similar_ones(browser: Browser) -> None:
    browser.go("#/graph?start=Nobodyhere")
    browser.see("main .empty", "Nobodyhere")
    browser.complaints()  # the browser logs every 404
