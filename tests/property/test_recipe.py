"""A recipe parses and prints back with the same meaning, and any other text is refused."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from trivet.errors import InvalidInput
from trivet.search.legs.registry import leg_names
from trivet.search.recipe import DEFAULT, MATCHES, Recipe, parse_recipe

shares = st.floats(0, 1).map(lambda number: round(number, 6))
fusions = st.one_of(
    st.builds("rrf(k={})".format, st.integers(1, 1_000)),
    st.builds("convex(norm={})".format, st.sampled_from(["minmax", "zscore", "dbsf", "tmm"])),
    st.sampled_from(["rsf()", "rrf(k=60, lexical=2, dense=1)", "convex(norm=zscore, dense=0.3)"]),
)
steps = st.fixed_dictionaries(
    {},
    optional={
        "fusion": fusions,
        "legs": st.lists(st.sampled_from(leg_names()), min_size=1, max_size=2)
        .map(", ".join)
        .map("legs({})".format),
        "depth": st.integers(1, 1_000).map("depth({})".format),
        "match": st.sampled_from(MATCHES).map("match({})".format),
        "bm25": st.builds("bm25(k1={}, b={}, title={})".format, shares, shares, shares),
        "bonus": shares.map("bonus({})".format),
        "prior": shares.map("prior({})".format),
        "rerank": st.sampled_from(
            [
                "rerank",
                "rerank(off)",
                "rerank(best)",
                "rerank(fast, top=5)",
                "rerank(own, top=7, blend=0.25)",
            ]
        ),
    },
)


@given(steps)
def test_recipe_prints_back_for_any_step_order(given: dict[str, str]) -> None:
    parts = list(given.values())
    recipe = parse_recipe(" | ".join(parts)) if parts else DEFAULT
    assert not parts or parse_recipe("|".join(reversed(parts))) == recipe
    assert parse_recipe(str(recipe)) == recipe
    assert str(parse_recipe(str(recipe))) == str(recipe)


@given(steps)
def test_named_steps_are_used(given: dict[str, str]) -> None:
    recipe = parse_recipe(" | ".join(given.values())) if given else DEFAULT
    printed = str(recipe)
    for name in ("depth", "match"):
        if name in given:
            assert given[name] in printed
    for name in Recipe.__struct_fields__:
        if name not in given:
            assert getattr(recipe, name) == getattr(DEFAULT, name)


@given(st.text(max_size=60) | st.text(alphabet="rf(k=60)|,. depth\n1e9-", max_size=40))
@example("default")
@example("depth(1e400)")
@example("depth(nan)")
@example("bm25(b=2)")
def test_any_text_is_a_recipe_or_refused(text: str) -> None:
    try:
        recipe = parse_recipe(text)
    except InvalidInput:
        return
    assert parse_recipe(str(recipe)) == recipe


@pytest.mark.parametrize("text", ["convex(lexcial=5)", "rrf(k=60, k.desne=10)"])
def test_misspelled_leg_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="the legs are lexical, dense"):
        parse_recipe(text)
