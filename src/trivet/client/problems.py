"""Errors as problem details over HTTP (RFC 9457), for the server and the client."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from trivet.errors import (
    Conflict,
    EmbedderError,
    Forbidden,
    InvalidInput,
    LegFailed,
    Moved,
    Moving,
    NotFound,
    RerankerError,
    SecretError,
    StoreError,
    TooMany,
    TrivetError,
    Unauthorised,
    UnknownFate,
)

MEDIA_TYPE = "application/problem+json"
TYPE_PREFIX = "urn:trivet:problem:"


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """The body of an error; `instance` is also in the server's log."""

    type: str
    title: str
    status: int
    detail: str
    instance: str


class ProblemKind(msgspec.Struct, frozen=True):
    """An error over HTTP; `name` is the end of its `type`."""

    name: str
    status: int
    title: str


PROBLEMS: Mapping[type[TrivetError], ProblemKind] = {
    InvalidInput: ProblemKind("invalid-input", 422, "The request is invalid"),
    Unauthorised: ProblemKind("unauthorised", 401, "The caller is not known"),
    Forbidden: ProblemKind("forbidden", 403, "Not allowed"),
    NotFound: ProblemKind("not-found", 404, "Not found"),
    Conflict: ProblemKind("conflict", 409, "It conflicts with what is stored"),
    TooMany: ProblemKind("too-many", 429, "Too many requests"),
    SecretError: ProblemKind("secret", 503, "A secret cannot be sealed or opened"),
    EmbedderError: ProblemKind("embedder", 503, "The embedder is not available"),
    RerankerError: ProblemKind("reranker", 503, "The reranker is not available"),
    LegFailed: ProblemKind("leg-failed", 503, "A part of the search failed"),
    UnknownFate: ProblemKind("unknown-fate", 503, "It is not known whether the write was done"),
    Moving: ProblemKind("moving", 503, "The memories are being moved"),
    Moved: ProblemKind("moved", 503, "The memories have just been moved"),
    StoreError: ProblemKind("store", 503, "The store is not available"),
}


def error_of(type: str) -> type[TrivetError] | None:
    """Return the error class for a problem's `type`."""
    name = type.removeprefix(TYPE_PREFIX)
    return next((kind for kind, problem in PROBLEMS.items() if problem.name == name), None)
