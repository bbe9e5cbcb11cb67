"""A real browser for tests: Chromium without a window, and what a person does with it. It waits for conditions."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest

from support.waiting import LIMIT_SECONDS

T = TypeVar("T")
ARGUMENTS = (
    "--headless=new",
    "--no-sandbox",  # as root there is none to be had
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    # Debian's own settings load extensions, and draw by a graphics card, which a machine without one only plays.
    "--disable-extensions",
    "--disable-gpu-rasterization",
    "--in-process-gpu",
    # No process is kept ready for the next page, and no page for the way back: together a quarter of the work.
    "--disable-features=SpareRendererForSitePerProcess,BackForwardCache",
)
WIDE = (1280, 860)
PHONE = (400, 800)
HOW_TO_GET_IT = "apt-get install chromium chromium-driver, which .ci/run does where it may"
AXE = "axe-core@4.14.0"
# Asked at once: to ask the browser for every element by itself costs more than what the page does meanwhile.
HOLDING = """
const [selector, text] = arguments;
const said = one => (one.innerText ?? one.textContent).replaceAll('\\u00a0', ' ');
return [...document.querySelectorAll(selector)].filter(one => one.checkVisibility() && said(one).includes(text));
"""
ARTIFACTS = Path(__file__).parents[2] / ".artifacts" / "page"


class Browser:
    """The page as a person meets it: an address, keys, what can be seen."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver
        self.address = ""
        self._loaded = 0
        self.look()

    def look(self, size: tuple[int, int] = WIDE, dark: bool = False) -> None:
        width, height = size
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": scheme})

    def colours(self, dark: bool) -> None:
        """Without the fade between them, which axe would measure halfway."""
        wanted = {
            "prefers-color-scheme": "dark" if dark else "light",
            "prefers-reduced-motion": "reduce",
        }
        features = [{"name": name, "value": value} for name, value in wanted.items()]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def forget(self) -> None:
        """As a browser that was never here. What it shows then is the server's, and not the page."""
        self.driver.get(f"{self.address}/healthz")
        self.driver.execute_cdp_cmd(
            "Storage.clearDataForOrigin", {"origin": self.address, "storageTypes": "all"}
        )
        self.driver.get_log("browser")

    def go(self, hash: str) -> None:
        """Loads the page anew at this place: to another place of the same address it would only move on."""
        self._loaded += 1
        self.driver.get(f"{self.address}/?{self._loaded}{hash}")

    def sign_in(self, key: str) -> None:
        """As somebody who was here before: the page is loaded with the key by who goes there next."""
        self.forget()
        self.script("localStorage.setItem('trivet.key', arguments[0])", key)

    def script(self, text: str, *arguments: Any) -> Any:
        return self.driver.execute_script(text, *arguments)

    def until(self, found: Callable[[], T], what: str) -> T:
        """What it finds, as soon as that is something."""
        from selenium.common.exceptions import (
            StaleElementReferenceException,
            TimeoutException,
            WebDriverException,
        )
        from selenium.webdriver.support.ui import WebDriverWait

        ignored = (StaleElementReferenceException, WebDriverException)
        wait = WebDriverWait(
            self.driver, LIMIT_SECONDS / 4, poll_frequency=0.03, ignored_exceptions=ignored
        )
        try:
            return wait.until(lambda _: found())
        except TimeoutException:
            pytest.fail(f"{what}; the page says: {self.text()[:600]!r}")

    def all(self, selector: str) -> list[Any]:
        return list(self.driver.find_elements("css selector", selector))

    def see(self, selector: str, text: str = "") -> Any:
        """The first element that can be seen and holds the text, when it is there."""

        def found() -> Any:
            return next(
                (one for one in self.script(HOLDING, selector, text) if one.is_displayed()), None
            )

        return self.until(found, f"{selector} with {text!r} has not come")

    def gone(self, selector: str) -> None:
        self.until(lambda: not self.all(selector), f"{selector} is still there")

    def text(self, selector: str = "body") -> str:
        return " ".join(one.text for one in self.all(selector))

    def press(self, *keys: str) -> None:
        """To whatever has the focus."""
        from selenium.webdriver.common.action_chains import ActionChains

        ActionChains(self.driver).send_keys(*keys).perform()

    @property
    def focused(self) -> Any:
        return self.driver.switch_to.active_element

    @property
    def hash(self) -> str:
        return str(self.script("return location.hash"))

    def complaints(self) -> list[str]:
        """What the browser's console has to say: scripts that failed, and what the content security policy refused."""
        return [f"{one['level']} {one['message']}" for one in self.driver.get_log("browser")]

    def picture(self, name: str) -> None:
        ARTIFACTS.mkdir(parents=True, exist_ok=True)
        self.driver.save_screenshot(str(ARTIFACTS / f"{name}.png"))

    def unreachable(self, axe: str, only_colours: bool = False) -> list[str]:
        """What axe finds against WCAG 2.2 AA, as sentences with the place; all of it, or what colours can change."""
        self.driver.execute_cdp_cmd("Runtime.evaluate", {"expression": axe})
        rules = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
        rules = ["color-contrast", "link-in-text-block"] if only_colours else rules
        told = "rule => [rule.id, rule.help, rule.nodes.map(node => node.target.join(' ') + ': ' + node.failureSummary)]"
        run = (
            f"axe.run(document, {{runOnly: {json.dumps(rules)}, resultTypes: ['violations']}})"
            f".then(result => JSON.stringify(result.violations.map({told})))"
        )
        answer = self.driver.execute_cdp_cmd(
            "Runtime.evaluate", {"expression": run, "awaitPromise": True}
        )
        return [
            f"{id}: {help} {nodes}" for id, help, nodes in json.loads(answer["result"]["value"])
        ]


@contextmanager
def opened_browser(folder: Path) -> Iterator[Browser]:
    """Skips the test, with how to get one, where there is no browser."""
    pytest.importorskip("selenium", reason="selenium drives the browser: pip install -e '.[dev]'")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    driver = shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip(f"there is no Chromium with its driver here: {HOW_TO_GET_IT}")
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for argument in (*ARGUMENTS, f"--user-data-dir={folder}"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = Service(driver, env={**os.environ, "TMPDIR": str(folder)})
    running = webdriver.Chrome(options=options, service=service)
    try:
        yield Browser(running)
    finally:
        running.quit()


def axe_source() -> str:
    """axe-core from npm, kept in the cache folder; the test is skipped where it cannot be had."""
    folder = (
        Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        / "trivet-tests"
        / AXE.replace("@", "-")
    )
    file = folder / "node_modules" / "axe-core" / "axe.min.js"
    if not file.exists():
        _install(folder)
    if not file.exists():
        pytest.skip(f"{AXE} is not here, and npm could not get it")
    return file.read_text(encoding="utf-8")


def _install(folder: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip(
            f"{AXE} checks the contrast and the names of things, and comes by npm, which is not here"
        )
    folder.mkdir(parents=True, exist_ok=True)
    command = [npm, "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(folder), AXE]
    subprocess.run(command, capture_output=True, timeout=LIMIT_SECONDS, check=False)
