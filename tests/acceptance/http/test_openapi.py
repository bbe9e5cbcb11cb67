"""The OpenAPI document is complete, and the server keeps to it for any request."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import (
    content_type_conformance,
    not_a_server_error,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from support.http_server import Client, Served
from trivet import contract
from trivet.contract import VERBS, Route


@pytest.fixture(scope="module")
def document(server: Served) -> dict[str, Any]:
    found: dict[str, Any] = server.with_key(None).done("GET", "/openapi.json")
    return found


def described(document: dict[str, Any], route: Route) -> dict[str, Any]:
    found: dict[str, Any] = document["paths"][route.path][route.method.lower()]
    return found


@pytest.mark.parametrize("name", ["recall", "edit", "link", "share", "purge"])
def test_contract_describes_the_route(document: dict[str, Any], name: str) -> None:
    """Verbs whose parameters go in different places, all described by the same code."""
    verb = VERBS[name]
    for route in verb.routes:
        found = described(document, route)
        parameters = {one["name"]: one for one in found["parameters"] if one["in"] != "header"}
        body = (
            found.get("requestBody", {})
            .get("content", {})
            .get("application/json", {})
            .get("schema", {})
        )
        assert found["summary"] == verb.summary
        assert verb.needs in found["description"]
        assert set(parameters) | set(body.get("properties", {})) == set(
            verb.request.__struct_fields__
        )
        assert {name for name in parameters if parameters[name]["in"] == "path"} == set(
            route.in_path
        )
        required = {name for name in parameters if parameters[name]["required"]} | set(
            body.get("required", ())
        )
        assert required == set(contract.json_schema(verb.request).get("required", ()))
        assert str(route.status) in found["responses"]
        assert {"400", "401", "403", "422", "429", "500", "503"} <= set(found["responses"])


def references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for inner in value.values():
            yield from references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from references(inner)


def test_every_reference_resolves(document: dict[str, Any]) -> None:
    for reference in references(document):
        place = document
        for step in reference.removeprefix("#/").split("/"):
            place = place[step]
        assert place


def test_names_are_unique(document: dict[str, Any]) -> None:
    names = [
        operation["operationId"]
        for path in document["paths"].values()
        for operation in path.values()
    ]
    assert len(names) == len(set(names))


def test_examples_are_valid(document: dict[str, Any]) -> None:
    shown = 0
    for path in document["paths"].values():
        for operation in path.values():
            for parameter in operation.get("parameters", ()):
                if "example" in parameter:
                    jsonschema.validate(parameter["example"], parameter["schema"])
                    shown += 1
            content = (
                operation.get("requestBody", {}).get("content", {}).get("application/json", {})
            )
            if "example" in content:
                schema = {**content["schema"], "components": document["components"]}
                jsonschema.validate(content["example"], schema)
                shown += 1
    assert shown > 20


def test_everything_but_health_needs_a_key(document: dict[str, Any]) -> None:
    assert document["security"] == [{"key": []}]
    assert document["components"]["securitySchemes"]["key"]["scheme"] == "bearer"
    free = [
        path
        for path, methods in document["paths"].items()
        if any("security" in one for one in methods.values())
    ]
    assert sorted(free) == ["/healthz", "/readyz"]


def test_page_lists_every_address_and_loads_nothing_external(
    server: Served, document: dict[str, Any]
) -> None:
    page = server.with_key(None)("GET", "/docs")
    assert page.headers["content-type"].startswith("text/html")
    for path in document["paths"]:
        assert path in page.text
    assert "http://" not in page.text.replace("http://HOST", "")
    assert "https://" not in page.text
    assert "<script" not in page.text
    assert page.headers["content-security-policy"].startswith(
        "default-src 'none'; style-src 'sha256-"
    )


@pytest.fixture(scope="module")
def fuzzed(server: Served) -> Any:
    return schemathesis.openapi.from_url(f"{server.address}/openapi.json")


CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]


ADDRESSES = [
    *((route.method, route.path) for verb in VERBS.values() for route in verb.routes),
    ("POST", "/v1/memories/batch"),
    ("GET", "/v1/memories/{id}/diff"),
    ("GET", "/v1/export"),
    ("POST", "/v1/import"),
    ("GET", "/healthz"),
    ("GET", "/readyz"),
]


def test_every_address_is_fuzzed(document: dict[str, Any]) -> None:
    found = {
        (method.upper(), path) for path, methods in document["paths"].items() for method in methods
    }
    assert found == set(ADDRESSES)


@pytest.mark.parametrize("mode", GenerationMode, ids=lambda mode: mode.value)
@pytest.mark.parametrize(("method", "path"), ADDRESSES)
def test_any_answer_matches_the_document(
    fuzzed: Any, server: Served, ana: Client, method: str, path: str, mode: GenerationMode
) -> None:
    operation = fuzzed[path][method]
    if mode is GenerationMode.NEGATIVE and not _has_input(operation):
        return
    headers = {
        "Authorization": f"Bearer {server.key('ana')}"
    }  # a key of its own, since one address revokes it
    ids = [
        ana.done("POST", "/v1/memories", json={"content": f"For {path}."})["id"] for _ in range(2)
    ]
    known = dict(zip(("source", "target"), ids, strict=True)) | {"id": ids[0]}

    @given(case=operation.as_strategy(generation_mode=mode))
    @settings(max_examples=4, suppress_health_check=list(HealthCheck))
    def run(case: Any) -> None:
        if (
            mode is GenerationMode.POSITIVE
        ):  # for existing memories; the other mode uses invented ids
            case.path_parameters = {
                name: known.get(name, value) for name, value in case.path_parameters.items()
            }
        case.call_and_validate(headers=headers, checks=CHECKS)

    run()


@schemathesis.serializer("application/x-ndjson")  # type: ignore[untyped-decorator]
def _as_lines(context: Any, value: Any) -> bytes:
    return (
        value.encode("utf-8", "surrogatepass")
        if isinstance(value, str)
        else json.dumps(value).encode()
    )


def _has_input(operation: Any) -> bool:
    """Return whether the address takes input that can be wrong."""
    return bool(operation.body) or any(True for _ in operation.iter_parameters())
