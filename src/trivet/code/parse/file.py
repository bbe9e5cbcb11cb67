"""Parses one file: what it defines, and the chunks in which it is found."""

from __future__ import annotations

from collections.abc import Iterable

from trivet.code.parse.chunks import cut
from trivet.code.parse.decode import decode, lines_of
from trivet.code.parse.languages import MARKUP, NOTEBOOK, TEXT, language_by_name, language_of
from trivet.code.parse.leave_out import reason_to_leave_out
from trivet.code.parse.notebook import parse_notebook
from trivet.code.parse.region import Region
from trivet.code.parse.sections import sections
from trivet.code.types import LeftOut, ParsedFile


def parse(path: str, source: bytes) -> ParsedFile | LeftOut:
    """Cuts a file up, or says why it is left out.

    :param path: where it is, with slashes; its name decides about the language.
    :param source: its bytes, in any encoding.
    """
    reason = reason_to_leave_out(path, source)
    if reason:
        return LeftOut(path, reason)
    language = language_of(path, source)
    text = decode(source)
    lines = lines_of(text)
    if language == NOTEBOOK:
        return parse_notebook(path, lines)
    regions = _regions(language, text, lines)
    return ParsedFile(
        language=language if regions is not None else TEXT,
        definitions=tuple(one.definition for one in regions or () if one.definition is not None),
        chunks=cut(lines, regions or ()),
    )


def prepare(paths: Iterable[str]) -> None:
    """Unpacks the grammars that files will need, by their names, at once: much faster than one after the other."""
    from trivet.code.parse.libraries import unpack
    from trivet.code.parse.trees import SCRIPTS, has_grammar

    languages = {SCRIPTS if one in MARKUP else one for one in map(language_by_name, paths) if one is not None}
    unpack(filter(has_grammar, languages))


def _regions(language: str, text: str, lines: list[str]) -> list[Region] | None:
    """What the file is cut along; None where its parser cannot cope, and lines alone must do."""
    from trivet.code.parse.trees import has_grammar, regions_of, regions_of_scripts

    if language in MARKUP:
        return regions_of_scripts(text.encode())
    if has_grammar(language):
        return regions_of(language, text.encode())
    return sections(language, lines)
