"""Headless Chromium for tests, with user actions that wait for conditions."""

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

from support.store_fixtures import ARTIFACTS
from support.waiting import LIMIT_SECONDS

T = TypeVar("T")
ARGUMENTS = (
    "--headless=new",
    "--no-sandbox",  # root has no sandbox
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    # Debian's own settings load extensions and use a graphics card, which machines without one
    # emulate.
    "--disable-extensions",
    "--disable-gpu-rasterization",
    "--in-process-gpu",
    # Keep no spare process for the next page and no page for the back button: together a quarter of
    # the work.
    "--disable-features=SpareRendererForSitePerProcess,BackForwardCache",
)
WIDE = (1280, 860)
PHONE = (400, 800)
HOW_TO_GET_IT = "apt-get install chromium chromium-driver, which .ci/run does where it may"
AXE = "axe-core@4.14.0"
# One script call; asking the browser for each element costs more than the page's own work.
HOLDING = """
const [selector, text] = arguments;
const said = one => (one.innerText ?? one.textContent).replaceAll('\\u00a0', ' ');
return [...document.querySelectorAll(selector)].filter(one => one.checkVisibility() && said(one).includes(text));
"""
PICTURES = ARTIFACTS / "page"


class Browser:
    """The page as a user sees it: an address, keys, and visible elements."""

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
        """Set the color scheme without the transition, which axe would measure midway."""
        wanted = {
            "prefers-color-scheme": "dark" if dark else "light",
            "prefers-reduced-motion": "reduce",
        }
        features = [{"name": name, "value": value} for name, value in wanted.items()]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def forget(self) -> None:
        """Clear all browser data, and show a server response instead of the page."""
        self.driver.get(f"{self.address}/healthz")
        self.driver.execute_cdp_cmd(
            "Storage.clearDataForOrigin", {"origin": self.address, "storageTypes": "all"}
        )
        self.driver.get_log("browser")

    def go(self, hash: str) -> None:
        """Load the page at this place; changing only the hash would not reload it."""
        self._loaded += 1
        self.driver.get(f"{self.address}/?{self._loaded}{hash}")

    def sign_in(self, key: str) -> None:
        """Store the key as an earlier visit would; the next `go` loads the page with it."""
        self.forget()
        self.script("localStorage.setItem('trivet.key', arguments[0])", key)

    def script(self, text: str, *arguments: Any) -> Any:
        return self.driver.execute_script(text, *arguments)

    def until(self, found: Callable[[], T], what: str) -> T:
        """Return the first truthy result of `found`."""
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
        """Return the first visible element that holds the text, once it is there."""

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
        """Send keys to the focused element."""
        from selenium.webdriver.common.action_chains import ActionChains

        ActionChains(self.driver).send_keys(*keys).perform()

    @property
    def focused(self) -> Any:
        return self.driver.switch_to.active_element

    @property
    def hash(self) -> str:
        return str(self.script("return location.hash"))

    def complaints(self) -> list[str]:
        """Return the console's messages: failed scripts and content security policy violations."""
        return [f"{one['level']} {one['message']}" for one in self.driver.get_log("browser")]

    def picture(self, name: str) -> None:
        """Save a screenshot if PAGE_PICTURES is set; a tenth of the browser's work, for people."""
        if not os.environ.get("PAGE_PICTURES"):
            return
        PICTURES.mkdir(parents=True, exist_ok=True)
        self.driver.save_screenshot(str(PICTURES / f"{name}.png"))

    def unreachable(self, axe: str, only_colours: bool = False) -> list[str]:
        """Return axe's WCAG 2.2 AA violations as sentences.

        With `only_colours`, check only those that depend on colors.
        """
        if not self.script("return 'axe' in window"):
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
    """Open a browser, or skip the test with installation instructions."""
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
    options.add_experimental_option(
        "prefs", {"download.default_directory": str(folder / "downloads")}
    )
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = Service(driver, env={**os.environ, "TMPDIR": str(folder), "HOME": str(folder)})
    running = webdriver.Chrome(options=options, service=service)
    try:
        yield Browser(running)
    finally:
        running.quit()


def axe_source() -> str:
    """Return axe-core from npm, kept in the cache folder; skip the test if it is unavailable."""
    folder = ARTIFACTS / AXE.replace("@", "-")
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
