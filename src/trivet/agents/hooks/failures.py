"""Counts failed hooks for `trivet status`: a hook never reports a failure to the agent, it only logs it."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from trivet.settings import data_folder


class Failures(msgspec.Struct, frozen=True):
    """Counts of the latest few hundred failures; the log drops older ones."""

    count: int
    moments: dict[str, int]
    last: str | None = None
    last_at: str | None = None


def failures() -> Failures:
    folder = data_folder() / "hooks"
    rows = [row.split(" ", 2) for name in ("failures.log.1", "failures.log") for row in _rows(folder / name)]
    whole = [row for row in rows if len(row) == 3 and row[0].isdigit()]
    if not whole:
        return Failures(0, {})
    moments = Counter(moment or "?" for _, moment, _ in whole)
    seconds, _, reason = whole[-1]
    return Failures(len(whole), dict(moments), reason, datetime.fromtimestamp(int(seconds), UTC).isoformat())


def _rows(file: Path) -> list[str]:
    try:
        return file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
