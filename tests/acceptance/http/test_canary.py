"""Unique secrets sent to every address of a real server are stored nowhere but sealed."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from support.canaries import Canaries, everything_on_disk, everything_stored
from support.chat_server import chat_server
from support.http_server import Client
from support.invented_secrets import github
from support.postgres_server import PostgresServer
from support.triples_model import knows
from support.warm_python import warm
from support.word_embedder import WordEmbedder
from trivet import Trivet
from trivet.memory.admin.accounts import make_key

from .test_access_matrix import call


class Machine:
    """A server process and everything it has answered."""

    def __init__(
        self, address: str, process: subprocess.Popen[str], clients: dict[str, Client], log: Path
    ) -> None:
        self.address = address
        self.process = process
        self.clients = clients
        self.log = log
        self.heard: list[str] = []

    def __call__(self, who: str, method: str, path: str, **options: Any) -> Any:
        answer = self.clients[who](method, path, **options)
        self.heard.append(f"{answer.headers}\n{answer.text}")
        return answer


@contextmanager
def machine(store: str, folder: Path, **settings: str) -> Iterator[Machine]:
    environment = {
        **os.environ,
        **{f"TRIVET_{name.upper()}": value for name, value in settings.items()},
        "TRIVET_CONFIG": str(folder / "configuration" / "trivet.toml"),
        "TRIVET_SERVER_METRICS": "loopback",
    }
    keys = {}
    with Trivet.open(store, embedder="none", background=False) as trivet:
        for user in ("ana", "sam"):
            trivet.engine.store.accounts.add_user(user, "writer")
            rights: Any = ["read", "write", "share", "reveal"]
            keys[user] = make_key(trivet.engine.store, "default", user, rights).text
    log = folder / "log"
    command = warm("-m", "trivet.cli", "--path", store, "serve", "--port", "0")
    with log.open("w") as file:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=file, env=environment, text=True
        )
    try:
        assert process.stdout is not None
        address = process.stdout.readline().split()[3].rstrip(".")
        clients = {user: Client(address, key) for user, key in keys.items()} | {
            "nobody": Client(address, None)
        }
        yield Machine(address, process, clients, log)
        for client in clients.values():
            client.http.close()
    finally:
        process.terminate()
        assert process.wait(60) == 0
        assert process.stdout is not None
        process.stdout.close()


def submit_everywhere(server: Machine, canaries: Canaries) -> str:
    """Send secrets to every address that takes text, in good and bad requests."""
    stored = server(
        "ana",
        "POST",
        "/v1/memories",
        json=canaries.fields("post"),
        headers={"Idempotency-Key": "one"},
    )
    id: str = stored.json()["id"]
    server(
        "ana",
        "POST",
        "/v1/memories",
        json=canaries.fields("replayed"),
        headers={"Idempotency-Key": "one"},
    )
    server(
        "ana",
        "POST",
        "/v1/memories/batch",
        json={"memories": [canaries.fields("many"), canaries.fields("more")]},
    )
    server("ana", "PATCH", f"/v1/memories/{id}", json=canaries.fields("patch"))
    lines = "\n".join(
        [json.dumps(canaries.fields("line")), f'{{"content": "{canaries.token("broken")}']
    )
    imported = server(
        "ana", "POST", "/v1/import", content=lines, headers={"content-type": "application/x-ndjson"}
    )
    assert imported.json()["stored"] == 1
    server("ana", "POST", f"/v1/memories/{id}/restore", json={"revision": 1})
    server(
        "ana",
        "POST",
        "/v1/recall",
        json={"query": f"{canaries.token('query')} {canaries.private('asked')}"},
    )
    server("ana", "GET", "/v1/recall", params={"query": f"bot {canaries.token('query by get')}"})
    call_of = call(server.clients["ana"], "memory_store", canaries.fields("agent"))
    server.heard.append(call_of.text)
    server.heard.append(
        call(server.clients["ana"], "memory_recall", {"query": canaries.token("agent asks")}).text
    )
    server.heard.append(call(server.clients["ana"], canaries.token("no such tool"), {}).text)
    refused = [
        {"content": canaries.token("refused"), "category": canaries.token("category")},
        {"content": canaries.token("unknown"), canaries.token("field"): 1},
        {"content": canaries.token("scope too"), "scope": canaries.token("scope")},
        {"content": canaries.token("early"), "valid_from": canaries.token("time")},
        {"content": "x", "id": github("id")[:36]},
    ]
    for body in refused:
        assert server("ana", "POST", "/v1/memories", json=body).status_code == 422
    server("ana", "POST", "/v1/memories", content=f'{{"content": "{canaries.token("cut off")}')
    server("nobody", "POST", "/v1/memories", json={"content": canaries.token("no key")})
    server("ana", "GET", f"/v1/memories/{canaries.token('path')}")
    server("ana", "GET", f"/v1/{canaries.token('no route')}")
    server(
        "ana", "GET", "/v1/memories", params={canaries.token("parameter"): canaries.token("value")}
    )
    stranger = Client(server.address, canaries.token("key"))
    server.heard.append(stranger("GET", "/v1/stats").text)
    stranger.http.close()
    server("ana", "POST", "/v1/shares", json={"user": "sam", "id": id})
    for who in ("ana", "sam"):
        for path in (
            f"/v1/memories/{id}", f"/v1/memories/{id}/history", f"/v1/memories/{id}/diff?older=1&newer=2",
            "/v1/memories?reveal=true", "/v1/recall?query=bot+logs+in&reveal=true", "/v1/concepts", "/v1/stats",
            f"/v1/graph?start={id}", "/v1/tags", "/v1/export", "/v1/audit", "/v1/shares", "/metrics",
        ):  # fmt: skip
            server(who, "GET", path)
    assert server("sam", "POST", f"/v1/memories/{id}/reveal", json={}).status_code == 403
    return id


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_secrets_are_stored_only_sealed(
    kind: str, tmp_path: Path, postgres: PostgresServer
) -> None:
    canaries, embedder = Canaries(), WordEmbedder()
    path = str(tmp_path / "memory.db") if kind == "sqlite" else postgres.database()
    with (
        chat_server(knows({})) as model,
        machine(path, tmp_path, embedder=embedder.spec(), graph_llm=model.spec) as server,
    ):
        id = submit_everywhere(server, canaries)
        revealed = server.clients["ana"]("POST", f"/v1/memories/{id}/reveal", json={})
        assert set(canaries.found_in(revealed.text)) >= {
            github("post content"),
            github("post title"),
        }
        server("ana", "GET", "/v1/audit")
    with Trivet.open(
        path, embedder=embedder.spec(), graph_llm=model.spec, background=False
    ) as trivet:
        trivet.drain()
    embedder.stop()
    assert embedder.texts, "the embedder must have been called"
    places = {
        "answers": "\n".join(server.heard),
        "what the embedder was sent": "\n".join(embedder.texts),
        "what the language model was sent": "\n".join(model.bodies),
        "log": server.log.read_text(),
        "disk": everything_on_disk(tmp_path),
        "tables": everything_stored(Path(path)) if kind == "sqlite" else rows_of_all_tables(path),
    }
    assert {place: canaries.found_in(text) for place, text in places.items()} == {
        place: [] for place in places
    }
    assert '"route":"/v1/memories"' in places["log"], "the log must exist"
    assert "trivet_" in places["answers"], "the metrics must have been read"


def rows_of_all_tables(url: str) -> str:
    """Read every row of every table, with access to all tenants."""
    with psycopg.connect(url.replace("trivet@", "postgres@")) as connection:
        tables = connection.execute("SELECT relname FROM pg_stat_user_tables").fetchall()
        rows = [
            row
            for (table,) in tables
            for row in connection.execute(f"SELECT t::text FROM {table} AS t")
        ]
    return "\n".join(row[0] for row in rows)
