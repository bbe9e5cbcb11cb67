"""The trace of an answer in plain words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from trivet.cli.output import one_line
from trivet.search.legs.registry import leg_named, leg_names
from trivet.types import Contribution, Health, Why


def why_line(why: Why) -> str:
    """Such as: lexical #1 (matched: port, staging), dense #3 (cosine 0.41), exact match."""
    return ", ".join((*_legs(why), *_afterwards(why))) or "nothing but its place in the store"


def _legs(why: Why) -> Iterator[str]:
    ours = [name for name in leg_names() if name in why.legs]
    others = sorted(name for name in why.legs if name not in ours)
    for part in (why.legs[name] for name in (*ours, *others)):
        if part.rank is not None:
            yield f"{part.leg} #{part.rank}{_evidence(part, why)}"


def _evidence(part: Contribution, why: Why) -> str:
    leg = leg_named(part.leg)
    said = one_line(leg.told(part, why)) if leg is not None else ""
    return f" ({said})" if said else ""


def legs_line(legs: Mapping[str, Contribution]) -> str:
    """The place in each system's list, such as: notes #1, wiki #3."""
    return ", ".join(f"{leg} #{part.rank}" for leg, part in sorted(legs.items()) if part.rank is not None)


def _afterwards(why: Why) -> Iterator[str]:
    if why.exactness >= 1:
        yield "exact match"
    elif why.exactness > 0:
        yield f"{why.exactness:.0%} of the identifiers match exactly"
    if why.time is not None:
        yield why.time
    if why.rerank is not None:
        yield f"reranked #{why.rerank.rank} ({why.rerank.score:.2f})"
    if why.redirected_from:
        yield f"moved here from superseded {', '.join(why.redirected_from)}"
    if why.collapsed:
        yield f"says the same as {', '.join(why.collapsed)}"
    if why.yields_to:
        yield f"a page of links, behind {len(why.yields_to)} of the notes on it"
    if why.newer_than:
        yield f"later than {', '.join(why.newer_than)} on the same matter"


def health_lines(health: Health) -> Iterator[str]:
    """Only what a reader must know: silence means that everything worked."""
    for leg in health.legs:
        if not leg.answered:
            yield f"The {leg.leg} leg did not answer: {leg.reason}."
    if health.not_embedded:
        yield f"{health.not_embedded} of {health.memories} memories are not embedded yet; words alone find them."
    if health.not_in_graph:
        waiting = f"{health.not_in_graph} of {health.memories} memories"
        yield f"{waiting} are not in the concept graph yet; `trivet embed` reads them now."
    if health.failing_jobs:
        yield f"{health.failing_jobs} embedding jobs fail: {health.last_error}."
    for note in health.notes:
        yield f"Note: {note}."
