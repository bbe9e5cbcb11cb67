"""The times that a text names, as they are stored with it, and what is made of what was stored otherwise."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from support.stores import memory
from trivet.search import memory_times as said
from trivet.search.memory_times import (
    decode_mentioned_times,
    encode_mentioned_times,
    mentioned_times,
)

TEXT = "We met yesterday, and meet again on 3 May and in March."


@contextmanager
def zone(name: str) -> Iterator[None]:
    before = os.environ.get("TZ")
    os.environ["TZ"] = name
    time.tzset()
    try:
        yield
    finally:
        os.environ.pop("TZ") if before is None else os.environ.update(TZ=before)
        time.tzset()


def test_what_is_stored_says_what_the_text_says() -> None:
    one = memory(TEXT, created_at="2026-11-13T09:00:00.000000Z")
    found = decode_mentioned_times(encode_mentioned_times(one), one.created_at)
    assert found == mentioned_times(one)
    assert [each.yearly for each in found or ()] == [False, True, True]


def test_of_a_text_that_can_name_no_time_that_is_stored_for_any_zone() -> None:
    plain = memory("The relay listens on port 7001.")
    with zone("Europe/Berlin"):
        stored = encode_mentioned_times(plain)
    with zone("America/Los_Angeles"):
        assert decode_mentioned_times(stored, plain.created_at) == () == mentioned_times(plain)


def test_what_was_stored_by_a_version_before_is_read() -> None:
    assert decode_mentioned_times(None, memory(TEXT).created_at) is None


IN_UTC = '[1,"2024-01-01T00:00:00",[[[["2026-01-01T00:00:00Z","2026-01-02T00:00:00Z"]],true]]]'


@pytest.mark.parametrize(
    "stored",
    [
        "",
        "[]",
        "[0]",
        "null",
        "{}",
        '[1,"2024-01-01T00:00:00",[[1]]]',
        IN_UTC,
        "\x00",
        "[" * 9_999,
        b"\xff",
        5,
    ],
)
def test_what_cannot_be_understood_is_read(stored: Any) -> None:
    """A store's file may be anybody's, and SQLite keeps anything in a column."""
    assert decode_mentioned_times(stored, memory(TEXT).created_at) is None


def test_what_an_older_grammar_stored_is_read_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    stored = encode_mentioned_times(memory(TEXT))
    monkeypatch.setattr(said, "GRAMMAR", said.GRAMMAR + 1)
    assert decode_mentioned_times(stored, memory(TEXT).created_at) is None


def test_what_was_read_in_another_zone_is_read_anew() -> None:
    one = memory("It broke yesterday.", created_at="2026-11-13T03:00:00.000000Z")
    with zone("Europe/Berlin"):
        stored = encode_mentioned_times(one)
        [there] = decode_mentioned_times(stored, one.created_at) or ()
    with zone("America/Los_Angeles"):  # where it was still the evening before
        assert decode_mentioned_times(stored, one.created_at) is None
        [here] = mentioned_times(one)
    assert here != there
