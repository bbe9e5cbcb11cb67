"""Errors that only HTTP has, and how any error is answered: as problem+json, without traces or values."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus

import msgspec
from starlette.responses import Response

from trivet.client.problems import MEDIA_TYPE, PROBLEMS, TYPE_PREFIX, Problem, ProblemKind
from trivet.errors import Conflict, InvalidInput, Moved, Moving, TooMany, TrivetError, Unauthorised
from trivet.serve.failures import public_message

AUTH_SCHEME = "Bearer"
UNEXPECTED = ProblemKind("unexpected", 500, "The server failed at this")


class Malformed(InvalidInput):
    """The request cannot be read at all."""


class NoSuchRoute(TrivetError):
    """The address or its method is not one of this server's."""


class TooLarge(TrivetError):
    """The request is larger than this server reads."""


class WrongMediaType(TrivetError):
    """The body is of another kind than this route takes."""


class OutOfDate(TrivetError):
    """The memory has changed since the caller read it."""


class Misdirected(TrivetError):
    """The request names another host than this server answers for."""


class CrossSiteRequest(TrivetError):
    """A page of another site asks."""


class BodyTimedOut(TrivetError):
    """The caller did not send the request in time."""


class Busy(TrivetError):
    """The server has no room for this request now; nothing was done."""


class WorkTimedOut(TrivetError):
    """The work goes on, but the caller has waited long enough."""


class StillRunning(Conflict):
    """The same request is being worked on."""


RETRY_SECONDS: Mapping[type[TrivetError], int] = {Busy: 1, StillRunning: 1, Moved: 1, Moving: 2}

_HTTP_PROBLEMS: Mapping[type[TrivetError], ProblemKind] = {
    Malformed: ProblemKind("malformed", 400, "The request cannot be read"),
    BodyTimedOut: ProblemKind("too-slow", 408, "The request did not arrive in time"),
    OutOfDate: ProblemKind("out-of-date", 412, "It has changed meanwhile"),
    TooLarge: ProblemKind("too-large", 413, "The request is too large"),
    WrongMediaType: ProblemKind("wrong-media-type", 415, "The body is of the wrong kind"),
    Misdirected: ProblemKind("misdirected", 421, "This server does not answer for that host"),
    CrossSiteRequest: ProblemKind("foreign", 403, "Not allowed from another site"),
    Busy: ProblemKind("busy", 503, "The server is busy"),
    WorkTimedOut: ProblemKind("took-too-long", 504, "The work takes too long"),
}
ALL_PROBLEMS: Mapping[type[TrivetError], ProblemKind] = {**_HTTP_PROBLEMS, **PROBLEMS}


class Limited(TooMany):
    """Carries how long to wait."""

    def __init__(self, message: str, seconds: int) -> None:
        super().__init__(message)
        self.seconds = seconds


class RouteNotFound(NoSuchRoute):
    """As the router says it: 404, or 405 with the methods there are."""

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
    """For an unexpected error. The caller gets the id under which the server's log has the details."""
    detail = f"Nothing is known to be wrong with the request. The server's log has the details under {request_id}."
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
