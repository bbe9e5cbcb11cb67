"""Responses of a server: its errors as ours, and retries.

A request is repeated only if it cannot act twice and the failure may be temporary.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from urllib.parse import urlsplit

import httpx2
import msgspec

from trivet.client import problems
from trivet.client.call import LINES, Call
from trivet.common.threads import prepared_type
from trivet.errors import (
    Conflict,
    Forbidden,
    InvalidInput,
    StoreError,
    TooMany,
    TrivetError,
    Unauthorised,
    UnknownFate,
)
from trivet.settings import Settings

SHOWN_CHARACTERS = 200

# Without a problem body. Such a 404 means a wrong address or version, not a missing memory.
BY_STATUS: Mapping[int, type[TrivetError]] = {
    400: InvalidInput,
    401: Unauthorised,
    403: Forbidden,
    409: Conflict,
    412: Conflict,
    413: InvalidInput,
    415: InvalidInput,
    422: InvalidInput,
    429: TooMany,
}

NOT_TRIVET_HINT = "Trivet does not answer like this. Check the address of the server."
NO_KEY = "Give a key as key=..., as TRIVET_KEY, or as the setting key in trivet.toml."


class ProblemBody(msgspec.Struct, frozen=True):
    type: str = "about:blank"
    title: str = ""
    detail: str = ""


def checked_body(response: httpx2.Response, settings: Settings) -> bytes:
    """Return the body of a successful response, or raise its error."""
    if not response.is_success:
        raise error_of(response, settings)
    return response.content


def check_export_response(response: httpx2.Response, settings: Settings) -> None:
    """Raise unless it is a stream of JSON lines; read an error's body before."""
    if not response.is_success:
        raise error_of(response, settings)
    kind = response.headers.get("content-type", "")
    if not kind.startswith(LINES):
        raise StoreError(
            f"{settings.path} answered with {kind or 'nothing'} instead of lines of JSON. "
            f"{NOT_TRIVET_HINT}"
        )


def error_of(response: httpx2.Response, settings: Settings) -> TrivetError:
    """Return the error in the server's words, else by its status."""
    status, address, key = response.status_code, settings.path, settings.key
    if status == 401 and not key:
        return Unauthorised(f"The server at {address} requires a key. {NO_KEY}")
    if response.has_redirect_location:
        return _redirect_error(response, address)
    problem = _problem(response)
    kind = problems.error_of(problem.type) or BY_STATUS.get(status, StoreError)
    text = problem.detail or problem.title or _unrecognized_answer(response, address)
    return kind(text.replace(key, "[key]") if key else text)  # a proxy may repeat the key


def _problem(response: httpx2.Response) -> ProblemBody:
    if not response.headers.get("content-type", "").startswith(problems.MEDIA_TYPE):
        return ProblemBody()
    try:
        return msgspec.json.decode(response.content, type=prepared_type(ProblemBody))
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return ProblemBody()


def _redirect_error(response: httpx2.Response, address: str) -> TrivetError:
    place = urlsplit(response.headers["location"])
    host = place.netloc.rpartition("@")[2]
    elsewhere = f"{place.scheme}://{host}{place.path}" if host else place.path
    return StoreError(
        f"The server at {address} redirects to {elsewhere}. The client does not follow, "
        "since it would send the key. "
        "If you trust that address, use it instead."
    )


def _unrecognized_answer(response: httpx2.Response, address: str) -> str:
    text = " ".join(response.text.split())[:SHOWN_CHARACTERS]
    return f"{address} answered {response.status_code}: {text!r}. {NOT_TRIVET_HINT}"


MOST_ATTEMPTS = 3
# After a write's answer was lost: about ten seconds, in which most servers restart. Each attempt
# repeats its key; the server returns the result, or performs the write then.
MAX_OUTCOME_QUERIES = 8
FIRST_PAUSE = 0.2
# If a server asks for a longer pause, its refusal goes to the caller.
LONGEST_PAUSE = 5.0
# Rate limit, overload, or a proxy without a server.
TEMPORARY_REFUSALS = frozenset({429, 502, 503})
# With Retry-After: the first attempt is still running.
STILL_IN_PROGRESS = 409
# The request may or may not have been performed.
GATEWAY_GAVE_UP = frozenset({502, 504})
# They leave the outcome of an earlier attempt open.
INCONCLUSIVE_STATUSES = TEMPORARY_REFUSALS | GATEWAY_GAVE_UP | {401, 403, 408, STILL_IN_PROGRESS}
# The request was not sent, so any request can be repeated.
NOT_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.ProxyError)


class Attempts:
    """The attempts at one call; a write's unknown outcome stays unknown until reported."""

    def __init__(self, call: Call, address: str) -> None:
        self._call = call
        self._address = address
        self._made = 0
        self._slow = 0
        self._unknown = False

    def after_response(self, status: int, headers: Mapping[str, str]) -> float | None:
        """Return the pause before the next attempt, or None if this was the last."""
        self._made += 1
        self._unknown |= self._call.writes and status in GATEWAY_GAVE_UP
        asked = headers.get("retry-after", "")
        if self._made >= self._most or not self._may_pass(status, asked):
            return None
        if not asked:
            return self._pause()
        return float(asked) if asked.isdigit() and float(asked) <= LONGEST_PAUSE else None

    def checked_body(self, response: httpx2.Response, settings: Settings) -> bytes:
        """Return the body or raise; UnknownFate if a write may be done."""
        try:
            return checked_body(response, settings)
        except TrivetError as error:
            if self._unknown and response.status_code in INCONCLUSIVE_STATUSES:
                raise self._unknown_fate(str(error)) from error
            raise

    def after_connection_error(self, error: httpx2.RequestError) -> float:
        """Return the pause before the next attempt, or raise.

        A read that timed out is not repeated: it would be slow again.
        """
        self._made += 1
        unsent = isinstance(error, NOT_SENT)
        self._unknown |= self._call.writes and not unsent
        self._slow += isinstance(error, httpx2.TimeoutException) and not unsent
        too_slow = self._slow > (1 if self._asks else 0)
        if too_slow or self._made >= self._most or not (unsent or self._call.repeatable):
            message = connection_error_text(error, self._address)
            raise self._unknown_fate(message) if self._unknown else StoreError(message)
        return self._pause()

    @property
    def _asks(self) -> bool:
        """Return whether the next attempt asks for an earlier write's outcome."""
        return self._unknown and bool(self._call.once)

    @property
    def _most(self) -> int:
        return MAX_OUTCOME_QUERIES if self._asks else MOST_ATTEMPTS

    def _may_pass(self, status: int, asked: str) -> bool:
        if status == STILL_IN_PROGRESS:
            return bool(asked and self._call.once)
        # After a proxy's 502 the request may have been performed.
        return (status in TEMPORARY_REFUSALS and (self._call.repeatable or status == 429)) or (
            status in GATEWAY_GAVE_UP and self._asks
        )

    def _unknown_fate(self, message: str) -> UnknownFate:
        stored = f" If it was, the memory has the id {self._call.id}." if self._call.id else ""
        return UnknownFate(
            f"{message} It is not known whether the write was done: check before you repeat "
            f"it.{stored}"
        )

    def _pause(self) -> float:
        return min(random.uniform(0.5, 1.0) * FIRST_PAUSE * 2.0**self._made, LONGEST_PAUSE)


def connection_error_text(error: httpx2.RequestError, address: str) -> str:
    reason = str(error) or type(error).__name__
    if isinstance(error, NOT_SENT):
        return (
            f"The server at {address} cannot be reached: {reason}. Check that it runs and "
            "that the address is right."
        )
    if isinstance(error, httpx2.TimeoutException):
        return (
            f"The server at {address} did not answer in time; the setting "
            "answer_time_limit_ms sets the limit."
        )
    return f"The connection to {address} was lost: {reason}."


def import_interrupted(error: httpx2.RequestError, address: str) -> StoreError:
    return StoreError(
        f"{connection_error_text(error, address)} Part of the import may be stored. Import "
        "again; that stores nothing twice."
    )


def export_interrupted(error: httpx2.RequestError, address: str) -> StoreError:
    return StoreError(
        f"{connection_error_text(error, address)} The export is incomplete. Export again."
    )
