"""Markdown tables and the figures in their cells."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Figures = Mapping[str, Any]


def table(head: Sequence[str], body: Iterable[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    return "\n".join([*lines, *(f"| {' | '.join(cells)} |" for cells in body)])


def interval(figures: Figures) -> str:
    """`+.043 (+.035 to +.052)`."""
    return (
        f"{signed(figures['difference'])} ({signed(figures['low'])} to {signed(figures['high'])})"
    )


def signed(value: float) -> str:
    """Format three digits without a leading zero; a rounded zero has no sign."""
    text = f"{value:+.3f}".replace("0.", ".", 1)
    return text if text.strip("+-.0") else ".000"


def share(value: float) -> str:
    text = f"{value:.3f}"
    return text.removeprefix("0") if value < 1 else text


def marked(figures: Figures) -> str:
    mark = " ▲" if figures["low"] > 0 else " ▼" if figures["high"] < 0 else ""
    return f"{signed(figures['difference'])}{mark}"
