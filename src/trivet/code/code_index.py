"""The searchable index of a source tree."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from types import TracebackType

import msgspec

from trivet.code.encoder import FOLDER, Encoder, bundled
from trivet.code.hits import build_hits, find_place, symbol_hits
from trivet.code.index.database import IndexFile, tidy
from trivet.code.index.refresh import Progress, merge_listing, parse_missing, with_keys
from trivet.code.index.snapshot import UNREADABLE, view_of_tree
from trivet.code.recipe import DEFAULT, CodeRecipe, parse_code_recipe
from trivet.code.search.query import read_query
from trivet.code.search.rank import rank, related, vector_of
from trivet.code.search.view import View, allowed_chunks
from trivet.code.tree import Listing, Root, find_root, index_path, list_tree, watch
from trivet.code.types import (
    DEFAULT_LIMIT,
    CodeAnswer,
    CodeFilters,
    CodeHit,
    CodeStatus,
    KeyedFile,
    LeftOut,
)
from trivet.errors import Damaged, InvalidInput, StoreError

logger = logging.getLogger("trivet.code")

MAX_HITS = 1_000
# Longer queries are cut: the words of a pasted log repeat themselves.
MAX_QUERY_CHARACTERS = 20_000


class CodeIndex:
    """The index of one tree, safe for several threads and processes."""

    def __init__(self, root: Root, file: IndexFile, encoder: Encoder | None) -> None:
        self.root = root
        self._file = file
        self._encoder = encoder
        self._lock = threading.RLock()
        self._listing: Listing | None = None
        self._kept: Listing | None = None  # the listing stored in the index file
        self._keys: list[KeyedFile] = []
        self._parsed: frozenset[bytes] = frozenset()
        self._unread: frozenset[str] = frozenset()  # paths that the next refresh retries
        self._view: View | None = None
        self._left_out: tuple[LeftOut, ...] = ()
        self._looked = 0.0  # when the last scan of the tree began
        self._indexed = 0

    @classmethod
    def open(cls, root: Path | str = ".", encoder: Encoder | None = None) -> CodeIndex:
        """Open the index of the repository around `root`, or of `root` itself."""
        found = find_root(Path(root).expanduser())
        try:
            file = IndexFile(index_path(found))
        except OSError as error:
            raise StoreError(
                f"Cannot create the folder for code indexes: {error}. Set TRIVET_CODE_CACHE to a "
                "folder you can write to."
            ) from None
        return cls(found, file, encoder or _bundled())

    def __enter__(self) -> CodeIndex:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        with self._lock:
            self._view = None
            self._file.close()

    @property
    def file(self) -> Path:
        return self._file.file

    def refresh(self, progress: Progress | None = None, only: Collection[str] = ()) -> CodeStatus:
        """Index what changed; an unchanged tree costs about as much as `git status`.

        `only` limits the scan to paths from the top of the tree.
        """
        with self._lock:
            try:
                return self._refreshed(progress, only)
            except Damaged as error:
                logger.warning(
                    "The code index %s is damaged (%s). Rebuilding it.",
                    self.file,
                    error.__cause__,
                )
                self._file.recreate()
                self._listing = self._kept = self._view = None
                self._parsed = frozenset()
                return self._refreshed(progress, ())

    def _refreshed(self, progress: Progress | None, only: Collection[str]) -> CodeStatus:
        began, before = time.time(), self._known()
        listing = self._listed(before, only)
        files = self._keyed(listing)
        # Files that the last refresh parsed need no lookup.
        new = [one for one in files if one.key not in self._parsed] if only else files
        parsed = parse_missing(self._file, self.root, new, began, self._encoder, progress)
        if parsed or self._view is None or before is None or listing.tree != before.tree:
            self._show(listing, files)
        if not only:
            self._keep(listing, files, began)
        self._parsed = frozenset(one.key for one in files if one.file.path not in self._unread)
        self._listing, self._looked, self._indexed = listing, began, parsed
        return self.status()

    def follow(self, stop: threading.Event | None = None) -> Iterator[CodeStatus]:
        """Yield a status once the watch has begun, and after each indexed change."""
        for paths in watch(self.root, stop):
            yield self.refresh(only=() if "" in paths else paths)

    def known_so_far(self) -> CodeStatus:
        """Return a status whose `stale` names the files not indexed as they are now."""
        with self._lock:
            listing = self._listed(self._known(), ())
            files = self._keyed(listing)
            unknown = self._file.unknown(one.key for one in files)
            self._show(listing, [one for one in files if one.key not in unknown])
            prefix = self.root.prefix
            behind = [
                one.file.path
                for one in files
                if one.key in unknown and one.file.path.startswith(prefix)
            ]
            stale = tuple(path.removeprefix(prefix) for path in behind)
            return msgspec.structs.replace(self.status(), stale=stale)

    def search(
        self,
        query: str,
        *,
        limit: int = DEFAULT_LIMIT,
        filters: CodeFilters = CodeFilters(),  # noqa: B008
        recipe: CodeRecipe | str = DEFAULT,
        budget: int | None = None,
    ) -> CodeAnswer:
        """Return the best chunks, without refreshing the index.

        `budget` roughly limits the tokens of all snippets; None omits them.
        """
        text = _checked(query, limit)
        steps = parse_code_recipe(recipe) if isinstance(recipe, str) else recipe
        view = self._viewed()
        read = read_query(text)
        vector = vector_of(self._encoder, text) if self._encoder else None
        ranked = rank(view, read, steps, vector, allowed_chunks(view, self.root, filters))
        return self._answer(query, build_hits(self.root, view, read, ranked[:limit], budget))

    def symbol(
        self, name: str, limit: int = DEFAULT_LIMIT, budget: int | None = None
    ) -> CodeAnswer:
        """Find definitions by `Class.method`, `method`, or a name in words."""
        return self._answer(
            name, symbol_hits(self.root, self._viewed(), _checked(name, limit), limit, budget)
        )

    def related(
        self, place: str, limit: int = DEFAULT_LIMIT, budget: int | None = None
    ) -> CodeAnswer:
        """Return chunks similar to the one at `path:line`, its users, and what it uses."""
        view = self._viewed()
        chunk = find_place(self.root, view, _checked(place, limit))
        inside = allowed_chunks(view, self.root, CodeFilters())
        found = [one for one in related(view, chunk) if inside is None or inside[one.chunk]]
        return self._answer(place, build_hits(self.root, view, None, found[:limit], budget))

    def paths(self) -> Iterator[str]:
        """Yield searchable files, relative to the opened folder."""
        for segment, number in self._viewed().files_alive():
            path = segment.path.at(number)
            if path.startswith(self.root.prefix):
                yield path.removeprefix(self.root.prefix)

    def status(self) -> CodeStatus:
        view = self._viewed()
        return CodeStatus(
            root=str(self.root.folder),
            files=view.file_count,
            chunks=view.count,
            symbols=sum(len(segment.symbols.chunk) for segment in view.segments),
            embedded=view.count if self._encoder else 0,
            left_out=len(self._left_out),
            indexed=self._indexed,
            stale=tuple(one.path for one in self._left_out if one.reason == UNREADABLE),
        )

    def left_out(self) -> tuple[LeftOut, ...]:
        self._viewed()
        return self._left_out

    def _answer(self, query: str, hits: tuple[CodeHit, ...]) -> CodeAnswer:
        """Mark hits in files changed since the last scan: their lines may be wrong."""
        status = self.status()
        newer = [hit.path for hit in hits if self._is_newer(self.root.prefix + hit.path)]
        stale = tuple(dict.fromkeys([*status.stale, *newer]))
        return CodeAnswer(
            query=query, hits=hits, status=msgspec.structs.replace(status, stale=stale)
        )

    def _is_newer(self, path: str) -> bool:
        try:
            return (self.root.folder / path).stat().st_mtime > self._looked
        except OSError:
            return True  # deleted since

    def _viewed(self) -> View:
        with self._lock:
            if self._view is None:
                self.refresh()
            assert self._view is not None
            return self._view

    def _show(self, listing: Listing, files: Sequence[KeyedFile]) -> None:
        self._view, left_out = view_of_tree(self._file, self.root, files)
        self._unread = frozenset(one.path for one in left_out if one.reason == UNREADABLE)
        prefix = self.root.prefix
        self._left_out = tuple(
            LeftOut(one.path.removeprefix(prefix), one.reason)
            for one in (*listing.tree.left_out, *left_out)
            if one.path.startswith(prefix)
        )

    def _keep(self, listing: Listing, files: Sequence[KeyedFile], began: float) -> None:
        """Store the listing, but not in a watch, where every saved file would rewrite it."""
        if listing != self._kept:
            with self._file.writing():
                self._file.put_tree(str(self.root.folder), msgspec.msgpack.encode(listing), began)
            tidy(self._file, [one.key for one in files])
            self._kept = listing

    def _keyed(self, listing: Listing) -> list[KeyedFile]:
        known = {one.file.path: one for one in self._keys}
        new = [
            file
            for file in listing.tree.files
            if file.path not in known or known[file.path].file != file
        ]
        known |= {one.file.path: one for one in with_keys(new, self._encoder)}
        self._keys = [known[file.path] for file in listing.tree.files]
        return self._keys

    def _listed(self, before: Listing | None, only: Collection[str]) -> Listing:
        if before is None or not only:
            return list_tree(self.root, before.stats if before else None)
        return merge_listing(before, list_tree(self.root, before.stats, only), only)

    def _known(self) -> Listing | None:
        if self._listing is None and (kept := self._file.tree(str(self.root.folder))):
            try:
                self._listing = self._kept = msgspec.msgpack.decode(kept, type=Listing)
            except msgspec.MsgspecError:
                return None  # written by another version: scan every file again
        return self._listing


def _bundled() -> Encoder | None:
    return bundled() if FOLDER.is_dir() else None


def _checked(query: str, limit: int) -> str:
    if not query.strip():
        raise InvalidInput("The query is empty. Describe what to find, or name a symbol.")
    if not 1 <= limit <= MAX_HITS:
        raise InvalidInput(f"limit must be from 1 to {MAX_HITS}, not {limit}.")
    return query[:MAX_QUERY_CHARACTERS]
