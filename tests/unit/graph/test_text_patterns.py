"""Text patterns such as URLs, quotes, codes, paths and identifiers are found by their form."""

from __future__ import annotations

import pytest

from trivet.graph.extract import LONGEST_QUOTED_IN_WORDS, MAX_PATTERN_CHARACTERS, find_patterns


def marks(text: str, kind: str) -> list[str]:
    return [found for found, its_kind in find_patterns(text) if its_kind == kind]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("see https://www.example.com/a/b.", ["example.com/a/b"]),
        ("see http://example.com/ and www.example.com", ["example.com", "example.com"]),
        ("(https://docs.rs/tokio), <https://a.io/x?y=1&z=2>", ["docs.rs/tokio", "a.io/x?y=1&z=2"]),
        ("no link: http:// and www.", []),
    ],
)
def test_urls(text: str, expected: list[str]) -> None:
    assert [url for url in marks(text, "url") if url] == expected


def test_url_is_not_also_a_path() -> None:
    assert [kind for _, kind in find_patterns("see https://example.com/src/main.py")] == ["url"]


@pytest.mark.parametrize(
    "text",
    ['the "blue door" here', "the “blue door” here", "the «blue door» here", "run `blue door` now", "「blue door」",
     "『blue door』", "《blue door》"],
)  # fmt: skip
def test_quotation_mark_styles(text: str) -> None:
    assert marks(text, "quoted") == ["blue door"]


def test_quotes_are_short_and_meaningful() -> None:
    words = " ".join("abcdefghij"[:LONGEST_QUOTED_IN_WORDS])
    assert marks(f'"{words}"', "quoted") == [words]
    assert marks(f'"{words} more"', "quoted") == []
    assert marks('"3.5" and "10:30" and "5k"', "quoted") == []
    assert marks('a " b\n c " d', "quoted") == []
    assert marks("他说「三体」和《红楼梦》", "quoted") == ["三体", "红楼梦"]


@pytest.mark.parametrize(
    "code",
    [
        "E4012",
        "HB-2231",
        "ERR_CONN",
        "ERR_CONN_4012",
        "CVE_2021_44228",
        "0xDEADBEEF",
        "0x1f",
        "RFC-793",
    ],
)
def test_error_codes(code: str) -> None:
    assert marks(f"it says {code}, again", "code") == [code]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("in src/app/main.py:", ["src/app/main.py", "main.py"]),
        ("in main.py now", ["main.py"]),
        ("see /etc/hosts and ~/notes.md", ["/etc/hosts", "~/notes.md", "notes.md"]),
        ("in C:\\Users\\mel\\notes.txt", ["C:\\Users\\mel\\notes.txt", "notes.txt"]),
        ("see ./run.sh", ["./run.sh", "run.sh"]),
        ("either and/or both, he/she, 1/2", []),
    ],
)
def test_paths(text: str, expected: list[str]) -> None:
    assert marks(text, "path") == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("call get_user or getUser", ["get_user", "getUser"]),
        ("call foo() first", ["foo"]),
        ("pass --dry-run today", ["dry-run"]),
        ("ask @alice today", ["alice"]),
        ("trivet.store.records has it", ["trivet.store.records"]),
        ("it runs well-known things; don't", []),
        ("e.g. this, i.e. that, at 10:30am, 11-inch, 5k, 3.5, 100%, 1,000, 3x", []),
    ],
)
def test_identifiers(text: str, expected: list[str]) -> None:
    assert marks(text, "identifier") == expected


def test_overlong_pattern_is_ignored() -> None:
    assert marks(f"call {'a_' * MAX_PATTERN_CHARACTERS}b", "identifier") == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('he said "yes please" and "of course" then', ["yes please", "of course"]),
        ('<img src="a picture" alt="a cat" width="40">', []),
        (f'"{"long " * 30}" and then "short term"', ["short term"]),
    ],
)
def test_quotes_are_paired_correctly(text: str, expected: list[str]) -> None:
    assert marks(text, "quoted") == expected
