"""What the server counts, for Prometheus. Labels are route templates and statuses, never what a user wrote."""

from __future__ import annotations

import os
from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, PlatformCollector, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from trivet.breaker import Breaker, breakers
from trivet.models.embed.batching import MOST_AT_ONCE, batch_sizes
from trivet.search.load import Load

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4
# Where the processes of one server keep their numbers. The library reads it when it is loaded.
COUNTED_IN = "PROMETHEUS_MULTIPROC_DIR"
# From a listing of few memories to an import of many.
_SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60)


_LABELS = ("purpose", "model")


class Metrics:
    """One registry a server, so that several of them can live in one process.

    Where a server is several processes, they count together, and any of them tells the sum. What only a process itself
    can tell (its memory, its batches, what gave way, which endpoints are silent for it) is then left out, as it would
    be one's alone.
    """

    def __init__(self, load: Load) -> None:
        together = COUNTED_IN in os.environ
        registry = CollectorRegistry()
        self.registry = CollectorRegistry() if together else registry
        self._requests = Counter(
            "trivet_http_requests", "Requests answered.", ["route", "method", "status"], registry=registry
        )
        self._seconds = Histogram(
            "trivet_http_request_seconds",
            "Time from a request's head to the end of its answer.",
            ["route", "method"],
            buckets=_SECONDS,
            registry=registry,
        )
        self.running = Gauge(
            "trivet_http_requests_running",
            "Requests being worked on.",
            registry=registry,
            multiprocess_mode="livesum",
        )
        self.limited = Counter(
            "trivet_http_rate_limited", "Requests refused since their key asked too often.", registry=registry
        )
        if together:
            MultiProcessCollector(self.registry)  # type: ignore[no-untyped-call]
            return
        ProcessCollector(registry=registry)
        PlatformCollector(registry=registry)
        registry.register(_BatchSizes())
        registry.register(_GaveWay(load))
        registry.register(_Endpoints())

    def answered(self, route: str, method: str, status: int, seconds: float) -> None:
        self._requests.labels(route, method, str(status)).inc()
        self._seconds.labels(route, method).observe(seconds)

    def text(self) -> bytes:
        return generate_latest(self.registry)


class _BatchSizes(Collector):
    """Read when asked for: the embedders count by themselves, and know nothing of Prometheus."""

    def collect(self) -> Iterator[HistogramMetricFamily]:
        sizes = batch_sizes()
        bounds = [2**power for power in range(MOST_AT_ONCE.bit_length())]
        buckets = [(str(float(bound)), sum(sizes[size] for size in sizes if size <= bound)) for bound in bounds]
        yield HistogramMetricFamily(
            "trivet_query_embedding_batch_size",
            "Queries embedded together.",
            buckets=[*buckets, ("+Inf", sizes.total())],
            sum_value=sum(size * count for size, count in sizes.items()),
        )


class _GaveWay(Collector):
    def __init__(self, load: Load) -> None:
        self._load = load

    def collect(self) -> Iterator[CounterMetricFamily]:
        told = "Recalls and saves whose texts were not read again, since others waited for a core."
        yield CounterMetricFamily("trivet_recall_gave_way", told, value=self._load.gave_way)


class _Endpoints(Collector):
    """Those that are asked over the network, by what for and by model; never by address, which may hold a key."""

    def collect(self) -> Iterator[Metric]:
        silent = GaugeMetricFamily("trivet_endpoint_silent", "1: it does not answer and is left alone.", labels=_LABELS)
        opened = CounterMetricFamily("trivet_endpoint_fell_silent", "How often it stopped answering.", labels=_LABELS)
        refused = CounterMetricFamily("trivet_endpoint_not_asked", "Questions that it was spared.", labels=_LABELS)
        by_labels: dict[tuple[str, str], list[Breaker]] = {}
        for breaker in breakers():
            by_labels.setdefault((breaker.name.purpose, breaker.name.model), []).append(breaker)
        for labels, found in by_labels.items():
            silent.add_metric(labels, float(any(one.state != "closed" for one in found)))
            opened.add_metric(labels, sum(one.opened for one in found))
            refused.add_metric(labels, sum(one.refused for one in found))
        yield from (silent, opened, refused)
