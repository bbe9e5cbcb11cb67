"""A page of sections, written as Markdown or as self-contained HTML."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

# Columns of these are right-aligned.
FIGURE = re.compile(r"[-+−]?[\d.,]+( ms| %|)?|[-+−][\d.]+ to [-+−][\d.]+|–|")

STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.55 system-ui, "Segoe UI", "DejaVu Sans", sans-serif; color: #1b1f24;
  background: #fff; max-width: 66rem; margin: 2.5rem auto 4rem; padding: 0 1.25rem; }
h1 { font-size: 1.75rem; line-height: 1.25; margin: 0 0 .5rem; }
h2 { font-size: 1.25rem; margin: 2.75rem 0 .5rem; padding-top: .75rem;
  border-top: 1px solid #d0d7de; }
p { max-width: 46rem; margin: .5rem 0 1rem; }
.wide { overflow-x: auto; margin: 1rem 0; }
table { border-collapse: collapse; font-size: .8125rem; font-variant-numeric: tabular-nums; }
th, td { padding: .35rem .45rem; text-align: left; vertical-align: top;
  border-bottom: 1px solid #e3e7eb; }
th { border-bottom: 2px solid #8c959f; vertical-align: bottom; }
td.figure, th.figure { text-align: right; }
td.figure { white-space: nowrap; }
tr.base td { background: #f3f5f7; }
code { font: .875em ui-monospace, "DejaVu Sans Mono", monospace; overflow-wrap: anywhere; }
figure { margin: 1.25rem 0; }
figure svg { max-width: 100%; height: auto; }
figcaption { font-size: .875rem; color: #4a525a; max-width: 46rem; }
"""


@dataclass(frozen=True)
class Paragraph:
    text: str


@dataclass(frozen=True)
class Table:
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    base_first: bool = False
    code: frozenset[int] = frozenset()

    def is_figure(self, column: int) -> bool:
        return column > 0 and all(FIGURE.fullmatch(row[column]) for row in self.rows)


@dataclass(frozen=True)
class Plot:
    """A drawing; `description` is its text alternative."""

    name: str
    svg: str
    description: str
    caption: str


Block = Paragraph | Table | Plot


@dataclass(frozen=True)
class Section:
    title: str
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Page:
    title: str
    opening: str
    sections: Sequence[Section]

    @property
    def plots(self) -> list[Plot]:
        return [
            block
            for section in self.sections
            for block in section.blocks
            if isinstance(block, Plot)
        ]


def as_markdown(page: Page, plot_folder: str) -> str:
    parts = [f"# {page.title}", page.opening]
    for section in page.sections:
        parts.append(f"## {section.title}")
        parts.extend(_markdown(block, plot_folder) for block in section.blocks)
    return "\n\n".join(parts) + "\n"


def _markdown(block: Block, plot_folder: str) -> str:
    match block:
        case Paragraph():
            return block.text
        case Plot():
            return f"![{block.description}]({plot_folder}/{block.name}.svg)\n\n{block.caption}"
        case Table():
            return "\n".join(_markdown_rows(block))


def _markdown_rows(table: Table) -> Iterator[str]:
    yield _markdown_row(table.header)
    yield _markdown_row(
        ["---:" if table.is_figure(column) else "---" for column in range(len(table.header))]
    )
    for row in table.rows:
        yield _markdown_row(
            [
                f"`{cell}`" if column in table.code and cell else cell
                for column, cell in enumerate(row)
            ]
        )


def _markdown_row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def as_html(page: Page) -> str:
    """Return HTML that is also well-formed XML."""
    body = "\n".join(_html_section(section) for section in page.sections)
    return (
        '<!DOCTYPE html>\n<html lang="en" xmlns="http://www.w3.org/1999/xhtml">\n<head>\n'
        '<meta charset="utf-8" />\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1" />\n'
        f"<title>{escape(page.title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n"
        f"<h1>{escape(page.title)}</h1>\n<p>{escape(page.opening)}</p>\n{body}\n</main>\n</body>\n</html>\n"
    )


def _html_section(section: Section) -> str:
    blocks = "\n".join(_html(block) for block in section.blocks)
    return f"<section>\n<h2>{escape(section.title)}</h2>\n{blocks}\n</section>"


def _html(block: Block) -> str:
    match block:
        case Paragraph():
            return f"<p>{_prose(block.text)}</p>"
        case Plot():
            drawing = (
                f'<div role="img" aria-label="{escape(block.description)}">{_inline(block)}</div>'
            )
            return f"<figure>{drawing}<figcaption>{_prose(block.caption)}</figcaption></figure>"
        case Table():
            head, rows = _html_head(block), _html_rows(block)
            return f'<div class="wide"><table>{head}<tbody>{rows}</tbody></table></div>'


def _prose(text: str) -> str:
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


def _html_head(table: Table) -> str:
    cells = "".join(
        f'<th scope="col"{_class(table, column)}>{escape(cell)}</th>'
        for column, cell in enumerate(table.header)
    )
    return f"<thead><tr>{cells}</tr></thead>"


def _html_rows(table: Table) -> str:
    rows = []
    for place, row in enumerate(table.rows):
        cells = "".join(
            f"<td{_class(table, column)}>{_cell(table, column, cell)}</td>"
            for column, cell in enumerate(row)
        )
        base = ' class="base"' if table.base_first and place == 0 else ""
        rows.append(f"<tr{base}>{cells}</tr>")
    return "\n".join(rows)


def _cell(table: Table, column: int, cell: str) -> str:
    return f"<code>{escape(cell)}</code>" if column in table.code and cell else escape(cell)


def _class(table: Table, column: int) -> str:
    return ' class="figure"' if table.is_figure(column) else ""


def _inline(plot: Plot) -> str:
    """Drop the XML head and prefix ids with the plot's name, so that plots do not clash."""
    svg = plot.svg[plot.svg.index("<svg") :]
    svg = re.sub(r'\bid="([^"]+)"', rf'id="{plot.name}-\1"', svg)
    svg = re.sub(r"url\(#([^)]+)\)", rf"url(#{plot.name}-\1)", svg)
    return re.sub(r'href="#([^"]+)"', rf'href="#{plot.name}-\1"', svg)
