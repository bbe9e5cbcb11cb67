"""The indexes of a store as they were at one change, mapped out of a file beside it: nothing is read or built.

What changed since is taken in by the caches, as if they had been loaded at that change. The database stays the only
truth: without the file, or where anything about it is doubtful, caches are loaded from the database.

The files that hold the indexes of a store, ready to be mapped: which one is current, how it is made and removed.

The database names each file that belongs to it by a random mark, its size and the time it was written: a file of
another store, or one that somebody has changed, is thus told from it. Whatever database knows a mark has all changes up
to the one that its file was made at, be it a copy, one put back from a backup or a standby that took over. So a file
can only be older than the database, never other than it was.
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


# What is in the file, and in which version: another one is not read.
FILE_FORMAT = b"TRIVETI3"

# The number of each state; 0 is no memory.
STATES = {"active": 1, "superseded": 2, "archived": 3, "deleted": 4}


class IndexHeader(msgspec.Struct, frozen=True):
    """What an index file belongs to. `mark` is random: the database names the one file that it knows."""

    mark: str
    schema: int
    sequence: int  # the last change that is in it
    model: int  # whose vectors are in it; 0: none
    memories: int


class MappedIndex:
    def __init__(self, file: Path, mapped: Mapped) -> None:
        self._file = file
        self._mapped = mapped
        self._arrays = mapped.arrays
        self.facts = msgspec.convert(mapped.facts, IndexHeader, strict=False)

    @classmethod
    def open(cls, file: Path) -> Self | None:
        """None where there is no such file, or none that can be used."""
        mapped = map_arrays(file, FILE_FORMAT)
        return None if mapped is None else cls(file, mapped)

    @property
    def sequence(self) -> int:
        return self.facts.sequence

    def age_seconds(self) -> float:
        """Seconds since it was written."""
        return time.time() - self._file.stat().st_mtime

    def damaged(self) -> list[str]:
        """The names of parts that are not as they were written. Reads the whole file."""
        return self._mapped.damaged()

    def matrix(self, model: Model) -> Matrix | None:
        """The vectors of a model, if they are in the file. Mapped anew, since a matrix writes into its arrays."""
        again = map_arrays(self._file, FILE_FORMAT) if model.model == self.facts.model else None
        if again is None or again.facts != self._mapped.facts:  # it was removed meanwhile
            return None
        parts = {name: again.arrays[f"vectors.{name}"] for name in MatrixArrays.__struct_fields__}
        return Matrix.mapped(MatrixArrays(**parts), again.arrays["vectors.starts"])

    def network(self) -> Network:
        links = _linked(self._arrays["links.sources"], self._arrays["links.targets"])
        return Network(self._edges("memories"), self._edges("concepts"), links)

    def occurrences(self, term: str) -> NDArray[np.int32]:
        """Where a term stands, as key * 8 + field, rising; one entry for each time."""
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
        """By key, which memories a filter lets through, lengths and importances; None where the database decides."""
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
        """By key; None in a file of before."""
        return self._arrays.get("memory.ids")

    def held(self, terms: Collection[str]) -> set[str]:
        """Those of the terms that any memory holds."""
        named = list(terms)
        wanted = np.fromiter(map(hashed, named), np.uint64, len(named))
        known = self._arrays["words.terms"]
        places = np.minimum(np.searchsorted(known, wanted), max(0, len(known) - 1))
        return set(compress(named, known[places] == wanted)) if len(known) else set()

    def _in_scope(self, scope: str) -> NDArray[np.bool_]:
        """By number, which scopes lie in this one."""
        names: list[str] = msgspec.json.decode(self._arrays["memory.scope_names"].tobytes())
        return np.array([name == scope or name.startswith(f"{scope}/") for name in names], bool)

    def _edges(self, nodes: str) -> Edges:
        return Edges(*(self._arrays[f"graph.{nodes}.{name}"] for name in Edges.__struct_fields__))


def covers_filter(filter: Filter) -> bool:
    """Whether the file can say what a filter lets through. Who may see a memory the database decides alone."""
    after, before = filter.created_after, filter.created_before
    return filter == Filter(
        scope=filter.scope, states=filter.states, created_after=after, created_before=before
    )


def to_microseconds(stamps: Sequence[str]) -> NDArray[np.int64]:
    """Moments as they are stored, which all end with Z, as numbers."""
    return np.array([stamp.removesuffix("Z") for stamp in stamps], "datetime64[us]").astype(
        np.int64
    )


def flat_graph(network: Network) -> dict[str, Any]:
    """The arrays of a network that has taken in no changes yet."""
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
# A file that another process began to write this long ago is taken for left behind.
LEASE_SECONDS = 300.0
# Files that appear while others are removed are removed too; more rounds than this are never needed.
ROUNDS = 100
PENDING = "Its words and vectors may be left in an index file that another process has open. They go when it ends."

# Writes the arrays of a store under this mark, and says what they are about.
Write = Callable[[ArrayWriter, str], IndexHeader]


class IndexFiles(ABC):
    """A kind of database says where its files lie and how it keeps their names."""

    def __init__(self, database: StoreDatabase) -> None:
        self._database = database
        self._known: tuple[str, MappedIndex | None] = ("", None)

    @property
    @abstractmethod
    def folder(self) -> Path: ...

    @abstractmethod
    def _named(self) -> str | None:
        """The file that the database names: its mark, size and time. None if it names none."""

    @abstractmethod
    def _moment(self) -> object:
        """Something that is another one once something was purged, or the database may have lost what it told."""

    @abstractmethod
    def _adopted(self, named: str, before: object) -> bool:
        """Names a new file in the database, unless `_moment` is another one than before it was begun."""

    @abstractmethod
    def disown(self, connection: WriteTransaction) -> None:
        """Within a transaction that purges: no process maps what there is any more, and it is to be removed."""

    @abstractmethod
    def disowned(self) -> bool:
        """Whether there are files that are to be removed."""

    @abstractmethod
    def remove_disowned(self) -> bool:
        """Removes every file after a purge, those that are being written too. False: one is in use and stays."""

    def current(self) -> MappedIndex | None:
        """The file that the database names, mapped; None where it names none or it is not as it was written."""
        named = self._named()
        if named is None:
            return None
        if self._known[0] != named:
            self._known = (named, self._mapped(named))
        return self._known[1]

    def opened(self) -> MappedIndex | None:
        """The current one, opened anew."""
        named = self._named()
        return None if named is None else self._mapped(named)

    def tidy(self) -> bool:
        """Removes what other stores left behind long ago. False where each has a folder of its own."""
        return False

    def renew(self, write: Write) -> bool:
        """Writes a new file and makes it the current one, unless another process is about to.

        The file is there before the database is read: who removes all files after a purge thus removes it, or it was
        begun after the purge. It gets its name once the database knows it, so one with a name that the database does
        not know is never a new one.
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
        """Every file, and the name of the current one."""
        with self._database.write() as connection:
            self.disown(connection)
        self.remove_disowned()

    def close(self) -> None:
        """Lets go of the file that is mapped."""
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
        for _ in range(ROUNDS):  # one that is being written changes its name meanwhile
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
    """As the database names the file that lies there now."""
    try:
        found = file.stat()
    except OSError:
        return None
    return f"{mark} {found.st_size} {found.st_mtime_ns}"


def remove_index_file(file: Path) -> None:
    try:
        file.unlink(missing_ok=True)
    except (
        OSError
    ) as error:  # Windows removes no file that a process has mapped; the next attempt does
        logger.info("The index file %s cannot be removed yet: %s", file, error)


@contextmanager
def _new_file(partial: Path) -> Iterator[BinaryIO]:
    """A stream into a file that must not be there yet. What was written is on the disk when the block ends."""
    handle = os.open(
        partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600
    )
    with os.fdopen(handle, "wb") as stream:
        yield stream
        stream.flush()
        os.fsync(stream.fileno())


def _is_sound(file: Path) -> bool:
    """Reads the whole file. It is no longer mapped afterwards, so that it can be renamed on Windows too."""
    index = MappedIndex.open(file)
    return index is not None and not index.damaged()


def is_recent(file: Path) -> bool:
    """A clock that was set back makes it no younger than now."""
    try:
        return abs(time.time() - file.stat().st_mtime) < LEASE_SECONDS
    except OSError:
        return False
