"""Small trees for tests, as segments without files on disk."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from trivet.code.encoder import Encoder
from trivet.code.index.facts import FileFacts, facts_of
from trivet.code.index.segment import Segment, segment_of
from trivet.code.types import Chunk, Definition, ParsedFile


def parsed(
    *functions: tuple[str, str], container: str = "", language: str = "python"
) -> ParsedFile:
    """Return a file of (name, text) functions, with one ten-line chunk each."""
    definitions = tuple(
        Definition(
            name=name, kind="function", container=container, start=1 + 10 * at, end=10 + 10 * at
        )
        for at, (name, _) in enumerate(functions)
    )
    chunks = tuple(
        Chunk(
            start=1 + 10 * at,
            end=10 + 10 * at,
            text=text,
            kind="function",
            symbol=name,
            defines=(at,),
        )
        for at, (name, text) in enumerate(functions)
    )
    return ParsedFile(language=language, definitions=definitions, chunks=chunks)


def facts(path: str, file: ParsedFile, encoder: Encoder | None = None) -> FileFacts:
    return msgspec.msgpack.decode(
        msgspec.msgpack.encode(facts_of(path, file, encoder)), type=FileFacts
    )


def tree(files: Mapping[str, ParsedFile], encoder: Encoder | None = None) -> Segment:
    return segment_of(
        [(f"key of {path}", path, facts(path, file, encoder)) for path, file in files.items()]
    )
