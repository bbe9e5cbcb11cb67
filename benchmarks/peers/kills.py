"""Count acknowledged writes that are lost after kill -9."""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import Sequence
from typing import Any

from peers.process import DriverFailed
from peers.products import Arm
from peers.quality import COUNT, Bench, messages
from trivet.lab.datasets.dataset import Document

ROUNDS = 6
# A round kills after this many acknowledged writes, drawn by the seed.
WRITES = (5, 60)
SEED = 19


def killed(bench: Bench, arm: Arm, documents: Sequence[Document]) -> dict[str, Any]:
    """Return the sums over all rounds. Every round starts with an empty store."""
    drawn = random.Random(SEED)
    rounds = [
        _round(bench, arm, documents, drawn.randint(*WRITES), drawn.random()) for _ in range(ROUNDS)
    ]
    counts = ("acknowledged", "lost", "not_found")
    return {
        "rounds": ROUNDS,
        **{name: sum(one[name] for one in rounds) for name in counts},
        "not_opened": [one["error"] for one in rounds if one["error"]],
    }


def _round(
    bench: Bench, arm: Arm, documents: Sequence[Document], writes: int, moment: float
) -> dict[str, Any]:
    store = bench.work / "stores" / arm.name / "killed"
    shutil.rmtree(store, ignore_errors=True)
    rows = messages(bench.vectors, documents[: writes + 1])
    with bench.driver(arm, store) as driver:
        began = time.perf_counter()
        for row in rows[:writes]:
            driver.ask("add", documents=[row])
        usual = (time.perf_counter() - began) / writes
        driver.send("add", documents=[rows[writes]])
        time.sleep(moment * usual)  # At some moment during the current write.
        acknowledged = rows[: writes + sum("seconds" in one for one in driver.kill())]
    return {"acknowledged": len(acknowledged), **_opened_again(bench, arm, store, acknowledged)}


def _opened_again(
    bench: Bench, arm: Arm, store: Any, rows: Sequence[dict[str, str]]
) -> dict[str, Any]:
    """Query at once, despite background work. A store that does not open lost everything."""
    try:
        with bench.driver(arm, store) as driver:
            held = set(driver.ask("held")["ids"])
            missed = [row for row in rows if row["id"] not in _found(driver, row)]
            driver.ask("close")
    except DriverFailed as failed:
        return {
            "lost": len(rows),
            "not_found": len(rows),
            "error": str(failed).replace(str(store), "STORE")[:300],
        }
    return {
        "lost": sum(row["id"] not in held for row in rows),
        "not_found": len(missed),
        "error": "",
    }


def _found(driver: Any, row: dict[str, str]) -> list[str]:
    ids: list[str] = driver.ask("search", text=row["text"], vector=row["vector"], count=COUNT)[
        "ids"
    ]
    return ids
