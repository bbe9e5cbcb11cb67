"""A long memory is cut into passages, and the hit shows the best one."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from support.store_fixtures import Opened
from support.word_embedder import WordEmbedder
from trivet import Trivet

TOPICS = ("garden", "harbour", "kitchen", "library", "mountain")
LONG = "\n".join(
    " ".join(
        f"In paragraph {number} sentence {place} tells about the {topic} alone."
        for place in range(12)
    )
    for number, topic in enumerate(TOPICS)
)


@pytest.fixture
def small_window(open_trivet: Opened, embedder: WordEmbedder) -> Trivet:
    return open_trivet(embedder=f"{embedder.spec()}#window=120")


def test_hit_shows_the_best_passage(small_window: Trivet) -> None:
    id = small_window.remember(LONG).id
    small_window.remember("Something short and different.")
    small_window.drain()
    assert small_window.stats().passages > len(TOPICS)
    for topic in TOPICS:
        hit = small_window.recall(f"the {topic} alone").hits[0]
        assert hit.id == id
        assert hit.content == LONG
        assert topic in hit.passage
        assert len(hit.passage) < len(LONG) / 2


def test_passage_is_found_by_meaning(small_window: Trivet, embedder: WordEmbedder) -> None:
    embedder.meaning = {"bibliotheque": "library"}
    small_window.remember(LONG)
    small_window.drain()
    hit = small_window.recall("about the bibliotheque alone", recipe="legs(dense)").hits[0]
    assert "library" in hit.passage


def test_passages_are_embedded_with_the_title(small_window: Trivet, embedder: WordEmbedder) -> None:
    small_window.remember(LONG, title="The atlas")
    small_window.drain()
    passages = [text for text in embedder.texts if "sentence" in text]
    assert len(passages) == small_window.stats().passages
    assert all(text.startswith("The atlas\n") for text in passages)
    assert all(
        f"sentence {place} tells about the {topic} alone" in " ".join(passages)
        for topic in TOPICS
        for place in (0, 11)
    )


def test_best_window_by_words_without_an_embedder(trivet: Trivet) -> None:
    trivet.remember(LONG)
    for topic in TOPICS:
        (hit,) = trivet.recall(topic).hits
        assert topic in hit.passage
        assert len(hit.passage) < len(LONG)


def test_stored_terms_select_the_passage(small_window: Trivet, path: Path) -> None:
    small_window.remember(LONG)
    small_window.drain()
    with sqlite3.connect(path) as database:
        stored = database.execute("SELECT ordinal, terms FROM passage ORDER BY ordinal").fetchall()
        swapped = [
            (terms, ordinal)
            for (ordinal, _), (_, terms) in zip(stored, reversed(stored), strict=True)
        ]
        database.executemany("UPDATE passage SET terms = ? WHERE ordinal = ?", swapped)
    by_words = "legs(lexical)"
    assert TOPICS[-1] in small_window.recall(TOPICS[0], recipe=by_words).hits[0].passage
    with sqlite3.connect(path) as database:
        database.execute(
            "UPDATE passage SET terms = NULL"
        )  # As in versions that did not store terms.
    assert TOPICS[0] in small_window.recall(TOPICS[0], recipe=by_words).hits[0].passage
    small_window.reindex(vectors=False, graph=False)
    with sqlite3.connect(path) as database:
        assert (
            database.execute("SELECT ordinal, terms FROM passage ORDER BY ordinal").fetchall()
            == stored
        )


def test_short_memory_is_its_own_passage(small_window: Trivet) -> None:
    small_window.remember("The zebra sleeps.")
    small_window.drain()
    (hit,) = small_window.recall("zebra").hits
    assert hit.passage == hit.content == "The zebra sleeps."


def test_edit_cuts_new_passages(small_window: Trivet) -> None:
    id = small_window.remember(LONG).id
    small_window.drain()
    small_window.edit(id, content="Now it is short.")
    small_window.drain()
    assert small_window.stats().passages == 1
