"""Near-duplicates are told to the caller and never merged; hits that say the same are folded, and only those."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.opened import Opened
from trivet import Trivet
from trivet.analyse import fold
from trivet.memory.similarity import _word, content_key, likeness, similarity_at_least, words_of


def test_a_near_duplicate_is_reported_and_both_are_kept(trivet: Trivet) -> None:
    first = trivet.remember("Always deploy on Friday.")
    second = trivet.remember("Never deploy on Friday.")
    assert first.near_duplicates == ()
    (duplicate,) = second.near_duplicates
    assert (duplicate.id, duplicate.similarity, duplicate.content) == (
        first.id,
        0.75,
        "Always deploy on Friday.",
    )
    assert trivet.list().total == 2
    answer = trivet.recall("deploy on Friday")
    assert {hit.id for hit in answer.hits} == {first.id, second.id}
    assert all(hit.why.collapsed == () for hit in answer.hits)


def test_the_same_text_twice_is_reported_with_1(trivet: Trivet) -> None:
    first = trivet.remember("The relay listens on port 7001.")
    second = trivet.remember("the RELAY listens, on port 7001!")
    assert [(one.id, one.similarity) for one in second.near_duplicates] == [(first.id, 1.0)]


@pytest.mark.parametrize(
    "text", ["Deploy always on Friday", "Sell old red cars today", "We do test each new release"]
)
def test_one_changed_word_is_reported_wherever_it_stands(trivet: Trivet, text: str) -> None:
    first = trivet.remember(text).id
    words = text.split()
    for place in range(len(words)):
        changed = " ".join([*words[:place], "something", *words[place + 1 :]])
        other = trivet.remember(changed)
        assert first in {one.id for one in other.near_duplicates}, changed
        trivet.purge(other.id)


def test_an_edit_away_ends_the_likeness(trivet: Trivet) -> None:
    first = trivet.remember("The relay listens on port 7001.")
    trivet.edit(first.id, content="Something else entirely about gardens.")
    assert trivet.remember("The relay listens on port 7001.").near_duplicates == ()


def test_what_is_forgotten_or_elsewhere_is_not_reported(trivet: Trivet) -> None:
    trivet.forget(trivet.remember("The relay listens on port 7001.").id)
    trivet.remember("The relay listens on port 7001.", scope="another/team")
    assert trivet.remember("The relay listens on port 7001.").near_duplicates == ()


def test_different_texts_are_not_reported(trivet: Trivet) -> None:
    trivet.remember("The relay listens on port 7001.")
    assert (
        trivet.remember("The relay in the cellar was sold to a museum last year.").near_duplicates
        == ()
    )


def test_those_of_one_batch_know_each_other(trivet: Trivet) -> None:
    first, second = trivet.remember_many(
        [{"content": "Always deploy on Friday."}, {"content": "Never deploy on Friday."}]
    )
    assert [one.id for one in (*first.near_duplicates, *second.near_duplicates)] in (
        [first.id],
        [second.id],
        [second.id, first.id],
    )


def test_the_report_is_short_and_best_first(trivet: Trivet) -> None:
    for number in range(8):
        trivet.remember(f"The big old relay in the cellar listens on port {number}.")
    exact = trivet.remember("The big old relay in the cellar listens on port 99.")
    report = trivet.remember("The big old relay in the cellar listens on port 99.").near_duplicates
    assert len(report) == 5
    assert report[0].id == exact.id
    assert [one.similarity for one in report] == sorted(
        (one.similarity for one in report), reverse=True
    )


def test_hits_that_say_the_same_are_folded_and_named(trivet: Trivet) -> None:
    first = trivet.remember("The old relay in the cellar of the house listens for calls.").id
    second = trivet.remember("The old relay in the cellar of the house listens for calls!").id
    answer = trivet.recall("old relay in the cellar")
    assert len(answer.hits) == 1
    assert {answer.hits[0].id, *answer.hits[0].why.collapsed} == {first, second}
    assert len(trivet.recall("old relay in the cellar", collapse=False).hits) == 2


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Always deploy on Friday.", "Never deploy on Friday."),
        (
            "We do deploy the whole site to production on every single Friday afternoon",
            "We do not deploy the whole site to production on every single Friday afternoon",
        ),
        (
            "The staging database of the billing team listens on port 5432 in the cellar",
            "The staging database of the billing team listens on port 5433 in the cellar",
        ),
        (
            "The nightly backup of the billing database is enabled in the cellar of the house",
            "The nightly backup of the billing database is disabled in the cellar of the house",
        ),
        (
            "The nightly backup job of the billing team in Europe runs on Monday.",
            "The nightly backup job of the billing team in Europe runs on Tuesday.",
        ),
    ],
)
def test_a_word_that_turns_the_meaning_keeps_them_apart(
    trivet: Trivet, one: str, other: str
) -> None:
    trivet.remember(one)
    assert len(trivet.remember(other).near_duplicates) == 1
    assert len(trivet.recall(one).hits) == 2


def test_the_order_of_words_keeps_them_apart(trivet: Trivet) -> None:
    trivet.remember("Alice reports to Bob.")
    trivet.remember("Bob reports to Alice.")
    assert len(trivet.recall("who reports to Bob").hits) == 2


def test_hits_of_two_scopes_are_not_folded(trivet: Trivet) -> None:
    for scope in ("one", "two"):
        trivet.remember("The old relay in the cellar of the house listens for calls.", scope=scope)
    assert len(trivet.recall("old relay").hits) == 2


OTHERS = (
    "A relay race was won by the school last spring.",
    "Nobody knows which relay the pigeons prefer.",
    "My uncle collects every relay from old telephones.",
    "Lightning struck a relay beside the railway.",
    "Please relay my greetings to the captain.",
)


def test_folding_leaves_the_answer_full(trivet: Trivet) -> None:
    """Forty copies in front must not use up the places of the others."""
    for _ in range(40):
        trivet.remember("The relay relay relay in the cellar listens.")
    others = {trivet.remember(text).id for text in OTHERS}
    answer = trivet.recall("relay", limit=5)
    assert len(answer.hits) == 5
    assert len({hit.id for hit in answer.hits} & others) == 4


def test_likeness_counts_words_with_repeats() -> None:
    assert likeness(words_of("a b c d"), words_of("a b c e")) == 0.75
    assert likeness(words_of("a a b"), words_of("a b b")) == pytest.approx(2 / 3)
    assert likeness(words_of(""), words_of("")) == 0.0
    assert content_key("Don't stop the relays!") == content_key("dont stop THE relay")
    assert content_key("Stop the relays!") != content_key("Don't stop the relays!")


def test_folding_is_the_same_after_reopening(open_trivet: Opened) -> None:
    first = open_trivet()
    for mark in ("", "!"):
        first.remember(f"The old relay in the cellar of the house listens for calls{mark}")
    before = first.recall("old relay")
    after = open_trivet().recall("old relay")
    assert [(hit.id, hit.score, hit.why) for hit in before.hits] == [
        (hit.id, hit.score, hit.why) for hit in after.hits
    ]


@given(
    st.lists(st.sampled_from("abcdef"), max_size=9), st.lists(st.sampled_from("abcdef"), max_size=9)
)
def test_what_is_told_apart_by_its_different_words_is_not_alike(
    one: list[str], other: list[str]
) -> None:
    first, second = words_of(" ".join(one)), " ".join(other)
    alike = likeness(first, words_of(second))
    for least in (0.3, 0.5, 0.75, 1.0):
        assert similarity_at_least(first, words_of(second), least) == (
            alike if alike >= least else 0.0
        )


@given(st.text(alphabet="abÄé_9 .,'-\n数A", max_size=40))
def test_words_of_plain_letters_are_found_as_all_others(text: str) -> None:
    assert words_of(text) == Counter(_word.findall(fold(text).replace("'", "")))
