"""Measures by name: `nDCG@10`, `recall@5`, `MRR`, `condensed-nDCG@10` parse and print back."""

from __future__ import annotations

import re
from dataclasses import dataclass

from trivet.errors import InvalidInput

# What each is called by others, in lower case, and what it is called here.
KINDS = {
    "recall": "recall",
    "r": "recall",
    "ndcg": "nDCG",
    "ndcg-exp": "nDCG-exp",
    "mrr": "MRR",
    "rr": "MRR",
    "any": "any",
    "success": "any",
    "hit": "any",
    "all": "all",
    "judged": "judged",
}
NEEDS_DEPTH = frozenset({"recall", "any", "all", "judged"})
CONDENSED = "condensed-"
NAME = re.compile(r"(?P<condensed>condensed-)?(?P<kind>[a-z-]+?)(?:@(?P<depth>[1-9][0-9]{0,5}))?", re.IGNORECASE)


@dataclass(frozen=True)
class Measure:
    """What to measure, how deep, and whether documents nobody judged are taken out of the list first."""

    kind: str
    depth: int | None = None
    condensed: bool = False

    def __str__(self) -> str:
        depth = "" if self.depth is None else f"@{self.depth}"
        return f"{CONDENSED if self.condensed else ''}{self.kind}{depth}"


def parse(name: str) -> Measure:
    """The measure of that name, whatever its case; `R@5`, `RR` and `Success@5` are understood as well."""
    match = NAME.fullmatch(name.strip())
    kind = KINDS.get(match["kind"].lower()) if match else None
    if match is None or kind is None:
        known = ", ".join(dict.fromkeys(KINDS.values()))
        raise InvalidInput(
            f"There is no measure {name!r}. Known: {known}, with a depth as in nDCG@10; condensed-nDCG@10."
        )
    if match["depth"] is None and kind in NEEDS_DEPTH:
        raise InvalidInput(f"Measure {name!r} needs a depth, such as {kind}@5.")
    if match["condensed"] and kind == "judged":
        raise InvalidInput(f"Measure {name!r} is always 1: a condensed list holds judged documents only.")
    return Measure(kind, int(match["depth"]) if match["depth"] else None, bool(match["condensed"]))
