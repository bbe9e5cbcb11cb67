"""From a reader's parts to prepared ones: options applied, fields checked, digests for the ledger."""

from __future__ import annotations

import hashlib
import hmac
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from trivet.clock import parse_time
from trivet.errors import InvalidInput
from trivet.memory.engine import Engine
from trivet.sources.files.formats import FORMATS, Format, format_of
from trivet.sources.files.matching import PreparedPart
from trivet.sources.files.parts import Options, Part
from trivet.sources.files.walk import TextFile

MOST_TAGS = 50
# What a reader may raise on a file that is not of the format it seems to have.
_UNEXPECTED = (OverflowError, AttributeError, KeyError, TypeError, ValueError, IndexError)


class ParsedFile(msgspec.Struct, frozen=True):
    """A file that was read: its text, format and parts."""

    path: str
    text: TextFile
    format: Format
    parts: tuple[PreparedPart, ...]


def prepare(engine: Engine, path: str, text: TextFile, options: Options) -> ParsedFile:
    if engine.guard.spans(path):
        raise InvalidInput("its name looks like a secret, and names are shown everywhere. Rename it")
    try:
        format = format_of(path, text.text)
        parts = tuple(numbered(format.read(path, text.text)))
    except _UNEXPECTED as error:
        raise InvalidInput(f"it is not what its first lines promise ({type(error).__name__}: {error})") from None
    return ParsedFile(path, text, format, tuple(_prepared(engine, part, options) for part in parts))


def stamp_of(format: Format, options: Options) -> str:
    """Kept in the ledger: if the reader's version or the options change, every file is read again."""
    return f"{format.stamp} {_hash(msgspec.json.encode(options))[:12]}"


def stamps(options: Options) -> frozenset[str]:
    return frozenset(stamp_of(format, options) for format in FORMATS)


def numbered(parts: Iterator[Part]) -> Iterator[Part]:
    """Numbers the parts, and makes their places unique: the second of two equal headings becomes `... (2)`."""
    counts: Counter[str] = Counter()
    for order, part in enumerate(parts):
        counts[part.place] += 1
        place = part.place if counts[part.place] == 1 else f"{part.place} ({counts[part.place]})"
        about = msgspec.structs.replace(part.about, order=order)
        yield msgspec.structs.replace(part, place=place, about=about)


def _prepared(engine: Engine, part: Part, options: Options) -> PreparedPart:
    fields = _fields(engine, part, options)
    other_fields = msgspec.json.encode(sorted(fields.items())).decode()
    clean = engine.guard.without_secrets
    digest = _keyed(engine) if engine.guard.spans(part.content) or engine.guard.spans(other_fields) else _hash
    return PreparedPart(
        part=msgspec.structs.replace(part, fields=fields),
        place=clean(part.place),
        content_digest=digest(part.content.encode()),
        whole_digest=digest(f"{part.content}\n{other_fields}".encode()),
        about=msgspec.json.encode(_cleaned(msgspec.to_builtins(part.about), clean)).decode(),
    )


def _cleaned(value: Any, clean: Callable[[str], str]) -> Any:
    """Cleans each text by itself, so that a private mark that is never closed hides no other text."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {name: _cleaned(inner, clean) for name, inner in value.items()}
    return [_cleaned(inner, clean) for inner in value] if isinstance(value, list | tuple) else value


def _fields(engine: Engine, part: Part, options: Options) -> dict[str, Any]:
    """The fields with the options applied. Front matter is written for other programs too: unusable values go."""
    fields = dict(part.fields)
    if "id" in fields:
        return fields
    if fields.get("category") not in engine.settings.categories:
        fields.pop("category", None)
    if options.category:
        fields.setdefault("category", options.category)
    if options.scope:
        fields["scope"] = options.scope
    fields["tags"] = tuple(dict.fromkeys((*fields.get("tags", ()), *options.tags)))[:MOST_TAGS]
    for name, read in (("importance", _importance), ("sensitive", _truth), ("created_at", _time)):
        if isinstance(fields.get(name), str) and (value := read(fields.pop(name))) is not None:
            fields[name] = value
    return fields


def _importance(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 <= value <= 1 else None


def _truth(text: str) -> bool | None:
    return {"true": True, "yes": True, "false": False, "no": False}.get(text.lower())


def _time(text: str) -> str | None:
    try:
        return parse_time(text, "created_at")
    except InvalidInput:
        return None


def _keyed(engine: Engine) -> Callable[[bytes], str]:
    """A keyed digest for texts with secrets: a plain one would help to guess them."""
    key = engine.guard.keys.current().secret
    return lambda data: hmac.new(key, data, hashlib.sha256).hexdigest()[:32]


def _hash(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def default_category(format: Format, known: Sequence[str]) -> str:
    return next((name for name in (format.category, "facts") if name in known), known[0])
