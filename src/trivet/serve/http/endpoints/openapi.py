"""The OpenAPI document, built from the contract's structs, and its HTML table."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from html import escape
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from trivet import __version__, contract
from trivet.client.problems import MEDIA_TYPE, Problem
from trivet.serve.http.endpoints.endpoint import JSON, Endpoint, EndpointRoute
from trivet.serve.http.endpoints.mcp import PATH as MCP_PATH

_REF = "#/components/schemas/{name}"

# Errors of every endpoint; those below apply to some.
ANYWHERE = {
    400: "The request cannot be parsed.",
    401: "The key is missing or invalid.",
    403: "The key does not allow it, or a page of another site sent the request.",
    421: "The server does not answer for this host.",
    422: "A value is invalid; the detail names it.",
    429: "The key sends too many requests; Retry-After says how long to wait.",
    500: "The server failed; its log has the details under the id in `instance`.",
    503: "The server or its store is unavailable.",
    504: "The work takes too long; the server finishes it anyway.",
}
WITH_A_NAME = {404: "It does not exist, or the caller may not see it."}
WITH_A_BODY = {
    408: "The body arrived too slowly.",
    413: "The body is too large.",
    415: "The body has the wrong media type.",
}
OF_A_WRITE = {409: "It conflicts with what is stored, or the same request is still running."}
GUARDED = {412: "The memory has changed since it was read."}
NAMING = frozenset(("source", "target", "start", "id"))


def document(endpoints: Sequence[Endpoint]) -> dict[str, Any]:
    results = [endpoint.result for endpoint in endpoints if endpoint.result not in (None, str)]
    schemas, components = msgspec.json.schema_components(
        [*results, Problem, contract.Remember], ref_template=_REF
    )
    by_result = dict(zip(map(repr, results), schemas, strict=False))
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in endpoints:
        described = _operation(endpoint, by_result.get(repr(endpoint.result)))
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = described
    return {
        "openapi": "3.1.0",
        "jsonSchemaDialect": "https://json-schema.org/draft/2020-12/schema",
        "info": {
            "title": "Trivet",
            "version": __version__,
            "summary": "A memory for AI agents: hybrid recall that explains every hit.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "security": [{"key": []}],
        "paths": {**paths, **_HEALTH},
        "components": {
            "schemas": components,
            "responses": _problems(),
            "securitySchemes": {
                "key": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "A key made with `trivet key`.",
                }
            },
        },
    }


def _operation(endpoint: Endpoint, result: Mapping[str, Any] | None) -> dict[str, Any]:
    described: dict[str, Any] = {
        "operationId": endpoint.name,
        "summary": endpoint.summary,
        "description": f"Needs a key with the right to {endpoint.needs}.",
        "parameters": [*_parameters(endpoint), *_headers(endpoint)],
        "responses": _responses(endpoint, result),
    }
    body = _body(endpoint)
    return {**described, "requestBody": body} if body else described


def _parameters(endpoint: Endpoint) -> Iterator[dict[str, Any]]:
    if endpoint.request is str:
        return
    schema = contract.json_schema(endpoint.request)
    for name, field in schema.get("properties", {}).items():
        in_path = name in endpoint.in_path
        if not in_path and not endpoint.in_query:
            continue
        parameter = {
            "name": name,
            "in": "path" if in_path else "query",
            "required": in_path or name in schema.get("required", ()),
            "schema": _without_null(field),
        }
        if description := contract.describe(endpoint.request, name):
            parameter["description"] = description
        examples = IN_PATH if in_path else IN_QUERY
        if name in examples:
            parameter["example"] = examples[name]
        yield parameter


def _headers(endpoint: Endpoint) -> Iterator[dict[str, Any]]:
    if endpoint.name == "get":
        yield _header(
            "If-None-Match", "The ETag of the version you have; 304 if it is still current."
        )
    if endpoint.guarded:
        yield _header(
            "If-Match",
            "The ETag that the memory must still have.",
            r'^(\*|(W/)?"\d{1,9}(-[0-9a-f]*)?")$',
        )
    if endpoint.once:
        yield _header(
            "Idempotency-Key",
            "Any text, new for each operation: a retry with the same text acts only once.",
            KEY_PATTERN,
        )


KEY_PATTERN = r"^[!-~]{1,200}$"


def _header(name: str, description: str, pattern: str | None = None) -> dict[str, Any]:
    schema = {"type": "string", "pattern": pattern} if pattern else {"type": "string"}
    return {
        "name": name,
        "in": "header",
        "required": False,
        "description": description,
        "schema": schema,
    }


def _body(endpoint: Endpoint) -> dict[str, Any] | None:
    if endpoint.request is str:
        example = '{"content": "The staging database listens on port 6543."}\n'
        return {
            "required": True,
            "content": {endpoint.body_type: {"schema": {"type": "string"}, "example": example}},
        }
    if endpoint.in_query:
        return None
    whole = contract.json_schema(endpoint.request)
    properties = {
        name: field
        for name, field in whole.get("properties", {}).items()
        if name not in endpoint.in_path
    }
    if not properties and endpoint.method == "PUT":
        return None
    required = [name for name in whole.get("required", ()) if name in properties]
    schema = {"type": "object", "properties": _relocated(properties), "additionalProperties": False}
    content: dict[str, Any] = {"schema": {**schema, "required": required} if required else schema}
    if endpoint.name in BODIES:
        content["example"] = BODIES[endpoint.name]
    return {"required": bool(required), "content": {JSON: content}}


def _relocated(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _relocated(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_relocated(inner) for inner in value]
    return value.replace("#/$defs/", "#/components/schemas/") if isinstance(value, str) else value


def _responses(endpoint: Endpoint, result: Mapping[str, Any] | None) -> dict[str, Any]:
    done: dict[str, Any] = {"description": "Done."}
    if endpoint.status != 204:
        done["content"] = {endpoint.result_type: {"schema": result or {"type": "string"}}}
    headers: dict[str, Any] = {"X-Request-Id": _HEADER}
    if endpoint.tagged:
        headers["ETag"] = _HEADER
    if endpoint.once:
        headers["Idempotent-Replayed"] = _HEADER
    done["headers"] = headers
    responses: dict[str, Any] = {str(endpoint.status): done}
    if endpoint.name == "get":
        responses["304"] = {
            "description": "You already have this version.",
            "headers": {"ETag": _HEADER},
        }
    for status in sorted(_errors_of(endpoint)):
        responses[str(status)] = {"$ref": f"#/components/responses/{status}"}
    return responses


_HEADER = {"schema": {"type": "string"}}


def _errors_of(endpoint: Endpoint) -> set[int]:
    found = {*ANYWHERE, *WITH_A_NAME}
    if not endpoint.in_query:
        found |= {*WITH_A_BODY}
    if endpoint.needs != "read":
        found |= {*OF_A_WRITE}
    if endpoint.guarded:
        found |= {*GUARDED}
    return found


def _problems() -> dict[str, Any]:
    known = {**ANYWHERE, **WITH_A_NAME, **WITH_A_BODY, **OF_A_WRITE, **GUARDED}
    content = {MEDIA_TYPE: {"schema": {"$ref": _REF.format(name="Problem")}}}
    return {
        str(status): {"description": text, "content": content, **_HEADERS_OF.get(status, {})}
        for status, text in sorted(known.items())
    }


_WAIT = {
    "headers": {"Retry-After": {"schema": {"type": "string"}, "description": "Seconds to wait."}}
}
_HEADERS_OF: Mapping[int, Mapping[str, Any]] = {
    401: {"headers": {"WWW-Authenticate": {"schema": {"type": "string"}}}},
    409: _WAIT,
    429: _WAIT,
    503: _WAIT,
}


def _without_null(field: Mapping[str, Any]) -> Mapping[str, Any]:
    options = [option for option in field.get("anyOf", ()) if option.get("type") != "null"]
    inner = options[0] if options else field
    return {
        name: value for name, value in inner.items() if not (name == "default" and value is None)
    }


_HEALTH: dict[str, Any] = {
    path: {
        "get": {
            "operationId": name,
            "summary": summary,
            "security": [],
            "responses": {
                "200": {
                    "description": "Yes.",
                    "content": {
                        JSON: {
                            "schema": {
                                "type": "object",
                                "properties": {"status": {"type": "string"}},
                            }
                        }
                    },
                },
                "421": {"$ref": "#/components/responses/421"},
                "503": {"$ref": "#/components/responses/503"},
            },
        }
    }
    for path, name, summary in (
        ("/healthz", "alive", "Is the process alive?"),
        ("/readyz", "ready", "Can the server reach its store?"),
    )
}


ID = "0199c2f4-7d1e-7a3b-9c55-2f6f0f6c1a2b"
OTHER = "0199c2f5-11aa-7c3d-8f00-5d2b1c0e9a77"

IN_PATH: Mapping[str, Any] = {"id": ID, "source": ID, "kind": "supersedes", "target": OTHER}
IN_QUERY: Mapping[str, Any] = {
    "query": "which port is staging on?",
    "start": "staging",
    "user": "ines",
    "older": 1,
    "newer": 2,
}
BODIES: Mapping[str, Any] = {
    "remember": {
        "content": "The staging database listens on port 6543.",
        "tags": ["postgres", "staging"],
    },
    "remember_many": {
        "memories": [
            {"content": "Deploys happen on Thursdays."},
            {"content": "Ines leads the team."},
        ]
    },
    "edit": {"content": "The staging database listens on port 6544."},
    "restore": {"revision": 1},
    "recall": {"query": "which port is staging on?", "limit": 3},
    "why_not": {"query": "which port is staging on?", "id": ID},
    "share": {"user": "ines", "id": ID, "permission": "read"},
}


STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:62rem;margin:2rem auto;padding:0 1rem}"
    "code,pre{font:14px/1.5 ui-monospace,monospace;background:#f4f4f2;border-radius:4px;"
    "padding:.1em .3em}"
    "pre{padding:.8em;overflow-x:auto}table{border-collapse:collapse;width:100%}"
    "td,th{text-align:left;vertical-align:top;padding:.35em .6em;border-bottom:1px solid #ddd}"
)
_DIGEST = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
POLICY = f"default-src 'none'; style-src 'sha256-{_DIGEST}'; frame-ancestors 'none'"

CURL = """curl http://HOST/v1/recall \\
  -H 'Authorization: Bearer KEY' -H 'Content-Type: application/json' \\
  -d '{"query": "which port is staging on?"}'"""


class CachedDocument:
    def __init__(self, endpoints: Sequence[Endpoint]) -> None:
        self._endpoints = endpoints

    @cached_property
    def json(self) -> bytes:
        return msgspec.json.encode(document(self._endpoints))


def reference_routes(endpoints: Sequence[Endpoint]) -> list[EndpointRoute]:
    described = CachedDocument(endpoints)
    html = "".join(_table(endpoints)).encode()

    async def specification(request: Request) -> Response:
        return Response(described.json, media_type=JSON)

    async def table(request: Request) -> Response:
        return Response(html, media_type="text/html", headers={"Content-Security-Policy": POLICY})

    return [
        EndpointRoute("/openapi.json", {"GET": specification}),
        EndpointRoute("/docs", {"GET": table}),
    ]


def _table(endpoints: Sequence[Endpoint]) -> Iterator[str]:
    yield '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Trivet</title>'
    yield (
        '<meta name="viewport" content="width=device-width"><style>'
        + STYLE
        + "</style></head><body>"
    )
    yield f"<h1>Trivet {escape(__version__)}</h1><p>A memory for AI agents. "
    yield '<a href="/">Open it in the browser</a>, or use its API. '
    yield 'Every request needs a key, except for this page, <a href="/openapi.json">'
    yield '<code>/openapi.json</code></a>, <a href="/healthz"><code>/healthz</code></a> and '
    yield '<a href="/readyz"><code>/readyz</code></a>.</p>'
    yield f"<pre>{escape(CURL)}</pre>"
    yield f"<p>Agents use MCP (streamable HTTP) at <code>{MCP_PATH}</code> "
    yield "with the same header.</p><table><thead><tr><th>Address</th>"
    yield "<th>What it does</th><th>Right</th></tr></thead><tbody>"
    for endpoint in sorted(endpoints, key=lambda one: (one.path, one.method)):
        yield f"<tr><td><code>{endpoint.method} {escape(endpoint.path)}</code></td>"
        yield f"<td>{escape(endpoint.summary)}</td><td>{endpoint.needs}</td></tr>"
    yield "</tbody></table></body></html>"
