"""If a memory's terms rule out a literal match of the query, its text does not hold it."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from support.stores import memory
from trivet.analyse import ENGLISH, NOT_ENGLISH, analyse, analyse_query, language_of_text
from trivet.search.relevance import Exactness

WORDS = (
    "relay",
    "Relay",
    "GitHub",
    "port",
    "ports",
    "of",
    "the",
    "don't",
    "E_CONN_4012",
    "café",
    "x",
    "7001",
    "Zürich",
)
said = st.lists(st.sampled_from(WORDS), min_size=1, max_size=8).map(" ".join)


@given(st.data(), said, st.none() | said)
def test_memory_ruled_out_by_terms_has_no_literal_match(
    data: Any, content: str, title: str | None
) -> None:
    one = memory(content, title=title)
    start = data.draw(st.integers(0, len(content) - 1))
    literal = (
        content,
        title or content,
        content[start:],
        f'"{content[:start]}" port',
        f"E_CONN_4012 {content}",
        "port",
    )
    asked = data.draw(st.sampled_from(literal))
    question = analyse_query(asked)
    text = f"{title or ''} {content}"
    language = language_of_text(text)
    terms = set(analyse(content, language)) | set(analyse(title or "", language))
    held = frozenset(terms & set(question.every_term)) | (
        {NOT_ENGLISH} if language != ENGLISH else set()
    )
    exactness = Exactness(question, index_covers_text=True)
    if Exactness(question, index_covers_text=False).of(one, held, str):  # by its text alone
        assert exactness.is_possible(held)


def test_most_memories_are_ruled_out_by_their_terms() -> None:
    exactness = Exactness(analyse_query("the relay listens on port"), index_covers_text=True)
    assert exactness.is_possible({"relay", "listen", "port"})
    assert not exactness.is_possible({"relay", "port"})
    assert exactness.is_possible({"relay", "port", NOT_ENGLISH})
    named = Exactness(analyse_query("E_CONN_4012 relay port closed"), index_covers_text=True)
    assert named.is_possible({"e_conn_4012"})
    assert named.is_possible({"e", "conn", "4012"})
    assert not named.is_possible({"conn", "port"})
    assert Exactness(analyse_query("port"), index_covers_text=True).is_possible(set())
