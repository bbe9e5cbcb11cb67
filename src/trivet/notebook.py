"""Jupyter and IPython views of an answer and a neighborhood.

Stored text is escaped, without scripts. Colors are inherited or semi-transparent, for light and
dark themes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from trivet.cli.views.answer import health_lines, why_line
from trivet.cli.views.memories import preview
from trivet.graph.draw import svg, xml_text
from trivet.types import Answer, Contribution, ForeignHit, Hit, Neighbourhood, Strength

PASSAGE_CHARACTERS = 500
# The word is shown too, so no reader depends on the color.
COLOURS: dict[Strength, str] = {
    "strong": "46, 160, 67",
    "possible": "210, 153, 34",
    "weak": "139, 148, 158",
}
LEG_COLOUR = "84, 140, 220"
_CELL = (
    "text-align: left; vertical-align: top; white-space: normal; color: inherit; background: "
    "transparent;"
)
_FAINT = "opacity: 0.75; font-size: 90%;"


def graph_svg(neighbourhood: Neighbourhood) -> str:
    return svg(neighbourhood)


def answer_html(answer: Answer) -> str:
    together: list[Hit | ForeignHit] = [*answer.hits, *answer.foreign]
    rows = "".join(_row(hit) for hit in sorted(together, key=lambda hit: hit.rank))
    heads = "".join(
        f'<th style="{_CELL}">{name}</th>' for name in ("", "Relevance", "Memory", "Legs", "Why")
    )
    table = f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>" if rows else ""
    notes = "".join(f'<div style="{_FAINT}">{xml_text(note)}</div>' for note in _notes(answer))
    return (
        f'<div style="color: inherit"><b>{xml_text(preview(answer.query))}</b>{table}{notes}</div>'
    )


def _row(hit: Hit | ForeignHit) -> str:
    cells = (f"{hit.rank}", *(_memory(hit) if isinstance(hit, Hit) else _foreign(hit)))
    return "<tr>" + "".join(f'<td style="{_CELL}">{cell}</td>' for cell in cells) + "</tr>"


def _memory(hit: Hit) -> tuple[str, ...]:
    relevance = _bar(hit.relevance, COLOURS[hit.strength], f"{hit.strength} {hit.relevance:.0%}")
    return (
        relevance,
        _text_of(hit.title, hit.passage, hit.id),
        _legs(hit.why.legs),
        xml_text(why_line(hit.why)),
    )


def _foreign(hit: ForeignHit) -> tuple[str, ...]:
    return (
        f"from {xml_text(', '.join(hit.systems))}",
        _text_of(hit.title, hit.text, hit.id),
        _legs(hit.legs),
        "",
    )


def _text_of(title: str | None, text: str, id: str) -> str:
    heading = f"<b>{xml_text(preview(title))}</b><br>" if title else ""
    return (
        f"{heading}{xml_text(preview(text, PASSAGE_CHARACTERS))}<br><code "
        f'style="{_FAINT}">{xml_text(id)}</code>'
    )


def _legs(legs: Mapping[str, Contribution]) -> str:
    parts = [part for part in legs.values() if part.rank is not None]
    return "".join(
        _bar(1 / (part.rank or 1), LEG_COLOUR, f"{part.leg} #{part.rank}") for part in parts
    )


def _bar(share: float, colour: str, label: str) -> str:
    full = 100 * min(max(share, 0.0), 1.0)
    filled = (
        f"linear-gradient(90deg, rgba({colour}, 0.45) {full:.0f}%, rgba({colour}, 0.12) "
        f"{full:.0f}%)"
    )
    return (
        f'<div style="background: {filled}; color: inherit; min-width: 7em; padding: 0 0.4em; '
        "margin: 1px 0; "
        f'border-radius: 3px; white-space: nowrap">{xml_text(label)}</div>'
    )


def _notes(answer: Answer) -> Iterator[str]:
    if answer.nothing_relevant and answer.hits:
        best = answer.best_relevance or 0
        yield f"Probably nothing relevant here: the best hit is {best:.0%} likely to be relevant."
    elif not answer.hits and not answer.foreign:
        yield "Nothing was found." if answer.health.memories else "The store is empty."
    if answer.truncated:
        yield "The answer was cut to the token budget."
    yield from health_lines(answer.health)
    yield f"{len(answer.hits)} of {answer.considered} candidates, {answer.took_ms:.0f} ms"
