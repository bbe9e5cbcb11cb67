from trivet.analyse.terms import hashed
from trivet.code.encoder import all_hashes, hashes_of, normalized_name, words_of


def test_an_identifier_is_found_whole_and_by_its_parts() -> None:
    terms = set(hashes_of("parseRetryAfter"))

    assert {hashed("retri"), hashed("after")} & terms == {
        hashed("retri")
    }  # `after` is a function word
    assert set(hashes_of("parse")) <= terms
    assert len(terms) == 3


def test_the_same_name_in_other_spelling_is_spoken_alike() -> None:
    assert (
        normalized_name("parse_retry_after")
        == normalized_name("parseRetryAfter")
        == normalized_name("PARSE-RETRY-AFTER")
    )


def test_a_term_has_the_same_number_in_every_process() -> None:
    assert hashed("retry") == 0x48C5A8902E17D91B


def test_words_are_counted_by_term() -> None:
    counts = all_hashes(words_of("retry(); retries; self._retry"))

    assert counts[hashed("retri")] == 3
