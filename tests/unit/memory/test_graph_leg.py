"""The third leg: silent where the query names nothing, and leading to what no other leg finds where it does."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from support.opened import Opened
from support.waiting import ended
from support.word_embedder import WordEmbedder
from trivet import InvalidInput, NotFound, Trivet
from trivet.cli.demo import lines
from trivet.graph.extract import EXTRACTION_VERSION, extract
from trivet.graph.mentions import Mention
from trivet.memory import maintenance as upkeep
from trivet.memory.background import extraction
from trivet.search.recipe import DEFAULT, parse_recipe
from trivet.store.relational.graph_cache import TAKEN_IN_AT_ONCE, GraphCache
from trivet.types import Answer, Hit, LegHealth

TWO = "legs(lexical, dense)"


def ranked(answer: Answer) -> list[tuple[str, float]]:
    return [(hit.id, hit.score) for hit in answer.hits]


def leg(answer: Answer) -> LegHealth:
    return next(one for one in answer.health.legs if one.leg == "graph")


def place(answer: Answer, id: str) -> int | None:
    return next((hit.rank for hit in answer.hits if hit.id == id), None)


QUERIES = (
    "where does the relay listen", "what is slow", "how do we deploy on a friday", "who decided that", "Postgres",
    "E_CONN_4012", "what did Mira say about Porto", "HB-2231 and HB-2590", "Rotterdam office",
    "wildcard certificate does not renew", "someone lost the password of a private notebook", '"at ten"',
    '"no such phrase here"', "Anselm", "Kumonami pickup",
    "ß", "???", "the", "clickhouse replacingmergetree", "2024-03-05", "https://example.com/a", "Sanne or Priya",
    "a b c d e f g",
)  # fmt: skip


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trivet]:
    embedder = WordEmbedder(dimension=64)
    path = tmp_path_factory.mktemp("demo") / "memory.db"
    with Trivet.open(path, embedder=embedder.spec(), background=False) as trivet:
        trivet.import_(lines())
        trivet.drain()
        yield trivet
    embedder.stop()


def queries_of() -> list[str]:
    contents = [json.loads(line).get("content", "") for line in lines()]
    return [*QUERIES, *(" ".join(text.lower().split()[:6]) for text in contents[::10])]


def test_where_nothing_is_named_the_order_is_that_of_two_legs(demo: Trivet) -> None:
    silent = 0
    for query in queries_of():
        answer = demo.recall(query, limit=30)
        walked = [one for one in answer.health.legs if one.leg == "graph"]
        if not walked or not walked[0].candidates:
            silent += 1
            assert ranked(answer) == ranked(demo.recall(query, limit=30, recipe=TWO)), query
            assert not any(hit.why.path for hit in answer.hits)
    assert silent >= 5


def test_with_an_empty_graph_the_order_is_that_of_two_legs(demo: Trivet, tmp_path: Path, open_trivet: Opened) -> None:
    copy = tmp_path / "empty.db"
    demo.backup(copy)
    connection = sqlite3.connect(copy)
    for table in ("mention", "statement", "concept", "link"):
        connection.execute(f"DELETE FROM {table}")
    connection.commit()
    connection.close()
    trivet = open_trivet(copy, embedder=demo.settings.embedder)
    for query in queries_of():
        answer = trivet.recall(query, limit=30)
        assert not any(one.candidates for one in answer.health.legs if one.leg == "graph")
        assert ranked(answer) == ranked(trivet.recall(query, limit=30, recipe=TWO)), query


def test_the_walk_changes_some_orders_and_is_the_same_each_time(demo: Trivet) -> None:
    answers = {query: demo.recall(query) for query in QUERIES}
    changed = [query for query, answer in answers.items() if ranked(answer) != ranked(demo.recall(query, recipe=TWO))]
    assert len(changed) >= 3
    for query in QUERIES:
        assert ranked(demo.recall(query)) == ranked(answers[query])
        assert all(0 <= hit.score <= 1 for hit in answers[query].hits)


def fill(trivet: Trivet) -> dict[str, str]:
    """An answer that shares no word with the question, two steps away; and much that shares a little."""
    made = {
        "works": "Clara Whitfield took a position at Acme Dynamics as an engineer.",
        "city": "The headquarters of Acme Dynamics stand in Rostock, close to the harbour.",
        "other": "The headquarters of Umbrella Works stand in Dresden, close to the river.",
    }
    ids = {name: trivet.remember(text).id for name, text in made.items()}
    for number in range(20):
        trivet.remember(f"Some person number {number} went to the market for apples and spoke of a town.")
    trivet.drain()
    return ids


QUESTION = "In which town is the employer of Clara Whitfield?"


@pytest.fixture(params=["words alone", "both"])
def either(request: pytest.FixtureRequest, open_trivet: Opened, embedder: WordEmbedder) -> Trivet:
    return open_trivet(embedder="none" if request.param == "words alone" else embedder.spec())


def test_a_memory_that_only_the_graph_reaches_comes_near_the_front(either: Trivet) -> None:
    ids = fill(either)
    answer = either.recall(QUESTION)
    assert place(answer, ids["works"]) == 1
    assert place(answer, ids["city"]) in (2, 3)
    other = place(answer, ids["other"])
    assert other is None or other > (place(answer, ids["city"]) or 0)
    without = place(either.recall(QUESTION, recipe=TWO), ids["city"])
    assert without is None or without >= (place(answer, ids["city"]) or 0)


def test_the_way_is_told(either: Trivet) -> None:
    ids = fill(either)
    hit = next(hit for hit in either.recall(QUESTION).hits if hit.id == ids["city"])
    assert hit.why.legs["graph"].rank == 1
    names = [step.name for step in hit.why.path]
    assert names[-1] == "Acme Dynamics"
    assert ids["works"] in names


def test_the_graph_alone_may_put_a_memory_first(either: Trivet) -> None:
    ids = fill(either)
    recipe = "convex(norm.graph=raw, graph=1, lexical=0, dense=0) | legs(graph, lexical)"
    assert place(either.recall(QUESTION, recipe=recipe), ids["city"]) == 1


@pytest.mark.parametrize(
    ("said", "asked"),
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
def test_a_query_names_what_a_memory_mentions_in_another_writing(trivet: Trivet, said: str, asked: str) -> None:
    """Both are read by the same rules: then the walk starts, and the leg is not silent."""
    trivet.remember(said)
    trivet.remember(f"so {said}, they say")
    trivet.drain()
    for word in ("what", "who", "why", "was", "there", "knows", "door", "march", "5th", "2024", "example.com"):
        trivet.remember(f"a line about {word} and other things")
    seeds = "err_conn_7 getuser relay.py moved spring met met blue door example.com 5 march 2024"
    trivet.remember(f"words that all questions share: {seeds}")
    assert leg(trivet.recall(asked)).candidates > 0


def test_only_what_the_scope_holds_counts(open_trivet: Opened, tmp_path: Path) -> None:
    trivet, alone = open_trivet(), open_trivet(tmp_path / "alone.db")
    texts = [
        "Clara Whitfield took a position at Acme Dynamics.",
        "The headquarters of Acme Dynamics stand in Rostock.",
        "The harbour of Rostock is closed in winter.",
        "Some person of a town spoke of Clara.",
    ]
    for one in (trivet, alone):
        for number, text in enumerate(texts):
            one.remember(text, scope="ours", id=f"01946401-91a0-70df-97d6-5d61407820{number:02d}")
    theirs = {trivet.remember(f"Clara Whitfield left Acme Dynamics for Rostock {number} times.", scope="theirs").id
              for number in range(300)}  # fmt: skip
    for one in (trivet, alone):
        one.drain()
    for question in (QUESTION, "Acme Dynamics", "Rostock in winter", "Clara"):
        answer = trivet.recall(question, scope="ours", limit=50)
        assert not theirs & {hit.id for hit in answer.hits}
        expected = alone.recall(question, scope="ours", limit=50)
        assert [hit.id for hit in answer.hits] == [hit.id for hit in expected.hits]
        assert [graph_score(hit) for hit in answer.hits] == pytest.approx([graph_score(hit) for hit in expected.hits])


def graph_score(hit: Hit) -> float:
    return hit.why.legs["graph"].score if "graph" in hit.why.legs else 0.0


def test_a_graph_that_fails_costs_only_itself(either: Trivet, path: Path) -> None:
    ids = fill(either)
    assert not either.recall(QUESTION).health.degraded
    expected = ranked(either.recall(QUESTION, recipe=TWO))
    connection = sqlite3.connect(path)
    connection.execute("DROP TABLE mention")
    connection.commit()
    connection.close()
    answer = either.recall(QUESTION)
    assert answer.health.degraded
    assert not leg(answer).answered
    assert "mention" in (leg(answer).reason or "")
    assert [one.answered for one in answer.health.legs if one.leg != "graph"] == [True] * (len(answer.health.legs) - 1)
    assert ranked(answer) == expected
    assert place(answer, ids["works"]) == 1


def test_a_query_of_quoted_words_alone_stays_with_what_holds_them(either: Trivet) -> None:
    ids = fill(either)
    answer = either.recall('"Clara Whitfield"')
    assert [hit.id for hit in answer.hits] == [ids["works"]]
    assert ids["city"] not in {hit.id for hit in either.recall('"no such phrase"').hits[:1]}


def test_what_was_just_written_is_not_in_the_graph_and_says_so(trivet: Trivet) -> None:
    fill(trivet)
    trivet.remember("The harbour of Rostock belongs to Umbrella Works.")
    assert trivet.recall(QUESTION).health.not_in_graph == 1
    trivet.drain()
    assert trivet.recall(QUESTION).health.not_in_graph == 0


def test_the_worker_reads_in_the_background_also_without_an_embedder(open_trivet: Opened) -> None:
    trivet = open_trivet(background=True)
    assert any(thread.name == "trivet-worker" for thread in threading.enumerate())
    trivet.remember("Clara Whitfield works at Acme.")
    trivet.drain()  # waits for the one in the background, or does its work
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
def test_recipes_of_the_walk_print_back(text: str) -> None:
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
def test_nonsense_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        parse_recipe(text)


@pytest.mark.parametrize(
    "walk",
    [
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
    ],
)
def test_any_walk_that_parses_can_be_walked(either: Trivet, walk: str) -> None:
    fill(either)
    for query in (QUESTION, "Clara Whitfield", "Acme Dynamics Rostock", "nothing at all"):
        answer = either.recall(query, recipe=walk)
        assert not answer.health.degraded, [one.reason for one in answer.health.legs]
        assert all(0 <= hit.score <= 1 for hit in answer.hits)


def test_other_rules_read_everything_anew(open_trivet: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_trivet() as trivet:
        trivet.remember("Clara Whitfield works at Acme.")
        trivet.drain()
    with open_trivet() as trivet:
        assert trivet.stats().not_in_graph == 0
    monkeypatch.setattr(upkeep, "EXTRACTION_VERSION", EXTRACTION_VERSION + 1)
    with open_trivet() as trivet:
        assert trivet.stats().not_in_graph == 1
        assert trivet.stats().concepts > 0, "the old graph answers meanwhile"
        trivet.drain()
    with open_trivet() as trivet:
        assert trivet.stats().not_in_graph == 0


def test_recalls_go_on_while_the_graph_changes(open_trivet: Opened) -> None:
    trivet = open_trivet()
    fill(trivet)
    failed: list[str] = []
    done = threading.Event()

    def ask() -> None:
        while not done.is_set():
            failed.extend(str(one.reason) for one in trivet.recall(QUESTION).health.legs if not one.answered)

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in range(60):
        id = trivet.remember(f"Clara Whitfield met Person{number}x of Acme Dynamics in Rostock.").id
        trivet.drain()
        if number % 3 == 0:
            trivet.purge(id)
    done.set()
    for thread in threads:
        ended(thread)
    assert failed == []
    assert [finding.check for finding in trivet.doctor() if not finding.ok] == []


def test_a_graph_that_lags_is_told(open_trivet: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is made anew here, so the network stays the one of before."""
    trivet = open_trivet()
    monkeypatch.setattr(GraphCache, "_renew", lambda _: None)
    trivet.remember("We met Clara at Acme.")
    trivet.drain()
    assert trivet.recall("Clara").health.notes == ()
    trivet.remember_many({"content": f"Clara wrote note {number}."} for number in range(TAKEN_IN_AT_ONCE + 1))
    trivet.drain()
    (note,) = trivet.recall("Clara").health.notes
    assert "the one of before" in note
    assert trivet.recall("Clara", recipe="legs(lexical)").health.notes == ()


def test_a_text_that_the_rules_fail_on_holds_up_no_other(trivet: Trivet, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails_on_one(title: str | None, content: str, tags: Sequence[str] = ()) -> tuple[Mention, ...]:
        if "poison" in content:
            raise RecursionError("too deep")
        return extract(title, content, tags)

    monkeypatch.setattr(extraction, "extract", fails_on_one)
    trivet.remember("A poison for Clara.")
    trivet.remember("We met Dora.")
    trivet.drain()
    assert [concept.label for concept in trivet.concepts().concepts] == ["Dora"]
    assert trivet.stats().not_in_graph == 1
    (finding,) = [one for one in trivet.doctor() if one.check == "reading for the graph"]
    assert not finding.ok
    assert "too deep" in finding.detail
    monkeypatch.undo()
    trivet.embed()
    assert trivet.stats().not_in_graph == 0
    assert all(one.ok for one in trivet.doctor())


def test_a_bad_language_model_names_its_setting(open_trivet: Opened) -> None:
    with pytest.raises(InvalidInput, match="graph_llm"):
        open_trivet(graph_llm="nonsense")


def test_a_memory_outside_the_filter_says_nothing_of_itself(trivet: Trivet) -> None:
    id = trivet.remember("We met Clara.", scope="team/hidden").id
    with pytest.raises(NotFound) as refused:
        trivet.graph(id, scope="other")
    assert "hidden" not in str(refused.value)
