"""Files read for the lab, plain or gzipped, with errors that name the file and the line."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn, TypeVar

import msgspec

from trivet.errors import InvalidInput

L = TypeVar("L", bound=msgspec.Struct)

BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def refuse(path: Path, line: int, problem: str) -> NoReturn:
    """Raises the error of one line, in the form editors and terminals turn into a link."""
    raise InvalidInput(f"{path}:{line}: {problem}")


def existing(folder: Path, name: str) -> Path:
    """The file of that name in the folder, or its gzipped form; exactly one of the two must be there."""
    found = [path for path in (folder / name, folder / f"{name}.gz") if path.is_file()]
    if not found:
        raise InvalidInput(f"{folder / name}: there is no such file, and no {name}.gz either.")
    if len(found) > 1:
        raise InvalidInput(f"{folder / name}: there is also {name}.gz. Remove one of the two.")
    return found[0]


def content(path: Path) -> bytes:
    """The bytes of a file, unpacked if its name ends in .gz, without a byte order mark."""
    try:
        data = path.read_bytes()
        data = gzip.decompress(data) if path.suffix == ".gz" else data
    except FileNotFoundError:
        raise InvalidInput(f"{path}: there is no such file.") from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InvalidInput(f"{path}: it is not a whole gzip file ({error}). Fetch or pack it again.") from None
    except OSError as error:
        raise InvalidInput(f"{path}: it cannot be read ({error.strerror or error}).") from None
    return data.removeprefix(BYTE_ORDER_MARK)


def text(path: Path) -> str:
    """The text of a file, plain or gzipped, in UTF-8."""
    data = content(path)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        refuse(path, data.count(b"\n", 0, error.start) + 1, "it is not valid UTF-8. Save the file as UTF-8.")


def text_lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines that are not blank, with their numbers, without line ends."""
    # Not splitlines(), which would also cut at separators that may stand inside a text.
    for number, line in enumerate(text(path).split("\n"), 1):
        if line.strip():
            yield number, line.rstrip("\r")


def json_lines(path: Path, kind: type[L]) -> Iterator[tuple[int, L]]:
    """The values of a JSON Lines file, with the numbers of their lines."""
    decoder = msgspec.json.Decoder(kind)
    for number, line in enumerate(content(path).split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            yield number, decoder.decode(line)
        except msgspec.ValidationError as error:
            refuse(path, number, _teach(kind, str(error)))
        except msgspec.DecodeError as error:
            refuse(path, number, f"{error}. Each line must be one JSON object.")
        except UnicodeDecodeError:
            refuse(path, number, "it is not valid UTF-8. Save the file as UTF-8.")


def _teach(kind: type[msgspec.Struct], message: str) -> str:
    """msgspec says `Expected str, got int - at $.id`; put the field first and say what may stand there."""
    problem, _, place = message.partition(" - at `$")
    problem = problem.replace("`", "").replace("Object missing", "the line lacks the").replace("Object", "the line")
    field = place.rstrip("`").lstrip(".")
    if "matching regex" in problem:
        problem = "the name may not be empty, nor hold spaces" if field in ("id", "scope") else "the text is empty"
    if field:
        return f"{field}: {problem[0].lower()}{problem[1:]}."
    return f"{problem}. Known fields: {', '.join(kind.__struct_fields__)}."
