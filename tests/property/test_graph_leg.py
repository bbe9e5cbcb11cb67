"""The graph leg changes nothing without a match, and recalls work while the graph changes."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.store_fixtures import Opened
from support.waiting import ended
from support.word_embedder import WordEmbedder
from trivet import Trivet
from trivet.cli.demonstration import lines
from trivet.store.relational.index.graph_index import MAX_INLINE_CHANGES, GraphCache
from trivet.types import Hit
from unit.memory.test_graph_leg import QUESTION, WITHOUT_GRAPH, fill, ranked

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
    # Skip reranking: it judges the candidates in any order and would take most of the time.
    with Trivet.open(path, embedder=embedder.spec(), rerank="off", background=False) as trivet:
        trivet.import_(lines())
        trivet.drain()
        yield trivet
    embedder.stop()


def all_queries() -> list[str]:
    contents = [json.loads(line).get("content", "") for line in lines()]
    return [*QUERIES, *(" ".join(text.lower().split()[:6]) for text in contents[::10])]


def test_queries_without_names_rank_as_with_two_legs(demo: Trivet) -> None:
    silent = 0
    for query in all_queries():
        answer = demo.recall(query, limit=30)
        walked = [one for one in answer.health.legs if one.leg == "graph"]
        if not walked or not walked[0].candidates:
            silent += 1
            assert ranked(answer) == ranked(demo.recall(query, limit=30, recipe=WITHOUT_GRAPH)), (
                query
            )
            assert not any(hit.why.path for hit in answer.hits)
    assert silent >= 5


def test_empty_graph_ranks_as_two_legs(demo: Trivet, tmp_path: Path, open_trivet: Opened) -> None:
    copy = tmp_path / "empty.db"
    demo.backup(copy)
    connection = sqlite3.connect(copy)
    for table in ("mention", "statement", "concept", "link"):
        connection.execute(f"DELETE FROM {table}")
    connection.commit()
    connection.close()
    trivet = open_trivet(copy, embedder=demo.settings.embedder, rerank="off")
    for query in all_queries():
        answer = trivet.recall(query, limit=30)
        assert not any(one.candidates for one in answer.health.legs if one.leg == "graph")
        assert ranked(answer) == ranked(trivet.recall(query, limit=30, recipe=WITHOUT_GRAPH)), query


def test_walk_changes_some_orders_deterministically(demo: Trivet) -> None:
    answers = {query: demo.recall(query) for query in QUERIES}
    changed = [
        query
        for query, answer in answers.items()
        if ranked(answer) != ranked(demo.recall(query, recipe=WITHOUT_GRAPH))
    ]
    assert len(changed) >= 3
    for query in QUERIES:
        assert ranked(demo.recall(query)) == ranked(answers[query])
        assert all(0 <= hit.score <= 1 for hit in answers[query].hits)


def test_only_memories_in_scope_count(open_trivet: Opened, tmp_path: Path) -> None:
    trivet, alone = open_trivet(rerank="off"), open_trivet(tmp_path / "alone.db", rerank="off")
    texts = [
        "Clara Whitfield took a position at Acme Dynamics.",
        "The headquarters of Acme Dynamics stand in Rostock.",
        "The harbour of Rostock is closed in winter.",
        "Some person of a town spoke of Clara.",
    ]
    for one in (trivet, alone):
        for number, text in enumerate(texts):
            one.remember(text, scope="ours", id=f"01946401-91a0-70df-97d6-5d61407820{number:02d}")
    left = "Clara Whitfield left Acme Dynamics for Rostock {} times."
    others = trivet.remember_many(
        {"content": left.format(number), "scope": "theirs"} for number in range(300)
    )
    theirs = {other.id for other in others}
    for one in (trivet, alone):
        one.drain()
    for question in (QUESTION, "Acme Dynamics", "Rostock in winter", "Clara"):
        answer = trivet.recall(question, scope="ours", limit=50)
        assert not theirs & {hit.id for hit in answer.hits}
        expected = alone.recall(question, scope="ours", limit=50)
        assert [hit.id for hit in answer.hits] == [hit.id for hit in expected.hits]
        assert [graph_score(hit) for hit in answer.hits] == pytest.approx(
            [graph_score(hit) for hit in expected.hits]
        )


def graph_score(hit: Hit) -> float:
    return hit.why.legs["graph"].score if "graph" in hit.why.legs else 0.0


def test_recalls_continue_while_the_graph_changes(open_trivet: Opened) -> None:
    trivet = open_trivet(rerank="off")
    fill(trivet)
    failed: list[str] = []
    done = threading.Event()

    def ask() -> None:
        while not done.is_set():
            failed.extend(
                str(one.reason) for one in trivet.recall(QUESTION).health.legs if not one.answered
            )

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


def test_outdated_graph_is_reported(open_trivet: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rebuilding is disabled, so the network stays outdated."""
    trivet = open_trivet()
    monkeypatch.setattr(GraphCache, "_renew", lambda _: None)
    trivet.remember("We met Clara at Acme.")
    trivet.drain()
    assert trivet.recall("Clara").health.notes == ()
    trivet.remember_many(
        {"content": f"Clara wrote note {number}."} for number in range(MAX_INLINE_CHANGES + 1)
    )
    trivet.drain()
    (note,) = trivet.recall("Clara").health.notes
    assert "the previous one" in note
    assert trivet.recall("Clara", recipe="legs(lexical)").health.notes == ()
