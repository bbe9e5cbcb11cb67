"""Long memories: cut into passages, found by the best of them, which the hit shows."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from support.opened import Opened
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
def cutting(open_trivet: Opened, embedder: WordEmbedder) -> Trivet:
    return open_trivet(embedder=f"{embedder.spec()}#window=120")


def test_the_hit_shows_the_passage_that_fits(cutting: Trivet) -> None:
    id = cutting.remember(LONG).id
    cutting.remember("Something short and different.")
    cutting.drain()
    assert cutting.stats().passages > len(TOPICS)
    for topic in TOPICS:
        hit = cutting.recall(f"the {topic} alone").hits[0]
        assert hit.id == id
        assert hit.content == LONG
        assert topic in hit.passage
        assert len(hit.passage) < len(LONG) / 2


def test_the_passage_is_found_by_meaning_too(cutting: Trivet, embedder: WordEmbedder) -> None:
    embedder.meaning = {"bibliotheque": "library"}
    cutting.remember(LONG)
    cutting.drain()
    hit = cutting.recall("about the bibliotheque alone", recipe="legs(dense)").hits[0]
    assert "library" in hit.passage


def test_every_passage_is_embedded_under_the_title(cutting: Trivet, embedder: WordEmbedder) -> None:
    cutting.remember(LONG, title="The atlas")
    cutting.drain()
    passages = [text for text in embedder.texts if "sentence" in text]
    assert len(passages) == cutting.stats().passages
    assert all(text.startswith("The atlas\n") for text in passages)
    assert all(
        f"sentence {place} tells about the {topic} alone" in " ".join(passages)
        for topic in TOPICS
        for place in (0, 11)
    )


def test_without_an_embedder_the_best_window_by_words_is_shown(trivet: Trivet) -> None:
    trivet.remember(LONG)
    for topic in TOPICS:
        (hit,) = trivet.recall(topic).hits
        assert topic in hit.passage
        assert len(hit.passage) < len(LONG)


def test_which_passage_holds_the_words_is_stored_and_not_read_from_the_text(
    cutting: Trivet, path: Path
) -> None:
    cutting.remember(LONG)
    cutting.drain()
    with sqlite3.connect(path) as database:
        stored = database.execute("SELECT ordinal, terms FROM passage ORDER BY ordinal").fetchall()
        turned = [
            (terms, ordinal)
            for (ordinal, _), (_, terms) in zip(stored, reversed(stored), strict=True)
        ]
        database.executemany("UPDATE passage SET terms = ? WHERE ordinal = ?", turned)
    by_words = "legs(lexical)"
    assert TOPICS[-1] in cutting.recall(TOPICS[0], recipe=by_words).hits[0].passage
    with sqlite3.connect(path) as database:
        database.execute(
            "UPDATE passage SET terms = NULL"
        )  # as of a version that did not store them
    assert TOPICS[0] in cutting.recall(TOPICS[0], recipe=by_words).hits[0].passage
    cutting.reindex(vectors=False, graph=False)
    with sqlite3.connect(path) as database:
        assert (
            database.execute("SELECT ordinal, terms FROM passage ORDER BY ordinal").fetchall()
            == stored
        )


def test_a_short_memory_is_its_own_passage(cutting: Trivet) -> None:
    cutting.remember("The zebra sleeps.")
    cutting.drain()
    (hit,) = cutting.recall("zebra").hits
    assert hit.passage == hit.content == "The zebra sleeps."


def test_an_edit_cuts_anew(cutting: Trivet) -> None:
    id = cutting.remember(LONG).id
    cutting.drain()
    cutting.edit(id, content="Now it is short.")
    cutting.drain()
    assert cutting.stats().passages == 1
