"""Turns a server's error answer into the error that an embedded store would have raised."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

import httpx2
import msgspec

from trivet.client import problems
from trivet.client.call import LINES
from trivet.decoding import known_type
from trivet.errors import Conflict, Forbidden, InvalidInput, StoreError, TooMany, TrivetError, Unauthorised
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

STRANGER = "That is not how Trivet answers: is it the address of the server?"
NO_KEY = "No key was given: give it as key=..., as TRIVET_KEY, or as the setting key in trivet.toml."


class Said(msgspec.Struct, frozen=True):
    """As much of a problem as we need; a proxy may give no more."""

    type: str = "about:blank"
    title: str = ""
    detail: str = ""


def checked(response: httpx2.Response, settings: Settings) -> bytes:
    """What was answered, if it is what was asked for."""
    if not response.is_success:
        raise error_of(response, settings)
    return response.content


def check_lines(response: httpx2.Response, settings: Settings) -> None:
    """That what begins to arrive are lines of JSON. Of an error the whole must have been read."""
    if not response.is_success:
        raise error_of(response, settings)
    kind = response.headers.get("content-type", "")
    if not kind.startswith(LINES):
        raise StoreError(f"{settings.path} answered with {kind or 'nothing'} instead of lines of JSON. {STRANGER}")


def error_of(response: httpx2.Response, settings: Settings) -> TrivetError:
    """The server's own words where it gives any; else what its status means to the user who set this up."""
    status, address, key = response.status_code, settings.path, settings.key
    if status == 401 and not key:
        return Unauthorised(f"The server at {address} wants to know who asks. {NO_KEY}")
    if response.has_redirect_location:
        return _sent_on(response, address)
    problem = _problem(response)
    kind = problems.error_of(problem.type) or BY_STATUS.get(status, StoreError)
    said = problem.detail or problem.title or _from_a_stranger(response, address)
    return kind(said.replace(key, "[key]") if key else said)  # which a proxy may repeat


def _problem(response: httpx2.Response) -> Said:
    if not response.headers.get("content-type", "").startswith(problems.MEDIA_TYPE):
        return Said()
    try:
        return msgspec.json.decode(response.content, type=known_type(Said))
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return Said()


def _sent_on(response: httpx2.Response, address: str) -> TrivetError:
    place = urlsplit(response.headers["location"])
    host = place.netloc.rpartition("@")[2]
    elsewhere = f"{place.scheme}://{host}{place.path}" if host else place.path
    return StoreError(
        f"The server at {address} sends us on to {elsewhere}. That is not followed, since the key would go along. "
        "If you trust it, give the address it leads to."
    )


def _from_a_stranger(response: httpx2.Response, address: str) -> str:
    """Something between us and the server answered, or it is no Trivet at all."""
    said = " ".join(response.text.split())[:SHOWN_CHARACTERS]
    return f"{address} answered {response.status_code}: {said!r}. {STRANGER}"
