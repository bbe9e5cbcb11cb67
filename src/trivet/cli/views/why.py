"""The trace of an answer in plain words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from trivet.cli.output import one_line
from trivet.types import Contribution, Health, PathStep, Why

# Words can be checked by the reader's own eye, so their part is told before any other.
SPOKEN_FIRST = ("lexical",)


def why_line(why: Why) -> str:
    """Such as: lexical #1 (matched: port, staging), dense #3 (cosine 0.41), exact match."""
    return ", ".join((*_legs(why), *_afterwards(why))) or "nothing but its place in the store"


def _legs(why: Why) -> Iterator[str]:
    for leg in sorted(why.legs.values(), key=lambda leg: (leg.leg not in SPOKEN_FIRST, leg.leg)):
        if leg.rank is not None:
            yield f"{leg.leg} #{leg.rank}{_evidence(leg, why)}"


def _evidence(leg: Contribution, why: Why) -> str:
    if leg.leg == "lexical" and why.matched_words:
        return f" (matched: {', '.join(why.matched_words)})"
    if leg.leg == "dense":
        return f" (cosine {leg.score:.2f})"
    if leg.leg == "graph" and why.path:
        return f" ({path_line(why.path)})"
    return ""


def legs_line(legs: Mapping[str, Contribution]) -> str:
    """The place in each system's list, such as: notes #1, wiki #3."""
    return ", ".join(f"{leg} #{part.rank}" for leg, part in sorted(legs.items()) if part.rank is not None)


def path_line(path: Sequence[PathStep]) -> str:
    """Such as: query -> Acme -> #0199c2f4…1a2b -> Berlin -> this."""
    return " -> ".join(("query", *map(_stop, path), "this"))


def _stop(step: PathStep) -> str:
    """Ids made in the same minute begin alike, so a memory is told by both ends of its id."""
    return f"#{step.name[:8]}…{step.name[-4:]}" if step.kind == "memory" else one_line(step.name)


def _afterwards(why: Why) -> Iterator[str]:
    if why.exactness >= 1:
        yield "exact match"
    elif why.exactness > 0:
        yield f"{why.exactness:.0%} of the identifiers match exactly"
    if why.rerank is not None:
        yield f"reranked #{why.rerank.rank} ({why.rerank.score:.2f})"
    if why.redirected_from:
        yield f"moved here from superseded {', '.join(why.redirected_from)}"
    if why.collapsed:
        yield f"says the same as {', '.join(why.collapsed)}"


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
