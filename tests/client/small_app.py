"""The routes of the table over an embedded store, until the server of the package takes its place."""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route as At

from trivet import Trivet, TrivetError
from trivet.contract import BY_NAME, json_schema
from trivet.problems import MEDIA_TYPE, PROBLEMS, TYPE_PREFIX, Problem
from trivet.routes import ROUTES, Route

KEY = "tvt.default.small.secret"


def small_app(memory: Trivet) -> Starlette:
    routes = [At("/v1/memories/batch", _many(memory), methods=["POST"])]
    routes += [At("/v1/memories/{id}/diff", _diff(memory)), At("/v1/export", _export(memory))]
    routes += [At("/v1/import", _import(memory), methods=["POST"])]
    routes += [At(route.path, _one(memory, route), methods=[route.method]) for route in ROUTES]
    return Starlette(routes=routes, exception_handlers={TrivetError: _problem})


def _one(memory: Trivet, route: Route) -> Any:
    async def handle(request: Request) -> Response:
        _known(request)
        given = _query(request, route) if route.in_query else msgspec.json.decode(await request.body() or b"{}")
        result = await run_in_threadpool(getattr(memory, route.operation), **given, **request.path_params)
        return Response(b"" if route.status == 204 else msgspec.json.encode(result), route.status)

    return handle


def _query(request: Request, route: Route) -> dict[str, Any]:
    properties = json_schema(BY_NAME[route.operation].request)["properties"]
    given = {name: request.query_params.getlist(name) for name in request.query_params}
    return {name: _value(values, properties[name]) for name, values in given.items()}


def _value(values: list[str], schema: dict[str, Any]) -> Any:
    if schema.get("type") == "array":
        return values
    return msgspec.json.decode(values[0]) if schema.get("type") in ("integer", "boolean", "number") else values[0]


def _many(memory: Trivet) -> Any:
    async def handle(request: Request) -> Response:
        _known(request)
        given = msgspec.json.decode(await request.body())["memories"]
        return Response(msgspec.json.encode(await run_in_threadpool(memory.remember_many, given)), 201)

    return handle


def _diff(memory: Trivet) -> Any:
    async def handle(request: Request) -> Response:
        _known(request)
        older, newer = int(request.query_params["older"]), int(request.query_params["newer"])
        reveal = request.query_params.get("reveal") == "true"
        text = await run_in_threadpool(memory.diff, request.path_params["id"], older, newer, reveal=reveal)
        return Response(msgspec.json.encode({"diff": text}))

    return handle


def _export(memory: Trivet) -> Any:
    async def handle(request: Request) -> Response:
        _known(request)
        lines = memory.export(include_sensitive=request.query_params.get("include_sensitive") == "true")
        return StreamingResponse((f"{line}\n" for line in lines), media_type="application/x-ndjson")

    return handle


def _import(memory: Trivet) -> Any:
    async def handle(request: Request) -> Response:
        _known(request)
        lines = (await request.body()).decode().split("\n")
        return Response(msgspec.json.encode(await run_in_threadpool(memory.import_, lines)))

    return handle


def _known(request: Request) -> None:
    from trivet import Unauthorised

    if request.headers.get("authorization") != f"Bearer {KEY}":
        raise Unauthorised("This key is not known.")


async def _problem(request: Request, error: Exception) -> Response:
    told = next(told for kind, told in PROBLEMS.items() if isinstance(error, kind))
    problem = Problem(
        type=TYPE_PREFIX + told.name, title=told.title, status=told.status, detail=str(error), instance="urn:x"
    )
    return Response(msgspec.json.encode(problem), told.status, media_type=MEDIA_TYPE)
