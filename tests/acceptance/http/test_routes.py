"""Every route returns what the facade returns for the same arguments."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from support.http_server import Client, Served
from trivet import InvalidInput, Trivet, contract
from trivet.contract import VERBS, Route
from trivet.types import Memory

# Fields that differ from call to call.
VARIABLE_FIELDS = {"took_ms", "stages_ms", "updated_at", "created_at", "changed_at", "at", "bytes"}


@pytest.fixture(scope="module")
def memory(server: Served, ana: Client) -> Trivet:
    """The facade that the routes call, for the same user."""
    return server.house.trivet(
        server.house.caller(ana.http.headers["authorization"].removeprefix("Bearer "))
    )


def store(ana: Client, content: str, **more: Any) -> str:
    id: str = ana.done("POST", "/v1/memories", json={"content": content, **more})["id"]
    return id


def without_variable_fields(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            name: without_variable_fields(inner)
            for name, inner in value.items()
            if name not in VARIABLE_FIELDS
        }
    return (
        [without_variable_fields(inner) for inner in value]
        if isinstance(value, (list, tuple))
        else value
    )


def ask(ana: Client, name: str, arguments: dict[str, Any], route: Route | None = None) -> Any:
    """Return the route's answer to these arguments, decoded as the contract's result type."""
    route = route or VERBS[name].routes[0]
    path = route.path.format(**arguments)
    rest = {name: value for name, value in arguments.items() if name not in route.in_path}
    given: dict[str, Any] = {"params": rest} if route.in_query else {"json": rest}
    answer = ana(route.method, path, **given)
    assert answer.status_code == route.status, answer.text
    return (
        None
        if route.status == 204
        else msgspec.json.decode(answer.content, type=VERBS[name].result)
    )


READS: list[tuple[str, dict[str, Any]]] = [
    ("list", {"limit": 2, "category": ["facts", "events"], "sort": "importance"}),
    ("list", {"tags": ["harbour"], "reveal": False, "created_after": "2020-01-01"}),
    ("get", {"id": "ID"}),
    ("get", {"id": "ID", "reveal": True}),
    ("history", {"id": "ID"}),
    ("links", {"id": "ID"}),
    (
        "recall",
        {"query": "when does the ferry leave", "limit": 3, "minimum_score": 0.1, "collapse": False},
    ),
    ("recall", {"query": '"ferry leaves"', "tags": ["harbour"], "token_budget": 300}),
    ("why_not", {"query": "lighthouse", "id": "ID"}),
    ("concepts", {"limit": 5, "text": "Ferry"}),
    ("graph", {"start": "ID", "depth": 1}),
    ("shares", {}),
    ("tags", {"limit": 5}),
    ("categories", {}),
    ("stats", {}),
    ("audit", {"limit": 5}),
]


@pytest.fixture(scope="module")
def ferry(ana: Client) -> str:
    id = store(ana, "The Ferry Aurora leaves at nine.", tags=["harbour"])
    other = store(
        ana, "The Ferry Aurora leaves at ten in winter.", tags=["harbour", "winter"], importance=0.9
    )
    ana.done("PUT", f"/v1/memories/{id}/links/see-also/{other}")
    return id


@pytest.mark.parametrize(
    ("name", "arguments"), READS, ids=lambda value: value if isinstance(value, str) else ""
)
def test_reads(
    name: str, arguments: dict[str, Any], ana: Client, memory: Trivet, ferry: str
) -> None:
    given = {field: ferry if value == "ID" else value for field, value in arguments.items()}
    memory.engine.worker.drain(None)
    for route in VERBS[name].routes:
        over_http = ask(ana, name, given, route)
        here = getattr(memory, name)(**given)
        assert without_variable_fields(msgspec.to_builtins(over_http)) == without_variable_fields(
            msgspec.to_builtins(here)
        )


def test_memory_life_cycle(ana: Client, memory: Trivet) -> None:
    """The facade sees remember, edit, forget, restore and purge."""
    id = ask(
        ana, "remember", {"content": "Lamp one is green.", "importance": 1, "title": "Lamps"}
    ).id
    assert memory.get(id).title == "Lamps"
    edited = ask(ana, "edit", {"id": id, "content": "Lamp one is red.", "title": None})
    assert edited == memory.get(id)
    assert (edited.title, edited.revision, edited.importance) == (None, 2, 1.0)
    assert ask(ana, "forget", {"id": id}).state == "deleted"
    assert ask(ana, "restore", {"id": id, "revision": 1}).content == "Lamp one is green."
    assert memory.get(id).revision == 4
    ask(ana, "purge", {"id": id})
    assert ana("GET", f"/v1/memories/{id}").status_code == 404


def test_links_are_created_and_deleted(ana: Client, memory: Trivet) -> None:
    old, new = store(ana, "Gate B is open."), store(ana, "Gate B is closed.")
    path = f"/v1/memories/{new}/links/supersedes/{old}"
    assert ana.done("PUT", path)["kind"] == "supersedes"
    assert memory.get(old).state == "superseded"
    assert ana("DELETE", path).status_code == 204
    assert memory.get(old).state == "active"


def test_secrets_are_redacted_and_revealed(ana: Client) -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    stored = ana.done("POST", "/v1/memories", json={"content": f"The token is {secret}."})
    assert stored["redacted"]
    assert secret not in ana("GET", f"/v1/memories/{stored['id']}").text
    assert secret in ana.done("POST", f"/v1/memories/{stored['id']}/reveal")["content"]


def test_batch_stores_all(ana: Client, memory: Trivet) -> None:
    stored = ana.done(
        "POST",
        "/v1/memories/batch",
        json={"memories": [{"content": "Pier 1."}, {"content": "Pier 2."}]},
    )
    assert [memory.get(one["id"]).content for one in stored] == ["Pier 1.", "Pier 2."]


def test_batch_stores_all_or_none(ana: Client, memory: Trivet) -> None:
    before = memory.list().total
    message = ana.refused(
        422,
        "POST",
        "/v1/memories/batch",
        json={"memories": [{"content": "Pier 3."}, {"content": " "}]},
    )
    assert message.startswith("memories[1]: content: the text is empty")
    assert memory.list().total == before


@pytest.mark.parametrize(
    "body", [{}, {"memories": []}, {"memories": "x"}, {"memories": [{"content": "x"}], "y": 1}]
)
def test_malformed_batch_is_refused(ana: Client, body: dict[str, Any]) -> None:
    assert "memories" in ana.refused(422, "POST", "/v1/memories/batch", json=body)


def test_diff(ana: Client, memory: Trivet) -> None:
    id = store(ana, "The bell rings at six.")
    ana.done("PATCH", f"/v1/memories/{id}", json={"content": "The bell rings at seven."})
    shown = ana.done("GET", f"/v1/memories/{id}/diff", params={"older": 1, "newer": 2})
    assert shown == {"id": id, "older": 1, "newer": 2, "diff": memory.diff(id, 1, 2)}
    assert "-The bell rings at six." in shown["diff"]
    assert "There is no revision 9" in ana.refused(
        404, "GET", f"/v1/memories/{id}/diff?older=1&newer=9"
    )


def test_head_is_a_get_without_its_body(ana: Client, ferry: str) -> None:
    head, got = ana("HEAD", f"/v1/memories/{ferry}"), ana("GET", f"/v1/memories/{ferry}")
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["etag"] == got.headers["etag"]
    assert msgspec.json.decode(got.content, type=Memory).id == ferry


def test_security_headers_of_every_answer(ana: Client, server: Served) -> None:
    for answer in (ana("GET", "/v1/stats"), server.with_key(None)("GET", "/docs")):
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["x-frame-options"] == "DENY"
        assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
        assert answer.headers["cache-control"] == "no-store"
        assert "server" not in answer.headers
        assert "access-control-allow-origin" not in answer.headers


def test_contract_is_checked_before_the_store_is_used(ana: Client) -> None:
    """The message is the same as everywhere else."""
    with pytest.raises(InvalidInput) as expected:
        contract.check(contract.Recall, {"query": "x", "limit": 101})
    assert ana.refused(422, "GET", "/v1/recall?query=x&limit=101") == str(expected.value)


def test_path_takes_the_start_of_an_id(ana: Client) -> None:
    id = "dddd4444-0000-7000-8000-000000000004"
    ana.done("POST", "/v1/memories", json={"content": "A badger.", "id": id})
    assert ana.done("GET", "/v1/memories/dddd4444")["id"] == id
    assert ana.done("DELETE", "/v1/memories/dddd")["id"] == id


def test_possible_updates_are_returned_and_linked_on_request(
    ana: Client,
) -> None:
    old = store(
        ana, "A ferry ticket to the island costs 4 euros.", created_at="2025-03-01", scope="fares"
    )
    fare = {"content": "A ferry ticket to the island costs 5 euros from 1 May.", "scope": "fares"}
    new = ana.done("POST", "/v1/memories", json=fare)
    assert [update["id"] for update in new["may_update"]] == [old]
    hits = ana.done(
        "POST", "/v1/recall", json={"query": "ferry ticket to the island", "scope": "fares"}
    )["hits"]
    assert [(hit["id"], hit["why"]["older_than"]) for hit in hits] == [
        (new["id"], None),
        (old, new["id"]),
    ]
    latest = store(ana, "The ferry is free.", scope="fares", supersedes=[old, new["id"]])
    assert {link["target"] for link in ana.done("GET", f"/v1/memories/{latest}/links")} == {
        old,
        new["id"],
    }
