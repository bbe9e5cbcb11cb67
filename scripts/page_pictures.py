"""Take the README's pictures of the page: PYTHONPATH=tests python scripts/page_pictures.py

It needs Chromium, chromedriver and Pillow, shows the demo's memories, and writes docs/pictures/.
"""

from __future__ import annotations

import io
import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image

from support.browser import Browser, opened_browser

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
QUERY = "may I deploy harbor on a Friday morning"
# Of the 256 colors in a small file, these pictures use a few dozen.
COLOURS = 128
TYPED_AT_ONCE = 5
FRAME_MS, LAST_FRAME_MS = 350, 3000


def main() -> None:
    PICTURES.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "trivet.cli", "serve", "--demo", "--port", "0"]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server,
        TemporaryDirectory() as folder,
        opened_browser(Path(folder)) as browser,
    ):
        assert server.stdout is not None
        found = re.search(r"(http://\S+?)/(#\S+)", server.stdout.readline())
        assert found, "the demo's first line has the address that signs in"
        browser.address = found[1]
        browser.go(found[2])
        browser.see("main li.memory")
        take(browser)
        server.terminate()


def take(browser: Browser) -> None:
    browser.go("#/graph?start=harbor&limit=40")
    browser.see(".picture[data-state=calm]")
    keep(picture(browser), "graph")
    browser.go("#/browse")
    browser.see(".long-list li.memory")
    browser.see(".timeline")
    keep(picture(browser), "browse")
    frames = typed(browser)
    browser.press("\ue00c")  # Escape leaves the field.
    browser.press("w")
    browser.see(".why")
    frames.append(picture(browser))
    keep(frames[-1], "search")
    durations = [FRAME_MS] * (len(frames) - 1) + [LAST_FRAME_MS]
    small = [
        frame.resize((960, frame.height * 960 // frame.width)).quantize(COLOURS) for frame in frames
    ]
    small[0].save(
        PICTURES / "search.gif", save_all=True, append_images=small[1:], duration=durations, loop=0
    )


def typed(browser: Browser) -> list[Image.Image]:
    browser.go("#/search")
    browser.see("input[type=search]").click()
    frames = [picture(browser)]
    for start in range(0, len(QUERY), TYPED_AT_ONCE):
        browser.press(QUERY[start : start + TYPED_AT_ONCE])
        browser.until(lambda: "query" in browser.hash, "the query does not reach the address")
        frames.append(picture(browser))
    browser.see("li.hit", "No Friday deploys")
    return [*frames, picture(browser)]


def picture(browser: Browser) -> Image.Image:
    return Image.open(io.BytesIO(browser.driver.get_screenshot_as_png())).convert("RGB")


def keep(image: Image.Image, name: str) -> None:
    image.quantize(COLOURS).save(PICTURES / f"{name}.png", optimize=True)


if __name__ == "__main__":
    main()
