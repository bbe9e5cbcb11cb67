"""Writes docs/results/delivery.md from two runs of `trivet lab delivery`.

python benchmarks/studies/delivery_report.py docs/results/delivery-test.json docs/results/delivery-dev.json
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

PAGE = Path("docs/results/delivery.md")
SURFACES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "recall": ("memory_recall over MCP", ("found@3", "delivered@1", "delivered@3", "refused", "current", "tokens")),
    "prompt": ("the hook before a prompt", ("delivered@1", "delivered@3", "kept", "refused", "current", "tokens")),
    "start": ("the hook at a session's start", ("delivered", "tokens")),
}
NOTES = {
    "prompt": "A prompt of one word recalls only if the word is in no dictionary, which costs some keyword queries.\n"
}
HEAD = """# What reaches an agent

`trivet lab delivery lives/test --out docs/results/delivery-test.json` (the same with `lives/dev`), then `python
benchmarks/studies/delivery_report.py docs/results/delivery-test.json docs/results/delivery-dev.json`. The stores
are made-up lives (src/trivet/lab/lives): 286 memories and 409 questions in the half `dev`, which was looked at
while this was built, 289 and 409 in `test`, which nothing is fitted on. Means with intervals of 95 %. `found@3`: an
answer is among the first three candidates, whatever is shown of them. `delivered@k`: it is among the first k that
the agent is given. `kept`: something is given. `refused`: nothing is given (by the hook), or "probably nothing is
relevant" is said (by recall). `current`: no outdated memory stands before the answer.

"""
EARLIER = """With the first embedder the half `test` had: `delivered@3` .893, `delivered@1` .789, `refused`
.458, `current` .792; .893, .786, .458, .750 with the reader of changes. With the second embedder
([0033](../decisions/0033-a-second-embedder.md)) it was run twice: after the first of these runs (.899, .774, .472,
.667) an update from .85 on was made sure enough again to take the earlier one's place in any case, as it had been,
since an outdated memory first misleads and a needless one first does not. Before the numbers of
[0039](../decisions/0039-the-new-before-the-old.md), which were chosen on `dev`, it had .926, .834, .611, .750, and the
hook before a prompt kept .911; after them .926, .831, .611, .750 and .926. The runs below are those of the reader of
changes that a large model taught ([0040](../decisions/0040-a-reader-of-changes-taught-by-a-large-one.md)), which had
.923, .834, .611, .792 and .926 before [three rules](../decisions/0039-the-new-before-the-old.md#decision) were mended.

"""


def main() -> None:
    test, dev = (json.loads(Path(file).read_text(encoding="utf-8")) for file in sys.argv[1:3])
    parts = [
        part for surface in SURFACES for part in section(f"The half `test`: {SURFACES[surface][0]}", test, surface)
    ]
    parts.append(calibration(test, dev))
    parts += [part for surface in SURFACES for part in section(f"The half `dev`: {SURFACES[surface][0]}", dev, surface)]
    PAGE.write_text(HEAD + EARLIER + "\n".join(parts), encoding="utf-8")


def section(title: str, results: Mapping[str, Any], surface: str) -> Sequence[str]:
    columns = SURFACES[surface][1]
    rows = [row for row in results["rows"] if row["surface"] == surface]
    lines = [f"| stratum | {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|"]
    lines += [f"| {row['stratum']} | {' | '.join(cell(row['values'], name) for name in columns)} |" for row in rows]
    return [f"## {title}", NOTES.get(surface, ""), "\n".join(lines) + "\n"]


def cell(values: Mapping[str, Any], name: str) -> str:
    found = values.get(name)
    if found is None:
        return ""
    if name == "tokens":
        return f"{found['mean']:.0f}"
    return f"{found['mean']:.3f} ({found['low']:.2f} to {found['high']:.2f})"


def calibration(test: Mapping[str, Any], dev: Mapping[str, Any]) -> str:
    own, small = (
        f"{test[name]:.3f} (`dev` {dev[name]:.3f})" for name in ("calibration_error", "calibration_error_small")
    )
    return f"Stated probabilities are off by {own} on average, in stores of under 50 memories by {small}.\n"


if __name__ == "__main__":
    main()
