"""Index terms of identifiers and words are stable."""

from trivet.analyse.terms import hashed
from trivet.code.encoder import all_hashes, hashes_of, normalized_name, words_of


def test_identifier_is_indexed_whole_and_by_parts() -> None:
    terms = set(hashes_of("parseRetryAfter"))

    assert {hashed("retri"), hashed("after")} & terms == {
        hashed("retri")
    }  # `after` is a function word
    assert set(hashes_of("parse")) <= terms
    assert len(terms) == 3


def test_naming_styles_normalize_equally() -> None:
    assert (
        normalized_name("parse_retry_after")
        == normalized_name("parseRetryAfter")
        == normalized_name("PARSE-RETRY-AFTER")
    )


def test_hash_is_stable_across_processes() -> None:
    assert hashed("retry") == 0x48C5A8902E17D91B


def test_words_are_counted_by_stem() -> None:
    counts = all_hashes(words_of("retry(); retries; self._retry"))

    assert counts[hashed("retri")] == 3
