"""Known words are recognized equally by file scan and by the loaded list."""

from __future__ import annotations

from itertools import count

import pytest

from trivet.models import vocabulary as known_words
from trivet.models.vocabulary import MAX_SCANNED_WORDS, is_known_word

KNOWN = ("house", "Berlin", "berlin", "NASA", "quota")
UNKNOWN = ("pgbouncer", "xqzzw", "日本", 'a"b', "a\\b")


@pytest.mark.parametrize("asked_before", [0, MAX_SCANNED_WORDS])
def test_file_scan_and_word_list_agree(asked_before: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for words, known in ((KNOWN, True), (UNKNOWN, False)):
        monkeypatch.setattr(known_words, "_asked", count(asked_before))
        assert {word: is_known_word(word) for word in words} == dict.fromkeys(words, known)
