"""An answer to a recall, for people."""

from __future__ import annotations

from collections.abc import Iterator

from trivet.cli.output import Line, line
from trivet.cli.views.memories import about, preview
from trivet.cli.views.why import health_lines, legs_line, why_line
from trivet.types import Answer, ForeignHit, Hit

BAR_CELLS = 10
PASSAGE_CHARACTERS = 320
RESOLUTION_CHARACTERS = 160
INDENT = 4
STRENGTH_STYLES = {"strong": "green", "possible": "yellow", "weak": "dim"}


def as_lines(answer: Answer) -> Iterator[Line]:
    nothing = "no memory is" if answer.foreign else "nothing"  # how likely a foreign hit is to be relevant is not known
    if answer.hits and answer.nothing_relevant:
        yield line((f"Probably {nothing} relevant here: the likeliest is {likely(answer)} likely to be.", "yellow"))
    together: list[Hit | ForeignHit] = [*answer.hits, *answer.foreign]
    for hit in sorted(together, key=lambda hit: hit.rank):
        yield from hit_lines(hit) if isinstance(hit, Hit) else foreign_lines(hit)
    if not answer.hits and answer.best_relevance is not None:
        none = "No memory" if answer.foreign else "Nothing"
        said = f"{none} is so relevant: the likeliest candidate is {likely(answer)} likely to be. "
        yield line(said, ("--relevance-at-least 0 shows every candidate.", "dim"))
    elif not answer.hits and not answer.foreign:
        hint = "`trivet list` shows what is stored." if answer.health.memories else "The store is empty."
        yield line(f"Nothing was found. {hint}")
    if answer.asked:
        yield line((f"The first answer was unsure; also asked: {'; '.join(answer.asked)}", "dim"))
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
        (score_bar(hit.score), "green"),
        (f" {hit.score:.2f}  ", "green"),
        (f"{hit.strength:<8} {hit.relevance:>4.0%}  ", STRENGTH_STYLES[hit.strength]),
        (heading or hit.id, "bold" if heading else "cyan"),
    )
    yield line(preview(hit.passage, PASSAGE_CHARACTERS), indent=INDENT)
    yield about(hit, indent=INDENT, with_id=bool(heading))
    yield line(("why: ", "bold dim"), (why_line(hit.why), "dim"), indent=INDENT)
    if hit.why.conflicts:
        yield line(("clashes with another edit; see `trivet sync conflicts`", "yellow"), indent=INDENT)
    if hit.why.older_than:
        yield line(("older; see ", "yellow"), (hit.why.older_than, "cyan"), indent=INDENT)
    for resolution in hit.resolved_by:
        text = preview(resolution.content, RESOLUTION_CHARACTERS)
        yield line(("resolved by ", "green"), (resolution.id, "cyan"), f": {text}", indent=INDENT)
    yield line("")


def foreign_lines(hit: ForeignHit) -> Iterator[Line]:
    """What another system says, marked as such before anything of it is read."""
    place = hit.id if hit.line is None else f"{hit.id}:{hit.line}"
    yield line(
        (f"{hit.rank:>2}  ", "bold"),
        (score_bar(hit.score), "green"),
        (f" {hit.score:.2f}        ", "green"),
        (f"from {', '.join(hit.systems)}: ", "magenta"),
        (preview(hit.title or place), "bold"),
    )
    if hit.text:
        yield line(preview(hit.text, PASSAGE_CHARACTERS), indent=INDENT)
    if hit.title:
        yield line((preview(place), "dim"), indent=INDENT)
    yield line(("why: ", "bold dim"), (legs_line(hit.legs), "dim"), indent=INDENT)
    yield line("")


def score_bar(score: float) -> str:
    full = round(min(max(score, 0.0), 1.0) * BAR_CELLS)
    return "█" * full + "░" * (BAR_CELLS - full)
