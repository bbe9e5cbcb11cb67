"""The HTTP server, the browser page, and the resident process with its systemd unit."""

from __future__ import annotations

import os
import shlex
import signal
import socket
import sys
import tempfile
import time
from pathlib import Path
from typing import Literal

import msgspec

from trivet.cli.terminal import line, warn, write_lines
from trivet.common.threads import prepared_type
from trivet.serve.resident.hook_client import ResidentUnavailable, ask
from trivet.serve.resident.protocol import END, STATUS, SUPPORTED, lock_holder, socket_file
from trivet.serve.resident.server import END_SECONDS, Status
from trivet.settings import Settings, load_settings
from trivet.settings.locations import check_exists, is_server


def serve_store(path: str | None, host: str, port: int, workers: int = 1) -> None:
    from trivet.serve.http.auth import is_loopback
    from trivet.serve.http.server import listen, run, server_settings
    from trivet.serve.http.tenants import Tenants
    from trivet.serve.http.workers import run_workers

    settings = server_settings(load_settings(path=path))
    with listen(host, port) as listener:
        # Without background work this supervisor loads no models.
        tenants = Tenants(
            settings if workers == 1 else msgspec.structs.replace(settings, background=False)
        )
        if not tenants.has_users():
            warn(
                "nobody has a key yet. Run `trivet user add NAME`, then `trivet key add NAME`; "
                "the server may keep running."
            )
        if not is_loopback(host):
            warn(
                f"{host} can be reached from other machines, and the traffic is not encrypted: "
                "others can read keys and memories on the way. Put a proxy with TLS in front, or "
                "listen on 127.0.0.1."
            )
        address = address_of(host, listener)
        write_lines(
            [
                line(f"Trivet listens on {address}. Press Ctrl-C to stop it."),
                line(
                    "Open it in a browser and sign in with a key; `trivet key add NAME` creates "
                    "one."
                ),
            ]
        )
        if workers == 1:
            run(tenants, settings, listener, host)
        else:
            tenants.close()  # this process only supervises
            run_workers(settings, listener, host, workers)


def serve_demo(host: str, port: int) -> None:
    """Serve the demo's memories from a temporary store, without the user's settings."""
    from trivet.cli.demonstration import open_demo_with_progress
    from trivet.serve.http.endpoints.page import SignInLinks, link_to
    from trivet.serve.http.server import listen, run, server_settings
    from trivet.serve.http.tenants import Tenants

    with (
        listen(host, port, any_port=True) as listener,
        tempfile.TemporaryDirectory(prefix="trivet-demo-") as folder,
    ):
        path = Path(folder) / "memory.db"
        open_demo_with_progress(path).close()
        settings = server_settings(Settings(path=str(path)))
        tenants = Tenants(settings)
        links = SignInLinks()
        write_lines(
            [
                line(f"Open {link_to(address_of(host, listener), links)} in a browser."),
                line(
                    "The link signs in once, within five minutes. Ctrl-C stops the server and "
                    "deletes its store."
                ),
            ]
        )
        run(tenants, settings, listener, host, links, log_access=False)


def address_of(host: str, listener: socket.socket) -> str:
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{listener.getsockname()[1]}"


def open_page(path: str | None, only_print: bool) -> None:
    settings = load_settings(path=path)
    if is_server(settings.path):
        _show(settings.path, only_print, "Sign in there with your key.")
        return
    check_exists(settings)
    from trivet.serve.resident.client import page_link

    link = page_link(settings)
    if link is None:
        _serve_here(settings, only_print)
    else:
        _show(link, only_print)


def _serve_here(settings: Settings, only_print: bool) -> None:
    from trivet.serve.http.endpoints.page import SignInLinks, link_to
    from trivet.serve.http.server import HOST, PORT, listen, run, server_settings
    from trivet.serve.http.tenants import Tenants

    settings = server_settings(settings)
    with listen(HOST, PORT, any_port=True) as listener:
        tenants, links = Tenants(settings), SignInLinks()
        # The socket already accepts connections; the server answers once it runs.
        _show(
            link_to(address_of(HOST, listener), links),
            only_print,
            "The page is served until you press Ctrl-C.",
        )
        run(tenants, settings, listener, HOST, links, log_access=False)


def _show(link: str, only_print: bool, more: str = "") -> None:
    import webbrowser

    if only_print:
        write_lines([line(link)])
    elif webbrowser.open(link):
        write_lines([line("The page is open in your browser.")])
    else:
        print("No browser could be opened. Open this link yourself:", file=sys.stderr)
        write_lines([line(link)])
    if more and not only_print:
        write_lines([line(more)])


ANSWER_TIMEOUT_SECONDS = 1.0
# It finishes its calls within END_SECONDS; after this it hangs.
STOP_TIMEOUT_SECONDS = END_SECONDS + 5.0
POLL_SECONDS = 0.02

StopResult = Literal["ended", "killed"]


def request_status() -> Status | None:
    """Return the resident process's status, or None if it does not answer."""
    if not SUPPORTED:
        return None
    try:
        _, body, *_ = ask(os.environb, (STATUS,), ANSWER_TIMEOUT_SECONDS)
    except ResidentUnavailable:
        return None
    return msgspec.json.decode(body, type=prepared_type(Status))


def stop_resident() -> StopResult | None:
    """Stop the resident process, by force if it hangs; None if it did not run."""
    process = lock_holder()
    if process is None:
        return None
    if _request_stop() and _wait_until_ended(STOP_TIMEOUT_SECONDS):
        return "ended"
    if lock_holder() == process:  # still the same process, which does not react
        os.kill(process, signal.SIGKILL)
        _wait_until_ended(STOP_TIMEOUT_SECONDS)
        socket_file().unlink(missing_ok=True)
        return "killed"
    return "ended"


def _request_stop() -> bool:
    try:
        ask(os.environb, (END,), ANSWER_TIMEOUT_SECONDS)
    except ResidentUnavailable:
        return False
    return True


def _wait_until_ended(seconds: float) -> bool:
    limit = time.monotonic() + seconds
    while lock_holder() is not None:
        if time.monotonic() > limit:
            return False
        time.sleep(POLL_SECONDS)
    return True


UNIT = """# Trivet's resident process for one user: {where}
# systemctl --user daemon-reload; systemctl --user enable --now trivet-resident.service
[Unit]
Description=Trivet's resident process: models and indexes kept warm

[Service]
Type=exec
ExecStart={command}
# systemd ends it with the session. Without a limit on idle time it is always there.
Environment=TRIVET_RESIDENT_IDLE_SECONDS=0
# It ends with 75 when it has grown beyond TRIVET_RESIDENT_MEMORY_MB, and is started anew.
Restart=on-failure
RestartSec=2
TimeoutStopSec=30
UMask=0077
NoNewPrivileges=yes

[Install]
WantedBy=default.target
"""
WHERE = "~/.config/systemd/user/trivet-resident.service"


def unit_text(path: str | None) -> str:
    store = (
        ["--path", path if "://" in path else str(Path(path).expanduser().absolute())]
        if path
        else []
    )
    words = [sys.executable, "-P", "-m", "trivet.cli", "up", *store]
    return UNIT.format(where=WHERE, command=shlex.join(words).replace("%", "%%"))
