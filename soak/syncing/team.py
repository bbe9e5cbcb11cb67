"""The machines of one history and what is known of them: who wrote which word, what was purged, how bad the line is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from soak.syncing.machines import LaptopMachine, Machine
from trivet.sync.messages import Answer, Op, Place

# How often a laptop pulls though something waits, as it does while the server cannot take what it sends.
PULLS_FIRST = (0.2, 0.6)
# How often the server is put back right after a laptop has sent something: what it then knew, only that laptop knows.
TURMOIL = (0.0, 0.0, 0.1)
YEARS = (2016, 2026, 2036)
TEAM = (("a1", "ana"), ("a2", "ana"), ("b1", "bo"))

# What people do, and how often: all sorts, or mostly edits, changes of who may see what, links, or memories of files.
_ACTS = (
    "create",
    "edit",
    "forget",
    "purge",
    "share",
    "unshare",
    "tag",
    "link",
    "resolve",
    "feedback",
    "redact",
    "hide",
)
MIXED = dict(zip(_ACTS, (30, 30, 6, 6, 12, 6, 5, 10, 8, 8, 4, 6), strict=True))
EDITS = dict(zip(_ACTS, (15, 50, 8, 5, 12, 4, 3, 4, 25, 3, 3, 12), strict=True))
SHARES = dict(zip(_ACTS, (12, 20, 5, 6, 25, 18, 12, 5, 8, 3, 3, 6), strict=True))
LINKS = dict(zip(_ACTS, (12, 4, 4, 4, 6, 4, 2, 50, 3, 2, 2, 2), strict=True))
NAMES = dict(zip(_ACTS, (40, 20, 2, 14, 14, 8, 2, 4, 5, 3, 1, 4), strict=True))
# Memories that become sensitive and cease to be so, and secrets that are taken out: played apart, with a laptop that
# holds other scopes, leaves and joins again more often.
PRIVATE = dict(zip(_ACTS, (8, 25, 5, 5, 8, 5, 2, 3, 12, 2, 15, 35), strict=True))
MIXES = {
    "mixed": MIXED,
    "edits": EDITS,
    "shares": SHARES,
    "links": LINKS,
    "names": NAMES,
    "private": PRIVATE,
}


class Request(msgspec.Struct):
    laptop: Any
    place: Place
    ops: list[Op]
    limit: int


class Reply(msgspec.Struct):
    request: Request
    answer: Answer
    life: int  # of the server that said it


class Team:
    def __init__(
        self,
        seed: int,
        folder: Path,
        templates: dict[str, Path],
        steps: int | Sequence[int],
        server: Machine | None = None,
        mix: str = "",
    ) -> None:
        """`steps` is how many, or which ones of them: each draws from a seed of its own. `mix`: drawn, if none."""
        self.seed = seed
        self.random = random = Random(seed)
        self.steps = range(steps) if isinstance(steps, int) else steps
        self.begins = (
            server is not None
        )  # one that is not copied from a team that has worked together
        self.server = server or Machine(folder, "server", templates["server"], 2026)
        self.laptops = [
            LaptopMachine(
                folder, name, user, templates[user if self.begins else name], random.choice(YEARS)
            )
            for name, user in TEAM
        ]
        self.network: list[Request | Reply] = []
        self.edits: dict[
            str, tuple[Any, Any]
        ] = {}  # what each edit that was sent changes, and what its writer saw
        self.settled: set[str] = set()  # branches that somebody resolved
        self.counts: Counter[str] = Counter()
        self.count = 0
        self.life = 0  # of the server: it was put back so often
        self.acted: dict[tuple[str, int], int] = {}
        self.words: dict[
            str, tuple[str, str]
        ] = {}  # each word ever written, by whom and into which memory
        for row in self.server.rows(
            "SELECT m.id, m.owner, m.content FROM memory AS m ORDER BY m.id"
        ):
            self.words[row[2].split()[0]] = (row[1], row[0])
        self.count = len(self.words)
        self.purged: set[str] = set()
        self.forgivable: set[str] = (
            set()
        )  # words that no machine could bring any more after a backup was put back
        self.seqs: dict[tuple[str, str], tuple[str, int]] = {}
        self.loss = random.choice((0.0, 0.1, 0.3))
        self.twice = random.choice((0.02, 0.12, 0.5))
        self.acting = random.choice((0.1, 0.3))
        self.crashes = random.choice((0.0, 0.04, 0.1))
        drawn = random.choice(
            (MIXED, EDITS, SHARES, LINKS, NAMES)
        )  # also where it is given: the other draws stay
        self.mix = MIXES[mix] if mix else drawn
        self.pulls_first = random.choice(PULLS_FIRST)
        self.turmoil = random.choice(TURMOIL)
        self.asked: dict[
            str, str
        ] = {}  # each word of a query that feedback named, and of which memory
        self.hidden: dict[
            str, tuple[str, str]
        ] = {}  # words of sensitive memories, on which laptop and in which memory
        self.page = random.choice(
            (4, 100, 100)
        )  # how many items a laptop reads at once when all come to rest
        self.redacted: set[str] = set()  # memories whose raw secret was taken out
        self.looks_closely = 0.2  # how often recall and doctor are compared, which takes longest

    def word(self, user: str, id: str) -> str:
        self.count += 1
        word = f"canary{self.count}q"
        self.words[word] = (user, id)
        return word
