"""A laptop's process: it writes, and syncs now and then, until it is killed."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any

from trivet import Trivet, TrivetError
from trivet.sync import verbs

USUAL: dict[str, Any] = {
    "embedder": "none",
    "changes": "off",
    "usage_counts": False,
    "secrets_keyring": False,
}
# Between two writes, to leave processor time for starting processes.
LONGEST_REST = 0.5


def open_store(path: Path | str, **more: Any) -> Trivet:
    return Trivet.open(path, background=False, **USUAL, **more)


def write_for_ever(path: str, user: str, ledger: str, seed: int) -> None:
    """Write forever, noting each acknowledged word. Errors are noted and are no reason to stop."""
    chance = random.Random(seed)
    other = "bo" if user == "ana" else "ana"
    errors = Path(ledger).with_suffix(".errors")
    with (
        Path(ledger).open("a", buffering=1) as noted,
        errors.open("a", buffering=1) as failed,
        open_store(Path(path)) as trivet,
    ):
        while True:
            word = f"word{seed}n{chance.getrandbits(40):x}"
            memories = trivet.list(limit=100).memories
            try:
                if not memories or chance.random() < 0.3:
                    id = trivet.remember(f"{word} was written.").id
                    if chance.random() < 0.5:
                        trivet.share(id=id, user=other, permission="write")
                else:
                    id = chance.choice(memories).id
                    trivet.edit(id, content=f"{word} was edited.")
                    trivet.feedback(id, verdict="useful", query=f"asked{seed}")
                noted.write(f"{word}\n")
            except TrivetError as error:  # Not acknowledged, so the word is not checked.
                failed.write(f"write {type(error).__name__}\n")
            time.sleep(chance.uniform(0.0, LONGEST_REST))
            if chance.random() < 0.3:
                try:
                    verbs.sync_now(trivet.engine)
                except TrivetError as error:  # What waits is sent with the next exchange.
                    failed.write(f"sync {type(error).__name__}\n")
