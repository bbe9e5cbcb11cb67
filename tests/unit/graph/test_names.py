"""Names in running text get the right boundaries and certainty."""

from __future__ import annotations

import pytest

from trivet.graph.names import LONGEST_IN_WORDS, names_in


def sure(text: str) -> list[str]:
    return [name.text for name in names_in(text) if name.sure]


def unsure(text: str) -> list[str]:
    return [name.text for name in names_in(text) if not name.sure]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I met Ada Lovelace in London.", ["Ada Lovelace", "London"]),
        ("She works at Bank of America now", ["Bank of America"]),
        ("we watched Lord of the Rings twice", ["Lord of the Rings"]),
        ("a book by J. K. Rowling", ["J. K. Rowling"]),
        ("ask Dr. Chen about St. Louis.", ["Dr. Chen", "St. Louis"]),
        ("we play Witcher 3 and chess", ["Witcher 3"]),
        ("paintings by Vincent van Gogh hang there", ["Vincent van Gogh"]),
        ("check the Postgres logs", ["Postgres"]),
        ("Yesterday Alice called", ["Alice"]),
        ("the api of GitHub, GitLab; also Jira", ["GitHub", "GitLab", "Jira"]),
        ("it is written in C++ or C#", ["C++", "C#"]),
        ("we moved to New York City in spring", ["New York City"]),
        ("we use AT&T here", ["AT&T"]),
    ],
)
def test_names_within_sentences(text: str, expected: list[str]) -> None:
    assert sure(text) == expected


def test_joined_names_yield_parts_and_pair() -> None:
    assert sure("we met Alice and Bob.") == ["Alice", "Bob", "Alice and Bob"]
    assert sure("we love Johnson & Johnson") == ["Johnson", "Johnson", "Johnson & Johnson"]
    assert sure("we met Alice, Bob and Eve") == ["Alice", "Bob", "Eve", "Bob and Eve"]
    assert "The And Alice" not in sure("The and Alice")


def test_chat_speaker_is_a_name() -> None:
    assert sure("Caroline: Hey Mel! Good to see you.") == ["Caroline", "Mel"]
    assert sure("Mel: Thanks, Caroline!\nCaroline: Sure thing.") == ["Mel", "Caroline", "Caroline"]
    assert sure("Caroline ran. then: nothing") == []


@pytest.mark.parametrize(
    "opening", ["", "It works. ", "It works! ", "Really? ", "notes:\n", "- one\n- ", '"', "(", "• "]
)
def test_sentence_start_capital_is_unsure(opening: str) -> None:
    assert "Deploys" in unsure(f"{opening}Deploys fail on small disks")
    assert "Deploys" not in sure(f"{opening}Deploys fail on small disks")


def test_two_capitals_at_start_are_sure() -> None:
    assert sure("Ada Lovelace wrote it.") == ["Ada Lovelace"]


@pytest.mark.parametrize(
    "text",
    [
        "I've met them. Don't go. We're fine. It'll do. I'd go. I'm here.",
        "I’ve met them. Don’t go. We’re fine.",
        "On Monday in January we met, on Tue in Feb too.",
        "However, it works. Therefore we stay. Yes. Okay. Thanks! Wow!",
        "TODO: fix. NOTE: see below. Warning: hot.",
        "nothing here is written large",
        "12 34 56",
        "...!?",
        "",
    ],
)
def test_text_without_names(text: str) -> None:
    assert list(names_in(text)) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Я видел Анну Каренину в Москве", ["Анну Каренину", "Москве"]),
        ("στην Αθήνα με τον Γιώργο", ["Αθήνα", "Γιώργο"]),
        ("we met José Müller and Zoë", ["José Müller", "Zoë", "José Müller and Zoë"]),
        ("on a visit to Łódź and Århus", ["Łódź", "Århus", "Łódź and Århus"]),
    ],
)
def test_non_ascii_names(text: str, expected: list[str]) -> None:
    assert sure(text) == expected


def test_overlong_run_is_not_a_name() -> None:
    words = [f"Word{letter}" for letter in "abcdefghij"]
    assert sure(f"see {' '.join(words[:LONGEST_IN_WORDS])} there") == [
        " ".join(words[:LONGEST_IN_WORDS])
    ]
    assert sure(f"see {' '.join(words[: LONGEST_IN_WORDS + 1])} there") == []


def test_name_ends_at_sentence_end() -> None:
    assert sure("we saw Alice. Bob came. then Eve! Dan left") == ["Alice", "Eve"]
    assert unsure("we saw Alice. Bob came. then Eve! Dan left") == ["Bob", "Dan"]
    assert sure("we saw Alice\nBob Brown came") == ["Alice", "Bob Brown"]
    assert sure("of the Lord of the manor") == ["Lord"]


def test_us_abbreviation_is_a_name() -> None:
    assert sure("she lives in the U.S. since May") == ["U.S."]
    assert sure("she lives in the US with us") == ["US"]


def test_leading_capital_may_be_a_verb() -> None:
    assert unsure("Restart Redis after that.") == ["Redis"]
    assert unsure("Bank of America called.") == ["America"]
    assert unsure("then Restart Redis") == []


def test_capital_after_semicolon_is_a_name() -> None:
    assert sure("deploys are on time; Ines presses the button") == ["Ines"]
