"""What is tried again, and how long after: only what cannot be done twice, and only what may pass by itself."""

from __future__ import annotations

import random
from collections.abc import Mapping

import httpx2

from trivet.client.call import Call
from trivet.errors import StoreError

MOST_ATTEMPTS = 3
FIRST_PAUSE = 0.2
# A server that asks for a longer pause is believed, and its refusal handed to the caller.
LONGEST_PAUSE = 5.0
# Asked too often, too many at once, or no server behind the proxy for the moment.
REFUSED_FOR_NOW = frozenset({429, 502, 503})
# The first attempt is still being worked on, if the server says when to come again.
UNDER_WAY = 409
# The request has not left, so that it can be sent again whatever it is.
NOT_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.ProxyError)
UNKNOWN_FATE = " It is not known whether the write was done: look before you repeat it."


class Attempts:
    """The attempts at one call. Each method says how long to pause before the next."""

    def __init__(self, call: Call, address: str) -> None:
        self._call = call
        self._address = address
        self._made = 0

    def after_answer(self, status: int, headers: Mapping[str, str]) -> float | None:
        """None if the answer stands."""
        self._made += 1
        asked = headers.get("retry-after", "")
        if self._made == MOST_ATTEMPTS or not self._may_pass(status, asked):
            return None
        if not asked:
            return self._pause()
        return float(asked) if asked.isdigit() and float(asked) <= LONGEST_PAUSE else None

    def _may_pass(self, status: int, asked: str) -> bool:
        if status == UNDER_WAY:
            return bool(asked and self._call.once)
        # The 502 of a proxy does not say how far the request came.
        return status in REFUSED_FOR_NOW and (self._call.repeatable or status == 429)

    def after_loss(self, error: httpx2.RequestError) -> float:
        """Raises when it was the last attempt. One that took too long is not repeated: it would be slow again."""
        self._made += 1
        unsent = isinstance(error, NOT_SENT)
        slow = isinstance(error, httpx2.TimeoutException) and not unsent
        if slow or self._made == MOST_ATTEMPTS or not (unsent or self._call.repeatable):
            raise StoreError(loss(error, self._address) + ("" if unsent or not self._call.writes else UNKNOWN_FATE))
        return self._pause()

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
