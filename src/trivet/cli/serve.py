"""`trivet serve`: says where it listens and what that means, then serves until it is told to end."""

from __future__ import annotations

import socket
import tempfile
from pathlib import Path

from trivet.cli.failure import warn
from trivet.cli.output import line, write_lines
from trivet.errors import InvalidInput
from trivet.settings import Settings, load_settings

DEMO_QUERY = "may I deploy harbor on a Friday morning"


def serve_store(path: str | None, host: str, port: int) -> None:
    _check_installed()
    from trivet.serve.http.hosts import is_loopback
    from trivet.serve.http.server import for_server, listen, run
    from trivet.serve.http.tenants import Tenants

    settings = for_server(load_settings(path=path))
    with listen(host, port) as listener:
        tenants = Tenants(settings)
        if not tenants.has_users():
            warn("nobody has a key yet. `trivet user add NAME`, then `trivet key add NAME`, while this runs or before.")
        if not is_loopback(host):
            warn(
                f"{host} can be reached from other machines, and the traffic is not encrypted: keys and memories can "
                "be read on the way. Put a proxy with TLS in front, or listen on 127.0.0.1."
            )
        write_lines([line(f"Trivet listens on {_address(host, listener)}. Ctrl-C ends it.")])
        run(tenants, settings, listener, host)


def serve_demo(host: str, port: int) -> None:
    """None of the user's settings or memories take part."""
    _check_installed()
    from trivet.cli.demo.command import opened_demo
    from trivet.serve.http.server import for_server, listen, run
    from trivet.serve.http.tenants import Tenants

    with listen(host, port, any_port=True) as listener, tempfile.TemporaryDirectory(prefix="trivet-demo-") as folder:
        path = Path(folder) / "memory.db"
        opened_demo(path).close()
        settings = for_server(Settings(path=str(path)))
        tenants = Tenants(settings)
        key = tenants.make_key("local", "admin")
        address = _address(host, listener)
        write_lines(
            [
                line(f"Trivet listens on {address}; open it to see what there is. Ctrl-C ends it, and nothing stays."),
                line("Recall something:"),
                line(""),
                line(f"  curl '{address}/v1/recall?{_asked()}' -H 'Authorization: Bearer {key}'"),
                line(""),
            ]
        )
        run(tenants, settings, listener, host)


def _asked() -> str:
    from urllib.parse import urlencode

    return urlencode({"query": DEMO_QUERY, "limit": 3})


def _address(host: str, listener: socket.socket) -> str:
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{listener.getsockname()[1]}"


def _check_installed() -> None:
    try:
        import prometheus_client  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise InvalidInput(
            f"The server needs packages that are not installed ({error.name}): pip install 'trivet[server]'"
        ) from None
