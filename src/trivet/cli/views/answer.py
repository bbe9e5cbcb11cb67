"""A recall's answer for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from trivet.cli.terminal import Line, line, one_line
from trivet.cli.views.memories import about, preview
from trivet.search.legs.registry import leg_named, leg_names
from trivet.types import Answer, Contribution, ForeignHit, Health, Hit, Why

BAR_CELLS = 10
PASSAGE_CHARACTERS = 320
RESOLUTION_CHARACTERS = 160
INDENT = 4
STRENGTH_STYLES = {"strong": "green", "possible": "yellow", "weak": "dim"}


def answer_lines(answer: Answer) -> Iterator[Line]:
    # Foreign hits have no relevance.
    nothing = "no memory is" if answer.foreign else "nothing is"
    if answer.hits and answer.nothing_relevant:
        yield line(
            (
                f"Probably {nothing} relevant here: the best hit has a relevance of "
                f"{likely(answer)}.",
                "yellow",
            )
        )
    together: list[Hit | ForeignHit] = [*answer.hits, *answer.foreign]
    for hit in sorted(together, key=lambda hit: hit.rank):
        yield from hit_lines(hit) if isinstance(hit, Hit) else foreign_lines(hit)
    if not answer.hits and answer.best_relevance is not None:
        none = "No memory" if answer.foreign else "Nothing"
        text = (
            f"{none} is relevant enough: the best candidate has a relevance of {likely(answer)}. "
        )
        yield line(text, ("--relevance-at-least 0 shows every candidate.", "dim"))
    elif not answer.hits and not answer.foreign:
        hint = (
            "`trivet list` shows what is stored."
            if answer.health.memories
            else "The store is empty."
        )
        yield line(f"Nothing was found. {hint}")
    if answer.asked:
        yield line(
            (f"The first answer was uncertain; also searched: {'; '.join(answer.asked)}", "dim")
        )
    if answer.truncated:
        yield line(("The token budget cut the answer short.", "yellow"))
    for text in health_lines(answer.health):
        yield line((text, "yellow"))


def likely(answer: Answer) -> str:
    return f"{answer.best_relevance or 0:.0%}"


def hit_lines(hit: Hit) -> Iterator[Line]:
    heading = preview(hit.title) if hit.title else ""
    yield line(
        (f"{hit.rank:>2}  ", "bold"),
        (
            f"{bar(hit.relevance)} {hit.relevance:>4.0%}  {hit.strength:<8}  ",
            STRENGTH_STYLES[hit.strength],
        ),
        (heading or hit.id, "bold" if heading else "cyan"),
    )
    yield line(preview(hit.passage, PASSAGE_CHARACTERS), indent=INDENT)
    yield about(hit, indent=INDENT, with_id=bool(heading))
    yield line(("why: ", "bold dim"), (why_line(hit.why), "dim"), indent=INDENT)
    if hit.why.conflicts:
        yield line(
            ("conflicts with another edit; see `trivet sync conflicts`", "yellow"), indent=INDENT
        )
    if hit.why.older_than:
        yield line(("older; see ", "yellow"), (hit.why.older_than, "cyan"), indent=INDENT)
    for resolution in hit.resolved_by:
        text = preview(resolution.content, RESOLUTION_CHARACTERS)
        yield line(("resolved by ", "green"), (resolution.id, "cyan"), f": {text}", indent=INDENT)
    yield line("")


def foreign_lines(hit: ForeignHit) -> Iterator[Line]:
    place = hit.id if hit.line is None else f"{hit.id}:{hit.line}"
    yield line(
        (f"{hit.rank:>2}  ", "bold"),
        (f"{'':{BAR_CELLS}}        ", ""),
        (f"from {', '.join(hit.systems)}: ", "magenta"),
        (preview(hit.title or place), "bold"),
    )
    if hit.text:
        yield line(preview(hit.text, PASSAGE_CHARACTERS), indent=INDENT)
    if hit.title:
        yield line((preview(place), "dim"), indent=INDENT)
    yield line(("why: ", "bold dim"), (legs_line(hit.legs), "dim"), indent=INDENT)
    yield line("")


def bar(share: float) -> str:
    full = round(min(max(share, 0.0), 1.0) * BAR_CELLS)
    return "█" * full + "░" * (BAR_CELLS - full)


def why_line(why: Why) -> str:
    """Return the reason on one line: lexical #1 (matched: port, staging), dense #3 (cosine .41)."""
    return ", ".join((*_legs(why), *_adjustments(why))) or "only its place in the store"


def _legs(why: Why) -> Iterator[str]:
    ours = [name for name in leg_names() if name in why.legs]
    others = sorted(name for name in why.legs if name not in ours)
    for part in (why.legs[name] for name in (*ours, *others)):
        if part.rank is not None:
            yield f"{part.leg} #{part.rank}{_evidence(part, why)}"


def _evidence(part: Contribution, why: Why) -> str:
    leg = leg_named(part.leg)
    text = one_line(leg.explain(part, why)) if leg is not None else ""
    return f" ({text})" if text else ""


def legs_line(legs: Mapping[str, Contribution]) -> str:
    return ", ".join(
        f"{leg} #{part.rank}" for leg, part in sorted(legs.items()) if part.rank is not None
    )


def _adjustments(why: Why) -> Iterator[str]:
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
        yield f"duplicate of {', '.join(why.collapsed)}"
    if why.yields_to:
        yield f"a page of links, ranked behind {len(why.yields_to)} of the notes that it links"
    if why.newer_than:
        yield f"newer than {', '.join(why.newer_than)} on the same subject"


def health_lines(health: Health) -> Iterator[str]:
    """Yield only what the reader must know; no lines mean that everything worked."""
    for leg in health.legs:
        if not leg.answered:
            yield f"The {leg.leg} leg did not answer: {leg.reason}."
    if health.not_embedded:
        yield (
            f"{health.not_embedded} of {health.memories} memories are not embedded yet; recall "
            "finds them by words only."
        )
    if health.not_in_graph:
        waiting = f"{health.not_in_graph} of {health.memories} memories"
        yield f"{waiting} are not in the concept graph yet; `trivet embed` adds them."
    if health.failing_jobs:
        yield f"{health.failing_jobs} embedding jobs are failing: {health.last_error}."
    for note in health.notes:
        yield f"Note: {note}."
