"""LangGraph's store over Trivet, with LangGraph itself."""

from __future__ import annotations

import asyncio
from typing import Any, TypedDict

import pytest

from support.store_fixtures import Opened
from trivet import InvalidInput, Trivet
from trivet.common.clock import clock_fixed_at

pytest.importorskip(
    "langgraph.store.base", reason="langgraph is not installed: `make adapters` tests it"
)

from langgraph.config import get_store
from langgraph.graph import START, StateGraph
from langgraph.store.base import GetOp, InvalidNamespaceError, PutOp, SearchOp

from trivet.adapters.langgraph import TrivetStore

ANA = ("users", "ana")
TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


class State(TypedDict):
    said: str


@pytest.fixture
def store(trivet: Trivet) -> TrivetStore:
    return TrivetStore(trivet)


def keys(items: list[Any]) -> list[str]:
    return [item.key for item in items]


def test_a_value_comes_back_exactly(store: TrivetStore) -> None:
    value = {
        "text": "Likes tea",
        "n": 1,
        "f": 1.0,
        "ok": True,
        "none": None,
        "deep": {"a": [1, {"b": "x\ny"}]},
    }
    store.put(ANA, "k", value)
    item = store.get(ANA, "k")
    assert item is not None
    assert (repr(item.value), item.key, item.namespace) == (repr(value), "k", ANA)


@pytest.mark.parametrize("label", ["user 1", "a/b", "ü", "x:y@z", "%2e", "*", "new\nline", "名前"])
def test_any_label_is_a_namespace_of_its_own(store: TrivetStore, label: str) -> None:
    store.put((label, "b"), label, {"text": "x"})
    assert keys(store.search((label,))) == [label]
    assert store.list_namespaces() == [(label, "b")]
    assert store.get(("a", "b", "b"), label) is None


def test_a_namespace_with_a_dot_is_refused_in_a_batch_too(store: TrivetStore) -> None:
    with pytest.raises(InvalidNamespaceError):
        store.batch([PutOp(("a.b",), "k", {"text": "x"})])


def test_a_second_put_changes_the_item_and_keeps_its_history(
    store: TrivetStore, trivet: Trivet
) -> None:
    store.put(ANA, "k", {"text": "old"})
    store.put(ANA, "k", {"text": "new"})
    [item] = store.search(ANA)
    assert item.value == {"text": "new"}
    assert item.updated_at > item.created_at
    [memory] = trivet.list().memories
    assert [one.memory.content for one in trivet.history(memory.id)] == ["text: old", "text: new"]


def test_what_is_deleted_can_be_put_again(store: TrivetStore) -> None:
    store.put(ANA, "k", {"text": "old"})
    store.delete(ANA, "k")
    store.delete(ANA, "never there")
    assert store.get(ANA, "k") is None
    assert store.search(ANA) == []
    assert store.list_namespaces() == []
    store.put(ANA, "k", {"text": "new"})
    assert [item.value for item in store.search(ANA)] == [{"text": "new"}]


def test_a_batch_reads_before_it_writes_and_the_last_put_counts(store: TrivetStore) -> None:
    store.put(ANA, "k", {"n": 1})
    got, found, *_ = store.batch(
        [
            GetOp(ANA, "k"),
            SearchOp(ANA),
            PutOp(ANA, "k", {"n": 2}),
            PutOp(ANA, "k", {"n": 3}),
            PutOp(ANA, "j", {"n": 4}),
        ]
    )
    assert (got.value, keys(found)) == ({"n": 1}, ["k"])
    assert {item.key: item.value["n"] for item in store.search(ANA)} == {"k": 3, "j": 4}


def test_a_batch_with_a_value_that_is_none_writes_nothing(store: TrivetStore) -> None:
    with pytest.raises(InvalidInput):
        store.batch([PutOp(ANA, "a", {"n": 1}), PutOp(ANA, "b", {"n": object()})])
    assert store.search(ANA) == []


def test_a_query_ranks_and_a_filter_never_leaves_too_few(store: TrivetStore) -> None:
    for number in range(12):
        store.put(
            ANA, f"tea {number}", {"text": f"Ana drinks tea in place {number}", "kind": "tea"}
        )
    store.put(
        ANA, "port", {"text": "The staging database listens on port 6543", "kind": "host", "n": 5}
    )
    assert keys(store.search(ANA, query="which port has staging"))[0] == "port"
    [only] = store.search(ANA, query="tea", filter={"kind": "host"})
    assert (only.key, only.score) == ("port", None)
    assert len(store.search(ANA, query="tea", filter={"kind": "tea"}, limit=20)) == 12
    assert len(store.search(ANA, limit=5, offset=10)) == 3


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({"n": 1}, ["a"]),
        ({"n": {"$gte": 1, "$lt": 3}}, ["b", "a"]),
        ({"n": {"$ne": 1}}, ["c", "b"]),
        ({"n": {"$gt": 1}}, ["b"]),
        ({"deep": {"x": "y"}}, ["b"]),
        ({"deep.x": "y"}, ["b"]),
        ({"list": [1, {"$gt": 1}]}, ["a"]),
    ],
)
def test_filters(store: TrivetStore, wanted: dict[str, Any], found: list[str]) -> None:
    store.put(ANA, "a", {"n": 1, "list": [1, 2]})
    store.put(ANA, "b", {"n": 2, "deep": {"x": "y", "z": 1}})
    store.put(ANA, "c", {"n": "text"})
    assert keys(store.search(ANA, filter=wanted)) == found


def test_an_unknown_comparison_is_an_error(store: TrivetStore) -> None:
    store.put(ANA, "a", {"n": 1})
    with pytest.raises(ValueError, match=r"\$near"):
        store.search(ANA, filter={"n": {"$near": 1}})


def test_with_a_threshold_only_what_is_relevant_comes(trivet: Trivet) -> None:
    store = TrivetStore(trivet, relevance_at_least=0.5)
    store.put(ANA, "port", {"text": "The staging database listens on port 6543"})
    assert store.search(ANA, query="zebra crossings in Lisbon") == []
    assert len(store.search(ANA)) == 1


def test_an_item_without_index_is_found_by_no_query(store: TrivetStore) -> None:
    store.put(ANA, "k", {"text": "tea"}, index=False)
    [item] = store.search(ANA, query="tea")
    assert item.score is None


def test_an_item_expires_some_minutes_after_it_was_put(store: TrivetStore) -> None:
    with clock_fixed_at("2026-01-01T10:00:00Z"):
        store.put(ANA, "k", {"n": 1}, ttl=30)
    with clock_fixed_at("2026-01-01T10:29:00Z"):
        assert keys(store.search(ANA)) == ["k"]
        assert store.get(ANA, "k") is not None
    with clock_fixed_at("2026-01-01T10:31:00Z"):
        assert (store.get(ANA, "k"), store.search(ANA), store.list_namespaces()) == (None, [], [])
        store.put(ANA, "k", {"n": 2})
        assert keys(store.search(ANA)) == ["k"]


def test_the_default_lifetime_is_heeded(trivet: Trivet) -> None:
    store = TrivetStore(trivet, ttl={"default_ttl": 30})
    with clock_fixed_at("2026-01-01T10:00:00Z"):
        store.put(ANA, "k", {"n": 1})
        store.put(ANA, "kept", {"n": 1}, ttl=None)
    with clock_fixed_at("2026-01-01T10:31:00Z"):
        assert keys(store.search(ANA)) == ["kept"]


def test_a_secret_is_sealed_and_comes_back_for_who_asks(store: TrivetStore, trivet: Trivet) -> None:
    store.put(ANA, "k", {"token": TOKEN, "n": 1})
    item = store.get(ANA, "k")
    assert item is not None
    assert item.value == {"token": "[secret:github-token:1]", "n": 1}
    revealed = TrivetStore(trivet, reveal=True).get(ANA, "k")
    assert revealed is not None
    assert revealed.value == {"token": TOKEN, "n": 1}
    assert trivet.audit()[0].act == "reveal"
    with pytest.raises(InvalidInput, match="key: it looks like a secret"):
        store.put(ANA, TOKEN, {"n": 1})


def test_other_memories_of_the_scope_are_left_alone(store: TrivetStore, trivet: Trivet) -> None:
    trivet.remember("A note of somebody else about tea.", scope="langgraph/users/ana")
    assert store.search((), query="tea") == []
    assert store.list_namespaces() == []


def test_namespaces_are_listed_by_prefix_suffix_and_depth(store: TrivetStore) -> None:
    for namespace in (("a", "b", "c"), ("a", "b", "d", "e"), ("a", "x", "c")):
        store.put(namespace, "k", {"n": 1})
    assert store.list_namespaces(prefix=("a", "b"), max_depth=3) == [
        ("a", "b", "c"),
        ("a", "b", "d"),
    ]
    assert store.list_namespaces(prefix=("a", "*"), suffix=("c",)) == [
        ("a", "b", "c"),
        ("a", "x", "c"),
    ]
    assert store.list_namespaces(limit=1, offset=1) == [("a", "b", "d", "e")]


def test_the_asynchronous_calls(store: TrivetStore) -> None:
    async def talk() -> Any:
        await asyncio.gather(*(store.aput(ANA, str(number), {"n": number}) for number in range(5)))
        await store.adelete(ANA, "0")
        found = await store.asearch(ANA, filter={"n": {"$gte": 2}})
        return sorted(keys(found)), await store.aget(ANA, "0"), await store.alist_namespaces()

    assert asyncio.run(talk()) == (["2", "3", "4"], None, [ANA])


def test_it_is_there_after_a_restart(open_trivet: Opened) -> None:
    TrivetStore(open_trivet()).put(ANA, "k", {"n": 1})
    item = TrivetStore(open_trivet()).get(ANA, "k")
    assert item is not None
    assert item.value == {"n": 1}


def test_a_graph_uses_it(store: TrivetStore) -> None:
    def learn(state: State) -> State:
        store = get_store()
        store.put(ANA, "name", {"text": state["said"]})
        return {"said": store.search(ANA, query="name")[0].value["text"]}

    builder = StateGraph(State)
    builder.add_node("learn", learn)
    builder.add_edge(START, "learn")
    assert builder.compile(store=store).invoke({"said": "My name is Ana"}) == {
        "said": "My name is Ana"
    }
