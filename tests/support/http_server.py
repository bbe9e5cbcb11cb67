"""A real uvicorn server on a socket in a thread of this process, with clients for it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx2

from support.waiting import ended
from trivet.memory.admin.accounts import RIGHTS
from trivet.serve.http.endpoints.page import SignInLinks
from trivet.serve.http.server import build_app, listen, make_server
from trivet.serve.http.tenants import Tenants
from trivet.settings import Settings


class Client:
    """Requests with one key, without retries, redirects or proxies."""

    def __init__(self, address: str, key: str | None) -> None:
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self.http = httpx2.Client(
            base_url=address, headers=headers, trust_env=False, verify=False, timeout=60
        )

    def __call__(self, method: str, path: str, **options: Any) -> httpx2.Response:
        return self.http.request(method, path, **options)

    def done(self, method: str, path: str, **options: Any) -> Any:
        """Return the JSON of a response that must be a success."""
        answer = self(method, path, **options)
        assert answer.is_success, answer.text
        return answer.json() if answer.content else None

    def refused(self, status: int, method: str, path: str, **options: Any) -> str:
        """Return the message of a response that must be this error in the standard format."""
        answer = self(method, path, **options)
        assert answer.status_code == status, answer.text
        return problem(answer)["detail"]


def problem(answer: httpx2.Response) -> dict[str, str]:
    assert answer.headers["content-type"] == "application/problem+json"
    told = answer.json()
    assert set(told) == {"type", "title", "status", "detail", "instance"}
    assert told["status"] == answer.status_code
    assert told["instance"] == f"urn:uuid:{answer.headers['x-request-id']}"
    assert told["type"].startswith("urn:trivet:problem:")
    assert told["title"]
    assert told["detail"].endswith((".", "?", ")"))
    return dict(told)


class Served:
    def __init__(self, house: Tenants, address: str, links: SignInLinks) -> None:
        self.house = house
        self.address = address
        self.links = links
        self._clients: list[Client] = []

    def key(self, user: str = "ana", role: Any = "admin") -> str:
        return self.house.make_key(user, role, RIGHTS[role])

    def client(self, user: str = "ana", role: Any = "admin") -> Client:
        return self.with_key(self.key(user, role))

    def with_key(self, key: str | None) -> Client:
        self._clients.append(Client(self.address, key))
        return self._clients[-1]

    def close(self) -> None:
        for client in self._clients:
            client.http.close()


@contextmanager
def served(settings: Settings) -> Iterator[Served]:
    listener = listen("127.0.0.1", 0)
    house = Tenants(settings)
    links = SignInLinks()
    server = make_server(build_app(house, settings, links=links), settings)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    running = Served(house, f"http://127.0.0.1:{listener.getsockname()[1]}", links)
    try:
        yield running
    finally:
        running.close()
        server.should_exit = True
        ended(thread)


def settings_for(path: object, **more: Any) -> Settings:
    """Return settings without a model and without comparing each save.

    They read no environment, so they repeat `conftest.py`.
    """
    usual: dict[str, Any] = {"embedder": "none", "changes": "off", "secrets_keyring": False}
    usual |= {"server_requests_a_minute": 10**6, "server_burst": 10**6}
    return Settings(**{"path": str(path), **usual, **more})
