"""The machines of one history and what is known of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from soak.syncing.machines import LaptopMachine, Machine
from trivet.sync.messages import Answer, Op, Place

# How often a laptop pulls while something waits, as if the server could not take its pushes.
PULLS_FIRST = (0.2, 0.6)
# How often the server is put back right after a push: only that laptop knows what it held.
TURMOIL = (0.0, 0.0, 0.1)
YEARS = (2016, 2026, 2036)
TEAM = (("a1", "ana"), ("a2", "ana"), ("b1", "bo"))

# Weights of acts: mixed, or mostly edits, visibility changes, links, or file memories.
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
# Weights for sensitive memories and redactions. Laptops hold other scopes, leave and rejoin more
# often.
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
    life: int  # Life of the server that said it.


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
        """Start a team.

        `steps` is a count or the steps to play, each with its own seed; `mix` is drawn if empty.
        """
        self.seed = seed
        self.random = random = Random(seed)
        self.steps = range(steps) if isinstance(steps, int) else steps
        self.begins = server is not None  # Not copied from a team that has worked together.
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
        ] = {}  # What each sent edit changes, and what its writer saw.
        self.settled: set[str] = set()  # Branches somebody resolved.
        self.counts: Counter[str] = Counter()
        self.count = 0
        self.life = 0  # How often the server was put back.
        self.acted: dict[tuple[str, int], int] = {}
        self.words: dict[
            str, tuple[str, str]
        ] = {}  # Each word ever written: by whom, into which memory.
        for row in self.server.rows(
            "SELECT m.id, m.owner, m.content FROM memory AS m ORDER BY m.id"
        ):
            self.words[row[2].split()[0]] = (row[1], row[0])
        self.count = len(self.words)
        self.purged: set[str] = set()
        self.forgivable: set[str] = (
            set()
        )  # Words no machine could bring any more after a backup was restored.
        self.seqs: dict[tuple[str, str], tuple[str, int]] = {}
        self.loss = random.choice((0.0, 0.1, 0.3))
        self.twice = random.choice((0.02, 0.12, 0.5))
        self.acting = random.choice((0.1, 0.3))
        self.crashes = random.choice((0.0, 0.04, 0.1))
        drawn = random.choice(
            (MIXED, EDITS, SHARES, LINKS, NAMES)
        )  # Drawn even if given, so the other draws stay the same.
        self.mix = MIXES[mix] if mix else drawn
        self.pulls_first = random.choice(PULLS_FIRST)
        self.turmoil = random.choice(TURMOIL)
        self.asked: dict[str, str] = {}  # Each query word feedback named, and its memory.
        self.hidden: dict[
            str, tuple[str, str]
        ] = {}  # Words of sensitive memories, by laptop and memory.
        self.page = random.choice(
            (4, 100, 100)
        )  # Items a laptop reads at once when all come to rest.
        self.redacted: set[str] = set()  # Memories whose raw secret was removed.
        self.looks_closely = 0.2  # How often recall and doctor are compared, which takes longest.

    def word(self, user: str, id: str) -> str:
        self.count += 1
        word = f"canary{self.count}q"
        self.words[word] = (user, id)
        return word
