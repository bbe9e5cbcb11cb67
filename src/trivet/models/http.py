"""One JSON request over HTTP with limits on time, attempts, waiting, and answer size."""

import email.utils
import http.client
import json
import random
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from trivet.errors import EmbedderError

LOOPBACK = ("127.0.0.1", "localhost", "::1")
RETRYABLE = frozenset({408, 429, 500, 502, 503, 504})
# The usual cause of each status. The body stays hidden: providers quote the rejected text in it,
# and others may see the error.
HINTS: Mapping[int, str] = {
    400: "the request is not accepted: check the model's name, or set a smaller window=N",
    401: "check the key",
    403: "check that this key may use the model",
    404: "check the address and the model's name",
    413: "the text is too long: set a smaller window=N",
    422: "the text is not accepted: set a smaller window=N",
    429: "too many requests",
}
# Reasons that may be shown; any other text of an answer may be a user's.
KNOWN_CODES = frozenset(
    (
        "model_not_found",
        "invalid_api_key",
        "insufficient_quota",
        "context_length_exceeded",
        "rate_limit_exceeded",
    )
)
REFUSAL_BYTES = 4096
CHUNK_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits in seconds: `seconds` per silence of the server, `deadline` overall."""

    seconds: float
    deadline: float
    attempts: int
    first_wait: float = 0.5
    longest_wait: float = 30.0
    most_bytes: int = 64 * 2**20


# Short, since recall works without a query's vector; nobody waits for a document's.
QUERY_LIMITS = Limits(seconds=5.0, deadline=8.0, attempts=2)
DOCUMENT_LIMITS = Limits(seconds=60.0, deadline=180.0, attempts=5)
TRIAL_LIMITS = Limits(seconds=5.0, deadline=5.0, attempts=1)


class _Failure(Exception):
    def __init__(
        self,
        reason: str,
        retryable: bool,
        retry_after: float | None = None,
        fault: str | None = None,
    ) -> None:
        super().__init__(reason)
        self.retryable = retryable
        self.retry_after = retry_after
        self.fault = fault  # fault of the endpoint; None if it answered but rejected this request


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Handler that refuses redirects: they would send the key to an undeclared host."""

    def redirect_request(self, *_: Any) -> None:
        return None


def post_json(
    url: str,
    body: Mapping[str, Any],
    key: str = "",
    limits: Limits = DOCUMENT_LIMITS,
    wait: Callable[[float], object] = time.sleep,
    name: str = "the endpoint",
) -> Any:
    """Return the decoded answer, or raise an EmbedderError that calls the endpoint `name`.

    The error holds no text of request or answer, no key and no address: other users of a server may
    see it.
    """
    request = _request(url, body, key)
    end = time.monotonic() + limits.deadline
    for attempt in range(1, limits.attempts + 1):
        try:
            return _attempt(request, limits, end)
        except _Failure as failure:
            pause = _pause(failure, attempt, limits)
            if (
                not failure.retryable
                or attempt == limits.attempts
                or time.monotonic() + pause >= end
            ):
                raise EmbedderError(
                    f"{name}: {failure} (attempt {attempt})", failure.fault
                ) from None
            wait(pause)
    raise AssertionError("unreachable: the last attempt returns or raises")


def _request(url: str, body: Mapping[str, Any], key: str) -> urllib.request.Request:
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    if key:
        headers["Authorization"] = f"Bearer {key}"
    return urllib.request.Request(url, json.dumps(body).encode(), headers, method="POST")


def _attempt(request: urllib.request.Request, limits: Limits, end: float) -> Any:
    timeout = max(0.001, min(limits.seconds, end - time.monotonic()))
    try:
        with _opener(request.host).open(request, timeout=timeout) as response:
            raw = _read(response, limits.most_bytes, end)
    except urllib.error.HTTPError as error:
        raise _refused(error) from None
    except (TimeoutError, OSError, http.client.HTTPException) as error:
        raise _unreachable(error, timeout) from None
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        raise _Failure("the answer is not JSON: check the address", retryable=False) from None


def _opener(host: str) -> urllib.request.OpenerDirector:
    """Use proxies of the environment, but never for a server on this machine."""
    handlers: list[urllib.request.BaseHandler] = [_NoRedirect()]
    if is_loopback(f"//{host}"):
        handlers.append(urllib.request.ProxyHandler({}))
    return urllib.request.build_opener(*handlers)


def is_loopback(url: str) -> bool:
    return urlsplit(url).hostname in LOOPBACK


def _read(response: http.client.HTTPResponse, most_bytes: int, end: float) -> bytes:
    chunks = bytearray()
    while chunk := response.read1(CHUNK_BYTES):
        chunks += chunk
        if len(chunks) > most_bytes:
            raise _Failure(f"the answer is larger than {most_bytes} bytes", retryable=False)
        if time.monotonic() > end:
            raise TimeoutError
    return bytes(chunks)


def _refused(error: urllib.error.HTTPError) -> _Failure:
    try:
        body = error.read(REFUSAL_BYTES)
    except (OSError, http.client.HTTPException):
        body = b""
    retry_after = _retry_after(error.headers.get("Retry-After"))
    error.close()
    retryable = error.code in RETRYABLE
    parts = [f"refused (HTTP {error.code})", _known_code(body), HINTS.get(error.code, "")]
    return _Failure(
        ", ".join(filter(None, parts)), retryable, retry_after, "down" if retryable else None
    )


def _known_code(body: bytes) -> str:
    try:
        error = json.loads(body)["error"]
        given = (error.get("code"), error.get("type"))
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return ""
    return next((code for code in given if isinstance(code, str) and code in KNOWN_CODES), "")


def _unreachable(error: Exception, timeout: float) -> _Failure:
    cause = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(cause, TimeoutError):
        return _Failure(f"no answer within {timeout:g} s", retryable=True, fault="hung")
    if isinstance(cause, ConnectionRefusedError):
        return _Failure(
            "the connection was refused: check that the server is running",
            retryable=False,
            fault="down",
        )
    broken = isinstance(cause, ConnectionError | http.client.HTTPException)
    return _Failure(f"cannot be reached ({_cause(cause)})", retryable=broken, fault="down")


def _cause(cause: object) -> str:
    known = (
        cause.strerror
        if isinstance(cause, OSError) and not isinstance(cause, ssl.SSLError)
        else None
    )
    if isinstance(cause, ssl.SSLError):
        known = cause.reason
    return known or type(cause).__name__


def _pause(failure: _Failure, attempt: int, limits: Limits) -> float:
    if failure.retry_after is not None:
        return min(failure.retry_after, limits.longest_wait)
    spread = random.uniform(0.5, 1.0)
    return min(spread * limits.first_wait * 2.0**attempt, limits.longest_wait)


def _retry_after(value: str | None) -> float | None:
    if value is None:
        return None
    if value.strip().isascii() and value.strip().isdigit():
        return float(value)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    except ValueError:
        return None
