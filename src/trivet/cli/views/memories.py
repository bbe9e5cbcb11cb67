"""Memories, revisions, links, counts and findings for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from trivet.cli.terminal import Line, line, one_line
from trivet.common.clock import stamp, stamp_or_none
from trivet.types import Finding, Imported, Link, Memory, Page, Remembered, Revision, Stats, WhyNot

PREVIEW = 100
MOST_TAGS = 12


def preview(text: str, longest: int = PREVIEW) -> str:
    words = one_line(text)
    return words if len(words) <= longest else f"{words[: longest - 1].rstrip()}…"


def day(moment: datetime | None) -> str:
    return f"{moment:%Y-%m-%d}" if moment else ""


def about(memory: Memory, indent: int = 0, with_id: bool = True, with_source: bool = True) -> Line:
    facts = [day(memory.created_at), memory.category, memory.scope]
    facts += [memory.state] if memory.state != "active" else []
    facts += ["sensitive"] if memory.sensitive else []
    facts += [" ".join(f"#{tag}" for tag in memory.tags)] if memory.tags else []
    facts += [preview(_source(memory))] if with_source and memory.source else []
    shown_id = [(f"{memory.id}  ", "cyan")] if with_id else []
    return line(*shown_id, (" · ".join(facts), "dim"), indent=indent)


def memory(memory: Memory, links: Sequence[Link] = ()) -> Iterator[Line]:
    if memory.title:
        yield line((memory.title, "bold"))
    yield line(memory.content)
    yield line("")
    yield about(memory, with_source=False)
    facts = {
        "importance": f"{memory.importance:g}",
        "confidence": f"{memory.confidence:g}",
        "keywords": ", ".join(memory.expanded_keywords),
        "source": _source(memory),
        "valid": _validity(memory),
        "changed": f"{stamp(memory.updated_at)} (revision {memory.revision})",
    }
    yield from _table({name: value for name, value in facts.items() if value})
    for link in links:
        yield link_line(link)


def _source(memory: Memory) -> str:
    source = memory.source
    if source is None:
        return ""
    span = [str(number) for number in (source.start_line, source.end_line) if number is not None]
    return f"{source.uri}:{'-'.join(span)}" if span else source.uri


def _validity(memory: Memory) -> str:
    if not memory.valid_from and not memory.valid_to:
        return ""
    start, end = stamp_or_none(memory.valid_from), stamp_or_none(memory.valid_to)
    return f"from {start or 'ever'} to {end or 'ever'}"


def link_line(link: Link) -> Line:
    return line((link.source, "cyan"), f" {link.kind} ", (link.target, "cyan"))


def next_page(offset: int, count: int, total: int) -> Line | None:
    """Return how to see the next page, if there is one."""
    shown = offset + count
    if shown >= total:
        return None
    return line((f"{offset + 1} to {shown} of {total}; --offset {shown} shows the next.", "dim"))


def page(page: Page) -> Iterator[Line]:
    for entry in page.memories:
        yield about(entry)
        yield line(preview(entry.title or entry.content), indent=4)
    if more := next_page(page.offset, len(page.memories), page.total):
        yield more
    elif not page.memories:
        yield line("No memory matches." if page.total == 0 else f"There are only {page.total}.")


def remembered(remembered: Remembered) -> Iterator[Line]:
    verb = "Remembered" if remembered.status == "stored" else "Already stored, unchanged"
    yield line(f"{verb}: ", (remembered.id, "cyan"))
    if remembered.redacted:
        counts = _counts(remembered.redacted)
        yield line(
            (f"Encrypted and replaced in the text: {counts}. ", "yellow"),
            (f"`trivet reveal {remembered.id}` shows it.", "dim"),
        )
    for other in remembered.near_duplicates:
        yield line(
            (f"Nearly the same ({other.similarity:.0%}): ", "yellow"),
            (other.id, "cyan"),
            f" {preview(other.content)}",
        )
    if remembered.near_duplicates:
        yield line(
            (
                "Nothing was merged. Forget one of them, or link them if one supersedes the other.",
                "dim",
            )
        )
    for old in remembered.may_update:
        yield line(
            ("May update ", "yellow"),
            (old.id, "cyan"),
            f" ({one_line(old.why)}): {preview(old.content)}",
        )
        yield line((f"If so: trivet link {remembered.id} supersedes {old.id}", "dim"), indent=4)


def history(revisions: Sequence[Revision]) -> Iterator[Line]:
    for revision in revisions:
        yield line(
            (f"{revision.revision:>3}  ", "bold"),
            (f"{stamp(revision.changed_at)}  ", "dim"),
            f"{revision.action:<9} {preview(revision.memory.title or revision.memory.content)}",
        )


def diff(text: str) -> Iterator[Line]:
    styles = {"+": "green", "-": "red", "@": "dim"}
    for row in text.split("\n"):
        yield line((row, styles.get(row[:1], "")))


def why_not(verdict: WhyNot) -> Iterator[Line]:
    yield line((verdict.verdict, "bold green" if verdict.returned else "bold yellow"))
    for reason in verdict.reasons:
        yield line(f"- {reason}")


def stats(stats: Stats) -> Iterator[Line]:
    facts = {
        "store": f"{stats.path} ({stats.bytes or 0:,} bytes, schema {stats.schema})",
        "memories": _counts(stats.memories),
        "categories": _counts(stats.categories),
        "scopes": _counts(stats.scopes),
        "tags": _counts(stats.tags, MOST_TAGS),
        "links": str(stats.links),
        "revisions": str(stats.revisions),
        "sensitive": str(stats.sensitive),
        "passages": str(stats.passages),
        "embedder": stats.embedder or "none: recall works by words only",
        "not embedded": f"{stats.not_embedded} waiting, {stats.failing_jobs} of them failing",
        "concepts": f"{stats.concepts} with {stats.mentions} mentions "
        f"and {stats.statements} statements",
        "not in graph": f"{stats.not_in_graph} waiting to be read"
        + (f", {stats.read_in_part} read in part" if stats.read_in_part else ""),
    }
    if stats.notes:
        facts["notes"] = "; ".join(stats.notes)
    yield from _table(facts)
    for note in stats.notes:
        yield line((f"{note[:1].upper()}{note[1:]}.", "yellow"))


def _counts(counts: Mapping[str, int], most: int | None = None) -> str:
    ordered = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
    shown = ", ".join(f"{name} {count}" for name, count in ordered[:most])
    left = len(ordered) - len(ordered[:most])
    return (f"{shown} and {left} more" if left else shown) or "none"


def imported(imported: Imported) -> Iterator[Line]:
    yield line(
        f"{imported.stored} stored, {imported.updated} updated, {imported.unchanged} unchanged, "
        f"{imported.kept} kept because the store's is newer, {imported.links} links."
    )
    if imported.redacted:
        yield line(
            (f"Encrypted and replaced in the texts: {_counts(imported.redacted)}.", "yellow")
        )
    for error in imported.errors:
        yield line((error, "red"))


def findings(findings: Iterable[Finding]) -> Iterator[Line]:
    for finding in findings:
        mark = ("ok       ", "green") if finding.ok else ("problem  ", "bold red")
        yield line(mark, f"{finding.check}: {finding.detail}")
        if finding.matters:
            yield line(finding.matters, indent=9)
        if finding.remedy:
            yield line((finding.remedy, "yellow"), indent=9)


def _table(facts: Mapping[str, str]) -> Iterator[Line]:
    width = max(map(len, facts), default=0)
    for name, value in facts.items():
        yield line((f"{name:<{width}}  ", "bold dim"), value)
