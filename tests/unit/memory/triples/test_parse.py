"""Broken or hostile parts of an answer are skipped and counted; the rest is kept."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.triples_model import states
from trivet.memory.worker.triple_prompt import MAX_RELATION_CHARACTERS, MAX_TRIPLES, parse
from trivet.models.chat import BadAnswer

TEXT = "Mira Kovac works at Acme since 2024 and lives in the café near Zürich. The api_gateway calls getUserName()."
GOOD = states("Mira Kovac", "works at", "Acme")


def read(*triples: Any, text: str = TEXT) -> tuple[list[tuple[str, str, str]], dict[str, int]]:
    parsed = parse({"memories": [{"number": 1, "triples": list(triples)}]}, [text])
    found = [(one.subject, one.relation, one.object) for one in parsed.triples.get(0, ())]
    return found, dict(parsed.skipped)


@pytest.mark.parametrize(
    "answer", [None, 3, "text", [], {}, {"memories": None}, {"memories": {"number": 1}}]
)
def test_malformed_answer_is_refused(answer: Any) -> None:
    with pytest.raises(BadAnswer):
        parse(answer, [TEXT])


@pytest.mark.parametrize(
    "bad",
    [
        None,
        "Mira works at Acme",
        [],
        {},
        {"subject": "Mira Kovac", "object": "Acme"},
        states("Mira Kovac", "works at", "Acme", single="yes"),
        {**GOOD, "subject": ["Mira Kovac"]},
        states("", "works at", "Acme"),
        states("  \n ", "works at", "Acme"),
        states("Mira Kovac", " _- ", "Acme"),
        states("Mira Kovac", "works at", "mira  KOVAC"),
        states("Mira Kovac", "works at", "Globex"),
        states("Mira Kovac", "works at", "cme"),
        states("she", "works at", "Acme"),
        states("Mira Kovac", "since", "2024"),
        states("Mira\x00Kovac", "works at", "Acme"),
        states("Mira Kovac", "works\u202eat", "Acme"),
        states("Mira Kovac", "w" * (MAX_RELATION_CHARACTERS + 1), "Acme"),
        states("Mira Kovac " * 100_000, "works at", "Acme"),
    ],
)
def test_bad_statement_is_skipped_alone(bad: Any) -> None:
    found, skipped = read(bad, GOOD)
    assert found == [("Mira Kovac", "works at", "Acme")]
    assert sum(skipped.values()) == 1


@pytest.mark.parametrize(
    "label",
    ["Mira Kovač", "mira-kovac", "MiraKovac", "cafe", "Zurich", "api-gateway", "getUserName"],
)
def test_statement_ends_may_be_spelled_differently(label: str) -> None:
    found, skipped = read(states(label, "is near", "Acme"))
    assert (found, skipped) == ([(label, "is near", "Acme")], {})


def test_scripts_without_spaces() -> None:
    assert read(states("李華", "在", "北京"), text="李華住在北京市。")[0] == [
        ("李華", "在", "北京")
    ]


def test_statement_count_is_bounded() -> None:
    given = [states("Mira Kovac", f"knows {number} of", "Acme") for number in range(5_000)]
    found, skipped = read(*given)
    assert len(found) == MAX_TRIPLES
    assert skipped == {"more statements than a memory may have": 5_000 - MAX_TRIPLES}


def test_unknown_and_repeated_numbers_are_skipped() -> None:
    other = states("Mira Kovac", "left", "Acme")
    entries = [
        {"number": number, "triples": [GOOD]}
        for number in (0, -1, 3, True, "1", 1.0, None, 10**400)
    ]
    entries += [{"number": 2, "triples": [GOOD]}, {"number": 2, "triples": [other]}, {"number": 1}]
    parsed = parse({"memories": [7, *entries]}, [TEXT, TEXT])
    assert list(parsed.triples) == [1]
    assert [one.relation for one in parsed.triples[1]] == ["works at"]
    assert parsed.skipped == {
        "no number that was asked about": 9,
        "a number twice": 1,
        "no list of statements": 1,
    }


def test_relations_are_normalized() -> None:
    found, _ = read(
        states("Mira Kovac", " Works_At ", "Acme"), GOOD, states("Mira Kovac", "WORKS\tat", "Acme")
    )
    assert [relation for _, relation, _ in found] == ["works at"]


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ("2024", "2024-01-01"),
        ("2024-03", "2024-03-01"),
        ("2024-03-05", "2024-03-05"),
        ("2024-03-05T23:30:00-02:00", "2024-03-06"),
    ],
)
def test_times_keep_their_precision(given: str, stored: str) -> None:
    (triple,) = parse(
        {"memories": [{"number": 1, "triples": [{**GOOD, "valid_from": given}]}]}, [TEXT]
    ).triples[0]
    assert (triple.valid_from or "")[:10] == stored


@pytest.mark.parametrize(
    "bad", ["yesterday", "2024-13-01", "0000", "99999", 2024, ["2024"], "2024-01-01" * 20]
)
def test_invalid_time_is_dropped_and_statement_kept(bad: Any) -> None:
    parsed = parse({"memories": [{"number": 1, "triples": [{**GOOD, "valid_from": bad}]}]}, [TEXT])
    assert parsed.triples[0][0].valid_from is None
    assert parsed.skipped == {"a time that is none": 1}


def test_end_before_start_is_dropped() -> None:
    backwards = {**GOOD, "valid_from": "2024-05-01", "valid_to": "2024-04-01"}
    parsed = parse({"memories": [{"number": 1, "triples": [backwards]}]}, [TEXT])
    assert (parsed.triples[0][0].valid_from, parsed.triples[0][0].valid_to) == (None, None)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ["memories", "number", "triples", "subject", "relation", "object", "valid_to"]
            ),
            inner,
        )
    ),
    max_leaves=20,
)


@given(json_values)
def test_arbitrary_answers_do_not_break_parsing(value: Any) -> None:
    for answer in (
        value,
        {"memories": value},
        {"memories": [{"number": 1, "triples": [value, GOOD]}]},
    ):
        try:
            parsed = parse(answer, [TEXT])
        except BadAnswer:
            continue
        assert set(parsed.triples) <= {0}, "only for the requested memory"
        assert all(
            one.relation and one.subject != one.object
            for found in parsed.triples.values()
            for one in found
        )
    assert ("Mira Kovac", "works at", "Acme") in read(value, GOOD)[0], (
        "a valid statement next to it must be kept"
    )
