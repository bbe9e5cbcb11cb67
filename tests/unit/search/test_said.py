"""The times that a text names, as they are stored with it, and what is made of what was stored otherwise."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from support.stores import memory
from trivet.search import said
from trivet.search.said import times_said, times_to_store

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
    stored = times_to_store(one)
    assert stored is not None
    assert times_said(one, stored) == times_said(one, None)
    assert [each.yearly for each in times_said(one, stored)] == [False, True, True]


def test_what_is_stored_is_believed() -> None:
    one, other = (memory(text, created_at="2026-11-13T09:00:00.000000Z") for text in (TEXT, "On 4 May 2026."))
    assert times_said(one, times_to_store(other)) == times_said(other, None)


def test_nothing_is_stored_of_a_text_that_can_name_no_time() -> None:
    assert times_to_store(memory("The relay listens on port 7001.")) is None
    assert times_said(memory("The relay listens on port 7001."), None) == ()


IN_UTC = '[1,"2024-01-01T00:00:00",[[[["2026-01-01T00:00:00Z","2026-01-02T00:00:00Z"]],true]]]'


@pytest.mark.parametrize(
    "stored",
    ["", "[]", "[1]", "null", "{}", '[1,"2024-01-01T00:00:00",[[1]]]', IN_UTC, "\x00", "[" * 9_999, b"\xff", 5],
)
def test_what_cannot_be_understood_costs_nothing(stored: Any) -> None:
    """A store's file may be anybody's, and SQLite keeps anything in a column."""
    one = memory(TEXT)
    assert times_said(one, stored) == times_said(one, None) != ()


def test_what_an_older_grammar_stored_is_read_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = memory(TEXT), memory("On 4 May 2026.")
    stored = times_to_store(other)
    monkeypatch.setattr(said, "GRAMMAR", said.GRAMMAR + 1)
    assert times_said(one, stored) == times_said(one, None)


def test_what_was_read_in_another_zone_is_read_anew() -> None:
    one = memory("It broke yesterday.", created_at="2026-11-13T03:00:00.000000Z")
    with zone("Europe/Berlin"):
        stored = times_to_store(one)
        [there] = times_said(one, stored)
    with zone("America/Los_Angeles"):  # where it was still the evening before
        [here] = times_said(one, stored)
        assert [here] == list(times_said(one, None))
    assert here != there
