"""A writer: it remembers, edits, forgets and purges its own subjects, and reports each step."""

from __future__ import annotations

import faulthandler
import logging
import os
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from random import Random
from typing import Any

import msgspec

from soak.ledger import GONE, Said, Told
from trivet import StoreError, Trivet
from trivet.errors import TooMany, TrivetError

ACTS = ("remember",) * 6 + ("edit",) * 3 + ("forget", "purge")
CONSONANTS, VOWELS = "bcdfghjklmnprtvwz", "aeiou"
# After a refusal, so a store that is down is not asked thousands of times a second.
PAUSE_SECONDS = 0.05
# Errors that state that nothing was done. All others leave it open.
CERTAIN = "Nothing was"
Tell = Callable[[Told], None]


class Opening(msgspec.Struct, frozen=True):
    address: str
    settings: dict[str, Any] = {}
    environment: dict[str, str] = {}
    resident: bool = False

    def open(self) -> Trivet:
        if self.resident:
            from trivet.serve.resident.client import open_memory

            return open_memory(self.address, **self.settings)
        return Trivet.open(self.address, **self.settings)


def work(opening: Opening, seed: int, tell: Connection) -> None:
    """Run as a process until it is killed, told to end, or nobody listens."""
    faulthandler.enable()
    os.environ.update(opening.environment)
    logging.getLogger("psycopg.pool").setLevel(
        logging.CRITICAL
    )  # The database goes away on purpose.
    with suppress(BrokenPipeError, EOFError):
        while not tell.poll():
            try:
                with opening.open() as memory:
                    write(memory, Random(seed), tell.send, tell.poll)
            except StoreError:
                time.sleep(PAUSE_SECONDS)  # What it opens is down at the moment.
                seed += 1


def write(memory: Trivet, random: Random, tell: Tell, over: Callable[[], bool]) -> None:
    mine: dict[str, str] = {}
    while not over():
        act = random.choice(ACTS) if mine else "remember"
        subject = invented(random) if act == "remember" else random.choice(sorted(mine))
        said = _after(act, subject, random)
        tell(Told("will", subject, said))
        try:
            mine[subject] = _do(memory, act, mine.get(subject, ""), said.text)
            tell(Told("did", subject, said))
        except TrivetError as error:
            tell(Told(_outcome(error), subject, said, f"{act}: {type(error).__name__}: {error}"))
            mine.pop(subject, None)  # Its state is uncertain.
            time.sleep(PAUSE_SECONDS)
        if act in ("forget", "purge"):
            mine.pop(subject, None)


def invented(random: Random) -> str:
    """Return a unique, pronounceable word: not taken for a secret, and never stemmed."""
    return "".join(random.choice(CONSONANTS) + random.choice(VOWELS) for _ in range(8)) + "q"


def _after(act: str, subject: str, random: Random) -> Said:
    if act == "purge":
        return GONE
    if act == "forget":
        return Said("", "deleted")
    return Said(f"{subject} is about {invented(random)} and {invented(random)}", "active")


def _do(memory: Trivet, act: str, id: str, text: str) -> str:
    if act == "remember":
        return memory.remember(text).id
    if act == "edit":
        memory.edit(id, content=text)
    elif act == "forget":
        memory.forget(id)
    else:
        memory.purge(id)
    return id


def _outcome(error: TrivetError) -> str:
    """Treat a conflict or a missing memory as wrong: nobody else touches a writer's subjects."""
    if not isinstance(error, StoreError | TooMany):
        return "wrong"
    return "refused" if isinstance(error, TooMany) or CERTAIN in str(error) else "unknown"
