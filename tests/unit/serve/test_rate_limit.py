"""The rate limiter refills tokens evenly and reports the wait."""

from __future__ import annotations

from trivet.serve.http.limits import RateLimiter


def test_tokens_refill_evenly() -> None:
    moment = 0.0
    rate = RateLimiter(per_minute=60, burst=2, clock=lambda: moment)
    assert [rate.take("ana") for _ in range(3)] == [0, 0, 1]
    moment = 0.5
    assert rate.take("ana") == 1
    moment = 1.0
    assert [rate.take("ana"), rate.take("ana"), rate.take("ben")] == [0, 1, 0]
    moment = 100.0
    assert [rate.take("ana") for _ in range(3)] == [0, 0, 1]


def test_empty_bucket_reports_wait() -> None:
    rate = RateLimiter(per_minute=1, burst=1, clock=lambda: 0.0)
    assert [rate.take("ana"), rate.take("ana")] == [0, 60]
