"""How alike two names are: what rules out that they mean the same, and what their vectors say.

The thresholds come from `benchmarks/studies/name_pairs.py` and hold for the bundled model alone; see
docs/results/name_pairs.json. Vectors put names that differ in what matters close together, so they hardly ever decide.
"""

from __future__ import annotations

import re

from trivet.graph.canonical import form

# At or above, two names that nothing rules out are one: no pair of different names in the list comes so close.
SAME = 0.97
# Below, they are two; between them a language model is asked.
DIFFERENT = 0.75

_number = re.compile(r"\d+")
# Names made by people for machines differ on purpose where they differ: paths, files, identifiers, codes.
_made_for_machines = re.compile(r"[/\\_]|\w\.\w|\w-\w*\d|[a-z][A-Z]|::|\(\)|^[A-Z]+-?\d+$")
_roman = re.compile(r"[ivx]+")


def words_of(name: str) -> frozenset[str]:
    return frozenset(form(name).split())


def could_be_one(first: str, second: str) -> bool:
    """False where a rule tells them apart, whatever the vectors say.

    Other numbers are other versions; machine-made names are exact; and one word of a longer name (`Mira`, `York`,
    `Docker`) is as often another thing.
    """
    if _made_for_machines.search(first) or _made_for_machines.search(second):
        return False
    if sorted(_number.findall(first)) != sorted(_number.findall(second)):
        return False
    one, other = words_of(first), words_of(second)
    if one == other or (min(len(one), len(other)) == 1 and (one < other or other < one)):
        return False
    return not any(_roman.fullmatch(word) for word in one ^ other)
