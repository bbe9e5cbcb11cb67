"""The graph leg finds memories by concepts of the query and stays empty without any."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from support.store_fixtures import Opened
from support.word_embedder import WordEmbedder
from trivet import InvalidInput, NotFound, Trivet
from trivet.graph.concepts import EXTRACTION_VERSION, Mention, TimeBudget
from trivet.graph.extract import extract
from trivet.memory.admin import maintenance as upkeep
from trivet.search.recipe import DEFAULT, parse_recipe
from trivet.types import Answer, LegHealth

WITHOUT_GRAPH = "legs(lexical, dense)"


def ranked(answer: Answer) -> list[tuple[str, float]]:
    return [(hit.id, hit.score) for hit in answer.hits]


def leg(answer: Answer) -> LegHealth:
    return next(one for one in answer.health.legs if one.leg == "graph")


def place(answer: Answer, id: str) -> int | None:
    return next((hit.rank for hit in answer.hits if hit.id == id), None)


def fill(trivet: Trivet) -> dict[str, str]:
    """Store an answer two steps away that shares no word with the question, and distractors."""
    made = {
        "works": "Clara Whitfield took a position at Acme Dynamics as an engineer.",
        "city": "The headquarters of Acme Dynamics stand in Rostock, close to the harbour.",
        "other": "The headquarters of Umbrella Works stand in Dresden, close to the river.",
    }
    others = (
        f"Some person number {number} went to the market for apples and spoke of a town."
        for number in range(20)
    )
    stored = trivet.remember_many(
        {"content": text} for text in (*made.values(), *others)
    )  # Stored together, so none is newer.
    ids = {name: one.id for name, one in zip(made, stored, strict=False)}
    trivet.drain()
    return ids


QUESTION = "In which town is the employer of Clara Whitfield?"


@pytest.fixture(params=["words only", "both"])
def either_store(
    request: pytest.FixtureRequest, open_trivet: Opened, embedder: WordEmbedder
) -> Trivet:
    return open_trivet(embedder="none" if request.param == "words only" else embedder.spec())


def test_graph_only_memory_ranks_near_the_top(either_store: Trivet) -> None:
    ids = fill(either_store)
    answer = either_store.recall(QUESTION)
    assert place(answer, ids["works"]) == 1
    assert place(answer, ids["city"]) in (2, 3)
    other = place(answer, ids["other"])
    assert other is None or other > (place(answer, ids["city"]) or 0)
    without = place(either_store.recall(QUESTION, recipe=WITHOUT_GRAPH), ids["city"])
    assert without is None or without >= (place(answer, ids["city"]) or 0)


def test_graph_path_is_reported(either_store: Trivet) -> None:
    ids = fill(either_store)
    hit = next(hit for hit in either_store.recall(QUESTION).hits if hit.id == ids["city"])
    assert hit.why.legs["graph"].rank == 1
    names = [step.name for step in hit.why.path]
    assert names[-1] == "Acme Dynamics"
    assert ids["works"] in names


def test_graph_alone_can_rank_a_memory_first(either_store: Trivet) -> None:
    ids = fill(either_store)
    recipe = "convex(norm.graph=raw, graph=1, lexical=0, dense=0) | legs(graph, lexical)"
    assert place(either_store.recall(QUESTION, recipe=recipe), ids["city"]) == 1


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("see https://www.example.com/a/b for it", "what of https://example.com/a/b ?"),
        ("it was on 5 March 2024 that we met", "what was on March 5th, 2024?"),
        ("it fails with ERR_CONN_7 again", "err_conn_7"),
        ("ask get_user about it", "why getUser"),
        ("look into src/net/relay.py for it", "relay.py"),
        ("she moved to the U.S. in spring", "who moved to the US"),
        ("he met Li Hua there", "who knows LiHua"),
        ("they say «blue door» to it", "what is the blue door"),
    ],
)
def test_query_matches_concept_in_another_spelling(trivet: Trivet, text: str, query: str) -> None:
    """The same rules read queries and memories, so the walk finds a start."""
    trivet.remember(text)
    trivet.remember(f"so {text}, they say")
    trivet.drain()
    for word in (
        "what",
        "who",
        "why",
        "was",
        "there",
        "knows",
        "door",
        "march",
        "5th",
        "2024",
        "example.com",
    ):
        trivet.remember(f"a line about {word} and other things")
    seeds = "err_conn_7 getuser relay.py moved spring met met blue door example.com 5 march 2024"
    trivet.remember(f"words that all questions share: {seeds}")
    assert leg(trivet.recall(query)).candidates > 0


def test_failing_graph_costs_only_its_leg(either_store: Trivet, path: Path) -> None:
    ids = fill(either_store)
    assert not either_store.recall(QUESTION).health.degraded
    expected = ranked(either_store.recall(QUESTION, recipe=WITHOUT_GRAPH))
    connection = sqlite3.connect(path)
    connection.execute("DROP TABLE mention")
    connection.commit()
    connection.close()
    answer = either_store.recall(QUESTION)
    assert answer.health.degraded
    assert not leg(answer).answered
    assert "mention" in (leg(answer).reason or "")
    assert [one.answered for one in answer.health.legs if one.leg != "graph"] == [True] * (
        len(answer.health.legs) - 1
    )
    assert ranked(answer) == expected
    assert place(answer, ids["works"]) == 1


def test_quoted_query_keeps_to_exact_matches(either_store: Trivet) -> None:
    ids = fill(either_store)
    answer = either_store.recall('"Clara Whitfield"')
    assert [hit.id for hit in answer.hits] == [ids["works"]]
    assert ids["city"] not in {hit.id for hit in either_store.recall('"no such phrase"').hits[:1]}


def test_bulk_writes_are_reported_as_not_in_graph(trivet: Trivet) -> None:
    fill(trivet)
    trivet.remember_many([{"content": "The harbour of Rostock belongs to Umbrella Works."}])
    assert trivet.recall(QUESTION).health.not_in_graph == 1
    trivet.drain()
    assert trivet.recall(QUESTION).health.not_in_graph == 0


def test_worker_extracts_without_an_embedder(open_trivet: Opened) -> None:
    trivet = open_trivet(background=True)
    assert any(thread.name == "trivet-worker" for thread in threading.enumerate())
    trivet.remember("Clara Whitfield works at Acme.")
    trivet.drain()  # Waits for the background worker or does its work.
    assert trivet.stats().not_in_graph == 0


@pytest.mark.parametrize(
    "text",
    [
        "walk(seeds=5, onward=0.6)",
        "walk(rare=1, rest=0.1, about=2)",
        "legs(graph, lexical)",
        "convex(norm.graph=minmax, graph=2)",
        "rrf(k=60, graph=0.5) | walk(hits=1) | depth(10)",
        "legs(lexical, dense, graph) | walk(named=0, sharpness=0)",
    ],
)
def test_walk_recipes_round_trip(text: str) -> None:
    recipe = parse_recipe(text)
    assert recipe != DEFAULT
    assert parse_recipe(str(recipe)) == recipe


@pytest.mark.parametrize(
    "text",
    [
        "walk(5)",
        "walk(speed=1)",
        "walk(seeds=-1)",
        "walk(seeds=1e9)",
        "walk(onward=1.5)",
        "walk(hits=2)",
        "walk(rest=0)",
        "walk(rare=x)",
        "walk(onward=nan)",
        "walk() | walk()",
        "legs(grahp)",
        "convex(norm.grahp=raw)",
        "rrf(grahp=1)",
        "convex(norm.graph=loud)",
    ],
)
def test_invalid_recipes_are_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        parse_recipe(text)


VALID_WALKS = (
    "walk(seeds=0)",
    "walk(seeds=1)",
    "walk(hits=0)",
    "walk(hits=1)",
    "walk(onward=0)",
    "walk(onward=1, rest=0.001)",
    "walk(about=0)",
    "walk(rare=100)",
    "walk(sharpness=100)",
    "walk(named=0)",
    "walk(seeds=2.5)",
)


def test_every_valid_walk_runs(either_store: Trivet) -> None:
    fill(either_store)
    for walk in VALID_WALKS:
        for query in (QUESTION, "Clara Whitfield", "Acme Dynamics Rostock", "nothing at all"):
            answer = either_store.recall(query, recipe=walk)
            assert not answer.health.degraded, (walk, [one.reason for one in answer.health.legs])
            assert all(0 <= hit.score <= 1 for hit in answer.hits), walk


def test_new_extraction_version_rereads_everything(
    open_trivet: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_trivet() as trivet:
        trivet.remember("Clara Whitfield works at Acme.")
        trivet.drain()
    with open_trivet() as trivet:
        assert trivet.stats().not_in_graph == 0
    monkeypatch.setattr(upkeep, "EXTRACTION_VERSION", EXTRACTION_VERSION + 1)
    with open_trivet() as trivet:
        assert trivet.stats().not_in_graph == 1
        assert trivet.stats().concepts > 0, "the old graph serves meanwhile"
        trivet.drain()
    with open_trivet() as trivet:
        assert trivet.stats().not_in_graph == 0


def test_failing_text_does_not_block_others(
    trivet: Trivet, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails_on_one(
        title: str | None, content: str, tags: Sequence[str], time: TimeBudget
    ) -> tuple[Mention, ...]:
        if "poison" in content:
            raise RecursionError("too deep")
        return extract(title, content, tags, time)

    monkeypatch.setattr("trivet.graph.extract.extract", fails_on_one)
    trivet.remember("A poison for Clara.")
    trivet.remember("We met Dora.")
    trivet.drain()
    assert [concept.label for concept in trivet.concepts().concepts] == ["Dora"]
    assert trivet.stats().not_in_graph == 1
    (finding,) = [one for one in trivet.doctor() if one.check == "reading for the graph"]
    assert not finding.ok
    assert "RecursionError at" in finding.detail
    assert "too deep" not in finding.detail, "an exception may quote the text it failed on"
    monkeypatch.undo()
    trivet.embed()
    assert trivet.stats().not_in_graph == 0
    assert all(one.ok for one in trivet.doctor())


def test_invalid_language_model_names_its_setting(open_trivet: Opened) -> None:
    with pytest.raises(InvalidInput, match="graph_llm"):
        open_trivet(graph_llm="nonsense")


def test_memory_outside_the_filter_is_not_disclosed(trivet: Trivet) -> None:
    id = trivet.remember("We met Clara.", scope="team/hidden").id
    with pytest.raises(NotFound) as refused:
        trivet.graph(id, scope="other")
    assert "hidden" not in str(refused.value)


def test_slow_memory_is_read_in_part_and_counted(
    trivet: Trivet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trivet.engine.worker._extraction, "max_seconds_per_memory", 0.0)
    trivet.remember("Clara Whitfield works at Acme.", tags=["people"])
    trivet.drain()
    stats = trivet.stats()
    assert (stats.not_in_graph, stats.read_in_part) == (0, 1)
    assert stats.concepts == 1, "its tag was read before the time limit"
    (finding,) = (one for one in trivet.doctor() if one.check == "reading for the graph")
    assert "1 took too long" in finding.detail
