"""What the server counts, for Prometheus. Labels are route templates and statuses, never what a user wrote."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, PlatformCollector, ProcessCollector
from prometheus_client.core import HistogramMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.registry import Collector

from trivet.models.embed.batching import MOST_AT_ONCE, batch_sizes

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4
# From a listing of few memories to an import of many.
_SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60)


class Metrics:
    """One registry a server, so that several of them can live in one process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "trivet_http_requests", "Requests answered.", ["route", "method", "status"], registry=self.registry
        )
        self._seconds = Histogram(
            "trivet_http_request_seconds",
            "Time from a request's head to the end of its answer.",
            ["route", "method"],
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.running = Gauge("trivet_http_requests_running", "Requests being worked on.", registry=self.registry)
        self.limited = Counter(
            "trivet_http_rate_limited", "Requests refused since their key asked too often.", registry=self.registry
        )
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        self.registry.register(_BatchSizes())

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
