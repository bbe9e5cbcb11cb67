"""Terms as numbers: so that an index file needs no dictionary that must be kept, loaded or agreed upon."""

from __future__ import annotations

from hashlib import blake2b

# Two of a million different terms share a number of 64 bits with a chance of one in forty million.
HASH_BYTES = 8


def hashed(term: str) -> int:
    return int.from_bytes(blake2b(term.encode(errors="replace"), digest_size=HASH_BYTES).digest(), "little")
