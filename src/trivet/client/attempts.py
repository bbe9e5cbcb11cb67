"""What is tried again, and how long after: only what cannot be done twice, and only what may pass by itself."""

from __future__ import annotations

import random
from collections.abc import Mapping

import httpx2

from trivet.client.call import Call
from trivet.client.error_response import checked
from trivet.errors import StoreError, TrivetError, UnknownFate
from trivet.settings import Settings

MOST_ATTEMPTS = 3
# Once a write was sent and its answer lost, the server is asked by the write's key so often: for some ten seconds, in
# which most servers come up again. Each time it answers what it did, or does it then.
MOST_QUESTIONS = 8
FIRST_PAUSE = 0.2
# A server that asks for a longer pause is believed, and its refusal handed to the caller.
LONGEST_PAUSE = 5.0
# Asked too often, too many at once, or no server behind the proxy for the moment.
REFUSED_FOR_NOW = frozenset({429, 502, 503})
# The first attempt is still being worked on, if the server says when to come again.
UNDER_WAY = 409
# A proxy or the server gave up waiting: how far the request came is not said.
GAVE_UP = frozenset({502, 504})
# These do not speak of the write, but of this question: asked before, they leave open what became of the first.
OF_THE_QUESTION = REFUSED_FOR_NOW | GAVE_UP | {401, 403, 408, UNDER_WAY}
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

    def after_answer(self, status: int, headers: Mapping[str, str]) -> float | None:
        """None if the answer stands."""
        self._made += 1
        self._unknown |= self._call.writes and status in GAVE_UP
        asked = headers.get("retry-after", "")
        if self._made >= self._most or not self._may_pass(status, asked):
            return None
        if not asked:
            return self._pause()
        return float(asked) if asked.isdigit() and float(asked) <= LONGEST_PAUSE else None

    def checked(self, response: httpx2.Response, settings: Settings) -> bytes:
        """The answer that stands, or its error; UnknownFate where it does not tell what became of the write."""
        try:
            return checked(response, settings)
        except TrivetError as error:
            if self._unknown and response.status_code in OF_THE_QUESTION:
                raise self._unknown_fate(str(error)) from error
            raise

    def after_loss(self, error: httpx2.RequestError) -> float:
        """Raises when it was the last attempt. A read that took too long is not repeated: it would be slow again."""
        self._made += 1
        unsent = isinstance(error, NOT_SENT)
        self._unknown |= self._call.writes and not unsent
        self._slow += isinstance(error, httpx2.TimeoutException) and not unsent
        too_slow = self._slow > (1 if self._asks else 0)
        if too_slow or self._made >= self._most or not (unsent or self._call.repeatable):
            told = loss(error, self._address)
            raise self._unknown_fate(told) if self._unknown else StoreError(told)
        return self._pause()

    @property
    def _asks(self) -> bool:
        """Whether what is sent again is a question: what became of this write?"""
        return self._unknown and bool(self._call.once)

    @property
    def _most(self) -> int:
        return MOST_QUESTIONS if self._asks else MOST_ATTEMPTS

    def _may_pass(self, status: int, asked: str) -> bool:
        if status == UNDER_WAY:
            return bool(asked and self._call.once)
        # The 502 of a proxy does not say how far the request came.
        return (status in REFUSED_FOR_NOW and (self._call.repeatable or status == 429)) or (
            status in GAVE_UP and self._asks
        )

    def _unknown_fate(self, told: str) -> UnknownFate:
        stored = f" If it was, the memory has the id {self._call.id}." if self._call.id else ""
        return UnknownFate(f"{told} It is not known whether the write was done: look before you repeat it.{stored}")

    def _pause(self) -> float:
        """Twice as long each time, spread so that clients do not return in step."""
        return min(random.uniform(0.5, 1.0) * FIRST_PAUSE * 2.0**self._made, LONGEST_PAUSE)


def loss(error: httpx2.RequestError, address: str) -> str:
    """Why no answer came, for the caller."""
    reason = str(error) or type(error).__name__
    if isinstance(error, NOT_SENT):
        return f"The server at {address} cannot be reached: {reason}. Is it running, and is the address right?"
    if isinstance(error, httpx2.TimeoutException):
        return (
            f"The server at {address} did not answer in time; the setting answer_time_limit_ms says how long we wait."
        )
    return f"The connection to {address} broke off: {reason}."


def broken_import(error: httpx2.RequestError, address: str) -> StoreError:
    return StoreError(f"{loss(error, address)} Part of the import may be in; import it again, which does no harm.")


def broken_export(error: httpx2.RequestError, address: str) -> StoreError:
    return StoreError(f"{loss(error, address)} The export is not whole; begin it again.")
