"""Commands of `trivet code`: search source code and inspect the index.

The exit statuses are ripgrep's: 0 found, 1 nothing found, 2 any error.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from trivet.cli.command import command
from trivet.cli.session import Session
from trivet.cli.terminal import INVALID, DelayedProgress, read_if_dash, report_error
from trivet.code.types import (
    DEFAULT_BUDGET,
    DEFAULT_LIMIT,
    CodeFilters,
    CodeStatus,
    Kind,
    Question,
    Related,
    Search,
    Symbol,
)
from trivet.errors import TrivetError
from trivet.settings import load_settings

if TYPE_CHECKING:
    from trivet.code.code_index import CodeIndex

FOUND, NOTHING = 0, 1
PAGE = 500

Root = Annotated[
    Path,
    typer.Option(
        "--root",
        metavar="DIR",
        help="The folder of the code; default: the current one.",
        show_default=False,
    ),
]
Limit = Annotated[
    int,
    typer.Option(
        "--limit", "-n", min=1, max=1_000, metavar="NUMBER", help="Maximum number to return."
    ),
]
Budget = Annotated[
    int,
    typer.Option(
        "--budget",
        min=0,
        max=10**6,
        metavar="TOKENS",
        help="Approximate maximum of tokens of code to show.",
    ),
]
CURRENT_FOLDER = Path()


def with_ripgrep_statuses(function: Callable[..., int]) -> Callable[..., int]:

    @functools.wraps(function)
    def run(session: Session, **values: object) -> int:
        try:
            return function(session, **values)
        except TrivetError as error:
            report_error(error, session.as_json)
            return INVALID

    return run


@command(
    "code search",
    "Find the code that answers a question or concerns an issue.",
    more="Ask a question, name a symbol, or paste an issue. Changed files are indexed first.",
    example="""
trivet code search "where are failed requests retried"
trivet code search "parse retry after" --lang python --no-tests
gh issue view 12 | trivet code search - --root ~/src/shop --limit 5 --json
""",
    uses_store=False,
)
@with_ripgrep_statuses
def search(
    session: Session,
    query: Annotated[
        str, typer.Argument(help="What to look for; - reads standard input.", show_default=False)
    ],
    root: Root = CURRENT_FOLDER,
    limit: Limit = DEFAULT_LIMIT,
    within: Annotated[
        str,
        typer.Option(
            "--path",
            metavar="PATTERN",
            help="Only this folder, file or pattern, such as '*.py', below DIR.",
        ),
    ] = "",
    lang: Annotated[
        str, typer.Option("--lang", "-l", metavar="NAME", help="Only this language.")
    ] = "",
    kind: Annotated[
        Kind | None, typer.Option("--kind", "-k", help="Only this kind of definition.")
    ] = None,
    tests: Annotated[
        bool | None,
        typer.Option("--tests/--no-tests", help="Only tests, or no tests; default: both."),
    ] = None,
    budget: Budget = DEFAULT_BUDGET,
    recipe: Annotated[
        str,
        typer.Option(
            "--recipe",
            metavar="TEXT",
            help="Another ranking recipe than the default.",
            show_default=False,
        ),
    ] = "default",
) -> int:
    filters = CodeFilters(path=within, lang=lang, kind=kind or "", tests=tests)
    return _ask(
        session,
        root,
        Search(
            query=read_if_dash(query),
            limit=limit,
            filters=filters,
            recipe=recipe,
            budget=budget or None,
        ),
    )


@command(
    "code symbol",
    "Show where a name is defined.",
    more="Ignores case and underscores: `parse retry after` finds parse_retry_after and "
    "parseRetryAfter.",
    example="trivet code symbol Client.send --root ~/src/shop",
    uses_store=False,
)
@with_ripgrep_statuses
def symbol(
    session: Session,
    name: Annotated[
        str,
        typer.Argument(help="The name, with its container as Class.method.", show_default=False),
    ],
    root: Root = CURRENT_FOLDER,
    limit: Limit = DEFAULT_LIMIT,
    budget: Budget = 0,
) -> int:
    return _ask(session, root, Symbol(name=name, limit=limit, budget=budget or None))


@command(
    "code related",
    "Show the code related to a place: what it uses, what uses it, and what is similar.",
    example="trivet code related src/client.py:120 --limit 5",
    uses_store=False,
)
@with_ripgrep_statuses
def related(
    session: Session,
    place: Annotated[
        str,
        typer.Argument(metavar="PATH:LINE", help="The place, relative to DIR.", show_default=False),
    ],
    root: Root = CURRENT_FOLDER,
    limit: Limit = DEFAULT_LIMIT,
    budget: Budget = 0,
) -> int:
    return _ask(session, root, Related(place=place, limit=limit, budget=budget or None))


@command(
    "code index",
    "Create or update the index of a folder.",
    more="Every search does the same first.",
    example="trivet code index --root ~/src/shop\n"
    "trivet code index --left-out\n"
    "trivet code index --watch",
    uses_store=False,
)
@with_ripgrep_statuses
def index_folder(
    session: Session,
    root: Root = CURRENT_FOLDER,
    watch: Annotated[
        bool, typer.Option("--watch", help="Keep running and index files as they are saved.")
    ] = False,
    left_out: Annotated[
        bool, typer.Option("--left-out", help="List what is not indexed, and why.")
    ] = False,
) -> int:
    from trivet.cli.views import code as views
    from trivet.code.code_index import CodeIndex

    with CodeIndex.open(root) as index:
        status = _refreshed(index)
        others = index.left_out() if left_out else None
        value = {
            "status": status,
            "file": str(index.file),
            **({"left_out": others} if left_out else {}),
        }
        session.show(value, lambda: views.indexed(status, str(index.file), others))
        if watch:
            _watch_folder(session, index)
    return FOUND


@command(
    "code status",
    "Show the index of a folder and the files that changed since.",
    more="Does not index. If the index is behind, the exit status is 1.",
    example="trivet code status --root ~/src/shop",
    uses_store=False,
)
@with_ripgrep_statuses
def status(session: Session, root: Root = CURRENT_FOLDER) -> int:
    from trivet.cli.views import code as views
    from trivet.code.code_index import CodeIndex

    with CodeIndex.open(root) as index:
        known, size = index.known_so_far(), index.file.stat().st_size
        session.show(
            {"status": known, "file": str(index.file), "bytes": size},
            lambda: views.known(known, str(index.file), size),
        )
    return NOTHING if known.stale else FOUND


@command(
    "code check",
    "Check whether the code that memories link to still exists.",
    more="A memory links to code as path:symbol, such as src/app.py:parse_config. Lists the "
    "links whose code moved or is gone; if there are any, the exit status is 1.",
    example="trivet code check --root ~/src/shop --scope acme/shop",
)
@with_ripgrep_statuses
def check_links(
    session: Session,
    root: Root = CURRENT_FOLDER,
    scope: Annotated[
        str | None,
        typer.Option("--scope", "-s", metavar="TEXT", help="Only memories in this scope."),
    ] = None,
) -> int:
    from trivet.cli.views import code as views
    from trivet.code.code_index import CodeIndex
    from trivet.code.memory_links import check, links

    texts = [(id, text) for id, text in _memories(session, scope) if links(text)]
    with CodeIndex.open(root) as index:
        _refreshed(index)
        found = sorted(check(texts, index), key=lambda one: (one.path, one.symbol, one.memory))
    session.show(
        {"root": str(index.root.folder), "links": found}, lambda: views.checked(found, len(texts))
    )
    return NOTHING if any(one.state in ("moved", "gone") for one in found) else FOUND


def _ask(session: Session, root: Path, question: Question) -> int:
    from trivet.cli.views import code as views
    from trivet.serve.resident.code_search import CodeSearch

    with CodeSearch(load_settings()) as asked, _ParsingProgress() as progress:
        answer = asked.ask(root, question, progress.update)
    session.show(answer, lambda: views.answer(answer))
    return FOUND if answer.hits else NOTHING


class _ParsingProgress(DelayedProgress):
    def __init__(self) -> None:
        self._reported = self._whole = 0
        super().__init__("reading files", lambda _: self._whole)

    def __enter__(self) -> _ParsingProgress:
        return self

    def update(self, done: int, whole: int) -> None:
        self._whole = whole
        self(done - self._reported)
        self._reported = done


def _refreshed(index: CodeIndex) -> CodeStatus:
    with _ParsingProgress() as progress:
        return index.refresh(progress.update)


def _watch_folder(session: Session, index: CodeIndex) -> None:
    from trivet.cli.views import code as views

    try:
        for status in index.follow():
            if status.indexed:
                session.show({"status": status}, lambda status=status: views.notes(status))  # type: ignore[misc]
    except KeyboardInterrupt:
        return


def _memories(session: Session, scope: str | None) -> Iterator[tuple[str, str]]:
    offset = 0
    while True:
        page = session.memory.list(limit=PAGE, offset=offset, scope=scope)
        yield from ((one.id, f"{one.title or ''}\n{one.content}") for one in page.memories)
        offset += len(page.memories)
        if not page.memories or offset >= page.total:
            return
