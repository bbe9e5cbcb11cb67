"""The picture of the rooms in docs, drawn from the import contract in pyproject.toml."""

from __future__ import annotations

import tomllib
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TARGET = ROOT / "docs" / "pictures" / "rooms.svg"
WIDTH, ROW, BOX, GAP, MARGIN = 720, 34, 26, 10, 16
STYLE = (
    "rect{fill:#eef3fb;stroke:#4a6fa5}text{font:13px "
    "system-ui,sans-serif;fill:#1d2b3a;text-anchor:middle}path{stroke:#9aa9bb;fill:none}"
)


def layers() -> list[list[str]]:
    """Return the rooms of each layer, top first."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    [layered] = [
        one for one in contracts["tool"]["importlinter"]["contracts"] if one["type"] == "layers"
    ]
    return [
        [room.strip().removeprefix("trivet.") for room in layer.split("|")]
        for layer in layered["layers"]
    ]


def drawing() -> str:
    """Return the picture as SVG: a row per layer, with an arrow that says imports point down."""
    rows = layers()
    height = 2 * MARGIN + ROW * len(rows)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">',
        "<title>Rooms of src/trivet, top to bottom; each imports only from rows below</title>",
        f'<style>{STYLE}</style><rect width="{WIDTH}" height="{height}" style="fill:#fff;stroke:none"/>',
        f'<path d="M{WIDTH - 14} {MARGIN}V{height - MARGIN}m-4-6l4 6 4-6"/>',
    ]
    inner = WIDTH - 2 * MARGIN - 20
    for row, rooms in enumerate(rows):
        width = (inner - GAP * (len(rooms) - 1)) / len(rooms)
        for place, room in enumerate(rooms):
            left, top = MARGIN + place * (width + GAP), MARGIN + row * ROW
            parts.append(
                f'<rect x="{left:.0f}" y="{top}" width="{width:.0f}" height="{BOX}" rx="4"/>'
                f'<text x="{left + width / 2:.0f}" y="{top + 18}">{escape(room)}</text>'
            )
    return "\n".join([*parts, "</svg>", ""])
