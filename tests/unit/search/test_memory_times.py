"""Times mentioned in a text survive storage, and stale or malformed stored values are ignored."""

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


def test_stored_times_round_trip() -> None:
    one = memory(TEXT, created_at="2026-11-13T09:00:00.000000Z")
    found = decode_mentioned_times(encode_mentioned_times(one), one.created_at)
    assert found == mentioned_times(one)
    assert [each.yearly for each in found or ()] == [False, True, True]


def test_timeless_text_is_stored_for_all_zones() -> None:
    plain = memory("The relay listens on port 7001.")
    with zone("Europe/Berlin"):
        stored = encode_mentioned_times(plain)
    with zone("America/Los_Angeles"):
        assert decode_mentioned_times(stored, plain.created_at) == () == mentioned_times(plain)


def test_missing_value_is_ignored() -> None:
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
def test_malformed_value_is_ignored(stored: Any) -> None:
    """SQLite accepts any value in a column, and anyone may have written the store file."""
    assert decode_mentioned_times(stored, memory(TEXT).created_at) is None


def test_value_of_other_grammar_version_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    stored = encode_mentioned_times(memory(TEXT))
    monkeypatch.setattr(said, "GRAMMAR", said.GRAMMAR + 1)
    assert decode_mentioned_times(stored, memory(TEXT).created_at) is None


def test_value_of_other_time_zone_is_ignored() -> None:
    one = memory("It broke yesterday.", created_at="2026-11-13T03:00:00.000000Z")
    with zone("Europe/Berlin"):
        stored = encode_mentioned_times(one)
        [there] = decode_mentioned_times(stored, one.created_at) or ()
    with zone("America/Los_Angeles"):  # where it was still the previous evening
        assert decode_mentioned_times(stored, one.created_at) is None
        [here] = mentioned_times(one)
    assert here != there
