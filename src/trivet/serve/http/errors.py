"""HTTP-only errors, and the problem+json answer to any error."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus

import msgspec
from starlette.responses import Response

from trivet.client.problems import MEDIA_TYPE, PROBLEMS, TYPE_PREFIX, Problem, ProblemKind
from trivet.errors import Conflict, InvalidInput, Moved, Moving, TooMany, TrivetError, Unauthorised
from trivet.serve.failures import public_message

AUTH_SCHEME = "Bearer"
UNEXPECTED = ProblemKind("unexpected", 500, "Unexpected server error")


class Malformed(InvalidInput):
    pass


class NoSuchRoute(TrivetError):
    pass


class TooLarge(TrivetError):
    pass


class WrongMediaType(TrivetError):
    pass


class OutOfDate(TrivetError):
    """A memory that changed since the caller read it."""


class Misdirected(TrivetError):
    """A host that this server does not answer for."""


class CrossSiteRequest(TrivetError):
    pass


class BodyTimedOut(TrivetError):
    pass


class Busy(TrivetError):
    """A request refused at a limit; nothing was done."""


class WorkTimedOut(TrivetError):
    """Work that goes on after its caller has waited long enough."""


class StillRunning(Conflict):
    pass


RETRY_SECONDS: Mapping[type[TrivetError], int] = {Busy: 1, StillRunning: 1, Moved: 1, Moving: 2}

_HTTP_PROBLEMS: Mapping[type[TrivetError], ProblemKind] = {
    Malformed: ProblemKind("malformed", 400, "The request cannot be parsed"),
    BodyTimedOut: ProblemKind("too-slow", 408, "The request did not arrive in time"),
    OutOfDate: ProblemKind("out-of-date", 412, "The memory has changed since you read it"),
    TooLarge: ProblemKind("too-large", 413, "The request is too large"),
    WrongMediaType: ProblemKind("wrong-media-type", 415, "The body has the wrong media type"),
    Misdirected: ProblemKind("misdirected", 421, "This server does not answer for this host"),
    CrossSiteRequest: ProblemKind("foreign", 403, "Not allowed from another site"),
    Busy: ProblemKind("busy", 503, "The server is busy"),
    WorkTimedOut: ProblemKind("took-too-long", 504, "The work is taking too long"),
}
ALL_PROBLEMS: Mapping[type[TrivetError], ProblemKind] = {**_HTTP_PROBLEMS, **PROBLEMS}


class Limited(TooMany):
    def __init__(self, message: str, seconds: int) -> None:
        super().__init__(message)
        self.seconds = seconds


class RouteNotFound(NoSuchRoute):
    """The router's 404, or its 405 with the allowed methods."""

    def __init__(self, status: int, message: str, headers: Mapping[str, str]) -> None:
        super().__init__(message)
        self.status = status
        self.headers = headers


def problem_kind(error: TrivetError) -> ProblemKind:
    if isinstance(error, RouteNotFound):
        return ProblemKind("no-such-route", error.status, HTTPStatus(error.status).phrase)
    return next(
        (problem for kind, problem in ALL_PROBLEMS.items() if isinstance(error, kind)), UNEXPECTED
    )


def problem_response(error: TrivetError, request_id: str) -> Response:
    return _problem(problem_kind(error), public_message(error), request_id, _headers(error))


def failure_response(request_id: str) -> Response:
    """Answer an unexpected error with the id of its log entry."""
    detail = f"The request may be correct. The server's log has the details under {request_id}."
    return _problem(UNEXPECTED, detail, request_id, {})


def _problem(
    kind: ProblemKind, detail: str, request_id: str, headers: Mapping[str, str]
) -> Response:
    problem = Problem(
        type=TYPE_PREFIX + kind.name,
        title=kind.title,
        status=kind.status,
        detail=detail,
        instance=f"urn:uuid:{request_id}",
    )
    return Response(msgspec.json.encode(problem), kind.status, dict(headers), MEDIA_TYPE)


def _headers(error: TrivetError) -> Mapping[str, str]:
    if isinstance(error, Unauthorised):
        return {"WWW-Authenticate": f'{AUTH_SCHEME} realm="trivet"'}
    if isinstance(error, Limited):
        return {"Retry-After": str(error.seconds)}
    if isinstance(error, RouteNotFound):
        return error.headers
    seconds = next(
        (seconds for kind, seconds in RETRY_SECONDS.items() if isinstance(error, kind)), None
    )
    return {} if seconds is None else {"Retry-After": str(seconds)}
