"""Crafted texts are parsed in linear time, because the whole resident process waits."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from trivet.agents.capture.rules import statements
from trivet.agents.capture.transcript import LONGEST, LONGEST_MESSAGE, user_text
from trivet.memory.propose import particulars
from trivet.secrets.masking import private_spans
from trivet.sources.files.conversations import claude_code_turns

# Far above linear parsing on a busy machine and far below quadratic parsing.
SECONDS = 1.5


def read_transcript(text: str) -> object:
    return list(claude_code_turns([{"type": "user", "uuid": "1", "message": {"content": text}}]))


@pytest.mark.parametrize(
    ("reader", "text"),
    [
        (user_text, "a" + "\n" * (LONGEST_MESSAGE - 2) + "b"),
        (user_text, "<private></private>" * 20_000),
        (private_spans, "<" + " " * 32_000),
        (statements, ("after abc, " * 9)[:LONGEST]),
        (statements, ("after abc " * 40)[:LONGEST]),
        (particulars, "a" * 32_000),
        (read_transcript, "<bash-a>" * 10_000),
        (read_transcript, "[Request interrupted by user" * 10_000),
    ],
    ids=["lines", "private", "blanks", "after", "afters", "word", "marks", "interrupted"],
)
def test_no_text_takes_long(reader: Callable[[str], object], text: str) -> None:
    start = time.perf_counter()
    reader(text)
    assert time.perf_counter() - start < SECONDS


def test_text_inside_program_tags_is_not_captured() -> None:
    text = "a<bash-x>1<bash-y>2</bash-x>b</bash-y>c<bash-z>d<command-name>3</command-name>[Request interrupted by user]"
    (turn,) = claude_code_turns([{"type": "user", "uuid": "1", "message": {"content": text}}])
    assert turn.text == "ab</bash-y>c<bash-z>d"


@pytest.mark.parametrize(
    "before",
    [
        "",
        "Ok, so ",
        "After a long talk, ",
        "After lunch with Ines we talked and ",
        "So, after all that, well, ",
    ],
)
def test_decision_is_found_after_leading_words(before: str) -> None:
    assert [one.kind for one in statements(f"{before}we decided to keep the queue in Redis.")] == [
        "decision"
    ]
