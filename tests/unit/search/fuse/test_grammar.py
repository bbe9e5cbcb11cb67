"""Recipes and calls parse, print and round-trip."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trivet.errors import InvalidInput
from trivet.search.fuse import Call, Options, parse_call, parse_pipeline, print_pipeline
from trivet.search.fuse.grammar import NOT_FINITE, NUMBER

names = st.from_regex(r"[a-z][a-z0-9_-]{0,8}", fullmatch=True)
keys = st.from_regex(r"[a-z][a-z0-9_-]{0,4}(\.[a-z][a-z0-9_-]{0,4})?", fullmatch=True)
words = st.from_regex(r"[a-z0-9_-]{1,8}", fullmatch=True).filter(
    lambda word: not NUMBER.fullmatch(word) and not NOT_FINITE.fullmatch(word)
)
values = words | st.floats(allow_nan=False, allow_infinity=False)
calls = st.builds(
    Call, names, st.lists(values, max_size=3).map(tuple), st.dictionaries(keys, values).map(Options)
)


def test_parse_call_with_arguments_and_options() -> None:
    call = parse_call(" legs( lexical ,50, depth=1e2,k.dense=.5 ) ")
    assert call == Call("legs", ("lexical", 50.0), Options({"depth": 100.0, "k.dense": 0.5}))
    assert str(call) == "legs(lexical, 50, depth=100, k.dense=0.5)"


@pytest.mark.parametrize("text", ["rrf", "rrf()", "rrf( )", " rrf "])
def test_call_without_arguments_prints_bare_name(text: str) -> None:
    assert str(parse_call(text)) == "rrf"


@pytest.mark.parametrize(
    ("written", "printed"),
    [
        ("60.0", "60"),
        ("0.50", "0.5"),
        ("-3", "-3"),
        ("+3", "3"),
        ("-0", "0"),
        ("1e22", "1e+22"),
        ("1e-7", "1e-07"),
    ],
)
def test_numbers_print_in_shortest_form(written: str, printed: str) -> None:
    assert str(parse_call(f"f({written})")) == f"f({printed})"


def test_words_may_look_like_dates_or_identifiers() -> None:
    assert parse_call("f(2024-01-02, a_b-c)").arguments == ("2024-01-02", "a_b-c")


def test_pipeline_parses_and_prints() -> None:
    pipeline = parse_pipeline("legs(lexical, dense)|rrf(k=60) | first(10)")
    assert [call.name for call in pipeline] == ["legs", "rrf", "first"]
    assert print_pipeline(pipeline) == "legs(lexical, dense) | rrf(k=60) | first(10)"


@pytest.mark.parametrize(
    ("text", "position", "expected"),
    [
        ("", 1, "a name"),
        ("  ", 3, "a name"),
        ("Rrf", 1, "a name"),
        ("rrf(k=)", 7, "a number or a word"),
        ("rrf(k=", 7, "a number or a word"),
        ("rrf(k=60", 9, "',' or ')'"),
        ("rrf(k=60,)", 10, "an option"),
        ("rrf(60,)", 8, "a number or a word"),
        ("rrf(k=60 j=1)", 10, "',' or ')'"),
        ("rrf(k=60, 5)", 11, "plain arguments come before options"),
        ("rrf(k=60, k=5)", 11, "each option once"),
        ("rrf(a.b.c=1)", 5, "an option name"),
        ("rrf(k=nan)", 7, "finite"),
        ("rrf(k=-inf)", 7, "finite"),
        ("rrf(k=NaN)", 7, "finite"),
        ("rrf(k=1e999)", 7, "a finite number"),
        ("rrf(k=a.b)", 7, "a number or a word"),
        ("rrf(k=ß)", 7, "a number or a word"),
        ("rrf) ", 4, "the end"),
        ("rrf | convex", 5, "the end"),
    ],
)
def test_parse_error_names_position_and_expectation(
    text: str, position: int, expected: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_call(text)
    assert f"at character {position}:" in str(caught.value)
    assert expected in str(caught.value)


@pytest.mark.parametrize("text", ["a |", "| a", "a || b", "a b"])
def test_malformed_pipeline_is_rejected(text: str) -> None:
    with pytest.raises(InvalidInput):
        parse_pipeline(text)


@pytest.mark.parametrize("value", ["60", "nan", "Upper", "", "a b", float("nan"), float("inf")])
def test_unparseable_argument_is_rejected(value: str | float) -> None:
    with pytest.raises(InvalidInput):
        Call("f", (value,))


def test_options_are_immutable_and_compare_by_content() -> None:
    options = Options({"a": 1.0, "b": 2.0})
    assert options == Options({"b": 2.0, "a": 1.0}) == {"a": 1.0, "b": 2.0}
    assert len({options, Options({"b": 2.0, "a": 1.0})}) == 1
    assert not hasattr(options, "__setitem__")


@given(st.lists(calls, min_size=1, max_size=4).map(tuple))
def test_pipelines_round_trip(pipeline: tuple[Call, ...]) -> None:
    printed = print_pipeline(pipeline)
    assert parse_pipeline(printed) == pipeline
    assert print_pipeline(parse_pipeline(printed)) == printed


@given(st.text(alphabet="ab1.-_e=,()| ", max_size=20) | st.text(max_size=20))
def test_any_text_parses_or_raises_invalid_input(text: str) -> None:
    try:
        pipeline = parse_pipeline(text)
    except InvalidInput as refused:
        assert "at character" in str(refused)  # noqa: PT017
    else:
        assert parse_pipeline(print_pipeline(pipeline)) == pipeline
