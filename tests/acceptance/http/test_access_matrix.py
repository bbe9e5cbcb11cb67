"""Every route and tool gives each role exactly the access it should have."""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx2
import pytest

from support.http_server import Client, Served, served, settings_for
from trivet.contract import VERBS
from trivet.serve.mcp.tools import agent_tools

TEXT = "the heron nests behind Clara's boathouse"
WORDS = "heron nests boathouse"
NOBODY = "0199c2f4-7d1e-7a3b-9c55-2f6f0f6c1a2b"
# Guesses for a private part and a password. NUMBER makes each memory unique.
SEALED = "the <private>heron4711</private> of NUMBER, password=kX9-heron4711-tR2"
RIGHT, WRONG = "heron4711", "stork4812"
NDJSON = {"content-type": "application/x-ndjson"}
USER_TABLES = "memory revision memory_tag link secret share tag_share proposal feedback account api_key".split()
ACTORS = ("owner", "writer", "reader", "stranger", "anonymous")


class Scenario:
    """A server with a memory of ana's that she shares with some of its users."""

    def __init__(self, server: Served, path: Path) -> None:
        self.server = server
        self.path = path
        users = {"owner": "ana", "writer": "wim", "reader": "rea", "stranger": "sam"}
        self.clients = {actor: server.client(user, "writer") for actor, user in users.items()}
        self.clients["anonymous"] = server.with_key(None)
        server.client("zoe", "reader")
        self.made = 0
        self.id = self.new_memory()
        self.untouched: str | None = None

    def untouched_memory(self) -> str:
        """Return a memory as made by `new_memory`, reused until a caller changes it."""
        self.untouched = self.untouched or self.new_memory()
        return self.untouched

    def new_memory(self) -> str:
        """Create a memory with a history, a link, a secret and shares."""
        owner = self.clients["owner"]
        one, other = (
            owner.done(
                "POST",
                "/v1/memories",
                json={"content": content, "tags": ["birds"], "category": "events"},
            )["id"]
            for content in (f"{TEXT}, at first", "of herons in general")
        )
        owner.done("PATCH", f"/v1/memories/{one}", json={"content": TEXT})
        owner.done("PUT", f"/v1/memories/{one}/links/see-also/{other}")
        for user, permission in (("wim", "write"), ("rea", "read")):
            owner.done(
                "POST", "/v1/shares", json={"user": user, "id": one, "permission": permission}
            )
        self.other = other
        return str(one)

    def sealed_for(self, actor: str) -> tuple[str, Client, str]:
        """Return a new user, its client and a sealed memory shared with it as with `actor`."""
        self.made += 1
        user = actor + f"{self.made:03}".translate(
            str.maketrans("0123456789", "abcdefghij")
        )  # a digit could match words
        client, owner = self.server.client(user, "writer"), self.clients["owner"]
        content = SEALED.replace("NUMBER", user)
        owner.done("POST", "/v1/import", content=json.dumps({"content": content}), headers=NDJSON)
        [held] = owner.done("GET", "/v1/memories?limit=1")["memories"]
        assert held["content"].startswith("the [private] of")
        if actor != "stranger":
            permission = "write" if actor == "writer" else "read"
            owner.done(
                "POST",
                "/v1/shares",
                json={"user": user, "id": held["id"], "permission": permission},
            )
        return user, client, held["id"]

    def rows(self) -> list[list[tuple[object, ...]]]:
        """Return everything stored because of user actions, except the audit log."""
        with closing(sqlite3.connect(self.path)) as connection:
            return [
                connection.execute(f"SELECT * FROM {table}").fetchall() for table in USER_TABLES
            ]


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scenario]:
    path = tmp_path_factory.mktemp("town") / "memory.db"
    with served(
        settings_for(path, changes="words")
    ) as server:  # a comparison could reveal the compared memory
        yield Scenario(server, path)


def request(client: Client, template: str, id: str, other: str) -> httpx2.Response:
    """Send METHOD PATH [BODY]; ID is the memory, OTHER a memory of the owner linked to it."""
    method, path, *body = template.replace("ID", id).replace("OTHER", other).split(" ", 2)
    headers = {
        "content-type": "application/x-ndjson" if path == "/v1/import" else "application/json"
    }
    return client(method, path, content=body[0].encode() if body else None, headers=headers)


# Routes that name a memory: the status for owner, writer, reader, stranger and anonymous.
ON_A_MEMORY: dict[str, tuple[int, ...]] = {
    "GET /v1/memories/ID": (200, 200, 200, 404, 401),
    "GET /v1/memories/ID?reveal=true": (200, 200, 200, 404, 401),
    "GET /v1/memories/ID/history": (200, 200, 200, 404, 401),
    "GET /v1/memories/ID/diff?older=1&newer=2": (200, 200, 200, 404, 401),
    "GET /v1/memories/ID/links": (200, 200, 200, 404, 401),
    "GET /v1/graph?start=ID": (200, 200, 200, 404, 401),
    'POST /v1/why-not {"query": "heron", "id": "ID"}': (200, 200, 200, 404, 401),
    'PATCH /v1/memories/ID {"title": "herons"}': (200, 200, 403, 404, 401),
    'PATCH /v1/memories/ID {"tags": ["mine"]}': (200, 403, 403, 404, 401),
    'PATCH /v1/memories/ID {"sensitive": true}': (200, 403, 403, 404, 401),
    'PATCH /v1/memories/ID {"state": "archived"}': (200, 403, 403, 404, 401),
    'PATCH /v1/memories/ID {"valid_to": "2001-01-01"}': (200, 403, 403, 404, 401),
    "POST /v1/memories/ID/reveal {}": (200, 403, 403, 404, 401),
    "PUT /v1/memories/ID/links/see-also/OTHER": (200, 404, 404, 404, 401),
    "DELETE /v1/memories/ID/links/see-also/OTHER": (204, 404, 404, 404, 401),
    'POST /v1/shares {"user": "zoe", "id": "ID"}': (201, 403, 403, 404, 401),
    "DELETE /v1/shares?user=rea&id=ID": (204, 403, 403, 404, 401),
    "DELETE /v1/memories/ID": (200, 403, 403, 404, 401),
    "GET /v1/memories/ID/usage": (200, 200, 200, 404, 401),
    'PUT /v1/memories/ID/feedback {"verdict": "useful"}': (200, 200, 200, 404, 401),
    "GET /v1/sync/conflicts?id=ID": (200, 200, 200, 404, 401),
    # It has no conflicting edit; tests/acceptance/http/test_sync.py covers one.
    "POST /v1/sync/conflicts/ID {}": (404, 404, 403, 404, 401),
    # This server follows no other server that could refuse an edit.
    "DELETE /v1/sync/refused/ID": (404, 404, 404, 404, 401),
    # These are not proposals; proposals of others look like missing ones (tests/inbox).
    "GET /v1/inbox/ID": (404, 404, 404, 404, 401),
    'PATCH /v1/inbox/ID {"content": "herons"}': (404, 404, 404, 404, 401),
    'POST /v1/accept {"ids": ["ID"]}': (404, 404, 404, 404, 401),
    'POST /v1/reject {"ids": ["ID"]}': (404, 404, 404, 404, 401),
    'POST /v1/reopen {"ids": ["ID"]}': (404, 404, 404, 404, 401),
    "POST /v1/memories/ID/restore {}": (409, 403, 403, 404, 401),
    'POST /v1/memories/ID/restore {"revision": 1}': (200, 403, 403, 404, 401),
    "POST /v1/memories/ID/purge {}": (200, 403, 403, 404, 401),
}
# Routes that name no memory: whether the answer holds the memory's words.
WITHOUT_A_MEMORY: dict[str, tuple[bool, ...]] = {
    "GET /v1/memories": (True, True, True, False, False),
    "GET /v1/memories?reveal=true": (True, True, True, False, False),
    f'POST /v1/recall {{"query": "{WORDS}"}}': (True, True, True, False, False),
    "GET /v1/recall?query=heron+nests": (True, True, True, False, False),
    "GET /v1/concepts": (True, True, True, False, False),
    "GET /v1/graph?start=clara": (True, True, True, False, False),
    "GET /v1/tags": (True, True, True, False, False),
    "GET /v1/export": (True, True, True, False, False),
}
# Counts and the caller's own records: nothing of the memory, except the owner's own actions.
COUNTS = (
    "GET /v1/stats",
    "GET /v1/categories",
    "GET /v1/sources",
    "GET /v1/days",
    "GET /v1/shares",
    "GET /v1/audit",
    "GET /v1/inbox",
    "GET /v1/sync/conflicts",
    "GET /v1/sync/status",
    "GET /v1/sync/refused",
)
# Routes that would end the caller's own key: see tests/unit/memory/test_current_key.py.
ENDS = ("DELETE /v1/keys/own",)
# Routes that create something of the caller's own.
MAKES = (
    'POST /v1/memories {"content": "mine"}',
    'POST /v1/memories/batch {"memories": [{"content": "mine too"}]}',
    'POST /v1/import {"content": "mine as well"}',
)
# Routes that propose something of the caller's own.
PROPOSES = ('POST /v1/inbox {"content": "proposed"}',)
# Admin routes; USER and KEY are those of the memory's owner. Callers may list their own keys.
FOR_ADMINS = (
    "GET /v1/doctor",
    "GET /v1/budgets",
    'POST /v1/mend {"act": "embed"}',
    "GET /v1/users",
    'POST /v1/users {"name": "mallory", "role": "admin"}',
    'PUT /v1/users/USER/role {"role": "reader"}',
    "DELETE /v1/users/USER",
    'POST /v1/keys {"user": "USER"}',
    "DELETE /v1/keys/KEY",
)
KEYS = ("GET /v1/keys", "GET /v1/keys/own")
ELSEWHERE = {"/healthz", "/readyz", "/metrics", "/mcp", "/", "/docs", "/openapi.json"}


def test_every_route_is_in_the_matrix(town: Scenario) -> None:
    every = (*ON_A_MEMORY, *WITHOUT_A_MEMORY, *COUNTS, *ENDS, *MAKES, *PROPOSES, *FOR_ADMINS, *KEYS)
    tried = {_route(template) for template in every}
    paths = town.clients["owner"].done("GET", "/openapi.json")["paths"]
    there = {
        (method.upper(), path)
        for path, methods in paths.items()
        for method in methods
        if path not in ELSEWHERE
    }
    assert tried == there
    assert {(route.method, route.path) for verb in VERBS.values() for route in verb.routes} <= there


def _route(template: str) -> tuple[str, str]:
    method, path = template.split(" ")[:2]
    path = path.partition("?")[0].replace("/links/see-also/OTHER", "/links/{kind}/{target}")
    path = (
        path.replace("/users/USER", "/users/{name}")
        .replace("KEY", "{id}")
        .replace("refused/ID", "refused/{op}")
    )
    return method, path.replace("ID/links/{kind}", "{source}/links/{kind}").replace("ID", "{id}")


@pytest.mark.parametrize("template", FOR_ADMINS)
def test_admin_routes(town: Scenario, template: str) -> None:
    [key, *_] = town.clients["owner"].done("GET", "/v1/keys")
    filled = template.replace("USER", key["user"]).replace("KEY", key["id"])
    before = town.rows()
    for actor, status in {
        "owner": 403,
        "writer": 403,
        "reader": 403,
        "stranger": 403,
        "anonymous": 401,
    }.items():
        assert request(town.clients[actor], filled, "", "").status_code == status
    assert town.rows() == before


@pytest.mark.parametrize("template", KEYS)
def test_keys_are_listed_only_for_their_owner(town: Scenario, template: str) -> None:
    assert request(town.clients["anonymous"], template, "", "").status_code == 401
    listed = request(town.clients["stranger"], template, "", "").json()
    assert {key["user"] for key in (listed if isinstance(listed, list) else [listed])} == {"sam"}


@pytest.mark.parametrize("actor", ACTORS)
@pytest.mark.parametrize("template", ON_A_MEMORY)
def test_routes_that_name_a_memory(town: Scenario, template: str, actor: str) -> None:
    id = town.untouched_memory()
    other = town.other
    before = town.rows()
    town.untouched = None
    answer = request(town.clients[actor], template, id, other)
    assert answer.status_code == ON_A_MEMORY[template][ACTORS.index(actor)], answer.text
    if actor in ("stranger", "anonymous"):
        _assert_reveals_nothing(town, answer, template, actor, id)
    if not answer.is_success:
        assert town.rows() == before
        _assert_unchanged(town, id)
        town.untouched = id


def _assert_reveals_nothing(
    town: Scenario, answer: httpx2.Response, template: str, actor: str, id: str
) -> None:
    """Assert that the answer is the same as for a memory that never existed."""
    assert "heron" not in answer.text
    nothing = request(town.clients[actor], template, NOBODY, NOBODY[:-1] + "c")
    assert answer.status_code == nothing.status_code
    assert _without_ids(answer.text) == _without_ids(nothing.text)
    assert set(answer.headers) == set(nothing.headers)


def _without_ids(text: str) -> str:
    return re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "ID", text)


def _assert_unchanged(town: Scenario, id: str) -> None:
    owner = town.clients["owner"]
    memory = owner.done("GET", f"/v1/memories/{id}")
    assert (memory["content"], memory["tags"], memory["revision"], memory["state"]) == (
        TEXT,
        ["birds"],
        2,
        "active",
    )
    assert len(owner.done("GET", f"/v1/memories/{id}/links")) == 1
    shares = {
        (share["user"], share["permission"])
        for share in owner.done("GET", "/v1/shares")
        if share["id"] == id
    }
    assert shares == {("wim", "write"), ("rea", "read")}


@pytest.mark.parametrize("actor", ACTORS)
@pytest.mark.parametrize("template", WITHOUT_A_MEMORY)
def test_routes_that_name_no_memory(town: Scenario, template: str, actor: str) -> None:
    answer = request(town.clients[actor], template, town.id, town.other)
    text = re.sub(r'"query":"[^"]*"', "", answer.text)
    seen = re.search("heron|clara|birds", text, re.IGNORECASE) is not None and answer.is_success
    if actor == "anonymous":
        assert answer.status_code == 401
    assert seen == WITHOUT_A_MEMORY[template][ACTORS.index(actor)], answer.text
    if not seen:
        assert town.id not in answer.text
        assert "boathouse" not in text


@pytest.mark.parametrize("template", COUNTS)
def test_counts_reveal_nothing_to_a_stranger(town: Scenario, template: str) -> None:
    assert request(town.clients["anonymous"], template, "", "").status_code == 401
    answer = request(town.clients["stranger"], template, "", "")
    assert answer.status_code == 200
    newcomer = town.server.client("newcomer", "writer")
    if template == "GET /v1/audit":
        assert {entry["actor"] for entry in answer.json()} <= {"sam"}
        return
    assert _steady(answer.json()) == _steady(request(newcomer, template, "", "").json())
    for word in ('"ana"', "heron", "birds", town.id):
        assert word not in answer.text


def _steady(value: Any) -> Any:
    return (
        {name: inner for name, inner in value.items() if name != "took_ms"}
        if isinstance(value, dict)
        else value
    )


@pytest.mark.parametrize("template", PROPOSES)
def test_proposal_belongs_to_its_caller(town: Scenario, template: str) -> None:
    assert request(town.clients["anonymous"], template, "", "").status_code == 401
    proposer = town.server.client("proposer", "writer")
    assert request(proposer, template, "", "").is_success
    [proposal] = proposer.done("GET", "/v1/inbox")["proposals"]
    assert proposal["owner"] == "proposer"
    assert town.clients["owner"].done("GET", "/v1/inbox")["total"] == 0
    assert town.clients["owner"]("GET", f"/v1/inbox/{proposal['id']}").status_code == 404


@pytest.mark.parametrize("template", MAKES)
def test_created_memory_belongs_to_its_caller(town: Scenario, template: str) -> None:
    assert request(town.clients["anonymous"], template, "", "").status_code == 401
    maker = town.server.client(f"maker{MAKES.index(template)}", "writer")
    assert request(maker, template, "", "").is_success
    [memory] = maker.done("GET", "/v1/memories")["memories"]
    assert memory["owner"] == f"maker{MAKES.index(template)}"
    for actor in ("owner", "writer", "stranger"):
        assert town.clients[actor]("GET", f"/v1/memories/{memory['id']}").status_code == 404
    reader = town.server.client("only-reads", "reader")
    assert request(reader, template, "", "").status_code == 403
    assert reader.done("GET", "/v1/memories")["total"] == 0


def test_foreign_id_in_a_body_reveals_nothing(town: Scenario) -> None:
    stranger = town.server.client("stranger2", "writer")
    stored = [
        stranger("POST", "/v1/memories", json={"content": "mine", "id": id})
        for id in (town.id, NOBODY)
    ]
    assert [answer.status_code for answer in stored] == [201, 201]
    assert stored[0].json().keys() == stored[1].json().keys()
    assert stored[0].json()["status"] == "stored"
    assert town.clients["owner"].done("GET", f"/v1/memories/{town.id}")["content"] == TEXT
    line = json.dumps({"content": "changed by import", "id": town.id, "created_at": "2030-01-01"})
    imported = stranger(
        "POST", "/v1/import", content=line, headers={"content-type": "application/x-ndjson"}
    )
    assert imported.is_success
    assert town.clients["owner"].done("GET", f"/v1/memories/{town.id}")["content"] == TEXT


def test_key_of_another_tenant_is_refused(town: Scenario) -> None:
    key = town.server.key("ana", "writer")
    for bad in (
        key.replace("tvt.default.", "tvt.acme."),
        key[:-4] + "AAAA",
        key.upper(),
        "x",
        "tvt.default..",
        "tvt",
    ):
        stranger = town.server.with_key(bad)
        answer = stranger("GET", f"/v1/memories/{town.id}")
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"].startswith("Bearer")
        assert "heron" not in answer.text


def call(client: Client, tool: str, arguments: dict[str, Any]) -> httpx2.Response:
    message = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": tool, "arguments": arguments},
    }
    headers = {
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": "2025-06-18",
    }
    return client("POST", "/mcp", json=message, headers=headers)


# Ways to test a guess, where TEXT is the memory's whole text with the guess in it.
GUESSES = (
    'POST /v1/memories {"content": "TEXT", "id": "ID"}',
    'POST /v1/memories {"content": "TEXT"}',
    'POST /v1/memories/batch {"memories": [{"content": "TEXT", "id": "ID"}]}',
    'POST /v1/import {"content": "TEXT", "id": "ID"}',
    'POST /v1/import {"content": "TEXT", "id": "ID", "created_at": "2999-01-01"}',
    'POST /v1/import {"content": "TEXT"}',
    'POST /v1/inbox {"content": "TEXT"}',
    'POST /v1/inbox {"content": "TEXT", "action": "update", "memory": "ID"}',
    'POST /v1/recall {"query": "TEXT"}',
    'POST /v1/why-not {"query": "TEXT", "id": "ID"}',
    'PUT /v1/memories/ID/feedback {"verdict": "useful", "query": "TEXT"}',
    'PATCH /v1/memories/ID {"content": "TEXT"}',
    'PATCH /v1/memories/ID {"title": "TEXT", "tags": ["TEXT"]}',
    'POST /mcp {"name": "memory_store", "arguments": {"content": "TEXT", "more": {"id": "ID"}}}',
    'POST /mcp {"name": "memory_recall", "arguments": {"query": "TEXT"}}',
)


@pytest.mark.parametrize("template", GUESSES)
def test_no_answer_confirms_a_guess(town: Scenario, template: str) -> None:
    for actor in ("writer", "reader", "stranger"):
        answers = []
        for guess in (RIGHT, WRONG):
            user, client, id = town.sealed_for(actor)
            text = SEALED.replace("NUMBER", user).replace(RIGHT, guess)
            answers.append(
                _without_variable_parts(
                    ask(client, template.replace("TEXT", text).replace("ID", id)), user, guess
                )
            )
        assert answers[0] == answers[1], actor


def ask(client: Client, template: str) -> httpx2.Response:
    if not template.startswith("POST /mcp"):
        return request(client, template, "", "")
    given = json.loads(template.removeprefix("POST /mcp "))
    return call(client, given["name"], given["arguments"])


# Times, durations and the nonce of each answer to an agent.
_PASSING = r'\d{4}-\d\d-\d\dT[\d:.]+Z|\w*ms":(?:[-\d.e]+|{[^}]*})|nonce\W{1,4}[0-9a-f]{12}'
# The worker's progress, in an agent's answer as text and as a field.
_NOTES = r'\\nNote: [^"]*|,?"(?:notes?|health)":(?:\[[^\]]*\]|"[^"]*")|"not_in_graph":\d+'


def _without_variable_parts(answer: httpx2.Response, user: str, guess: str) -> tuple[object, ...]:
    """Remove what differs between memories, requests or moments."""
    text = re.sub(_PASSING, "PASSING", re.sub(_NOTES, "", _without_ids(answer.text)))
    lasting = {
        name for name in answer.headers if name not in ("date", "x-request-id", "content-length")
    }
    return answer.status_code, text.replace(user, "USER").replace(guess, "GUESS"), sorted(lasting)


# Each tool's arguments, where ID is the memory; whether it succeeds for owner, writer, reader and
# stranger.
TOOLS: dict[str, tuple[dict[str, Any], tuple[bool, ...]]] = {
    "memory_store": ({"content": "the heron again"}, (True, True, True, True)),
    "memory_recall": ({"query": WORDS}, (True, True, True, True)),
    "memory_get": ({"id": "ID"}, (True, True, True, False)),
    "memory_list": ({}, (True, True, True, True)),
    "memory_update": ({"id": "ID", "title": "herons"}, (True, True, False, False)),
    "memory_link": (
        {"source": "ID", "kind": "see-also", "target": "OTHER"},
        (True, False, False, False),
    ),
    "memory_why": ({"query": "heron", "id": "ID"}, (True, True, True, False)),
    "memory_feedback": ({"id": "ID", "verdict": "useful"}, (True, True, True, False)),
    "memory_stats": ({}, (True, True, True, True)),
    "memory_delete": ({"id": "ID"}, (True, False, False, False)),
}


def test_every_tool_is_in_the_matrix() -> None:
    assert set(TOOLS) == set(agent_tools(reveal=False))


@pytest.mark.parametrize("actor", ACTORS)
@pytest.mark.parametrize("tool", TOOLS)
def test_tools(town: Scenario, tool: str, actor: str) -> None:
    id = town.untouched_memory()
    town.untouched = None
    given, expected = TOOLS[tool]
    arguments = json.loads(json.dumps(given).replace("ID", id).replace("OTHER", town.other))
    answer = call(town.clients[actor], tool, arguments)
    if actor == "anonymous":
        assert answer.status_code == 401
        return
    result = answer.json()["result"]
    assert (not result.get("isError", False)) == expected[ACTORS.index(actor)], answer.text
    if actor == "stranger":
        assert "boathouse" not in answer.text
        if tool not in ("memory_store", "memory_recall", "memory_list", "memory_stats"):
            replaced = json.loads(
                json.dumps(given).replace("ID", NOBODY).replace("OTHER", NOBODY[:-1] + "c")
            )
            assert _without_ids(answer.text) == _without_ids(
                call(town.clients[actor], tool, replaced).text
            )


def test_concurrent_agents_are_not_mixed_up(town: Scenario) -> None:
    users = [f"agent{number}" for number in range(6)]
    clients = {user: town.server.client(user, "writer") for user in users}
    for user, client in clients.items():
        client.done(
            "POST", "/v1/memories", json={"content": f"the password hint of {user} is a bird"}
        )

    async def ask(user: str, client: httpx2.AsyncClient) -> None:
        for _ in range(15):
            message = {
                "jsonrpc": "2.0",
                "id": 1,
                "method": "tools/call",
                "params": {"name": "memory_recall", "arguments": {"query": "password hint bird"}},
            }
            headers = {
                "accept": "application/json, text/event-stream",
                "mcp-protocol-version": "2025-06-18",
            }
            answer = await client.post("/mcp", json=message, headers=headers)
            assert set(re.findall(r"agent\d", answer.text)) == {user}

    async def all_at_once() -> None:
        sessions = [
            httpx2.AsyncClient(
                base_url=town.server.address,
                headers=dict(client.http.headers),
                trust_env=False,
                timeout=60,
            )
            for client in clients.values()
        ]
        await asyncio.gather(
            *(ask(user, session) for user, session in zip(clients, sessions, strict=True))
        )
        for session in sessions:
            await session.aclose()

    asyncio.run(all_at_once())
