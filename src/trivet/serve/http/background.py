"""A server in a thread of another process: the page over a store, until nobody has looked at it for long."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from starlette.types import ASGIApp, Receive, Scope, Send

from trivet.errors import StoreError
from trivet.memory.engine import Shared
from trivet.serve.http.app import build_app
from trivet.serve.http.server import for_server, listen, server_of
from trivet.serve.http.sign_in import Links, link_to
from trivet.serve.http.tenants import Tenants
from trivet.settings import Settings

HOST = "127.0.0.1"
# Beside the port of `trivet serve`. The same one each time, while it is free, keeps a browser signed in.
PORT = 7374
START_SECONDS = 20.0
LOOK_SECONDS = 0.01
END_SECONDS = 10.0


class Noted:
    """Tells of every request before it is answered."""

    def __init__(self, app: ASGIApp, note: Callable[[], None]) -> None:
        self._app = app
        self._note = note

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            self._note()
        await self._app(scope, receive, send)


class BackgroundServer:
    """On loopback alone, where a key is needed as on any server. `shared` are models that the process has already."""

    def __init__(self, settings: Settings, shared: Shared | None = None) -> None:
        settings = for_server(settings)
        self.used = time.monotonic()
        self._links = Links()
        listener = listen(HOST, PORT, any_port=True)
        self._address = f"http://{HOST}:{listener.getsockname()[1]}"
        try:
            app = build_app(Tenants(settings, shared), settings, HOST, self._links)
        except BaseException:
            listener.close()
            raise
        app.add_middleware(Noted, note=self._touch)
        self._server = server_of(app, settings)
        serve = {"sockets": [listener]}
        self._thread = threading.Thread(target=self._server.run, kwargs=serve, name="trivet-page", daemon=True)
        self._thread.start()
        self._wait()

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    def link(self) -> str:
        """An address that signs in once."""
        self._touch()
        return link_to(self._address, self._links)

    def close(self) -> None:
        self._server.should_exit = True
        self._thread.join(END_SECONDS)

    def _touch(self) -> None:
        self.used = time.monotonic()

    def _wait(self) -> None:
        limit = time.monotonic() + START_SECONDS
        while not self._server.started:
            if not self._thread.is_alive() or time.monotonic() > limit:
                self._server.should_exit = True
                raise StoreError("The page could not be served: its server did not come up. Try `trivet serve`.")
            time.sleep(LOOK_SECONDS)
