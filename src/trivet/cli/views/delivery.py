"""What reached the agent, as a table for each surface."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trivet.cli.output import Line, line
from trivet.lab.delivery import SURFACES, Delivered, Row, Share, Surface, measure_named

COLUMNS: dict[Surface, tuple[str, ...]] = {
    "recall": ("found@3", "delivered@1", "delivered@3", "refused", "current", "tokens"),
    "prompt": ("found@3", "delivered@1", "delivered@3", "kept", "refused", "current", "tokens"),
    "start": ("delivered", "tokens"),
}
NAMED = {
    "recall": "memory_recall over MCP: the best candidates always come; `refused` is that it says so",
    "prompt": "the hook before a prompt: what comes unasked",
    "start": "the hook at a session's start",
}
WIDTH = 13


def lines(delivered: Delivered, more: Sequence[str] = ()) -> Iterator[Line]:
    """`more` are the measures that were asked for besides the usual ones."""
    asked = tuple(measure_named(one) for one in more)
    for surface in SURFACES:
        columns = tuple(dict.fromkeys((*COLUMNS[surface], *asked)))
        rows = [row for row in delivered.rows if row.surface == surface]
        if not rows:
            continue
        yield line((NAMED[surface], "bold"))
        yield line((f"{'stratum':<28}{'queries':>8}" + "".join(f"{name:>{WIDTH}}" for name in columns), "dim"))
        for row in rows:
            cells = "".join(_cell(row.values.get(name)) for name in columns)
            yield line(f"{row.stratum:<28}{_queries(row):>8}{cells}")
        yield line("")
    if (found := delivered.lengths) is not None:
        yield line(
            f"The median of the first candidates has {found.hits:g} words, that of the answers {found.answers:g}: "
            f"{found.ratio:.2f} times as many."
        )
    error, small = delivered.calibration_error, delivered.calibration_error_small
    yield line(f"Stated probabilities are off by {error:.3f} on average, in stores under 50 memories by {small:.3f}.")


def _queries(row: Row) -> int:
    return max(share.queries for share in row.values.values())


def _cell(share: Share | None) -> str:
    if share is None:
        return " " * WIDTH
    return f"{share.mean:.0f}".rjust(WIDTH) if share.mean > 1 else f"{share.mean:.3f} ±{_half(share):.2f}".rjust(WIDTH)


def _half(share: Share) -> float:
    return (share.high - share.low) / 2
