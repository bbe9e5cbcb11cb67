"""Readers of plain or gzipped files, with errors that name the file and line."""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NoReturn, Protocol, TypeVar, cast

import msgspec

from trivet.errors import InvalidInput
from trivet.types import Progress

L = TypeVar("L", bound=msgspec.Struct)

BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def raise_line_error(path: Path, line: int, problem: str) -> NoReturn:
    """Raise an error in the form `path:line`, which editors turn into a link."""
    raise InvalidInput(f"{path}:{line}: {problem}")


def find_file(folder: Path, name: str) -> Path:
    """Return the file or its gzipped form; exactly one of the two must exist."""
    found = [path for path in (folder / name, folder / f"{name}.gz") if path.is_file()]
    if not found:
        raise InvalidInput(f"{folder / name}: there is no such file, and no {name}.gz either.")
    if len(found) > 1:
        raise InvalidInput(f"{folder / name}: there is also {name}.gz. Remove one of the two.")
    return found[0]


def content(path: Path) -> bytes:
    """Return the bytes, unpacked and without a byte order mark."""
    try:
        data = path.read_bytes()
        data = gzip.decompress(data) if path.suffix == ".gz" else data
    except FileNotFoundError:
        raise InvalidInput(f"{path}: there is no such file.") from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InvalidInput(
            f"{path}: not a complete gzip file ({error}). Download or pack it again."
        ) from None
    except OSError as error:
        raise InvalidInput(f"{path}: it cannot be read ({error.strerror or error}).") from None
    return data.removeprefix(BYTE_ORDER_MARK)


def text(path: Path) -> str:
    data = content(path)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise_line_error(
            path,
            data.count(b"\n", 0, error.start) + 1,
            "it is not valid UTF-8. Save the file as UTF-8.",
        )


def text_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield line numbers and lines, without blank ones."""
    # Not splitlines(): it also splits at separators that may occur inside a text.
    for number, line in enumerate(text(path).split("\n"), 1):
        if line.strip():
            yield number, line.rstrip("\r")


def json_lines(path: Path, kind: type[L]) -> Iterator[tuple[int, L]]:
    decoder = msgspec.json.Decoder(kind)
    for number, line in enumerate(content(path).split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            yield number, decoder.decode(line)
        except msgspec.ValidationError as error:
            raise_line_error(path, number, _explain(kind, str(error)))
        except msgspec.DecodeError as error:
            raise_line_error(path, number, f"{error}. Each line must be one JSON object.")
        except UnicodeDecodeError:
            raise_line_error(path, number, "it is not valid UTF-8. Save the file as UTF-8.")


class Identified(Protocol):
    @property
    def id(self) -> str: ...


Item = TypeVar("Item", bound=Identified)


def with_unique_ids(path: Path, values: Iterable[tuple[int, Item]]) -> Iterator[tuple[int, Item]]:
    """Yield the values of `json_lines`; raise at a repeated id."""
    first_line: dict[str, int] = {}
    for number, value in values:
        if value.id in first_line:
            raise_line_error(
                path,
                number,
                f"id {value.id!r} is taken by line {first_line[value.id]}. Ids must be unique.",
            )
        first_line[value.id] = number
        yield number, value


def _explain(kind: type[msgspec.Struct], message: str) -> str:
    """Turn msgspec's `Expected str, got int - at $.id` into a text that names the field first."""
    problem, _, place = message.partition(" - at `$")
    problem = (
        problem.replace("`", "")
        .replace("Object missing", "the line lacks the")
        .replace("Object", "the line")
    )
    field = place.rstrip("`").lstrip(".")
    if "matching regex" in problem:
        problem = (
            "the name must not be empty or contain spaces"
            if field in ("id", "scope")
            else "the text is empty"
        )
    if field:
        return f"{field}: {problem[0].lower()}{problem[1:]}."
    return f"{problem}. Known fields: {', '.join(kind.__struct_fields__)}."


READ_AT_ONCE = 1 << 20
# Upper bound for one element. A LongMemEval_M question with 500 sessions has about 6 MB.
LARGEST_ELEMENT = 256 << 20

NO_SPACE = re.compile(rb"[^ \t\r\n]")
BACKSLASH = ord("\\")
NESTING = {b"{": 1, b"[": 1, b"}": -1, b"]": -1}
MARK = re.compile(rb'["{}\[\]]')


def list_elements(path: Path, progress: Progress | None = None) -> Iterator[bytes]:
    """Yield the objects of a JSON list undecoded, one in memory at a time."""
    with _opened(path) as (file, raw):
        window = _Window(path, file, raw, progress)
        yield from _elements(path, window)


def _elements(path: Path, window: _Window) -> Iterator[bytes]:
    opening = window.next_byte()
    if opening != b"[":
        found = f"begins with {opening.decode(errors='replace')!r}" if opening else "is empty"
        raise InvalidInput(f"{path}: it {found}, not with the [ of a JSON list.")
    number = 0
    after = window.next_byte()
    while after != b"]":
        number += 1
        if after != b"{":
            window.raise_unexpected(after, number, "where an object should begin")
        yield window.take_object(number)
        after = window.next_byte()
        if after == b",":
            after = window.next_byte()
        elif after != b"]":
            window.raise_unexpected(
                after, number, "after an object, where a comma or the list's ] should be"
            )
    if rest := window.next_byte():
        window.raise_unexpected(rest, number, "after the end of the list")


class _Window:
    def __init__(
        self, path: Path, file: BinaryIO, raw: BinaryIO, progress: Progress | None
    ) -> None:
        self._path = path
        self._file = file
        self._raw = raw
        self._progress = progress
        self._reported = 0
        self._buffer = self._more(READ_AT_ONCE).removeprefix(BYTE_ORDER_MARK)
        self._at = 0

    def next_byte(self) -> bytes:
        """Return the next byte that is not white space, or b"" at the end."""
        while True:
            found = NO_SPACE.search(self._buffer, self._at)
            if found:
                self._at = found.end()
                return found[0]
            self._buffer, self._at = self._more(READ_AT_ONCE), 0
            if not self._buffer:
                return b""

    def take_object(self, number: int) -> bytes:
        begun, depth = self._at - 1, 1
        while depth:
            mark = MARK.search(self._buffer, self._at)
            end = mark and (
                _string_end(self._buffer, mark.end()) if mark[0] == b'"' else mark.end()
            )
            # The object continues, or a string in it, which is scanned again from its quote.
            if mark is None or not end:
                self._at = mark.start() if mark else len(self._buffer)
                self._grow(begun, number)
                begun = 0
                continue
            depth += NESTING.get(mark[0], 0)
            self._at = end
        return self._buffer[begun : self._at]

    def raise_unexpected(self, found: bytes, number: int, where: str) -> NoReturn:
        if not found:
            self._ended(number)
        raise InvalidInput(
            f"{self._path}: {found.decode(errors='replace')!r} {where} (object {number:,}). "
            "It is not a JSON list of objects; download the file again."
        )

    def _grow(self, begun: int, number: int) -> None:
        """Drop what precedes the object and double the buffer."""
        self._buffer, self._at = self._buffer[begun:], self._at - begun
        if len(self._buffer) > LARGEST_ELEMENT:
            raise InvalidInput(
                f"{self._path}: object {number:,} is larger than {LARGEST_ELEMENT >> 20} MB, more "
                "than in any supported file. The file is broken, or the wrong one."
            )
        more = self._more(max(READ_AT_ONCE, len(self._buffer)))
        if not more:
            self._ended(number)
        self._buffer += more

    def _ended(self, number: int) -> NoReturn:
        raise InvalidInput(
            f"{self._path}: it ends within object {number:,}. Download the whole file again."
        )

    def _more(self, size: int) -> bytes:
        try:
            data = self._file.read(size)
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise InvalidInput(
                f"{self._path}: not a complete gzip file ({error}). Download it again."
            ) from None
        if self._progress is not None:
            position = self._raw.tell()
            self._progress(position - self._reported)
            self._reported = position
        return data


def _string_end(buffer: bytes, at: int) -> int | None:
    """Return the end of the string, looking only for quotes: gigabytes pass through this."""
    while (quote := buffer.find(b'"', at)) >= 0:
        before = quote
        while buffer[before - 1] == BACKSLASH:
            before -= 1
        if (quote - before) % 2 == 0:
            return quote + 1
        at = quote + 1
    return None


@contextmanager
def _opened(path: Path) -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """Yield the content and the raw file, whose position measures progress."""
    try:
        raw = path.open("rb")
    except OSError as error:
        raise InvalidInput(f"{path}: it cannot be read ({error.strerror or error}).") from None
    with raw:
        yield (cast(BinaryIO, gzip.GzipFile(fileobj=raw)) if path.suffix == ".gz" else raw), raw
