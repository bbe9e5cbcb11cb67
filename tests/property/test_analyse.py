"""The analyzer accepts any text, and a query finds everything it indexes."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from trivet.analyse import (
    ENGLISH,
    LANGUAGES,
    LONGEST_TERM,
    IndexedIdentifier,
    IndexedPhrase,
    analyse,
    analyse_query,
    contains_phrase,
    fold,
    holds_phrase,
    is_identifier,
    language_and_terms,
    language_of_text,
)

texts = st.text(max_size=200)
# Letters of many scripts, joiners, digits and quotes close together, where the rules interact.
knotty = st.text(
    alphabet="aBzÄßéıİŉ1२9_-./:@#+'’\\\"  \n数据库カナไทย한글\u0301\u200d\ufdfa\u3000😀",
    max_size=60,
)
words = st.text(
    alphabet="abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", min_size=1, max_size=20
)
parts = st.text(alphabet="abcdefghijklmnopqrstuvwxyz", min_size=2, max_size=10)


@given(texts | knotty)
@example("\ud800")
@example("ŉ")
@example("a" * 10_000)
def test_any_text_yields_clean_terms(text: str) -> None:
    terms = analyse(text)
    for term in terms:
        assert term
        assert not any(character.isspace() or character in "\x00'" for character in term)
        assert len(term) <= LONGEST_TERM
        assert term == term.lower()
    question = analyse_query(text)
    assert set(question.terms) <= set(terms)
    assert all(word.terms for word in question.words)


@given(texts | knotty)
@example("ŉ")
@example("ᾳ\u0345")
@example("ΐ")
def test_folding_is_idempotent(text: str) -> None:
    folded = fold(text)
    assert fold(folded) == folded
    assert folded == folded.strip()
    assert "  " not in folded


@given(texts | knotty)
def test_case_and_unicode_form_do_not_matter(text: str) -> None:
    assert fold(text.casefold()) == fold(text)
    assert fold(unicodedata.normalize("NFD", text)) == fold(text)
    assert sorted(set(analyse(unicodedata.normalize("NFC", text)))) == sorted(
        set(analyse(unicodedata.normalize("NFD", text)))
    )


@given(st.lists(words, min_size=1, max_size=8))
def test_every_indexed_word_is_found(spoken: list[str]) -> None:
    held = set(analyse(" ".join(spoken)))
    language = language_of_text(" ".join(spoken))
    for word in spoken:
        if analyse(word, language) and analyse(word.lower(), language):
            for spelled in (word, word.lower(), word.upper()):
                asked = analyse_query(spelled, LANGUAGES).words
                assert any(one.is_held(held) for one in asked) or not asked


@given(knotty)
def test_every_token_of_mixed_text_is_found(text: str) -> None:
    language = language_of_text(text)
    held = set(analyse(text, language))
    for token in text.split():
        if language == ENGLISH and language_of_text(token) == ENGLISH:
            assert set(analyse_query(token).terms) <= held


@given(
    st.lists(parts, min_size=2, max_size=4),
    st.sampled_from(["_", "-", ".", "/", ":", "::", "@", "#", "\\"]),
)
def test_identifiers_are_kept_whole_and_split(pieces: list[str], joiner: str) -> None:
    identifier = joiner.join(pieces)
    assume(len(identifier) <= LONGEST_TERM)
    terms = analyse(f"see {identifier} here")
    assert identifier in terms
    for piece in pieces:
        assert set(analyse(piece)) <= set(terms)
    assert is_identifier(identifier) == (joiner != "-")
    if joiner != "-":
        assert identifier in analyse_query(f"see {identifier} here").identifiers


@given(st.lists(parts, min_size=2, max_size=4))
def test_camel_case_is_kept_whole_and_split(pieces: list[str]) -> None:
    camel = pieces[0] + "".join(piece.title() for piece in pieces[1:])
    assume(len(camel) <= LONGEST_TERM)
    terms = set(analyse(camel))
    for piece in pieces:
        assert set(analyse(piece)) <= terms
    assert terms & set(analyse(camel.lower())), "the whole identifier is found in any case"
    assert is_identifier(camel)


@given(st.text(alphabet="数据库端口东京大学服务器", min_size=2, max_size=12), st.data())
def test_any_part_of_unspaced_text_is_found(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text) - 1))
    stop = data.draw(st.integers(start + 1, len(text)))
    question = analyse_query(text[start:stop])
    assert question.terms
    assert set(question.terms) <= set(analyse(f"前{text}后"))


@given(st.lists(words, min_size=1, max_size=6), st.data())
def test_phrase_occurs_in_its_text_as_whole_words(spoken: list[str], data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(spoken) - 1))
    stop = data.draw(st.integers(start + 1, len(spoken)))
    text = fold(
        ", ".join(spoken[:start])
        + " "
        + " ".join(spoken[start:stop])
        + "! "
        + " ".join(spoken[stop:])
    )
    phrase = fold(" ".join(spoken[start:stop]))
    assert contains_phrase(text, phrase)
    assert not contains_phrase(f"x{phrase}", phrase)
    assert not contains_phrase(f"{phrase}x", phrase)
    assert analyse_query(f'a "{phrase}" b').phrases == ((phrase,) if len(phrase) > 1 else ())


# Mostly ASCII, with non-ASCII words, many kinds of white space, and marks that fold to nothing or
# to spaces.
spotted = st.lists(
    st.sampled_from(
        [
            "Ab",
            "a",
            "b",
            "ab?",
            " ",
            "  ",
            "\n",
            "\t ",
            "\x1f",
            "\xa0",
            "é",
            "É-a",
            "\u0301",
            "´",
            "ﬁ",
            "数",
            "’",
            "İ",
        ]
    ),
    max_size=40,
).map("".join)


@given(spotted | knotty, st.data())
@example("plain text " * 3, None)
def test_phrase_search_without_folding_matches_folding(
    text: str, data: st.DataObject | None
) -> None:
    text, folded = (
        f"{text} enough that is plain ASCII to be looked at as it is: {'x' * 99}",
        fold(text),
    )
    start = data.draw(st.integers(0, len(folded))) if data and folded else 0
    stop = data.draw(st.integers(start, len(folded))) if data and folded else len(folded)
    for phrase in {fold(folded[start:stop]), fold(data.draw(spotted)) if data else "text plain"} - {
        ""
    }:
        assert holds_phrase(text, phrase) == contains_phrase(fold(text), phrase)
        assert holds_phrase(text.encode("ascii", "ignore").decode(), phrase) == contains_phrase(
            fold(text.encode("ascii", "ignore").decode()), phrase
        )


@given(
    st.lists(
        words | st.sampled_from(["café", "GitHub", "don't", "the", "a.b", "—"]),
        min_size=4,
        max_size=9,
    ),
    st.data(),
)
def test_text_with_a_phrase_has_the_terms_of_its_inner_words(
    said: list[str], data: st.DataObject
) -> None:
    """A search can therefore skip texts without these terms."""
    text, folded = f"It was {' '.join(said)}.", fold(" ".join(said))
    start = data.draw(st.integers(0, len(folded) // 2))
    phrase = folded[start:].strip()
    indexed, terms = IndexedPhrase(phrase), analyse(text, ENGLISH)
    if phrase and holds_phrase(text, phrase):
        assert indexed.terms <= set(terms)
        assert indexed.may_occur_among(f" {' '.join(terms)} ")


def test_index_tells_whether_a_phrase_may_occur() -> None:
    phrase = IndexedPhrase("what the github runner caches keep")
    assert phrase.terms == {"github", "runner", "cach"}
    assert phrase.may_occur_among(" github git hub runner cach keep ")
    assert not phrase.may_occur_among(" github cach runner keep ")


@given(texts | knotty)
@example("Die Besprechung wurde auf den 3. März verschoben, weil der Raum nicht frei war.")
def test_stored_text_is_analyzed_like_queries(text: str) -> None:
    language = language_of_text(text)
    assert language_and_terms(text) == (language, analyse(text, language))


IDENTIFIERS = (
    "E_CONN_4012",
    "getUserName",
    "x-PostgreSQL16",
    "src/pool.py",
    "v2.3",
    "C++",
    "a.b:C",
    "用户ID表",
    "GitHub's",
    "IDs",
)
cases = st.sampled_from([str, str.lower, str.upper, str.title])
around = st.sampled_from(
    ["", " ", "/", "-", "_", ".", ":", " x-", "/lib.", "-2 ", ", ", "用", "表 "]
)


@given(st.sampled_from(IDENTIFIERS), cases, around, around)
def test_text_with_an_identifier_has_its_term_or_part_terms(
    identifier: str, written: Callable[[str], str], before: str, after: str
) -> None:
    text, asked = f"It was {before}{written(identifier)}{after} again.", analyse_query(identifier)
    (indexed,) = (
        IndexedIdentifier(one, set(asked.every_term)) for one in asked.identifiers or (identifier,)
    )
    if holds_phrase(text, indexed.folded):
        assert indexed.is_possible(set(analyse(text, ENGLISH)))


@pytest.mark.parametrize("text", ["conn 4012", "e conn", "e_conn_40120", "user name"])
def test_most_texts_are_ruled_out_for_an_identifier(text: str) -> None:
    asked = analyse_query("E_CONN_4012 in getUserName")
    held = set(analyse(text, ENGLISH))
    assert not any(
        IndexedIdentifier(one, set(asked.every_term)).is_possible(held) for one in asked.identifiers
    )
