"""Turns a server's error answer into the error that an embedded store would have raised.

What is tried again, and how long after: only what cannot be done twice, and only what may pass by itself.
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

# What only HTTP has. A route that is not there is a matter of the address or the version, not of a memory.
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

NOT_TRIVET_HINT = "That is not how Trivet answers: is it the address of the server?"
NO_KEY = (
    "No key was given: give it as key=..., as TRIVET_KEY, or as the setting key in trivet.toml."
)


class ProblemBody(msgspec.Struct, frozen=True):
    """As much of a problem as we need; a proxy may give no more."""

    type: str = "about:blank"
    title: str = ""
    detail: str = ""


def checked_body(response: httpx2.Response, settings: Settings) -> bytes:
    """What was answered, if it is what was asked for."""
    if not response.is_success:
        raise error_of(response, settings)
    return response.content


def check_export_response(response: httpx2.Response, settings: Settings) -> None:
    """That what begins to arrive are lines of JSON. Of an error the whole must have been read."""
    if not response.is_success:
        raise error_of(response, settings)
    kind = response.headers.get("content-type", "")
    if not kind.startswith(LINES):
        raise StoreError(
            f"{settings.path} answered with {kind or 'nothing'} instead of lines of JSON. {NOT_TRIVET_HINT}"
        )


def error_of(response: httpx2.Response, settings: Settings) -> TrivetError:
    """The server's own words where it gives any; else what its status means to the user who set this up."""
    status, address, key = response.status_code, settings.path, settings.key
    if status == 401 and not key:
        return Unauthorised(f"The server at {address} wants to know who asks. {NO_KEY}")
    if response.has_redirect_location:
        return _redirect_error(response, address)
    problem = _problem(response)
    kind = problems.error_of(problem.type) or BY_STATUS.get(status, StoreError)
    said = problem.detail or problem.title or _unrecognized_answer(response, address)
    return kind(said.replace(key, "[key]") if key else said)  # which a proxy may repeat


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
        f"The server at {address} sends us on to {elsewhere}. That is not followed, since the key would go along. "
        "If you trust it, give the address it leads to."
    )


def _unrecognized_answer(response: httpx2.Response, address: str) -> str:
    """Something between us and the server answered, or it is no Trivet at all."""
    said = " ".join(response.text.split())[:SHOWN_CHARACTERS]
    return f"{address} answered {response.status_code}: {said!r}. {NOT_TRIVET_HINT}"


MOST_ATTEMPTS = 3
# Once a write was sent and its answer lost, the server is asked by the write's key so often: for some ten seconds, in
# which most servers come up again. Each time it answers what it did, or does it then.
MAX_OUTCOME_QUERIES = 8
FIRST_PAUSE = 0.2
# A server that asks for a longer pause is believed, and its refusal handed to the caller.
LONGEST_PAUSE = 5.0
# Asked too often, too many at once, or no server behind the proxy for the moment.
TEMPORARY_REFUSALS = frozenset({429, 502, 503})
# The first attempt is still being worked on, if the server says when to come again.
STILL_IN_PROGRESS = 409
# A proxy or the server gave up waiting: how far the request came is not said.
GATEWAY_GAVE_UP = frozenset({502, 504})
# These do not speak of the write, but of this question: asked before, they leave open what became of the first.
INCONCLUSIVE_STATUSES = TEMPORARY_REFUSALS | GATEWAY_GAVE_UP | {401, 403, 408, STILL_IN_PROGRESS}
# The request has not left, so that it can be sent again whatever it is.
NOT_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.ProxyError)


class Attempts:
    """The attempts at one call. Each method says how long to pause before the next.

    A write whose fate became unknown stays so until the server speaks of it, whatever the later attempts meet.
    """

    def __init__(self, call: Call, address: str) -> None:
        self._call = call
        self._address = address
        self._made = 0
        self._slow = 0
        self._unknown = False

    def after_response(self, status: int, headers: Mapping[str, str]) -> float | None:
        """None if the answer stands."""
        self._made += 1
        self._unknown |= self._call.writes and status in GATEWAY_GAVE_UP
        asked = headers.get("retry-after", "")
        if self._made >= self._most or not self._may_pass(status, asked):
            return None
        if not asked:
            return self._pause()
        return float(asked) if asked.isdigit() and float(asked) <= LONGEST_PAUSE else None

    def checked_body(self, response: httpx2.Response, settings: Settings) -> bytes:
        """The answer that stands, or its error; UnknownFate where it does not tell what became of the write."""
        try:
            return checked_body(response, settings)
        except TrivetError as error:
            if self._unknown and response.status_code in INCONCLUSIVE_STATUSES:
                raise self._unknown_fate(str(error)) from error
            raise

    def after_connection_error(self, error: httpx2.RequestError) -> float:
        """Raises when it was the last attempt. A read that took too long is not repeated: it would be slow again."""
        self._made += 1
        unsent = isinstance(error, NOT_SENT)
        self._unknown |= self._call.writes and not unsent
        self._slow += isinstance(error, httpx2.TimeoutException) and not unsent
        too_slow = self._slow > (1 if self._asks else 0)
        if too_slow or self._made >= self._most or not (unsent or self._call.repeatable):
            told = connection_error_text(error, self._address)
            raise self._unknown_fate(told) if self._unknown else StoreError(told)
        return self._pause()

    @property
    def _asks(self) -> bool:
        """Whether what is sent again is a question: what became of this write?"""
        return self._unknown and bool(self._call.once)

    @property
    def _most(self) -> int:
        return MAX_OUTCOME_QUERIES if self._asks else MOST_ATTEMPTS

    def _may_pass(self, status: int, asked: str) -> bool:
        if status == STILL_IN_PROGRESS:
            return bool(asked and self._call.once)
        # The 502 of a proxy does not say how far the request came.
        return (status in TEMPORARY_REFUSALS and (self._call.repeatable or status == 429)) or (
            status in GATEWAY_GAVE_UP and self._asks
        )

    def _unknown_fate(self, told: str) -> UnknownFate:
        stored = f" If it was, the memory has the id {self._call.id}." if self._call.id else ""
        return UnknownFate(
            f"{told} It is not known whether the write was done: look before you repeat it.{stored}"
        )

    def _pause(self) -> float:
        """Twice as long each time, spread so that clients do not return in step."""
        return min(random.uniform(0.5, 1.0) * FIRST_PAUSE * 2.0**self._made, LONGEST_PAUSE)


def connection_error_text(error: httpx2.RequestError, address: str) -> str:
    """Why no answer came, for the caller."""
    reason = str(error) or type(error).__name__
    if isinstance(error, NOT_SENT):
        return f"The server at {address} cannot be reached: {reason}. Is it running, and is the address right?"
    if isinstance(error, httpx2.TimeoutException):
        return f"The server at {address} did not answer in time; the setting answer_time_limit_ms says how long we wait."
    return f"The connection to {address} broke off: {reason}."


def import_interrupted(error: httpx2.RequestError, address: str) -> StoreError:
    return StoreError(
        f"{connection_error_text(error, address)} Part of the import may be in; import it again, which does no harm."
    )


def export_interrupted(error: httpx2.RequestError, address: str) -> StoreError:
    return StoreError(
        f"{connection_error_text(error, address)} The export is not whole; begin it again."
    )
