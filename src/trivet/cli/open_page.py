"""`trivet open`: the page over a store in the browser, signed in by a one-time link."""

from __future__ import annotations

from trivet.cli.output import line, write_lines
from trivet.settings import Settings, load_settings
from trivet.settings.address import is_server
from trivet.settings.existing_store import check_exists


def open_page(path: str | None, only_print: bool) -> None:
    settings = load_settings(path=path)
    if is_server(settings.path):
        _show(settings.path, only_print, "Sign in there with your key.")
        return
    check_exists(settings)
    from trivet.serve.resident.page_call import page_link

    link = page_link(settings)
    if link is None:
        _serve_here(settings, only_print)
    else:
        _show(link, only_print)


def _serve_here(settings: Settings, only_print: bool) -> None:
    """In the foreground, where no resident process does it."""
    from trivet.cli.serve import address_of
    from trivet.serve.http.background import HOST, PORT
    from trivet.serve.http.server import for_server, listen, run
    from trivet.serve.http.sign_in import Links, link_to
    from trivet.serve.http.tenants import Tenants

    settings = for_server(settings)
    with listen(HOST, PORT, any_port=True) as listener:
        tenants, links = Tenants(settings), Links()
        # The socket takes the browser's connection already, and the server answers it as soon as it runs.
        _show(link_to(address_of(HOST, listener), links), only_print, "The page is served until Ctrl-C.")
        run(tenants, settings, listener, HOST, links, log_access=False)


def _show(link: str, only_print: bool, more: str = "") -> None:
    """In the browser, or where there is none to open, as a line to copy."""
    import webbrowser

    if only_print or not webbrowser.open(link):
        write_lines([line(link)])
    else:
        write_lines([line("The page is open in your browser.")])
    if more and not only_print:
        write_lines([line(more)])
