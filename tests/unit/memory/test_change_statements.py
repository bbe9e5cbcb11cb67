"""An update counts only if the later text states a change."""

from __future__ import annotations

import pytest

from support.store_fixtures import Opened
from trivet import Trivet
from trivet.memory.supersession.statement import states_explicit_change

LAST_YEAR = "2025-03-01"


@pytest.mark.parametrize(
    "text",
    [
        "We no longer use feature flags.",
        "From now on deploys happen on Tuesdays.",
        "The staging database moved to port 5435.",
        "We switched all pipelines from Jenkins to Buildkite.",
        "Unlocking a bike costs CHF 1.50 from 1 January 2027.",
        "The retro is on Fridays since April.",
    ],
)
def test_explicit_words_of_change_count(text: str) -> None:
    assert states_explicit_change(text)


@pytest.mark.parametrize(
    "text",
    [
        "It's all good now, the car's fixed",
        "Yuki builds the iOS app in Swift",
        "Tom drinks his coffee black at work.",
        "I moved my desk yesterday and booked a flight.",
        "Office hours are on Tuesdays and Thursdays.",
    ],
)
def test_ordinary_statements_do_not_count(text: str) -> None:
    assert not states_explicit_change(text)


def test_unstated_update_is_neither_reported_nor_applied(
    open_trivet: Opened,
) -> None:
    trivet = open_trivet(changes="read")
    old = trivet.remember("The treasurer of the choir is Opitz.", created_at=LAST_YEAR)
    new = trivet.remember("Haddad is treasurer of a club.")
    assert new.may_update == ()
    claim(trivet, new.id, old.id)
    hits = trivet.recall("who is the treasurer of the choir").hits
    assert [hit.id for hit in hits] == [old.id, new.id]
    assert [(hit.why.older_than, hit.why.newer_than) for hit in hits] == [(None, ()), (None, ())]


def test_stated_update_is_reported_and_applied(open_trivet: Opened) -> None:
    trivet = open_trivet(changes="read")
    old = trivet.remember("We use feature flags for every change.", created_at=LAST_YEAR)
    new = trivet.remember("We no longer use feature flags.")
    assert [update.id for update in new.may_update] == [old.id]
    claim(trivet, new.id, old.id)
    first, second = trivet.recall("do we use feature flags for every change").hits
    assert (first.id, second.why.older_than) == (new.id, new.id)


def claim(trivet: Trivet, new: str, old: str) -> None:
    """Store a pair as the background comparison would."""
    store = trivet.engine.store
    memories = store.memories.get_many([old, new])
    store.likely_updates.finish(memories[new], [(memories[new], memories[old], 0.99)])
