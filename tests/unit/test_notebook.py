"""Notebook output shows results and escapes stored text."""

from __future__ import annotations

from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest

from trivet import Trivet

HOSTILE = '<script>alert(1)</script> <img src=x onerror=alert(2)> "quoted" </td></table> & \u202eback\x00'.replace(
    "\x00", ""
)


class Page(HTMLParser):
    """Parser that keeps elements, attributes and text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: set[str] = set()
        self.attributes: set[str] = set()
        self.open: list[str] = []
        self.text = ""
        self.feed(html)
        assert self.open == [], "every element must be closed"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_answer_is_shown_as_table(trivet: Trivet) -> None:
    stored = trivet.remember("The staging database listens on port 6543.", title="Staging")
    page = Page(trivet.recall("which port has staging?")._repr_html_() or "")
    for shown in (
        "which port has staging?",
        "Staging",
        "port 6543",
        stored.id,
        "lexical #1",
        "matched: port, staging",
    ):
        assert shown in page.text
    assert {"table", "tr", "td"} <= page.elements


def test_stored_text_is_escaped(trivet: Trivet) -> None:
    trivet.remember(HOSTILE, title=HOSTILE, tags=["<b>"], source="javascript:alert(3)")
    page = Page(trivet.recall(f"alert {HOSTILE}")._repr_html_() or "")
    assert page.elements <= {"div", "b", "table", "thead", "tbody", "tr", "th", "td", "br", "code"}
    assert page.attributes == {"style"}
    assert "<script>alert(1)</script>" in page.text
    assert "\u202e" not in page.text


@pytest.mark.parametrize(
    ("stored", "said"), [(True, "Nothing was found."), (False, "The store is empty.")]
)
def test_empty_answer_states_reason(trivet: Trivet, stored: bool, said: str) -> None:
    if stored:
        trivet.remember("Ana likes tea.")
    page = Page(trivet.recall("zebras")._repr_html_() or "")
    assert said in page.text
    assert "table" not in page.elements


def test_neighborhood_is_shown_as_svg(trivet: Trivet) -> None:
    memory = trivet.remember(f"Ana Vidal works at `Acme Works`. {HOSTILE}", title=HOSTILE)
    picture = trivet.graph(memory.id)._repr_svg_() or ""
    root = ElementTree.fromstring(picture)
    names = {element.tag.rpartition("}")[2] for element in root.iter()}
    assert {"circle", "text"} <= names <= {"svg", "title", "style", "g", "circle", "text", "line"}
    assert "\u202e" not in picture
