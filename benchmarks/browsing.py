"""Measure browsing a large store in a real browser, with the server on the same machine.

python benchmarks/browsing.py --memories 100000

Figures: time to the first rows; a page of rows by offset and by cursor; a jump of the scroll bar;
frame times and rows in the document while scrolling. SQL writes the store without word or vector
indexes, which browsing does not use.
"""

from __future__ import annotations

import argparse
import json
import random
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from manifest import manifest
from support.browser import Browser, opened_browser
from support.http_server import Served, served, settings_for
from trivet import Trivet
from trivet.common.clock import stamp
from trivet.common.ids import new_id

WORDS = "staging database port relay deploy rotate token build cache index search agent graph score note team".split()
NEWEST = datetime(2026, 11, 1, tzinfo=UTC)
DAYS = 400
TAGS = 60
# Scrolls in some hundred frames, like a fast wheel, and records the times between frames.
SCROLL = """
const done = arguments[0], times = [], rows = [];
let last = performance.now(), left = 120;
const step = (now) => {
  times.push(now - last); last = now;
  rows.push(document.querySelectorAll('.long-list > li').length);
  scrollBy(0, 400);
  if ((left -= 1)) requestAnimationFrame(step); else done({times: times.slice(1), rows: Math.max(...rows)});
};
requestAnimationFrame(step);
"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--memories", type=int, default=100_000)
    memories = parser.parse_args().memories
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "memory.db"
        make_store(path, memories)
        with (
            served(settings_for(path)) as server,
            opened_browser(Path(folder) / "browser") as browser,
        ):
            figures = measured(server, browser, memories)
    print(json.dumps({"how": manifest(), "memories": memories, **figures}, indent=1))


def make_store(path: Path, memories: int) -> None:
    """Copy one memory with other words, tags, sources and times."""
    with Trivet.open(path, embedder="none") as store:
        store.remember("The first one.", created_at="2020-01-01")
    draw = random.Random(1)
    with closing(sqlite3.connect(path)) as connection:
        connection.row_factory = sqlite3.Row
        first = dict(connection.execute("SELECT * FROM memory").fetchone())
        rows = [_row(first, number, draw) for number in range(memories)]
        tags = [(row["key"], tag) for row in rows for tag in json.loads(row["tags"])]
        names = ", ".join(first)
        values = ", ".join(f":{name}" for name in first)
        connection.executemany(f"INSERT INTO memory ({names}) VALUES ({values})", rows)
        connection.executemany("INSERT INTO memory_tag (memory, tag) VALUES (?, ?)", tags)
        connection.commit()


def _row(first: dict[str, Any], number: int, draw: random.Random) -> dict[str, Any]:
    at = stamp(NEWEST - timedelta(seconds=draw.random() * DAYS * 86_400))
    return {
        **first,
        "key": first["key"] + 1 + number,
        "id": new_id(),
        "content": f"Note {number}: {' '.join(draw.choices(WORDS, k=draw.randint(8, 60)))}.",
        "tags": json.dumps([f"t{tag}" for tag in draw.sample(range(TAGS), draw.randint(0, 3))]),
        "source_uri": f"notes/{number % 37}/{number % 900}.md" if number % 3 else None,
        "importance": draw.random(),
        "created_at": at,
        "updated_at": at,
    }


def measured(server: Served, browser: Browser, memories: int) -> dict[str, Any]:
    client = server.client("local")
    browser.address = server.address
    browser.sign_in(server.key("local"))
    deep = memories * 9 // 10
    last = client.done("GET", f"/v1/memories?limit=1&offset={deep}")["memories"][0]["id"]
    paths = {
        "page at the top": "/v1/memories?limit=100",
        "page nine tenths down, by offset": f"/v1/memories?limit=100&offset={deep + 1}",
        "page nine tenths down, after": f"/v1/memories?limit=100&after={last}",
        **{name: f"/v1/{name}?limit=10000" for name in ("days", "tags", "sources", "categories")},
    }
    paths["categories"] = "/v1/categories"
    requests = {
        name: _median_ms(lambda path=path: client.done("GET", path))  # type: ignore[misc]
        for name, path in paths.items()
    }
    return {"requests_ms": requests, "browser": _browsed(browser)}


def _browsed(browser: Browser) -> dict[str, Any]:
    first = _ms(lambda: _open(browser))
    jumps = {f"{part:.0%}": _ms(lambda part=part: _jump(browser, part)) for part in (0.3, 0.6, 0.9)}  # type: ignore[misc]
    browser.driver.set_script_timeout(120)
    scrolled = browser.driver.execute_async_script(SCROLL)
    times = sorted(scrolled["times"])
    return {
        "first rows_ms": first,
        "jump_ms": jumps,
        "frame_ms": {
            "median": round(statistics.median(times), 1),
            "p95": round(times[len(times) * 95 // 100], 1),
        },
        "most rows in the document": scrolled["rows"],
    }


def _open(browser: Browser) -> None:
    browser.go("#/browse")
    browser.see(".long-list li.memory")


def _jump(browser: Browser, part: float) -> None:
    browser.script("scrollTo(0, document.documentElement.scrollHeight * arguments[0])", part)
    there = (
        "const rows = [...document.querySelectorAll('.long-list > li')];"
        "const low = rows.filter(one => one.getBoundingClientRect().bottom > 0);"
        "return low.length > 5 && rows.every(one => one.dataset.item)"
    )
    browser.until(lambda: browser.script(there), "the rows have not come")


def _median_ms(act: Callable[[], Any]) -> float:
    return round(statistics.median(_ms(act) for _ in range(7)), 1)


def _ms(act: Callable[[], Any]) -> float:
    start = time.perf_counter()
    act()
    return round((time.perf_counter() - start) * 1000, 1)


if __name__ == "__main__":
    main()
