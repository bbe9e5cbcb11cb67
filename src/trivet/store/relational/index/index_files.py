"""Index files: a store's indexes as of one change, mapped instead of loaded.

The database names its file by a random mark, size and time, so that a foreign or altered file is
not used. A named file can be old but never wrong.
"""

from __future__ import annotations

import logging
import os
import secrets
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Self

import msgspec
import numpy as np
from numpy.typing import NDArray

from trivet.analyse.terms import hashed
from trivet.common.files import private_folder
from trivet.common.mapped_arrays import ArrayWriter, Mapped, map_arrays
from trivet.graph.network import Edges, Keys, Network
from trivet.store.records import Model
from trivet.store.relational.index.vector_matrix import Matrix, MatrixArrays
from trivet.types import Filter

if TYPE_CHECKING:
    from trivet.store.relational.database import StoreDatabase, WriteTransaction


# Files of another format are not read.
FILE_FORMAT = b"TRIVETI3"

# 0 marks an unused key.
STATES = {"active": 1, "superseded": 2, "archived": 3, "deleted": 4}


class IndexHeader(msgspec.Struct, frozen=True):
    """The identity of an index file; the database knows its `mark`."""

    mark: str
    schema: int
    sequence: int  # last change it contains
    model: int  # model of its vectors; 0: none
    memories: int


class MappedIndex:
    def __init__(self, file: Path, mapped: Mapped) -> None:
        self._file = file
        self._mapped = mapped
        self._arrays = mapped.arrays
        self.facts = msgspec.convert(mapped.facts, IndexHeader, strict=False)

    @classmethod
    def open(cls, file: Path) -> Self | None:
        mapped = map_arrays(file, FILE_FORMAT)
        return None if mapped is None else cls(file, mapped)

    @property
    def sequence(self) -> int:
        return self.facts.sequence

    def age_seconds(self) -> float:
        return time.time() - self._file.stat().st_mtime

    def damaged(self) -> list[str]:
        """Read the whole file and return the names of damaged parts."""
        return self._mapped.damaged()

    def matrix(self, model: Model) -> Matrix | None:
        """Map the vectors again, since a matrix writes into its arrays."""
        again = map_arrays(self._file, FILE_FORMAT) if model.model == self.facts.model else None
        if again is None or again.facts != self._mapped.facts:  # removed meanwhile
            return None
        parts = {name: again.arrays[f"vectors.{name}"] for name in MatrixArrays.__struct_fields__}
        return Matrix.mapped(MatrixArrays(**parts), again.arrays["vectors.starts"])

    def network(self) -> Network:
        links = _linked(self._arrays["links.sources"], self._arrays["links.targets"])
        return Network(self._edges("memories"), self._edges("concepts"), links)

    def occurrences(self, term: str) -> NDArray[np.int32]:
        """Return rising key * 8 + field, one entry per occurrence."""
        terms, wanted = self._arrays["words.terms"], np.uint64(hashed(term))
        at = int(np.searchsorted(terms, wanted))
        if at == len(terms) or terms[at] != wanted:
            return np.zeros(0, np.int32)
        start, stop = self._arrays["words.starts"][at : at + 2].tolist()
        found: NDArray[np.int32] = self._arrays["words.places"][start:stop]
        return found

    def shown(
        self, filter: Filter
    ) -> tuple[NDArray[np.bool_], NDArray[np.float32], NDArray[np.float64]] | None:
        """Return mask, lengths and importances by key, or None if the database must decide."""
        if not covers_filter(filter):
            return None
        after, before = filter.created_after, filter.created_before
        wanted = np.zeros(len(STATES) + 1, bool)
        wanted[[STATES[state] for state in filter.states]] = True
        mask: NDArray[np.bool_] = wanted[self._arrays["memory.states"]]
        if filter.scope is not None:
            mask &= self._in_scope(filter.scope)[self._arrays["memory.scopes"]]
        created = self._arrays["memory.created"]
        if after is not None:
            mask &= created >= to_microseconds([after])[0]
        if before is not None:
            mask &= created < to_microseconds([before])[0]
        return mask, self._arrays["memory.lengths"], self._arrays["memory.importances"]

    def ids(self) -> NDArray[np.bytes_] | None:
        return self._arrays.get("memory.ids")

    def held(self, terms: Collection[str]) -> set[str]:
        named = list(terms)
        wanted = np.fromiter(map(hashed, named), np.uint64, len(named))
        known = self._arrays["words.terms"]
        places = np.minimum(np.searchsorted(known, wanted), max(0, len(known) - 1))
        return set(compress(named, known[places] == wanted)) if len(known) else set()

    def _in_scope(self, scope: str) -> NDArray[np.bool_]:
        names: list[str] = msgspec.json.decode(self._arrays["memory.scope_names"].tobytes())
        return np.array([name == scope or name.startswith(f"{scope}/") for name in names], bool)

    def _edges(self, nodes: str) -> Edges:
        return Edges(*(self._arrays[f"graph.{nodes}.{name}"] for name in Edges.__struct_fields__))


def covers_filter(filter: Filter) -> bool:
    """Return whether the file can answer; the database decides rights."""
    after, before = filter.created_after, filter.created_before
    return filter == Filter(
        scope=filter.scope, states=filter.states, created_after=after, created_before=before
    )


def to_microseconds(stamps: Sequence[str]) -> NDArray[np.int64]:
    return np.array([stamp.removesuffix("Z") for stamp in stamps], "datetime64[us]").astype(
        np.int64
    )


def flat_graph(network: Network) -> dict[str, Any]:
    sides = {"memories": network.of_memory.edges, "concepts": network.of_concept.edges}
    edges = {
        f"graph.{nodes}.{name}": getattr(side, name)
        for nodes, side in sides.items()
        for name in side.__struct_fields__
    }
    sources = sorted(network.links)
    targets = [network.links[source] for source in sources]
    return {
        **edges,
        "links.sources": np.repeat(np.array(sources, np.int32), [len(one) for one in targets]),
        "links.targets": np.concatenate([np.zeros(0, np.int32), *targets]),
    }


def _linked(sources: Keys, targets: Keys) -> dict[int, Keys]:
    if not len(sources):
        return {}
    begins = np.flatnonzero(np.diff(sources, prepend=-1))
    return dict(zip(sources[begins].tolist(), np.split(targets, begins[1:]), strict=True))


logger = logging.getLogger("trivet.store")

SUFFIX = ".arrays"
PARTIAL = ".partial"
MARK_BYTES = 16
# A partial file older than this counts as abandoned.
LEASE_SECONDS = 300.0
# Bounds the attempts to remove all files, since new ones may appear meanwhile.
ROUNDS = 100
PENDING = (
    "Its words and vectors may remain in an index file that another process has open. "
    "They are removed when that process ends."
)

Write = Callable[[ArrayWriter, str], IndexHeader]


class IndexFiles(ABC):
    def __init__(self, database: StoreDatabase) -> None:
        self._database = database
        self._known: tuple[str, MappedIndex | None] = ("", None)

    @property
    @abstractmethod
    def folder(self) -> Path: ...

    @abstractmethod
    def _named(self) -> str | None:
        """Return mark, size and time of the file that the database names, or None."""

    @abstractmethod
    def _moment(self) -> object:
        """Return a value that changes with a purge or lost changes."""

    @abstractmethod
    def _adopted(self, named: str, before: object) -> bool:
        """Name a new file, unless `_moment` is no longer `before`."""

    @abstractmethod
    def disown(self, connection: WriteTransaction) -> None:
        """Within a purging transaction, mark all files for removal."""

    @abstractmethod
    def disowned(self) -> bool: ...

    @abstractmethod
    def remove_disowned(self) -> bool:
        """Remove every file after a purge; return False if one is in use."""

    def current(self) -> MappedIndex | None:
        """Return the file that the database names, if it is unaltered."""
        named = self._named()
        if named is None:
            return None
        if self._known[0] != named:
            self._known = (named, self._mapped(named))
        return self._known[1]

    def opened(self) -> MappedIndex | None:
        named = self._named()
        return None if named is None else self._mapped(named)

    def tidy(self) -> bool:
        """Remove abandoned stores' files; False if each store has its own folder."""
        return False

    def renew(self, write: Write) -> bool:
        """Write a new file and make it current, unless another process is writing one.

        The file exists before the database is read, so that a purge removes it, and gets its name
        only after the database knows it.
        """
        private_folder(self.folder)
        if (
            any(is_recent(file) for file in self._files() if file.suffix == PARTIAL)
            or not self.remove_disowned()
        ):
            return False
        before = self._moment()
        mark = secrets.token_hex(MARK_BYTES)
        partial, file = self.folder / f"{mark}{PARTIAL}", self.folder / f"{mark}{SUFFIX}"
        try:
            with _new_file(partial) as stream:
                writer = ArrayWriter(stream, FILE_FORMAT)
                facts = write(writer, mark)
                writer.finish(
                    {name: str(value) for name, value in msgspec.structs.asdict(facts).items()}
                )
            named = registered_name(partial, mark) if _is_sound(partial) else None
            if named is None or not self._adopted(named, before):
                return False
            partial.rename(file)
        finally:
            partial.unlink(missing_ok=True)
        self._remove_others(file)
        return True

    def discard(self) -> None:
        with self._database.write() as connection:
            self.disown(connection)
        self.remove_disowned()

    def close(self) -> None:
        self._known = ("", None)

    def _mapped(self, named: str) -> MappedIndex | None:
        mark = named.split(" ")[0]
        file = self.folder / f"{mark}{SUFFIX}"
        if registered_name(file, mark) != named:
            return None
        index = MappedIndex.open(file)
        known = index is not None and (index.facts.mark, index.facts.schema) == (
            mark,
            self._database.schema,
        )
        return index if known else None

    def _removed_all(self) -> bool:
        self.close()
        for _ in range(ROUNDS):  # a file being written is renamed meanwhile
            files = self._files()
            for file in files:
                remove_index_file(file)
            if not files:
                return True
        return False

    def _remove_others(self, kept: Path) -> None:
        for file in self._files():
            if file != kept and not (file.suffix == PARTIAL and is_recent(file)):
                remove_index_file(file)

    def _files(self) -> list[Path]:
        return files_in(self.folder)


def files_in(folder: Path) -> list[Path]:
    try:
        return [file for file in folder.iterdir() if file.suffix in (SUFFIX, PARTIAL)]
    except (FileNotFoundError, NotADirectoryError):
        return []


def registered_name(file: Path, mark: str) -> str | None:
    """Return the name the database would give this file now."""
    try:
        found = file.stat()
    except OSError:
        return None
    return f"{mark} {found.st_size} {found.st_mtime_ns}"


def remove_index_file(file: Path) -> None:
    try:
        file.unlink(missing_ok=True)
    # Windows cannot remove a mapped file; a later attempt does.
    except OSError as error:
        logger.info("The index file %s cannot be removed yet: %s", file, error)


@contextmanager
def _new_file(partial: Path) -> Iterator[BinaryIO]:
    handle = os.open(
        partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600
    )
    with os.fdopen(handle, "wb") as stream:
        yield stream
        stream.flush()
        os.fsync(stream.fileno())


def _is_sound(file: Path) -> bool:
    """Unmap the file afterwards: Windows cannot rename a mapped file."""
    index = MappedIndex.open(file)
    return index is not None and not index.damaged()


def is_recent(file: Path) -> bool:
    """Compare both ways, in case the clock was set back."""
    try:
        return abs(time.time() - file.stat().st_mtime) < LEASE_SECONDS
    except OSError:
        return False
