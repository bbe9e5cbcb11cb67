"""Every bad request gets a 4xx problem+json answer and writes nothing."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from support.http_server import Client, Served, problem
from trivet import Trivet
from trivet.client.problems import PROBLEMS, TYPE_PREFIX, error_of
from trivet.contract import RecallRequest
from trivet.errors import NotFound

from .raw import Raw

JSON = {"Content-Type": "application/json"}
ID = "0199c2f4-7d1e-7a3b-9c55-2f6f0f6c1a2b"


@pytest.fixture(autouse=True)
def _nothing_written(server: Served, ana: Client) -> Any:
    before = ana.done("GET", "/v1/stats")["revisions"]
    yield
    assert ana.done("GET", "/v1/stats")["revisions"] == before


BODIES: list[tuple[bytes, int, str]] = [
    (b"{", 400, "not JSON"),
    (b'{"content": "x"', 400, "not JSON"),
    (b'{"content": "\xff\xfe"}', 400, "not JSON|not UTF-8"),
    (b'{"content": "\\ud800"}', 400, "not JSON|Unicode"),
    (b'{"content": "x", "importance": NaN}', 400, "not JSON"),
    (b'{"content": "x", "importance": 1e999}', 400, "not JSON"),
    (b'["content"]', 400, "not an object"),
    (b'"content"', 400, "not an object"),
    (b"null", 400, "not an object"),
    (b"[" * 100_000, 400, "nested too deeply|not JSON"),
    (b'{"content": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", 400, "nested too deeply"),
    (b'{"content": 1}', 422, "content: expected str, got int"),
    (b'{"content": ""}', 422, "content"),
    (b'{"content": "a\\u0000b"}', 422, "NUL"),
    (b'{"content": "x", "importance": 2}', 422, "importance"),
    (b'{"content": "x", "importance": "high"}', 422, "importance"),
    (b'{"content": "x", "taggs": []}', 422, "Did you mean tags"),
    (b'{"content": "x", "tags": "a"}', 422, "tags"),
    (b'{"content": "x", "tags": [1]}', 422, "tags"),
    (b'{"content": "x", "scope": "/etc"}', 422, "scope"),
    (b'{"content": "x", "id": "1"}', 422, "36 characters"),
    (b'{"content": "x", "id": "\'; DROP TABLE memory; -- ...............\'"}', 422, "id"),
    (b"{}", 422, "content"),
    (b"", 422, "content"),
]


@pytest.mark.parametrize(("body", "status", "message"), BODIES, ids=lambda value: repr(value)[:40])
def test_bad_body(ana: Client, body: bytes, status: int, message: str) -> None:
    detail = ana.refused(status, "POST", "/v1/memories", content=body, headers=JSON)
    assert any(one in detail for one in message.split("|")), detail


QUERIES: list[tuple[str, int, str]] = [
    ("limit=0", 422, "limit"),
    ("limit=1001", 422, "limit"),
    ("limit=ten", 422, "limit: expected int, got str"),
    ("limit=1.5", 422, "limit"),
    ("limit=99999999999999999999999999", 422, "limit"),
    ("limit=1&limit=2", 400, "limit is given more than once"),
    ("reveal=yes", 422, "reveal: expected bool"),
    ("sort=best", 422, "sort"),
    ("state=gone", 422, "state"),
    ("created_after=someday", 422, "is not a time. Use a date"),
    ("scope=%00", 422, "scope"),
    ("scope=%ff", 400, "not UTF-8"),
    ("colour=red", 422, "colour"),
    ("limitt=5", 422, "Did you mean limit"),
    ("source=", 422, "source"),
    ("&".join(f"tags=t{number}" for number in range(51)), 422, "tags"),
    ("&".join(f"tags=t{number}" for number in range(600)), 400, "more than 500"),
]


@pytest.mark.parametrize(
    ("query", "status", "message"), QUERIES, ids=lambda value: repr(value)[:40]
)
def test_bad_query(ana: Client, query: str, status: int, message: str) -> None:
    assert message in ana.refused(status, "GET", f"/v1/memories?{query}")


@pytest.mark.parametrize("number", ["nan", "inf", "-inf", "1e999", "infinity", "0x1", "1_0", "½"])
def test_invalid_number(ana: Client, number: str) -> None:
    assert "minimum_score" in ana.refused(
        422, "GET", "/v1/recall", params={"query": "x", "minimum_score": number}
    )


@pytest.mark.parametrize(
    "query", ['" OR 1=1 --', "a & b | !c:*", "'", "%", "NEAR(a b)", "a:b*", "\\", "(((", "$$"]
)
def test_query_metacharacters_are_plain_words(ana: Client, query: str) -> None:
    assert ana("POST", "/v1/recall", json={"query": query}).status_code == 200


@pytest.mark.parametrize(
    "path",
    ["/v1/memories/..%2f..%2fetc", "/v1/memories/%00", "/v1/memories/x", f"/v1/memories/{ID}x"],
)
def test_path_tricks(ana: Client, path: str) -> None:
    assert ana("GET", path).status_code in (404, 422)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", f"/v1/memories/{ID}"),
        ("PATCH", f"/v1/memories/{ID}"),
        ("DELETE", f"/v1/memories/{ID}"),
        ("POST", f"/v1/memories/{ID}/restore"),
        ("POST", f"/v1/memories/{ID}/purge"),
        ("POST", f"/v1/memories/{ID}/reveal"),
        ("GET", f"/v1/memories/{ID}/history"),
        ("GET", f"/v1/memories/{ID}/links"),
        ("GET", f"/v1/memories/{ID}/diff?older=1&newer=2"),
    ],
)
def test_missing_memory(ana: Client, method: str, path: str) -> None:
    detail = ana.refused(404, method, path)
    assert ID in detail


def test_path_field_in_body_is_refused(ana: Client) -> None:
    assert "id is already in the path" in ana.refused(
        400, "PATCH", f"/v1/memories/{ID}", json={"id": ID}
    )
    assert "id is already in the path" in ana.refused(400, "GET", f"/v1/memories/{ID}?id={ID}")


@pytest.mark.parametrize(
    "kind",
    ["text/plain", "application/x-www-form-urlencoded", "", "application/json; charset=latin-1"],
)
def test_wrong_content_type(ana: Client, kind: str) -> None:
    message = ana.refused(
        415, "POST", "/v1/memories", content=b'{"content": "x"}', headers={"Content-Type": kind}
    )
    assert "application/json" in message


def test_unknown_address_and_method(ana: Client) -> None:
    assert "/openapi.json" in ana.refused(404, "GET", "/v2/memories")
    assert "/openapi.json" in ana.refused(404, "GET", "/v1/memories/")
    answer = ana("PUT", "/v1/memories")
    assert answer.status_code == 405
    assert set(answer.headers["allow"].split(", ")) == {"GET", "HEAD", "POST"}
    assert "Allow" in problem(answer)["detail"]


@pytest.mark.parametrize(
    "header",
    [
        "",
        "Bearer",
        "Basic YTpi",
        "Bearer tvt.default.000000000000.x",
        "bearer nonsense",
        "Bearer " + "x" * 5000,
    ],
)
def test_bad_key(server: Served, header: str) -> None:
    answer = server.with_key(None)(
        "GET", "/v1/stats", headers={"Authorization": header} if header else {}
    )
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"].startswith("Bearer")
    assert problem(answer)["type"].endswith(":unauthorised")


def test_unknown_addresses_reveal_nothing_without_a_key(server: Served) -> None:
    for path in ("/v1/memories", "/v2/nothing", "/metrics", "/mcp", "/v1/export"):
        assert server.with_key(None)("GET", path).status_code == 401


def test_public_addresses_need_no_key(server: Served) -> None:
    for path in ("/healthz", "/readyz", "/", "/docs", "/openapi.json"):
        assert server.with_key(None)("GET", path).status_code == 200


def test_reader_cannot_write(server: Served) -> None:
    reader = server.client("rob", "reader")
    assert "write" in reader.refused(403, "POST", "/v1/memories", json={"content": "x"})
    assert "write" in reader.refused(403, "POST", "/v1/import", content=b"{}")
    assert "admin" in reader.refused(403, "GET", "/metrics")
    assert reader("GET", "/v1/memories").status_code == 200


def test_unexpected_failure_shows_only_its_id(
    ana: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    word, whole = "tinder" + "box", Trivet.perform

    def broken(self: Trivet, request: Any) -> Any:
        if isinstance(request, RecallRequest):
            raise RuntimeError(word, request)
        return whole(self, request)

    monkeypatch.setattr(Trivet, "perform", broken)
    answer = ana("POST", "/v1/recall", json={"query": "a secret question"})
    assert answer.status_code == 500
    report = problem(answer)
    id = report["instance"].removeprefix("urn:uuid:")
    assert id in report["detail"]
    assert word not in answer.text
    assert f"Request {id} failed with RuntimeError" in caplog.text
    assert word not in caplog.text
    assert "secret question" not in caplog.text


def test_bytes_that_are_not_http(server: Served) -> None:
    host, port = server.address.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(b"\x16\x03\x01 hello\r\n\r\n")
        answer = connection.makefile("rb").read()
    assert answer.startswith(b"HTTP/1.1 400")
    assert b"application/problem+json" in answer


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:7373",
        "127.0.0.1.evil.example",
        "",
        "localhost.evil",
        "[::1]evil",
    ],
)
def test_foreign_host(server: Served, host: str) -> None:
    answer = server.with_key(None)("GET", "/healthz", headers={"Host": host})
    assert answer.status_code == 421
    assert problem(answer)["type"].endswith(":misdirected")


def test_own_host_names(server: Served) -> None:
    for host in ("localhost", "LOCALHOST:1234", "127.0.0.1:80", "[::1]:7373"):
        assert server.with_key(None)("GET", "/healthz", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("path", ["/v1/stats", "/mcp", "/docs"])
@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:1"])
def test_page_of_another_site(ana: Client, path: str, origin: str) -> None:
    answer = ana("POST" if path == "/mcp" else "GET", path, headers={"Origin": origin})
    assert answer.status_code == 403
    assert problem(answer)["type"].endswith(":foreign")


def test_both_origins_are_checked(ana: Client, server: Served) -> None:
    headers = [("Origin", server.address), ("Origin", "http://evil.example")]
    assert ana("GET", "/v1/stats", headers=headers).status_code == 403


def test_two_content_lengths_are_refused(server: Served) -> None:
    with Raw(server.address) as raw:
        both = {
            "Content_Length": 4,
            "Transfer_Encoding": "chunked",
            "Content_Type": "application/json",
        }
        raw.head("POST", "/v1/memories", server.key(), **both)
        raw.socket.sendall(b"0\r\n\r\n")
        assert raw.status() == 400


def test_page_of_the_same_site(ana: Client, server: Served) -> None:
    assert ana("GET", "/v1/stats", headers={"Origin": server.address}).status_code == 200


def test_problem_types_map_back_to_errors() -> None:
    assert error_of(f"{TYPE_PREFIX}not-found") is NotFound
    assert error_of("about:blank") is None
    assert len({kind.name for kind in PROBLEMS.values()}) == len(PROBLEMS)


def test_compressed_body_is_refused_unread(ana: Client) -> None:
    headers = {"content-type": "application/json", "content-encoding": "gzip"}
    message = ana.refused(415, "POST", "/v1/memories", content=b'{"content": "x"}', headers=headers)
    assert "compressed" in message
