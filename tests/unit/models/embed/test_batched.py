"""Queries asked at the same time are embedded together, each as if it were alone."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest

from support.waiting import ended, result_of, taken
from trivet.errors import EmbedderError
from trivet.models.embed.base import Vectors
from trivet.models.embed.batching import MAX_BATCH, BatchedQueries, batch_sizes, batched
from trivet.models.embed.onnx import bundled


class Lengths:
    """Embeds a text as its length. `gate` holds every call up, so that a test decides who comes meanwhile."""

    identity = "lengths"
    dimension = 1
    window = 10
    local = True

    def __init__(self) -> None:
        self.calls: list[list[str]] = []
        self.threads: list[int] = []
        self.started = threading.Semaphore(0)
        self.gate = threading.Semaphore(0)

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        self.calls.append(list(texts))
        self.threads.append(threading.get_ident())
        self.started.release()
        taken(self.gate)
        if "bad" in texts:
            raise EmbedderError("bad text")
        return np.array([[float(len(text))] for text in texts], dtype=np.float32)

    def embed_query(self, text: str) -> Vectors:
        vector: Vectors = self.embed_queries([text])[0]
        return vector

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        return self.embed_queries(texts)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [len(text) for text in texts]


class Crowd:
    """One query is on its way; others come while it is."""

    def __init__(self, embedder: Lengths) -> None:
        self.embedder = embedder
        self.queries = BatchedQueries(embedder)
        self.threads = ThreadPoolExecutor(64)

    def meanwhile(self, *texts: str) -> list[object]:
        """What each heard, the first first. All others wait before the first is let go."""
        first = self.threads.submit(self.queries.embed_query, "first")
        taken(self.embedder.started)
        others = []
        for text in texts:
            others.append(self.threads.submit(self.queries.embed_query, text))
            while len(self.queries._waiting) < len(others):  # until it is in line
                threading.Event().wait(0.001)
        for _ in range(10 * (len(texts) + 1)):
            self.embedder.gate.release()
        return [outcome.exception() or float(result_of(outcome)[0]) for outcome in (first, *others)]


@pytest.fixture
def embedder() -> Lengths:
    return Lengths()


def test_alone_it_is_one_call_in_the_callers_own_thread(embedder: Lengths) -> None:
    embedder.gate.release()
    assert BatchedQueries(embedder).embed_query("alone").tolist() == [5.0]
    assert (embedder.calls, embedder.threads) == ([["alone"]], [threading.get_ident()])


def test_those_that_come_while_one_runs_go_together_in_the_next(embedder: Lengths) -> None:
    heard = Crowd(embedder).meanwhile("a", "bb", "ccc")
    assert heard == [5.0, 1.0, 2.0, 3.0]
    assert embedder.calls == [["first"], ["a", "bb", "ccc"]]


def test_32_at_once_take_two_calls(embedder: Lengths) -> None:
    crowd = Crowd(embedder)
    texts = ["x" * size for size in range(1, 32)]
    assert crowd.meanwhile(*texts) == [5.0, *map(float, range(1, 32))]
    assert len(embedder.calls) == 2
    assert crowd.queries.sizes == {1: 1, 31: 1}


def test_a_crowd_is_cut_into_batches(embedder: Lengths) -> None:
    heard = Crowd(embedder).meanwhile(*("x" * size for size in range(1, 46)))
    assert heard == [5.0, *map(float, range(1, 46))]
    assert [len(call) for call in embedder.calls] == [1, MAX_BATCH, 45 - MAX_BATCH]


def test_one_bad_text_spoils_only_itself(embedder: Lengths) -> None:
    first, good, bad, other = Crowd(embedder).meanwhile("good", "bad", "fine")
    assert (first, good, other) == (5.0, 4.0, 4.0)
    assert isinstance(bad, EmbedderError)


def test_after_an_error_the_next_is_served(embedder: Lengths) -> None:
    queries = BatchedQueries(embedder)
    embedder.gate.release()
    with pytest.raises(EmbedderError, match="bad text"):
        queries.embed_query("bad")
    embedder.gate.release()
    assert queries.embed_query("ok").tolist() == [2.0]


class Begun(Lengths):
    """One whose texts can be begun, and whose model the test holds up."""

    def begun(self, text: str) -> Callable[[], Vectors]:
        if text == "unreadable":
            raise EmbedderError("unreadable text")
        return partial(self.embed_query, text)


def test_what_is_begun_is_made_in_another_thread_while_the_caller_goes_on() -> None:
    embedder = Begun()
    vector = BatchedQueries(embedder).begin("begun")
    assert vector is not None
    taken(embedder.started)
    assert not vector.done()
    embedder.gate.release()
    assert result_of(vector).tolist() == [5.0]
    assert threading.get_ident() not in embedder.threads


def test_who_comes_while_a_begun_one_runs_goes_together_with_others_in_the_next() -> None:
    embedder = Begun()
    queries = BatchedQueries(embedder)
    first = queries.begin("first")
    taken(embedder.started)
    with ThreadPoolExecutor(1) as threads:
        asked = threads.submit(queries.embed_query, "asked")
        while not queries._waiting:
            threading.Event().wait(0.001)
        begun = [queries.begin(text) for text in ("begun", "as well")]
        embedder.gate.release(2)
        assert result_of(asked).tolist() == [5.0]
    assert [result_of(one).tolist() for one in (first, *begun) if one is not None] == [
        [5.0],
        [5.0],
        [7.0],
    ]
    assert embedder.calls == [["first"], ["asked", "begun", "as well"]]


def test_a_begun_one_leads_those_behind_it_and_one_bad_text_spoils_only_itself() -> None:
    embedder = Begun()
    queries = BatchedQueries(embedder)
    first = queries.begin("first")
    taken(embedder.started)
    begun = [queries.begin(text) for text in ("leads", "bad", "fine")]
    embedder.gate.release(10)
    heard = [
        one.exception(60) or float(one.result()[0]) for one in (first, *begun) if one is not None
    ]
    assert (heard[0], heard[1], heard[3]) == (5.0, 5.0, 4.0)
    assert isinstance(heard[2], EmbedderError)
    assert embedder.calls[:2] == [["first"], ["leads", "bad", "fine"]]


def test_one_after_another_is_begun_also_after_errors() -> None:
    embedder = Begun()
    queries = BatchedQueries(embedder)
    embedder.gate.release(10)
    with pytest.raises(EmbedderError, match="unreadable"):
        queries.begin("unreadable")
    bad = queries.begin("bad")
    assert bad is not None
    with pytest.raises(EmbedderError, match="bad text"):
        result_of(bad)
    good = queries.begin("good")
    assert good is not None
    assert result_of(good).tolist() == [4.0]


def test_its_thread_ends_with_the_embedder() -> None:
    embedder = Begun()
    embedder.gate.release()
    begun = batched(embedder).begin("begun")
    assert begun is not None
    assert result_of(begun).tolist() == [5.0]
    ident = embedder.threads[0]
    (thread,) = [one for one in threading.enumerate() if one.ident == ident]
    del embedder, begun
    gc.collect()
    ended(thread)


def test_an_embedder_that_must_be_asked_over_a_network_is_not_begun(embedder: Lengths) -> None:
    assert BatchedQueries(embedder).begin("text") is None
    assert embedder.calls == []


def test_all_who_share_an_embedder_share_its_batches(embedder: Lengths) -> None:
    assert batched(embedder) is batched(embedder)
    assert batched(embedder) is not batched(Lengths())
    before = batch_sizes()[1]
    embedder.gate.release()
    batched(embedder).embed_query("counted")
    assert batch_sizes()[1] == before + 1


def test_the_bundled_model_embeds_many_as_it_embeds_one() -> None:
    model = bundled()
    texts = ["which port is staging on?", "Wer hat den Schlüssel?", "deploy", "E_CONN_4012 " * 20]
    together = model.embed_queries(texts)
    np.testing.assert_array_equal(together, np.stack([model.embed_query(text) for text in texts]))
