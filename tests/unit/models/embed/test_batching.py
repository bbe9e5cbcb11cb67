"""Concurrent queries are embedded in one batch with the same results as alone."""

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
    """Embedder of text lengths.

    `gate` blocks each call, so that a test decides who arrives meanwhile.
    """

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


class ConcurrentQueries:
    """One query in flight while others arrive."""

    def __init__(self, embedder: Lengths) -> None:
        self.embedder = embedder
        self.queries = BatchedQueries(embedder)
        self.threads = ThreadPoolExecutor(64)

    def run_during_first(self, *texts: str) -> list[object]:
        """Return the results, first query first.

        All others queue before the first call continues.
        """
        first = self.threads.submit(self.queries.embed_query, "first")
        taken(self.embedder.started)
        others = []
        for text in texts:
            others.append(self.threads.submit(self.queries.embed_query, text))
            while len(self.queries._waiting) < len(others):  # until it is queued
                threading.Event().wait(0.001)
        for _ in range(10 * (len(texts) + 1)):
            self.embedder.gate.release()
        return [outcome.exception() or float(result_of(outcome)[0]) for outcome in (first, *others)]


@pytest.fixture
def embedder() -> Lengths:
    return Lengths()


def test_single_query_runs_in_caller_thread(embedder: Lengths) -> None:
    embedder.gate.release()
    assert BatchedQueries(embedder).embed_query("alone").tolist() == [5.0]
    assert (embedder.calls, embedder.threads) == ([["alone"]], [threading.get_ident()])


def test_queries_arriving_during_call_form_next_batch(embedder: Lengths) -> None:
    results = ConcurrentQueries(embedder).run_during_first("a", "bb", "ccc")
    assert results == [5.0, 1.0, 2.0, 3.0]
    assert embedder.calls == [["first"], ["a", "bb", "ccc"]]


def test_32_concurrent_queries_take_two_calls(embedder: Lengths) -> None:
    crowd = ConcurrentQueries(embedder)
    texts = ["x" * size for size in range(1, 32)]
    assert crowd.run_during_first(*texts) == [5.0, *map(float, range(1, 32))]
    assert len(embedder.calls) == 2
    assert crowd.queries.sizes == {1: 1, 31: 1}


def test_many_queries_split_into_batches(embedder: Lengths) -> None:
    results = ConcurrentQueries(embedder).run_during_first(*("x" * size for size in range(1, 46)))
    assert results == [5.0, *map(float, range(1, 46))]
    assert [len(call) for call in embedder.calls] == [1, MAX_BATCH, 45 - MAX_BATCH]


def test_bad_text_fails_only_itself(embedder: Lengths) -> None:
    first, good, bad, other = ConcurrentQueries(embedder).run_during_first("good", "bad", "fine")
    assert (first, good, other) == (5.0, 4.0, 4.0)
    assert isinstance(bad, EmbedderError)


def test_query_after_error_succeeds(embedder: Lengths) -> None:
    queries = BatchedQueries(embedder)
    embedder.gate.release()
    with pytest.raises(EmbedderError, match="bad text"):
        queries.embed_query("bad")
    embedder.gate.release()
    assert queries.embed_query("ok").tolist() == [2.0]


class AsyncLengths(Lengths):
    """Length embedder that supports `begun` and blocks on the gate."""

    def begun(self, text: str) -> Callable[[], Vectors]:
        if text == "unreadable":
            raise EmbedderError("unreadable text")
        return partial(self.embed_query, text)


def test_begin_embeds_in_another_thread() -> None:
    embedder = AsyncLengths()
    vector = BatchedQueries(embedder).begin("begun")
    assert vector is not None
    taken(embedder.started)
    assert not vector.done()
    embedder.gate.release()
    assert result_of(vector).tolist() == [5.0]
    assert threading.get_ident() not in embedder.threads


def test_begun_and_asked_queries_share_next_batch() -> None:
    embedder = AsyncLengths()
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


def test_bad_begun_text_fails_only_itself() -> None:
    embedder = AsyncLengths()
    queries = BatchedQueries(embedder)
    first = queries.begin("first")
    taken(embedder.started)
    begun = [queries.begin(text) for text in ("leads", "bad", "fine")]
    embedder.gate.release(10)
    results = [
        one.exception(60) or float(one.result()[0]) for one in (first, *begun) if one is not None
    ]
    assert (results[0], results[1], results[3]) == (5.0, 5.0, 4.0)
    assert isinstance(results[2], EmbedderError)
    assert embedder.calls[:2] == [["first"], ["leads", "bad", "fine"]]


def test_begin_works_after_errors() -> None:
    embedder = AsyncLengths()
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


def test_thread_ends_with_embedder() -> None:
    embedder = AsyncLengths()
    embedder.gate.release()
    begun = batched(embedder).begin("begun")
    assert begun is not None
    assert result_of(begun).tolist() == [5.0]
    ident = embedder.threads[0]
    (thread,) = [one for one in threading.enumerate() if one.ident == ident]
    del embedder, begun
    gc.collect()
    ended(thread)


def test_begin_skips_embedder_without_begun(embedder: Lengths) -> None:
    assert BatchedQueries(embedder).begin("text") is None
    assert embedder.calls == []


def test_callers_of_one_embedder_share_batches(embedder: Lengths) -> None:
    assert batched(embedder) is batched(embedder)
    assert batched(embedder) is not batched(Lengths())
    before = batch_sizes()[1]
    embedder.gate.release()
    batched(embedder).embed_query("counted")
    assert batch_sizes()[1] == before + 1


def test_bundled_model_batch_equals_single() -> None:
    model = bundled()
    texts = ["which port is staging on?", "Wer hat den Schlüssel?", "deploy", "E_CONN_4012 " * 20]
    together = model.embed_queries(texts)
    np.testing.assert_array_equal(together, np.stack([model.embed_query(text) for text in texts]))
