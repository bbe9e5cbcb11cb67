"""Passages cover the text in order, fit the window, overlap, and end at sentence ends."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from trivet.memory.passages import PASSAGE_OVERLAP, cut
from trivet.store.records import Passage

WINDOW = 40

prose = st.lists(
    st.tuples(
        st.lists(st.text("abcdefgh", min_size=1, max_size=8), min_size=1, max_size=12).map(
            " ".join
        ),
        st.sampled_from([". ", "! ", "?\n", ".\n\n", "\n", '." ']),
    ),
    min_size=1,
    max_size=40,
).map(lambda sentences: "".join(text + end for text, end in sentences))
anything = st.text(max_size=600) | st.text(alphabet="ab. \n数。", max_size=600)


def words(texts: Sequence[str]) -> list[int]:
    return [len(text.split()) for text in texts]


def characters(texts: Sequence[str]) -> list[int]:
    return [len(text) for text in texts]


def checked(text: str, passages: tuple[Passage, ...]) -> None:
    assert [passage.ordinal for passage in passages] == list(range(len(passages)))
    assert all(0 <= passage.start < passage.stop <= len(text) for passage in passages)
    for one, following in pairwise(passages):
        assert one.start < following.start
        assert one.stop < following.stop
        assert not text[one.stop : following.start].strip(), "text between two passages is lost"
    assert not text[: passages[0].start].strip()
    assert not text[passages[-1].stop :].strip()


@given(anything.filter(str.strip))
def test_every_text_is_covered_in_order_within_the_window(text: str) -> None:
    passages = cut(text, characters, WINDOW)
    checked(text, passages)
    assert all(passage.stop - passage.start <= WINDOW for passage in passages)


@given(prose)
def test_prose_is_covered_within_the_window(text: str) -> None:
    passages = cut(text, words, WINDOW)
    checked(text, passages)
    assert all(words([text[passage.start : passage.stop]])[0] <= WINDOW for passage in passages)


@given(prose)
def test_passages_are_whole_sentences(text: str) -> None:
    """No sentence here is longer than the window, so none is cut."""
    for passage in cut(text, words, WINDOW):
        before, after = (
            text[: passage.start].rstrip(' "'),
            text[passage.start : passage.stop].rstrip(' "'),
        )
        assert not before or before[-1] in ".!?\n"
        assert after[-1] in ".!?\n"


@given(prose)
def test_passages_overlap_by_a_bounded_share(text: str) -> None:
    passages = cut(text, words, WINDOW)
    for one, following in pairwise(passages):
        repeated = text[following.start : one.stop] if following.start < one.stop else ""
        assert words([repeated])[0] <= WINDOW * PASSAGE_OVERLAP


def test_neighbors_overlap() -> None:
    text = "".join(f"This is sentence {number}. " for number in range(60))
    passages = cut(text, words, WINDOW)
    assert len(passages) > 5
    assert all(following.start < one.stop for one, following in pairwise(passages))


@given(st.text(min_size=1, max_size=WINDOW))
def test_text_that_fits_is_one_passage(text: str) -> None:
    assert cut(text, characters, WINDOW) == (Passage(0, 0, len(text)),)


@given(st.integers(WINDOW + 1, 2_000))
def test_text_without_sentence_ends_is_cut(length: int) -> None:
    passages = cut("x" * length, characters, WINDOW)
    checked("x" * length, passages)
    assert all(passage.stop - passage.start <= WINDOW for passage in passages)
