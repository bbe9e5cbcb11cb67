"""The lexical leg finds memories in several languages by queries in the same language."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from support.store_fixtures import Opened
from trivet import Trivet

MEMORIES = {
    "german": "Die Wohnungen in der Gartenstraße sind seit März vermietet; der Hausmeister hat die Schlüssel.",
    "french": "Les factures de l'imprimeur sont payées à la fin du mois, jamais avant.",
    "spanish": "Las habitaciones del segundo piso están reservadas para los músicos.",
    "hungarian": "A nyaraló kulcsai Bözsi néninél vannak, a riasztót ő kapcsolja be.",
    "english": "The keys of the summer house hang behind the kitchen door.",
}


@pytest.fixture
def languages(trivet: Trivet) -> dict[str, str]:
    return {trivet.remember(text).id: language for language, text in MEMORIES.items()}


@pytest.mark.parametrize(
    ("query", "language"),
    [
        ("Wer hat den Schlüssel zu der Wohnung?", "german"),
        ("Wohnung", "german"),  # One word is too short for language detection.
        ("gartenstrasse", "german"),
        ("Quand est-ce qu'on paie la facture ?", "french"),
        ("imprimeurs", "french"),
        ("¿Para quién es la habitación reservada?", "spanish"),
        ("habitacion", "spanish"),
        ("Hol van a nyaraló kulcsa?", "hungarian"),
        ("riaszto", "hungarian"),
        ("where is the key of the house", "english"),
    ],
)
def test_inflected_word_finds_the_memory(
    trivet: Trivet, languages: dict[str, str], query: str, language: str
) -> None:
    hits = trivet.recall(query, recipe="rrf | legs(lexical)", relevance_at_least=0).hits
    assert languages[hits[0].id] == language
    assert hits[0].why.matched_words


def test_quoted_words_match_across_languages(trivet: Trivet, languages: dict[str, str]) -> None:
    hits = trivet.recall('"Wohnungen in der Gartenstraße"', relevance_at_least=0).hits
    assert [languages[hit.id] for hit in hits] == ["german"]


def test_store_indexed_without_languages_is_reindexed(open_trivet: Opened, path: Path) -> None:
    first = open_trivet()
    id = first.remember(MEMORIES["german"]).id
    first.close()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE meta SET value = '1' WHERE name = 'analyser'")
        connection.execute("UPDATE lexical SET content = 'wohnungen gartenstrass', keywords = ''")
    again = open_trivet()
    assert [hit.id for hit in again.recall("Wohnung", recipe="rrf | legs(lexical)").hits] == [id]


def test_keyword_uses_the_language_of_its_text(trivet: Trivet) -> None:
    """A keyword alone is too short for language detection."""
    trivet.remember(MEMORIES["german"], expanded_keywords=["Kündigungen"])
    hit = trivet.recall("Kündigung", recipe="rrf | legs(lexical)", relevance_at_least=0).hits[0]
    assert hit.why.matched_words == ("Kündigung",)
