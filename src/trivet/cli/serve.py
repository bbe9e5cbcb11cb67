"""`trivet serve`: says where it listens and what that means, then serves until it is told to end."""

from __future__ import annotations

import socket
import tempfile
from pathlib import Path

import msgspec

from trivet.cli.failure import warn
from trivet.cli.output import line, write_lines
from trivet.settings import Settings, load_settings


def serve_store(path: str | None, host: str, port: int, workers: int = 1) -> None:
    from trivet.serve.http.hosts import is_loopback
    from trivet.serve.http.server import for_server, listen, run
    from trivet.serve.http.tenants import Tenants
    from trivet.serve.http.workers import run_workers

    settings = for_server(load_settings(path=path))
    with listen(host, port) as listener:
        # One that only looks after others takes up no work of the store: the models for it would stay in its memory.
        tenants = Tenants(settings if workers == 1 else msgspec.structs.replace(settings, background=False))
        if not tenants.has_users():
            warn("nobody has a key yet. `trivet user add NAME`, then `trivet key add NAME`, while this runs or before.")
        if not is_loopback(host):
            warn(
                f"{host} can be reached from other machines, and the traffic is not encrypted: keys and memories can "
                "be read on the way. Put a proxy with TLS in front, or listen on 127.0.0.1."
            )
        address = address_of(host, listener)
        write_lines(
            [
                line(f"Trivet listens on {address}. Ctrl-C ends it."),
                line("Open it in a browser to sign in with a key: `trivet key add NAME` makes one."),
            ]
        )
        if workers == 1:
            run(tenants, settings, listener, host)
        else:
            tenants.close()  # this process only looks after the others
            run_workers(settings, listener, host, workers)


def serve_demo(host: str, port: int) -> None:
    """None of the user's settings or memories take part."""
    from trivet.cli.demo.command import opened_demo
    from trivet.serve.http.server import for_server, listen, run
    from trivet.serve.http.sign_in import Links, link_to
    from trivet.serve.http.tenants import Tenants

    with listen(host, port, any_port=True) as listener, tempfile.TemporaryDirectory(prefix="trivet-demo-") as folder:
        path = Path(folder) / "memory.db"
        opened_demo(path).close()
        settings = for_server(Settings(path=str(path)))
        tenants = Tenants(settings)
        links = Links()
        write_lines(
            [
                line(f"Open {link_to(address_of(host, listener), links)} in a browser."),
                line("The link signs in once, within five minutes. Ctrl-C ends the server, and nothing stays."),
            ]
        )
        run(tenants, settings, listener, host, links, log_access=False)


def address_of(host: str, listener: socket.socket) -> str:
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{listener.getsockname()[1]}"
