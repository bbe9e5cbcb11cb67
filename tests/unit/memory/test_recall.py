"""Recall finds and ranks memories within the given bounds and explains the answer."""

from __future__ import annotations

import msgspec
import pytest

from support.store_fixtures import Opened
from support.word_embedder import WordEmbedder
from trivet import Trivet
from trivet.analyse import terms as analyse_module
from trivet.memory.passages import estimate_tokens


def ids(trivet: Trivet, query: str, **options: object) -> list[str]:
    return [hit.id for hit in trivet.recall(query, **options).hits]  # type: ignore[arg-type]


def test_answer_explains_itself(hybrid: Trivet) -> None:
    first = hybrid.remember("The zebra relay listens on port 7001.", importance=1.0).id
    second = hybrid.remember("A relay of letters.", importance=0.0).id
    hybrid.remember("Gardens need water.")
    hybrid.drain()
    answer = hybrid.recall("zebra relay port", relevance_at_least=0, rerank="off")
    assert answer.query == "zebra relay port"
    assert [hit.rank for hit in answer.hits] == [1, 2, 3]
    best = answer.hits[0]
    assert best.id == first
    assert best.memory == hybrid.get(first)
    assert best.why.matched_words == ("zebra", "relay", "port")
    assert {leg: part.rank for leg, part in best.why.legs.items()} == {"lexical": 1, "dense": 1}
    assert best.why.prior == 1.0
    by_id = {hit.id: hit for hit in answer.hits}
    assert by_id[second].why.prior == pytest.approx(0.7)
    assert by_id[second].why.matched_words == ("relay",)
    assert all(0 <= hit.score <= 1 for hit in answer.hits)
    assert [hit.score for hit in answer.hits] == sorted(
        (hit.score for hit in answer.hits), reverse=True
    )
    assert set(answer.stages_ms) == {
        "analyse",
        "legs",
        "fuse",
        "weigh",
        "choose",
        "judge",
        "present",
    }
    assert (answer.considered, answer.truncated, answer.took_ms > 0) == (3, False, True)
    assert [(leg.leg, leg.answered, leg.candidates) for leg in answer.health.legs] == [
        ("lexical", True, 2),
        ("dense", True, 3),
        ("graph", True, 0),
    ]
    assert (answer.health.degraded, answer.health.memories, answer.health.not_embedded) == (
        False,
        3,
        0,
    )


def test_dense_only_hit_is_explained(hybrid: Trivet, embedder: WordEmbedder) -> None:
    embedder.meaning = {"automobile": "car"}
    id = hybrid.remember("The car is red.").id
    hybrid.remember("Gardens need water.")
    hybrid.drain()
    hit = hybrid.recall("automobile").hits[0]
    assert hit.id == id
    assert hit.why.legs["dense"].rank == 1
    assert "lexical" not in hit.why.legs or hit.why.legs["lexical"].rank is None
    assert hit.why.matched_words == ()


def test_recipe_changes_the_recall_and_is_reported(hybrid: Trivet, embedder: WordEmbedder) -> None:
    embedder.meaning = {"automobile": "car"}
    hybrid.remember("The car is red.")
    hybrid.drain()
    answer = hybrid.recall("automobile", recipe="rrf(k=10) | legs(lexical)")
    assert answer.hits == ()
    assert [leg.leg for leg in answer.health.legs] == ["lexical"]
    assert answer.recipe.startswith("rrf(k=10")
    assert len(hybrid.recall("automobile", recipe="rrf(k=10)").hits) == 1


def test_configured_recipe_is_used(open_trivet: Opened) -> None:
    trivet = open_trivet(recipe="rrf(k=5) | depth(7)")
    trivet.remember("relay")
    answer = trivet.recall("relay")
    assert "rrf(k=5" in answer.recipe
    assert "depth(7)" in answer.recipe


@pytest.fixture
def sortable_ids(trivet: Trivet) -> dict[str, str]:
    return {
        "fits": trivet.remember("zebra zebra relay", importance=0.1, created_at="2022-01-01").id,
        "matters": trivet.remember(
            "zebra and some more words", importance=0.9, created_at="2021-01-01"
        ).id,
        "new": trivet.remember(
            "a zebra with still more words around", importance=0.5, created_at="2023-01-01"
        ).id,
    }


def test_sort_modes(trivet: Trivet, sortable_ids: dict[str, str]) -> None:
    names = {id: name for name, id in sortable_ids.items()}
    order = {
        sort: [names[id] for id in ids(trivet, "zebra relay", sort=sort, recipe="prior(0)")]
        for sort in ("relevance", "importance", "recency")
    }
    assert order["relevance"][0] == "fits"
    assert order["importance"] == ["matters", "new", "fits"]
    assert order["recency"] == ["new", "fits", "matters"]


def test_sort_modes_agree_between_recall_and_list(hybrid: Trivet) -> None:
    for day in range(1, 6):
        hybrid.remember(
            f"zebra relay number{day}", created_at=f"2024-01-0{day}", importance=day / 10
        )
    hybrid.drain()
    for sort in ("importance", "recency"):
        recalled = [hit.id for hit in hybrid.recall("zebra relay", sort=sort).hits]
        listed = [memory.id for memory in hybrid.list(sort=sort).memories]
        assert recalled == listed
        assert [hit.rank for hit in hybrid.recall("zebra", sort=sort).hits] == [1, 2, 3, 4, 5]


def test_sort_reorders_only_the_most_relevant_hits(
    trivet: Trivet, sortable_ids: dict[str, str]
) -> None:
    assert ids(trivet, "zebra relay", limit=1, sort="recency", recipe="prior(0)") == [
        sortable_ids["fits"]
    ]


def test_importance_breaks_near_ties_only(trivet: Trivet) -> None:
    low = trivet.remember("zebra relay one", importance=0.1).id
    high = trivet.remember("zebra relay two", importance=0.9).id
    unfit = trivet.remember(
        "relay and then a great many words that have nothing to do with it", importance=1.0
    ).id
    assert ids(trivet, "zebra relay") == [high, low, unfit]


def test_exact_wording_earns_a_bonus(trivet: Trivet) -> None:
    loose = trivet.remember("relay zebra listens").id
    exact = trivet.remember("zebra relay listens").id
    hits = {hit.id: hit for hit in trivet.recall("zebra relay listens", collapse=False).hits}
    assert (hits[exact].why.exactness, hits[loose].why.exactness) == (1.0, 0.0)
    assert hits[exact].why.bonus > hits[loose].why.bonus
    assert hits[exact].rank == 1


def test_filters_apply_to_both_legs(hybrid: Trivet) -> None:
    kept = hybrid.remember(
        "zebra relay",
        scope="team/a",
        category="code",
        tags=["x", "y"],
        source="src/a.py",
        created_at="2024-05-05",
    ).id
    hybrid.remember("zebra relay again")
    hybrid.drain()
    for options in (
        {"scope": "team"},
        {"category": ["code", "events"]},
        {"tags": ["x"]},
        {"tags": ["y", "x"]},
        {"source": "src/"},
        {"source": "src/a.py"},
        {"created_before": "2024-06-01"},
        {"as_of": "2024-06-01"},
        {
            "scope": "team",
            "category": ["code"],
            "tags": ["x"],
            "source": "src/",
            "created_after": "2024-05-05",
        },
    ):
        assert ids(hybrid, "zebra relay", **options) == [kept], options
        answer = hybrid.recall("zebra relay", **options)
        assert [leg.candidates for leg in answer.health.legs] == [1, 1, 0]
        assert answer.health.memories == 1
    assert ids(hybrid, "zebra relay", scope="nobody") == []


def test_selective_filter_still_fills_the_answer(hybrid: Trivet) -> None:
    hybrid.remember_many({"content": f"zebra relay number{number}"} for number in range(300))
    hybrid.remember_many(
        {"content": f"zebra {number} and more words", "tags": ["rare"]} for number in range(20)
    )
    hybrid.drain()
    assert len(ids(hybrid, "zebra relay", tags=["rare"], limit=10)) == 10


def test_validity_period_is_respected(trivet: Trivet) -> None:
    past = trivet.remember(
        "zebra relay was here", valid_to="2020-01-01", created_at="2010-01-01"
    ).id
    future = trivet.remember("zebra relay will be there", valid_from="2999-01-01").id
    present = trivet.remember(
        "zebra relay is around", valid_from="2015-01-01", created_at="2010-01-01"
    ).id
    assert ids(trivet, "zebra relay") == [present]
    assert set(ids(trivet, "zebra relay", as_of="2018-01-01")) == {past, present}
    assert ids(trivet, "zebra relay", as_of="2012-01-01") == [past]
    assert set(ids(trivet, "zebra relay", as_of="2999-06-01")) == {future, present}
    assert [memory.id for memory in trivet.list().memories] == [present]
    assert trivet.recall("zebra relay").health.memories == 1


def test_limit_does_not_change_the_candidate_pool(trivet: Trivet) -> None:
    trivet.remember_many({"content": f"zebra relay number{number}"} for number in range(50))
    ten, three = trivet.recall("zebra relay", limit=10), trivet.recall("zebra relay", limit=3)
    assert [hit.id for hit in ten.hits[:3]] == [hit.id for hit in three.hits]
    assert [hit.score for hit in ten.hits[:3]] == [hit.score for hit in three.hits]
    assert ten.considered == three.considered == 50


def test_token_budget_bounds_the_answer(trivet: Trivet) -> None:
    for number in range(10):
        trivet.remember(f"zebra {number} " + f"filler{number} " * 60)
    answer = trivet.recall("zebra", token_budget=400)
    assert 0 < len(answer.hits) < 10
    assert sum(estimate_tokens(hit.content) for hit in answer.hits) <= 400
    assert answer.truncated
    assert not trivet.recall("zebra", token_budget=100_000).truncated
    assert len(trivet.recall("zebra", token_budget=100_000).hits) == 10


def test_hit_too_long_for_the_budget_shows_its_passage(trivet: Trivet) -> None:
    filler = "".join(
        f"Sentence {number} is about the garden and its flowers. " for number in range(200)
    )
    trivet.remember(f"{filler}The zebra sleeps at noon. {filler}")
    answer = trivet.recall("zebra", token_budget=400)
    (hit,) = answer.hits
    assert "zebra sleeps" in hit.content
    assert answer.truncated
    assert estimate_tokens(hit.content) <= 400
    whole = msgspec.json.encode(hit).decode()
    assert estimate_tokens(whole) < 2_000


def test_minimum_score_may_leave_nothing(trivet: Trivet) -> None:
    best = trivet.remember("zebra relay listens").id
    trivet.remember("relay and then a great many words that have nothing to do with it")
    scores = [hit.score for hit in trivet.recall("zebra relay listens").hits]
    between = (scores[0] + scores[1]) / 2
    assert ids(trivet, "zebra relay listens", minimum_score=between) == [best]
    assert ids(trivet, "zebra relay listens", minimum_score=1.0) == []


def test_per_source_limit_leaves_the_answer_full(trivet: Trivet) -> None:
    for number in range(40):
        trivet.remember(f"zebra relay relay number{number}", source="talkative.md")
    others = {
        trivet.remember(f"a zebra of {n} with more words", source=f"{n}.md").id
        for n in ("one", "two", "three")
    }
    free = {trivet.remember(f"some zebra of {n} without a source").id for n in ("four", "five")}
    answer = trivet.recall("zebra relay", limit=8, per_source=2, recipe="match(any)")
    sources = [hit.memory.source.uri for hit in answer.hits if hit.memory.source]
    assert sources.count("talkative.md") == 2
    assert {hit.id for hit in answer.hits} >= others | free


def test_quoted_words_match_exactly(hybrid: Trivet) -> None:
    exact = hybrid.remember("She said open the green door and left.").id
    for text in (
        "The door is green, open it.",
        "Open the greenish doors.",
        "open the green doorway",
    ):
        hybrid.remember(text)
    hybrid.drain()
    assert ids(hybrid, '"open the green door"') == [exact]
    assert ids(hybrid, '"OPEN the  Green door" she') == [exact]
    answer = hybrid.recall('"door green the open"')
    assert len(answer.hits) == 4
    assert any("quoted" in note for note in answer.health.notes)
    assert hybrid.recall("open the green door").health.notes == ()


def test_quote_among_other_words_is_a_preference(trivet: Trivet) -> None:
    exact = trivet.remember("The song Open the Green Door came out in May.").id
    author = trivet.remember(
        "The author of that song is Ines, who also painted a green door and left it open."
    ).id
    answer = trivet.recall('author of the song "open the green door"')
    assert {hit.id for hit in answer.hits} == {exact, author}
    assert next(hit.why.exactness for hit in answer.hits if hit.id == exact) == 1.0


def test_phrase_of_function_words_is_found(hybrid: Trivet) -> None:
    exact = hybrid.remember("To be or not to be, that is the question.").id
    hybrid.remember("The question is what to be.")
    hybrid.drain()
    answer = hybrid.recall('"to be or not to be"')
    assert [hit.id for hit in answer.hits] == [exact]
    assert answer.health.notes == ()


def test_identifiers_match_whole_and_by_parts(trivet: Trivet) -> None:
    texts = {
        "camel": "Call getUserName before login.",
        "snake": "The flag max_retry_count is 5.",
        "path": "See src/relay/handler.py for details.",
        "code": "It failed with E_CONN_4012 again.",
        "version": "Pinned to numpy-2.1.3 for now.",
        "dotted": "os.path.join glues paths.",
    }
    stored = {name: trivet.remember(text).id for name, text in texts.items()}
    for query, name in {
        "getUserName": "camel",
        "getusername": "camel",
        "user name": "camel",
        "max_retry_count": "snake",
        "retry count": "snake",
        "handler.py": "path",
        "src/relay/handler.py": "path",
        "handler": "path",
        "E_CONN_4012": "code",
        "4012": "code",
        "2.1.3": "version",
        "os.path.join": "dotted",
        "join": "dotted",
    }.items():
        assert ids(trivet, query)[:1] == [stored[name]], query


def test_exact_identifier_ranks_above_its_parts(trivet: Trivet) -> None:
    parts = trivet.remember("the user name is what people get, get the user name").id
    exact = trivet.remember("Call getUserName before login, whatever else is said here.").id
    assert ids(trivet, "getUserName") == [exact, parts]


def test_scripts_without_spaces_are_found(trivet: Trivet) -> None:
    chinese = trivet.remember("数据库的端口是五四三二。").id
    japanese = trivet.remember("サーバーは東京にあります。").id
    thai = trivet.remember("เซิร์ฟเวอร์อยู่ในกรุงเทพ").id
    korean = trivet.remember("서버는 서울에 있습니다").id
    assert ids(trivet, "数据库")[0] == chinese
    assert ids(trivet, "端口")[0] == chinese
    assert ids(trivet, "東京")[0] == japanese
    assert ids(trivet, "กรุงเทพ")[0] == thai
    assert ids(trivet, "서울")[0] == korean
    assert ids(trivet, "大阪") == []


def test_folding_and_stemming(trivet: Trivet) -> None:
    id = trivet.remember("Die Größe der Résumés: deployments were FAILING").id
    for query in (
        "groesse resume",
        "resumes",
        "RÉSUMÉ",
        "failed deployment",
        "größe",
        "GRÖSSE",
        "ｄｅｐｌｏｙ",
    ):
        assert ids(trivet, query) == [id], query


def test_all_fields_are_searched(trivet: Trivet) -> None:
    id = trivet.remember(
        "plain words",
        title="Zebra",
        tags=["giraffe"],
        expanded_keywords=["okapi"],
        category="procedures",
    ).id
    for query in ("zebra", "giraffe", "okapi", "procedures"):
        assert ids(trivet, query) == [id], query


def test_expanded_keywords_do_not_restrict_matching(trivet: Trivet) -> None:
    """All-words matching requires the query's words only."""
    id = trivet.remember("The relay listens.", expanded_keywords=["switch", "hub"]).id
    assert ids(trivet, "relay listens") == [id]
    assert ids(trivet, "relay hub") == [id]


def test_query_of_function_words_finds_nothing(trivet: Trivet) -> None:
    trivet.remember("The relay listens.")
    for query in ("what is the", "?!", "—", "😀"):
        assert ids(trivet, query) == []


def test_empty_store_answers(hybrid: Trivet) -> None:
    answer = hybrid.recall("anything")
    assert answer.hits == ()
    assert answer.health.memories == 0


def test_recall_is_deterministic(hybrid: Trivet) -> None:
    hybrid.remember_many({"content": f"zebra relay number{number % 7}"} for number in range(40))
    hybrid.drain()
    first = hybrid.recall("zebra relay", limit=30, collapse=False)
    for _ in range(3):
        again = hybrid.recall("zebra relay", limit=30, collapse=False)
        assert [(hit.id, hit.score) for hit in again.hits] == [
            (hit.id, hit.score) for hit in first.hits
        ]


def test_fusions_keep_lexical_order_without_vectors(trivet: Trivet) -> None:
    for number in range(12):
        trivet.remember(
            "zebra " * (number + 1) + "relay " * (2 * number + 1) + f"word{number}", importance=0.5
        )
    bare = "bonus(0) | prior(0)"
    orders = {
        tuple(ids(trivet, "zebra relay", limit=12, collapse=False, recipe=f"{fusion} | {bare}"))
        for fusion in (
            "rrf(k=60)",
            "rrf(k=1)",
            "convex(norm=zscore)",
            "convex(norm=minmax)",
            "rsf()",
        )
    }
    assert len(orders) == 1
    (order,) = orders
    answer = trivet.recall("zebra relay", limit=12, collapse=False, recipe=f"rrf() | {bare}")
    scores = [hit.why.legs["lexical"].score for hit in answer.hits]
    assert len(order) == 12
    assert scores == sorted(scores, reverse=True)


def test_phrase_is_found_below_the_leg_depth(trivet: Trivet) -> None:
    for number in range(60):  # Shorter, so each scores above the memory with the phrase.
        trivet.remember(f"door green open {number}")
    exact = trivet.remember(
        "After a long walk along the river and up the hill they saw the open green door at last."
    ).id
    assert ids(trivet, '"open green door"', limit=5) == [exact]


def test_recall_analyzes_no_memory_text(trivet: Trivet, monkeypatch: pytest.MonkeyPatch) -> None:
    """The index holds the terms; analyzing a long text costs more than the rest of a recall."""
    text = "The relay of the harbour office listens on a port. " * 4
    trivet.remember(text, title="Relay", tags=["harbour"])
    trivet.remember(text.upper())
    analysed: list[str] = []
    whole = analyse_module._analysed

    def record(text: str, language: str | None) -> tuple[str, ...]:
        analysed.append(text)
        return whole(text, language)

    monkeypatch.setattr(analyse_module, "_analysed", record)
    monkeypatch.setattr(analyse_module, "LONGEST_CACHED", 0)
    (hit,) = trivet.recall("harbour relay port", relevance_at_least=0).hits
    assert hit.why.matched_words == ("harbour", "relay", "port")
    assert hit.why.collapsed
    assert [one for one in analysed if len(one) > 40] == []
