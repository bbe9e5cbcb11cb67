"""What each error is called over HTTP (RFC 9457): the server writes it, the client turns it back into the error."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from trivet.errors import (
    Conflict,
    EmbedderError,
    Forbidden,
    InvalidInput,
    LegFailed,
    NotFound,
    RerankerError,
    SecretError,
    StoreError,
    TooMany,
    TrivetError,
    Unauthorised,
)

MEDIA_TYPE = "application/problem+json"
TYPE_PREFIX = "urn:trivet:problem:"


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """The body of every answer that is an error. `instance` names this one request, as the server's log does."""

    type: str
    title: str
    status: int
    detail: str
    instance: str


class Told(msgspec.Struct, frozen=True):
    """How an error is told: the end of its `type`, its status and its title."""

    name: str
    status: int
    title: str


PROBLEMS: Mapping[type[TrivetError], Told] = {
    InvalidInput: Told("invalid-input", 422, "The request is not acceptable"),
    Unauthorised: Told("unauthorised", 401, "Who is asking is not known"),
    Forbidden: Told("forbidden", 403, "Not allowed"),
    NotFound: Told("not-found", 404, "There is no such thing"),
    Conflict: Told("conflict", 409, "It contradicts what is stored"),
    TooMany: Told("too-many", 429, "Too many requests"),
    SecretError: Told("secret", 503, "A secret cannot be sealed or opened"),
    EmbedderError: Told("embedder", 503, "The embedder is not available"),
    RerankerError: Told("reranker", 503, "The reranker is not available"),
    LegFailed: Told("leg-failed", 503, "A part of the search failed"),
    StoreError: Told("store", 503, "The store is not available"),
}


def error_of(type: str) -> type[TrivetError] | None:
    """The error that is told by this `type`."""
    name = type.removeprefix(TYPE_PREFIX)
    return next((kind for kind, told in PROBLEMS.items() if told.name == name), None)
