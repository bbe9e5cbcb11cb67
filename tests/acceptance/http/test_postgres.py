"""On PostgreSQL, two processes share one store, and an absent database is reported."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx2
import pytest

from support.http_server import Client, Served, served, settings_for
from support.postgres_server import PostgresServer


@pytest.fixture
def two(postgres: PostgresServer) -> Iterator[tuple[Served, Served]]:
    url = postgres.database()
    try:
        with served(settings_for(url)) as one, served(settings_for(url)) as other:
            yield one, other
    finally:
        postgres.drop(url)


def test_memory_life_across_two_processes(two: tuple[Served, Served]) -> None:
    key = two[0].key()
    one, other = (server.with_key(key) for server in two)
    id = one.done(
        "POST", "/v1/memories", json={"content": "The crane is on pier four.", "tags": ["crane"]}
    )["id"]
    assert (
        other.done("GET", "/v1/recall", params={"query": "where is the crane"})["hits"][0]["id"]
        == id
    )
    tag = other("GET", f"/v1/memories/{id}").headers["etag"]
    assert (
        one(
            "PATCH", f"/v1/memories/{id}", json={"title": "Crane"}, headers={"If-Match": tag}
        ).status_code
        == 200
    )
    assert other("DELETE", f"/v1/memories/{id}", headers={"If-Match": tag}).status_code == 412
    exported = one("GET", "/v1/export").content
    assert exported.count(b"\n") == 3  # header, memory, last line
    assert other.done(
        "POST", "/v1/import", content=exported, headers={"Content-Type": "application/x-ndjson"}
    )["unchanged"]


def test_two_processes_act_once(two: tuple[Served, Served]) -> None:
    key = two[0].key()
    clients: list[Client] = [two[number % 2].with_key(key) for number in range(8)]

    def send(number: int) -> httpx2.Response:
        header = {"Idempotency-Key": "one-act"}
        return clients[number % 8](
            "POST", "/v1/memories", json={"content": "Once."}, headers=header
        )

    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(send, range(24)))
    assert {answer.status_code for answer in answers} <= {201, 409}
    assert (
        sum(
            answer.status_code == 201 and "idempotent-replayed" not in answer.headers
            for answer in answers
        )
        == 1
    )
    assert len({answer.json()["id"] for answer in answers if answer.status_code == 201}) == 1
    assert clients[1].done("GET", "/v1/memories")["total"] == 1
