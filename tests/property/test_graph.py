"""The graph reader accepts any text, and every name it finds occurs in the text."""

from __future__ import annotations

import re
from typing import get_args

from hypothesis import example, given
from hypothesis import strategies as st

from trivet.graph.concepts import LONGEST_NAME, Role, canonical, form, singular
from trivet.graph.extract import MAX_CONCEPTS, MAX_LABEL_CHARACTERS, extract
from trivet.graph.names import names_in
from trivet.types import ConceptKind

WORDS = (
    "Alice Bob Clara Acme of the and & Bank America J. K. Dr. St. Louis U.S. US I've don't Monday May 5 2024 "
    "2024-03-05 get_user getUser src/main.py E4012 ERR_CONN 0x1f https://a.io/b www.c.de @mel #tag --dry-run foo() "
    'C++ C# "blue door" `code` “curly” 「三体」 Анну José Ἀθῆναι ǅ ß İstanbul ﬁne ， 。 '
    ": ; ( ) [ ] ``` ~~~ def class { } = . ! ? …"
).split(" ")
spoken = st.lists(st.sampled_from([*WORDS, "\n", "\t", "said", "went"]), max_size=30).map(" ".join)
texts = spoken | st.text(max_size=200) | st.text(alphabet="AaB. '’\"`_-/:@#+&\\(\n", max_size=80)
titles = st.none() | texts.map(lambda text: text[:300])
tags = st.lists(texts.map(lambda text: text[:64]), max_size=3)


@given(titles, texts, tags)
@example(None, "İ" * 50, [])
@example("(", "```", ["("])
@example(None, "\x00A\x00 met\ud800 Bob", [])
def test_any_text_can_be_read(title: str | None, content: str, tags: list[str]) -> None:
    found = extract(title, content, tags)
    assert len(found) <= MAX_CONCEPTS
    assert len({mention.name for mention in found}) == len(found)
    for mention in found:
        assert 2 <= len(mention.name) <= LONGEST_NAME
        assert 0 < len(mention.label) <= MAX_LABEL_CHARACTERS
        assert mention.name in (canonical(mention.label), canonical(singular(mention.label)))
        assert mention.label == " ".join(mention.label.split())
        assert mention.kind in get_args(ConceptKind)
        assert mention.role in get_args(Role)
    assert extract(title, content, tags) == found


@given(titles, texts, tags)
def test_found_names_occur_in_the_text(title: str | None, content: str, tags: list[str]) -> None:
    whole = _letters("\n".join([title or "", content, *tags]))
    for mention in extract(title, content, tags):
        assert mention.kind == "date" or _letters(mention.label) in whole


def _letters(text: str) -> str:
    """Reduce a text to letters, because any non-word characters may separate a name's words."""
    return re.sub(r"[\W_]+", "", text)


@given(texts)
def test_names_are_runs_of_words_in_the_text(text: str) -> None:
    for name in names_in(text):
        assert name.words
        place = 0
        for word in name.words:
            place = text.index(word, place) + len(word)
        assert any(word[0].isupper() for word in name.words)


@given(spoken, spoken)
def test_paragraphs_are_read_separately(one: str, other: str) -> None:
    """Two paragraphs together mention no name that neither mentions alone."""
    alone = {name.text for text in (one, other) for name in names_in(f"{text}\n")}
    assert {name.text for name in names_in(f"{one}\n\n{other}")} <= alone


@given(texts)
def test_query_can_name_any_found_concept(text: str) -> None:
    """A concept is looked up by the form of its label, whose own name is the concept's name."""
    for mention in extract(None, text):
        assert mention.name in (
            canonical(form(mention.label)),
            canonical(singular(form(mention.label))),
        )
