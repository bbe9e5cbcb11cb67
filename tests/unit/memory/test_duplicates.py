"""Near-duplicates are reported and never merged; only hits that say the same are collapsed."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.store_fixtures import Opened
from trivet import Trivet
from trivet.analyse import fold
from trivet.memory.similarity import _word, content_key, likeness, similarity_at_least, words_of


def test_near_duplicate_is_reported_and_both_are_kept(trivet: Trivet) -> None:
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


def test_same_text_is_reported_with_similarity_1(trivet: Trivet) -> None:
    first = trivet.remember("The relay listens on port 7001.")
    second = trivet.remember("the RELAY listens, on port 7001!")
    assert [(one.id, one.similarity) for one in second.near_duplicates] == [(first.id, 1.0)]


@pytest.mark.parametrize(
    "text", ["Deploy always on Friday", "Sell old red cars today", "We do test each new release"]
)
def test_one_changed_word_is_reported_at_any_position(trivet: Trivet, text: str) -> None:
    first = trivet.remember(text).id
    words = text.split()
    for place in range(len(words)):
        changed = " ".join([*words[:place], "something", *words[place + 1 :]])
        other = trivet.remember(changed)
        assert first in {one.id for one in other.near_duplicates}, changed
        trivet.purge(other.id)


def test_edit_ends_the_similarity(trivet: Trivet) -> None:
    first = trivet.remember("The relay listens on port 7001.")
    trivet.edit(first.id, content="Something else entirely about gardens.")
    assert trivet.remember("The relay listens on port 7001.").near_duplicates == ()


def test_forgotten_or_other_scope_is_not_reported(trivet: Trivet) -> None:
    trivet.forget(trivet.remember("The relay listens on port 7001.").id)
    trivet.remember("The relay listens on port 7001.", scope="another/team")
    assert trivet.remember("The relay listens on port 7001.").near_duplicates == ()


def test_different_texts_are_not_reported(trivet: Trivet) -> None:
    trivet.remember("The relay listens on port 7001.")
    assert (
        trivet.remember("The relay in the cellar was sold to a museum last year.").near_duplicates
        == ()
    )


def test_batch_members_are_compared(trivet: Trivet) -> None:
    first, second = trivet.remember_many(
        [{"content": "Always deploy on Friday."}, {"content": "Never deploy on Friday."}]
    )
    assert [one.id for one in (*first.near_duplicates, *second.near_duplicates)] in (
        [first.id],
        [second.id],
        [second.id, first.id],
    )


def test_report_is_short_and_best_first(trivet: Trivet) -> None:
    for number in range(8):
        trivet.remember(f"The big old relay in the cellar listens on port {number}.")
    exact = trivet.remember("The big old relay in the cellar listens on port 99.")
    duplicates = trivet.remember(
        "The big old relay in the cellar listens on port 99."
    ).near_duplicates
    assert len(duplicates) == 5
    assert duplicates[0].id == exact.id
    assert [one.similarity for one in duplicates] == sorted(
        (one.similarity for one in duplicates), reverse=True
    )


def test_hits_that_say_the_same_are_collapsed_and_named(trivet: Trivet) -> None:
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
def test_word_that_changes_meaning_prevents_collapse(trivet: Trivet, one: str, other: str) -> None:
    trivet.remember(one)
    assert len(trivet.remember(other).near_duplicates) == 1
    assert len(trivet.recall(one).hits) == 2


def test_word_order_prevents_collapse(trivet: Trivet) -> None:
    trivet.remember("Alice reports to Bob.")
    trivet.remember("Bob reports to Alice.")
    assert len(trivet.recall("who reports to Bob").hits) == 2


def test_hits_of_two_scopes_are_not_collapsed(trivet: Trivet) -> None:
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


def test_collapsing_leaves_the_answer_full(trivet: Trivet) -> None:
    """Forty copies must not displace the other hits."""
    for _ in range(40):
        trivet.remember("The relay relay relay in the cellar listens.")
    others = {trivet.remember(text).id for text in OTHERS}
    answer = trivet.recall("relay", limit=5)
    assert len(answer.hits) == 5
    assert len({hit.id for hit in answer.hits} & others) == 4


def test_likeness_counts_repeated_words() -> None:
    assert likeness(words_of("a b c d"), words_of("a b c e")) == 0.75
    assert likeness(words_of("a a b"), words_of("a b b")) == pytest.approx(2 / 3)
    assert likeness(words_of(""), words_of("")) == 0.0
    assert content_key("Don't stop the relays!") == content_key("dont stop THE relay")
    assert content_key("Stop the relays!") != content_key("Don't stop the relays!")


def test_collapsing_is_the_same_after_reopening(open_trivet: Opened) -> None:
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
def test_early_exit_matches_full_similarity(one: list[str], other: list[str]) -> None:
    first, second = words_of(" ".join(one)), " ".join(other)
    similarity = likeness(first, words_of(second))
    for threshold in (0.3, 0.5, 0.75, 1.0):
        assert similarity_at_least(first, words_of(second), threshold) == (
            similarity if similarity >= threshold else 0.0
        )


@given(st.text(alphabet="abÄé_9 .,'-\n数A", max_size=40))
def test_ascii_fast_path_matches_full_word_split(text: str) -> None:
    assert words_of(text) == Counter(_word.findall(fold(text).replace("'", "")))
