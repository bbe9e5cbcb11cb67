"""What the API is: the document for programs, and a table of its addresses for people."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Sequence
from functools import cached_property
from html import escape

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from trivet import __version__
from trivet.serve.http.endpoint import JSON, Address, Endpoint
from trivet.serve.http.mcp import PATH as MCP_PATH
from trivet.serve.http.openapi import document

STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:62rem;margin:2rem auto;padding:0 1rem}"
    "code,pre{font:14px/1.5 ui-monospace,monospace;background:#f4f4f2;border-radius:4px;padding:.1em .3em}"
    "pre{padding:.8em;overflow-x:auto}table{border-collapse:collapse;width:100%}"
    "td,th{text-align:left;vertical-align:top;padding:.35em .6em;border-bottom:1px solid #ddd}"
)
_DIGEST = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
POLICY = f"default-src 'none'; style-src 'sha256-{_DIGEST}'; frame-ancestors 'none'"

CURL = """curl http://HOST/v1/recall \\
  -H 'Authorization: Bearer KEY' -H 'Content-Type: application/json' \\
  -d '{"query": "which port is staging on?"}'"""


class Described:
    """The document, made when it is first asked for: most servers start, serve and end without that."""

    def __init__(self, endpoints: Sequence[Endpoint]) -> None:
        self._endpoints = endpoints

    @cached_property
    def json(self) -> bytes:
        return msgspec.json.encode(document(self._endpoints))


def reference_routes(endpoints: Sequence[Endpoint]) -> list[Address]:
    described = Described(endpoints)
    html = "".join(_table(endpoints)).encode()

    async def specification(request: Request) -> Response:
        return Response(described.json, media_type=JSON)

    async def table(request: Request) -> Response:
        return Response(html, media_type="text/html", headers={"Content-Security-Policy": POLICY})

    return [Address("/openapi.json", {"GET": specification}), Address("/docs", {"GET": table})]


def _table(endpoints: Sequence[Endpoint]) -> Iterator[str]:
    yield '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Trivet</title>'
    yield '<meta name="viewport" content="width=device-width"><style>' + STYLE + "</style></head><body>"
    yield f'<h1>Trivet {escape(__version__)}</h1><p>A memory for AI agents. <a href="/">See it in the browser</a>, or '
    yield "use its API. Every request but the ones for this page, "
    yield '<a href="/openapi.json"><code>/openapi.json</code></a>, <a href="/healthz"><code>/healthz</code></a> and '
    yield '<a href="/readyz"><code>/readyz</code></a> needs a key.</p>'
    yield f"<pre>{escape(CURL)}</pre>"
    yield f"<p>Agents speak MCP (streamable HTTP) at <code>{MCP_PATH}</code> with the same header.</p>"
    yield "<table><thead><tr><th>Address</th><th>What it does</th><th>Right</th></tr></thead><tbody>"
    for endpoint in sorted(endpoints, key=lambda one: (one.path, one.method)):
        yield f"<tr><td><code>{endpoint.method} {escape(endpoint.path)}</code></td>"
        yield f"<td>{escape(endpoint.summary)}</td><td>{endpoint.needs}</td></tr>"
    yield "</tbody></table></body></html>"
