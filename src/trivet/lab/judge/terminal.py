"""Judging at the terminal, one key a pair. The caller gives the streams, so that a test can drive it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from trivet.lab.dataset import Dataset
from trivet.lab.judge.pool import Pool
from trivet.lab.judge.record import Record

SHOWN_CHARACTERS = 4_000
HELP = "0 not relevant   1 touches it   2 answers in part   3 answers it   |   s skip   u undo   q quit"
END_OF_INPUT = ("", "\x03", "\x04")
ESCAPE = "\x1b"

Defuse = Callable[[str], str]


def judge_at_terminal(pool: Pool, dataset: Dataset, record: Record, keys: TextIO, out: TextIO, defuse: Defuse) -> None:
    """Goes on where the record ends. `defuse` makes text safe to show: it may hold what acts on a terminal."""
    texts = {document.id: (document.title, document.text) for document in dataset.documents}
    questions = {query.id: query.text for query in dataset.queries}
    with single_keys(keys):
        while (place := record.next()) is not None:
            entry = pool.entries[place]
            title, text = texts[entry.document]
            out.write(f"\n--- {len(record.grades) + record.skipped + 1} of {len(pool.entries)} ---\n")
            out.write(f"Question: {defuse(questions[entry.query])}\n\n")
            out.write(f"{defuse(title)}\n" if title else "")
            out.write(f"{_shown(defuse(text))}\n\n{HELP}\n> ")
            out.flush()
            if not _take_key(record, place, keys, out):
                return
        out.write("\nAll pairs are judged.\n")
        out.flush()


def _take_key(record: Record, place: int, keys: TextIO, out: TextIO) -> bool:
    """Acts on the next key that means something; False if it was to quit."""
    while True:
        key = keys.read(1)
        if key in END_OF_INPUT or key == "q":
            out.write("\nStopped. The same command goes on from here.\n")
            out.flush()
            return False
        if key == ESCAPE:
            _swallow_sequence(keys)
        elif key in "0123":
            record.judged(place, int(key))
            out.write(f"{key}\n")
            return True
        elif key == "s":
            record.judged(place, None)
            out.write("s\n")
            return True
        elif key == "u":
            out.write("u\n" if record.undo() is not None else "u: there is nothing to undo\n")
            return True


def _swallow_sequence(keys: TextIO) -> None:
    """Keys such as Delete send several characters (`ESC [ 3 ~`), none of which is a grade."""
    if keys.read(1) in ("[", "O"):
        while (key := keys.read(1)) and not "@" <= key <= "~":
            pass


@contextmanager
def single_keys(stream: TextIO) -> Iterator[None]:
    """Reads single keys without echo where the stream is a terminal, and restores its state afterwards."""
    if sys.platform == "win32" or not stream.isatty():
        yield
        return
    import termios
    import tty

    before = termios.tcgetattr(stream)
    try:
        tty.setcbreak(stream)
        yield
    finally:
        termios.tcsetattr(stream, termios.TCSADRAIN, before)


def _shown(text: str) -> str:
    left = len(text) - SHOWN_CHARACTERS
    return text if left <= 0 else f"{text[:SHOWN_CHARACTERS]}\n[... {left} more characters]"
