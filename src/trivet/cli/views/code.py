"""Answers of code search for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trivet.cli.terminal import Line, Part, line
from trivet.code.memory_links import Checked
from trivet.code.types import CodeAnswer, CodeHit, CodeStatus, LeftOut, reason

INDENT = 4
FILES_SHOWN = 5
STATE_STYLES = {"ok": "green", "moved": "yellow", "gone": "red", "unknown": "dim"}


def answer(found: CodeAnswer) -> Iterator[Line]:
    for hit in found.hits:
        yield from hit_lines(hit)
    if not found.hits:
        yield line(
            f"Nothing was found in {_count(found.status.files, 'file')} of {found.status.root}."
        )
    yield from notes(found.status)


def hit_lines(hit: CodeHit) -> Iterator[Line]:
    """Yield the place first as an unbroken `path:line`, which editors can open."""
    named: list[Part] = (
        [f"  {hit.kind} ", (hit.symbol, "bold")] if hit.symbol else [(f"  {hit.kind}", "dim")]
    )
    yield line((hit.path, "magenta"), ":", (f"{hit.start}-{hit.end}", "green"), *named)
    if hit.snippet:
        yield from _numbered(hit)
    elif hit.signature:
        yield line(hit.signature, indent=INDENT)
    if why := reason(hit):
        yield line(("why: ", "bold dim"), (why, "dim"), indent=INDENT)
    yield line("")


def notes(status: CodeStatus) -> Iterator[Line]:
    if status.indexed:
        yield line((f"Indexed now, since new or changed: {_count(status.indexed, 'file')}.", "dim"))
    if status.stale:
        yield line(
            (
                f"Changed since they were indexed, so lines may differ: {_some(status.stale)}.",
                "yellow",
            )
        )


def indexed(status: CodeStatus, file: str, left_out: Sequence[LeftOut] | None) -> Iterator[Line]:
    if left_out is not None:
        for one in left_out:
            yield line((one.path, "magenta"), f"  {one.reason}")
    now = f"{status.indexed:,} indexed now" if status.indexed else "no changes"
    yield line(f"{status.root}: {_count(status.files, 'file')} ({now}), {_sizes(status)}.")
    if status.left_out and left_out is None:
        yield line(
            (
                f"Left out: {_count(status.left_out, 'file or folder', 'files or folders')}; "
                "--left-out lists them.",
                "dim",
            )
        )
    yield line((f"The index is {file}", "dim"))
    if status.stale:
        yield line((f"Changed while they were indexed: {_some(status.stale)}.", "yellow"))


def known(status: CodeStatus, file: str, size: int) -> Iterator[Line]:
    yield line(("root      ", "bold dim"), status.root)
    yield line(("index     ", "bold dim"), f"{file} ({size / 2**20:.1f} MB)")
    yield line(("holds     ", "bold dim"), f"{_count(status.files, 'file')}, {_sizes(status)}")
    yield line(("left out  ", "bold dim"), f"{status.left_out:,}")
    behind = (
        f"{_count(len(status.stale), 'file')}: {_some(status.stale)}" if status.stale else "nothing"
    )
    yield line(("behind    ", "bold dim"), (behind, "yellow" if status.stale else ""))


def checked(found: Sequence[Checked], memories: int) -> Iterator[Line]:
    for one in found:
        if one.state != "ok":
            yield line(
                (f"{one.state:<8}", STATE_STYLES[one.state]),
                (f"{one.path}:{one.symbol}", "magenta"),
            )
            yield line(_link_outcome(one), indent=8)
            yield line(("memory ", "dim"), (one.memory, "cyan"), indent=8)
    fine = sum(one.state == "ok" for one in found)
    yield line(
        f"{_count(len(found), 'link')} in {_count(memories, 'memory', 'memories')}: {fine:,} "
        "unchanged."
    )


def _link_outcome(one: Checked) -> str:
    if one.state == "moved":
        return f"defined at {', '.join(one.places)} now"
    if one.state == "gone":
        return "the file exists, but nothing in it defines the name"
    return "neither the file nor the name exists here; the memory may be about another project"


def _numbered(hit: CodeHit) -> Iterator[Line]:
    width = len(str(hit.end))
    for number, text in enumerate(hit.snippet.split("\n"), hit.snippet_start):
        cut = text == "…"
        yield line(
            ("" if cut else f"{number:>{width}}", "dim"),
            "  ",
            text.expandtabs(INDENT),
            indent=INDENT,
        )


def _sizes(status: CodeStatus) -> str:
    sizes = f"{_count(status.chunks, 'chunk')}, {_count(status.symbols, 'symbol')}"
    if status.embedded == status.chunks:
        return sizes
    return f"{sizes}, {status.embedded:,} with a vector"


def _count(number: int, one: str, more: str = "") -> str:
    return f"{number:,} {one if number == 1 else more or one + 's'}"


def _some(paths: Sequence[str]) -> str:
    shown = ", ".join(paths[:FILES_SHOWN])
    return f"{shown} and {len(paths) - FILES_SHOWN:,} more" if len(paths) > FILES_SHOWN else shown
