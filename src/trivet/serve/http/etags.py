"""A memory's ETag: its revision, which changes by every edit, and a digest of what is shown of it."""

from __future__ import annotations

import hashlib
import re

from starlette.requests import Request

from trivet.errors import InvalidInput
from trivet.serve.http.errors import OutOfDate
from trivet.trivet import Trivet
from trivet.types import Memory

_TAG = re.compile(r'(?:W/)?"(\d{1,10})(?:-[0-9a-f]*)?"')
DIGEST_BYTES = 6


def etag(memory: Memory, body: bytes) -> str:
    """The digest tells apart what has one revision: masked and revealed, or superseded by a link."""
    return f'"{memory.revision}-{hashlib.blake2b(body, digest_size=DIGEST_BYTES).hexdigest()}"'


def is_known(request: Request, tag: str) -> bool:
    """Whether the caller has this already, so that 304 is all it needs."""
    given = request.headers.get("if-none-match", "")
    return given == "*" or tag in [one.strip().removeprefix("W/") for one in given.split(",")]


def expected_revisions(request: Request) -> frozenset[int] | None:
    """Those of If-Match; None where any will do."""
    given = request.headers.get("if-match")
    if given is None or given.strip() == "*":
        return None
    found = [_TAG.fullmatch(one.strip()) for one in given.split(",")]
    if not all(found):
        raise InvalidInput('If-Match: give the ETag of the memory as it came, such as "3-0f6c1a2b9d10".')
    return frozenset(int(one[1]) for one in found if one)


def check_unchanged(memory: Trivet, id: str, expected: frozenset[int] | None) -> int | None:
    """The revision that was expected and is there, or nothing where none was expected."""
    if expected is None:
        return None
    current = memory.get(id).revision
    if current not in expected:
        raise OutOfDate(f"The memory is at revision {current} by now. Nothing was done; read it again.")
    return current
