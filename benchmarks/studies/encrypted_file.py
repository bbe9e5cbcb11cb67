"""Measure an encrypted store file: Python's SQLite, and SQLCipher without and with a key.

pip install sqlcipher3
for engine in stdlib plain cipher; do python benchmarks/studies/encrypted_file.py $engine; done

Uses processor time, which varies less on a busy machine. Run each a few times. Figures are in
docs/decisions/0028-encryption-at-rest.md.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

MEMORIES = 1_500
SINGLE = 150
OPENED = 15
QUERIES = 100
KEY = "2d" * 32


def main(engine: str) -> None:
    if engine != "stdlib":
        _take_the_place_of_sqlite(KEY if engine == "cipher" else None)
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps({"engine": engine, **_measured(Path(folder) / "memory.db")}))


def _take_the_place_of_sqlite(key: str | None) -> None:
    """Must run before anything of Trivet is imported."""
    import sqlcipher3.dbapi2

    sys.modules["sqlite3"] = sqlcipher3.dbapi2
    connect = sqlcipher3.dbapi2.connect

    def with_key(*arguments: Any, **options: Any) -> Any:
        connection = connect(*arguments, **options)
        connection.execute(f"PRAGMA key = \"x'{key}'\"")
        return connection

    if key is not None:
        sqlcipher3.dbapi2.connect = with_key


def _measured(path: Path) -> dict[str, Any]:
    from texts import memories, queries
    from trivet import Trivet

    def opened() -> Trivet:
        return Trivet.open(path, embedder="none", background=False, rerank="off")

    figures: dict[str, Any] = {}
    with opened() as trivet:
        texts = [{"content": text} for text in memories(MEMORIES)]
        figures["store all, s"] = _milliseconds(lambda: trivet.remember_many(texts)) / 1000
        figures["remember, ms"] = statistics.median(
            _milliseconds(lambda: trivet.remember(f"single number {number} of the quick fox"))  # noqa: B023
            for number in range(SINGLE)
        )
        trivet.drain()
    figures["open, ms"] = statistics.median(
        _milliseconds(lambda: opened().close()) for _ in range(OPENED)
    )
    with opened() as trivet:
        asked = queries(QUERIES)
        figures["first recall, ms"] = _milliseconds(lambda: trivet.recall(asked[0]))
        for name in ("recall, new words, ms", "recall, warm, ms"):
            figures[name] = statistics.median(
                _milliseconds(lambda: trivet.recall(query))  # noqa: B023 - called at once
                for query in asked
            )
        figures["export, s"] = _milliseconds(lambda: list(trivet.export())) / 1000
    figures["file, MB"] = path.stat().st_size / 2**20
    figures["text can be read"] = b"quick fox" in path.read_bytes()
    return {name: round(value, 2) for name, value in figures.items()}


def _milliseconds(action: Callable[[], object]) -> float:
    started = time.process_time()
    action()
    return (time.process_time() - started) * 1000


if __name__ == "__main__":
    main(sys.argv[1])
