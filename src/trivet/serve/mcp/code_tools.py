"""MCP tools for code search, only on standard streams, as they read this machine's files.

Every line of code follows its line number, so that file contents cannot pose as the server's text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from trivet.code.types import (
    DEFAULT_BUDGET,
    CodeAnswer,
    CodeFilters,
    CodeHit,
    Question,
    Related,
    Search,
    Symbol,
    reason,
)
from trivet.contract import Parameters, Tool, check
from trivet.serve.mcp.tools import input_schema
from trivet.serve.resident.code_search import CodeSearch, check_project_folder
from trivet.settings import Settings

Budget = Annotated[int, Meta(ge=50, le=100_000, description="Tokens of code to show.")]
STALE_SHOWN = 5


class FindCode(Parameters, frozen=True, kw_only=True):
    query: Annotated[str, Meta(description="A question, symbol, error message or whole issue.")]
    path: Annotated[str | None, Meta(description="Folder, file or glob.")] = None
    lang: str | None = None
    kind: Annotated[str | None, Meta(description="function, method, class, type, ...")] = None
    tests: Annotated[bool | None, Meta(description="true: only tests; false: no tests.")] = None
    budget: Budget = DEFAULT_BUDGET


class FindSymbol(Parameters, frozen=True, kw_only=True):
    name: Annotated[str, Meta(description="Such as parse_config or Client.send.")]


class FindRelated(Parameters, frozen=True, kw_only=True):
    place: Annotated[str, Meta(description="path:line")]


class CodeTool(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    title: str
    description: str
    request: type[Parameters]
    question: Callable[[Any], Question]

    def listed(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "inputSchema": input_schema(self.request, Tool(self.name, self.title, ""), ()),
            "annotations": {
                "title": self.title,
                "readOnlyHint": True,
                "destructiveHint": False,
                "idempotentHint": True,
                "openWorldHint": False,
            },
        }


def _search(given: FindCode) -> Search:
    filters = CodeFilters(
        path=given.path or "", lang=given.lang or "", kind=given.kind or "", tests=given.tests
    )
    return Search(query=given.query, filters=filters, budget=given.budget)


CODE_TOOLS: Mapping[str, CodeTool] = {
    tool.name: tool
    for tool in (
        CodeTool(
            name="code_search",
            title="Search the code",
            description="Find where this project's code does something. Use it before grep when "
            "you do not know the exact words.",
            request=FindCode,
            question=_search,
        ),
        CodeTool(
            name="code_symbol",
            title="Find a definition",
            description="Show where a name is defined in this project.",
            request=FindSymbol,
            question=lambda given: Symbol(name=given.name),
        ),
        CodeTool(
            name="code_related",
            title="Find related code",
            description="Show code that a place uses, that uses it, or that resembles it.",
            request=FindRelated,
            question=lambda given: Related(place=given.place),
        ),
    )
}


class CodeTools:
    def __init__(self, settings: Settings) -> None:
        self._search = CodeSearch(settings)

    def call(self, tool: CodeTool, arguments: Mapping[str, Any], folder: Path) -> str:
        question = tool.question(check(tool.request, arguments))
        return answer_text(self._search.ask(check_project_folder(folder), question))

    def close(self) -> None:
        self._search.close()


def answer_text(found: CodeAnswer) -> str:
    lines = [row for hit in found.hits for row in _hit(hit)]
    if not found.hits:
        lines = [f"Nothing found in {found.status.files} files of {found.status.root}."]
    if found.status.stale:
        lines.append(
            f"Note: changed since indexing: {', '.join(found.status.stale[:STALE_SHOWN])}."
        )
    return "\n".join(lines)


def _hit(hit: CodeHit) -> Iterator[str]:
    named = f" {hit.kind} {hit.symbol}" if hit.symbol else ""
    why = reason(hit)
    yield f"{hit.path}:{hit.start}-{hit.end}{named}{f' ({why})' if why else ''}"
    if hit.snippet:
        yield from (
            f"{number} {_one_line(text)}"
            for number, text in enumerate(hit.snippet.split("\n"), hit.snippet_start)
        )
    elif hit.signature:
        yield f"{hit.start} {hit.signature}"


def _one_line(text: str) -> str:
    """Replace characters that some programs show as line breaks, such as form feeds."""
    return " ".join(text.splitlines())
