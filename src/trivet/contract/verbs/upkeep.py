"""What only the owner can ask, who has the store itself. The command line has options of its own for these."""

from __future__ import annotations

from os import PathLike
from typing import Annotated

from msgspec import Meta

from trivet.contract.verb import Request, verb
from trivet.types import Progress, Redacted, Rotated, Tidy, TidyKind

Watched = Annotated[Progress | None, Meta(description="Called with the number of memories done since the last call.")]


@verb(
    "rotate_keys",
    "trivet.memory.owner:rotate_keys",
    needs="store",
    instead="Run `trivet rotate-keys` on the server's machine.",
)
class RotateKeysRequest(Request[Rotated], frozen=True, kw_only=True):
    """Seal every secret of this store with a new key. The old ones stay, for backups, unless they are dropped."""

    drop_old: Annotated[
        bool, Meta(description="Remove the old keys that no store needs any longer, when everything is sealed anew.")
    ] = False
    drop: Annotated[
        tuple[str, ...], Meta(description="Remove these old keys, even if other stores were noted to use them.")
    ] = ()


@verb("redact", "trivet.memory.owner:redact", needs="store", instead="Run `trivet redact` on the server's machine.")
class RedactRequest(Request[Redacted], frozen=True, kw_only=True):
    """Take secrets out of memories and revisions that were stored while nothing looked for them."""

    progress: Watched = None


@verb("tidy", "trivet.memory.owner:tidy", needs="store", instead="Run `trivet tidy` on the server's machine.")
class TidyRequest(Request[Tidy], frozen=True, kw_only=True):
    """Find duplicates, what has expired, was never recalled or useful, or lost its file; forget it if wanted."""

    kinds: Annotated[tuple[TidyKind, ...], Meta(description="Only these kinds of findings.")] = ()
    dry_run: Annotated[bool, Meta(description="Only say what would be forgotten.")] = True
    unused_days: Annotated[int, Meta(ge=1, description="Unused is what was not recalled in so many days.")] = 180
    undo: Annotated[bool, Meta(description="Bring back what the last run forgot.")] = False


@verb(
    "backup",
    "trivet.memory.owner:backup",
    needs="store",
    instead="Run `trivet backup FILE` on the server's machine, or take an export(), which travels.",
)
class BackupRequest(Request[None], frozen=True, kw_only=True):
    """Copy the store to a new file while others go on using it."""

    target: Annotated[str | PathLike[str], Meta(description="The new file.")]


@verb("reindex", "trivet.memory.owner:reindex", needs="store", instead="Run `trivet reindex` on the server's machine.")
class ReindexRequest(Request[int], frozen=True, kw_only=True):
    """Rebuild derived data from the memories and return how many memories were embedded."""

    lexical: Annotated[bool, Meta(description="The lexical index.")] = True
    vectors: Annotated[bool, Meta(description="The vectors.")] = True
    graph: Annotated[bool, Meta(description="The concept graph.")] = True
    progress: Watched = None


@verb(
    "drain",
    "trivet.memory.owner:drain",
    needs="store",
    instead="The server embeds by itself; stats().not_embedded tells how many memories still wait.",
    command=False,
)
class DrainRequest(Request[int], frozen=True, kw_only=True):
    """Embed what is due, unless a background worker has done it; returns how many memories this call embedded."""

    progress: Watched = None


@verb(
    "embed",
    "trivet.memory.owner:embed",
    needs="store",
    instead="The server embeds by itself; to try again at once what failed, run `trivet embed` on its machine.",
)
class EmbedRequest(Request[int], frozen=True, kw_only=True):
    """Embed everything that waits, also what failed before and would be retried later."""

    progress: Watched = None
