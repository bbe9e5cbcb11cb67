"""The server counts requests and embeds queries of concurrent requests together."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from support.http_server import Client, Served, served, settings_for
from support.waiting import happened, result_of
from trivet.common.breaker import breaker_for
from trivet.errors import EmbedderError
from trivet.models.embed.base import Vectors
from trivet.models.embed.batching import batched
from trivet.models.embed.onnx import OnnxEmbedder
from trivet.serve.http.server import server_settings


def counted(client: Client) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    families = text_string_to_metric_families(client("GET", "/metrics").text)
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in families
        for sample in family.samples
    }


def labelled(**labels: str) -> frozenset[tuple[str, str]]:
    return frozenset(labels.items())


def test_requests_are_counted_by_route_and_status(server: Served, ana: Client) -> None:
    id = ana.done("POST", "/v1/memories", json={"content": "A pelican."})["id"]
    before = counted(ana)
    for _ in range(3):
        ana("GET", f"/v1/memories/{id}")
    ana("GET", "/v1/memories/nothing")
    ana("PELICAN", "/v1/pelican")
    after = counted(ana)

    def grown(name: str, **labels: str) -> float:
        key = (name, labelled(**labels))
        return after.get(key, 0) - before.get(key, 0)

    address = "/v1/memories/{id}"
    assert grown("trivet_http_requests_total", route=address, method="GET", status="200") == 3
    assert grown("trivet_http_requests_total", route=address, method="GET", status="422") == 1
    assert grown("trivet_http_requests_total", route="none", method="other", status="404") == 1
    assert grown("trivet_http_request_seconds_count", route=address, method="GET") == 4
    assert after["trivet_http_requests_running", labelled()] == 1  # this request
    assert after["process_resident_memory_bytes", labelled()] > 10**7
    text = ana("GET", "/metrics").text
    for word in (id, "ana", "pelican", "PELICAN", "nothing"):
        assert word not in text


def test_shed_recalls_are_counted(server: Served, ana: Client) -> None:
    load = server.house.load
    with ExitStack() as crowd:
        for _ in range(load.capacity + 1):
            crowd.enter_context(load.recall())
        assert load.overload_reason()
    assert counted(ana)["trivet_recall_gave_way_total", labelled()] == 1


def test_silent_endpoint_is_counted_without_its_address(server: Served, ana: Client) -> None:
    endpoint = breaker_for("reranker", "http://10.1.2.3/v1", "reader", lambda: None)

    def hang() -> None:
        raise EmbedderError("no answer", "hung")

    for _ in range(3):
        with pytest.raises(EmbedderError):
            endpoint.call(hang)
    numbers, names = counted(ana), labelled(purpose="reranker", model="reader")
    assert numbers["trivet_endpoint_silent", names] == 1
    assert numbers["trivet_endpoint_fell_silent_total", names] == 1
    assert numbers["trivet_endpoint_not_asked_total", names] == 2
    assert "10.1.2.3" not in ana("GET", "/metrics").text
    assert "the reranker does not answer" in str(ana.done("GET", "/v1/stats")["notes"])


def test_rate_limited_requests_are_counted(path: Path) -> None:
    with served(
        settings_for(path, server_burst=1, server_requests_a_minute=1, server_metrics="loopback")
    ) as server:
        ana = server.client()
        assert [ana("GET", "/v1/stats").status_code for _ in range(3)] == [200, 429, 429]
        assert counted(server.with_key(None))["trivet_http_rate_limited_total", labelled()] == 2


def test_metrics_access(server: Served, path: Path) -> None:
    assert server.with_key(None)("GET", "/metrics").status_code == 401
    assert server.client("will", "writer")("GET", "/metrics").status_code == 403
    with served(settings_for(path, server_metrics="loopback")) as open_here:
        assert open_here.with_key(None)("GET", "/metrics").status_code == 200


QUERIES = 32


class Gate:
    """Hold the first query at the model until all others wait, and count the model's calls."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[int] = []
        self.first = threading.Event()
        self.open = threading.Event()
        begin, together = OnnxEmbedder.begun, OnnxEmbedder.embed_queries

        def begun(embedder: OnnxEmbedder, text: str) -> Callable[[], Vectors]:
            run = begin(embedder, text)

            def held_up() -> Vectors:
                self.calls.append(1)
                self.first.set()
                happened(self.open)
                return run()

            return held_up

        def embed_queries(embedder: OnnxEmbedder, texts: Sequence[str]) -> Vectors:
            self.calls.append(len(texts))
            return together(embedder, texts)

        monkeypatch.setattr(OnnxEmbedder, "begun", begun)
        monkeypatch.setattr(OnnxEmbedder, "embed_queries", embed_queries)


def test_concurrent_queries_are_embedded_together(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    capacity = {"server_threads": QUERIES, "server_requests_at_once": 4 * QUERIES}
    settings = server_settings(
        settings_for(path, embedder="bundled", rerank="off", leg_time_limit_ms=60_000, **capacity)
    )
    with served(settings) as server:
        clients = [server.client() for _ in range(QUERIES)]
        clients[0].done("POST", "/v1/memories", json={"content": "Lanterns hang over the quay."})
        server.house._first_tenant().drain()
        gate = Gate(monkeypatch)
        embedder = server.house._shared.embedder
        assert embedder is not None
        queue = batched(embedder)

        def recall(number: int) -> dict[str, object]:
            answer: dict[str, object] = clients[number].done(
                "GET", f"/v1/recall?query=lanterns+{number}"
            )
            return answer

        with ThreadPoolExecutor(QUERIES) as threads:
            first = threads.submit(recall, 0)
            happened(gate.first)
            others = [threads.submit(recall, number) for number in range(1, QUERIES)]
            while len(queue._waiting) < QUERIES - 1:
                threading.Event().wait(0.001)
            gate.open.set()
            answers = [result_of(future) for future in (first, *others)]
        assert gate.calls == [1, QUERIES - 1]
        for answer in answers:
            assert not answer["health"]["degraded"]  # type: ignore[index]
        sizes = counted(clients[0])
        assert sizes["trivet_query_embedding_batch_size_count", labelled()] >= 2
        assert sizes["trivet_query_embedding_batch_size_sum", labelled()] >= QUERIES
