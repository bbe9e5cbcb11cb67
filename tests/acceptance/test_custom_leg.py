"""A leg registered by one call works in recipes, answers, traces, why-not and the lab."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support import library_dataset as library
from support.command_line import CommandLine
from trivet import Trivet
from trivet.cli.views.answer import why_line
from trivet.errors import InvalidInput, LegFailed
from trivet.lab.measure.recipe_variants import ablations
from trivet.search.legs.leg import Leg, LegQuery
from trivet.search.legs.registry import leg_names, register, unregister
from trivet.search.recipe import DEFAULT, parse_recipe
from trivet.settings.systems import ExternalSystem, check_systems
from trivet.types import Candidate, Contribution, Ranking, Why

LONG, SHORT = "The relay hums all night behind the grey door.", "A relay."


def search(query: LegQuery) -> Ranking:
    """Return the lexical results in reverse order."""
    if query.question.text == "fail":
        raise LegFailed("it did not want to")
    found = query.store.lexical.search(
        query.question.terms, (), 1, query.filter, query.recipe.bm25, query.recipe.depth
    )
    ids = [candidate.id for candidate in reversed(found)]
    return Ranking(
        leg="toy",
        floor=0.0,
        candidates=tuple(Candidate(id=id, score=1 / place) for place, id in enumerate(ids, 1)),
    )


def explain(part: Contribution, why: Why) -> str:
    return f"turned round {part.score:.1f}"


@pytest.fixture
def toy() -> Iterator[Leg]:
    leg = Leg(
        name="toy",
        search=search,
        floor=0.0,
        steps=("bm25",),
        unit="turns",
        explain=explain,
        note=lambda store: "toys!",
    )
    register(leg)
    yield leg
    unregister("toy")


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Trivet]:
    with Trivet.open(tmp_path / "toy.db", embedder="none", background=False) as trivet:
        trivet.remember(LONG)
        trivet.remember(SHORT)
        yield trivet


def test_recipe_with_an_unregistered_leg_is_refused(memory: Trivet) -> None:
    with pytest.raises(InvalidInput, match="legs takes any of lexical, dense, graph, such as"):
        memory.recall("relay", recipe="legs(lexical, toy)")
    with pytest.raises(InvalidInput, match="unknown leg 'toy'"):
        memory.recall("relay", recipe="rrf(toy=2)")


@pytest.mark.usefixtures("toy")
def test_recipe_with_the_leg_round_trips(memory: Trivet) -> None:
    recipe = parse_recipe("rrf(k=60, toy=2) | legs(toy, lexical)")
    assert recipe.legs == ("lexical", "toy"), "in the order of the registry"
    assert parse_recipe(str(recipe)) == recipe
    assert leg_names() == ("lexical", "dense", "graph", "toy")
    assert DEFAULT.legs == parse_recipe("default").legs == ("lexical", "dense", "graph"), (
        "the defaults were measured with these legs"
    )


@pytest.mark.usefixtures("toy")
def test_leg_is_fused_weighted_and_explained(memory: Trivet) -> None:
    words = memory.recall("relay", recipe="legs(lexical)")
    assert [hit.content for hit in words.hits] == [SHORT, LONG]
    answer = memory.recall("relay", recipe="rrf(toy=2) | legs(lexical, toy)")
    assert [hit.content for hit in answer.hits] == [LONG, SHORT], "its weight is larger"
    first = answer.hits[0].why
    assert (first.legs["toy"].rank, first.legs["toy"].score) == (1, 1.0)
    assert first.legs["toy"].weight > first.legs["lexical"].weight
    assert why_line(first).startswith("lexical #2 (matched: relay), toy #1 (turned round 1.0)")
    assert [(leg.leg, leg.answered, leg.candidates) for leg in answer.health.legs] == [
        ("lexical", True, 2),
        ("toy", True, 2),
    ]
    assert "toys!" in answer.health.notes
    assert "toys!" not in words.health.notes


@pytest.mark.usefixtures("toy")
def test_failure_of_the_leg_affects_only_itself(memory: Trivet) -> None:
    memory.remember("Doors fail.")
    answer = memory.recall("fail", recipe="legs(lexical, toy)")
    assert len(answer.hits) == 1
    failed = answer.health.legs[-1]
    assert (failed.leg, failed.answered) == ("toy", False)
    assert "it did not want to" in (failed.reason or "")


@pytest.mark.usefixtures("toy")
def test_why_not_explains_the_leg(memory: Trivet) -> None:
    lamp = memory.remember("The lamp is off.").id
    found = memory.recall("relay", limit=1).hits[0].id
    recipe = "rrf(toy=0.1) | legs(lexical, toy)"
    assert "the toy leg put it at 2 of 2" in memory.why_not("relay", found, recipe=recipe).reasons
    assert any(
        "the toy leg did not rank it among its 2" in one
        for one in memory.why_not("relay", lamp, recipe=recipe).reasons
    )


@pytest.mark.usefixtures("toy")
def test_lab_ablates_the_leg(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert "without toy" in ablations("legs(lexical, toy)")
    data = str(library.write(tmp_path / "data"))
    report = CommandLine(monkeypatch).json(
        "lab", "ablate", data, "--config", "rrf(toy=3) | legs(lexical, toy)", "--embedder", "none"
    )
    whole, *rest = report["ablations"]
    assert whole["name"] == "whole"
    assert {"without lexical", "without toy"} <= {one["name"] for one in rest}


def test_leg_name_is_unique(toy: Leg) -> None:
    with pytest.raises(InvalidInput, match="leg 'toy' already exists"):
        register(toy)
    with pytest.raises(InvalidInput, match="the name 'toy' is not allowed"):
        check_systems({"toy": ExternalSystem(command=("x",))}, leg_names())


@pytest.mark.parametrize("name", ["lexical", "dense", "graph"])
def test_leg_names_appear_only_in_their_own_files(name: str) -> None:
    """Other exceptions: defaults (search/recipe.py, settings) and verbs of the same name."""
    source = Path(__file__).parents[2] / "src" / "trivet"
    searched = [source / "search", source / "memory", source / "lab", source / "agents"]
    named = [
        str(path.relative_to(source))
        for folder in searched
        for path in sorted(folder.rglob("*.py"))
        if f'"{name}"' in path.read_text(encoding="utf-8")
    ]
    assert named == sorted([f"search/legs/{name}.py", "search/recipe.py"])
