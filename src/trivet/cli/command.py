"""Commands from functions: options, help and session."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import msgspec
import typer

from trivet.cli.options import arguments_of, in_typed_names, keyword, parameters_of
from trivet.cli.session import Session
from trivet.cli.terminal import discard_output, plain_lines
from trivet.contract import VERBS, Request, Verb, check
from trivet.errors import InvalidInput

SECOND_CLAUSE = re.compile(r"[.:;]|, (?:each|or) ")

Status = int | None
Handler = Callable[..., Status]


class RootOptions(msgspec.Struct, frozen=True):
    """Options given before the command's name."""

    path: str | None = None
    as_json: bool = False


class CommandEntry(msgspec.Struct, frozen=True):
    """A registered command; its parameters are built only when it runs."""

    name: str
    summary: str
    help: str
    function: Handler
    parameters: Callable[[], Sequence[inspect.Parameter]]
    uses_store: bool = True
    creates: bool = False  # whether it creates a missing store

    @property
    def callback(self) -> Handler:
        common = COMMON if self.uses_store else [one for one in COMMON if one.name != "path"]
        return _in_session(self.function, [*self.parameters(), *common], self.creates)

    @property
    def short_help(self) -> str:
        return SECOND_CLAUSE.split(self.summary, maxsplit=1)[0] + "."


REGISTERED_COMMANDS: dict[str, CommandEntry] = {}

PathOption = Annotated[
    str | None,
    typer.Option(
        "--path",
        metavar="FILE",
        help="The store file or a server's address; default: the configured store.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Answer in JSON.")]
COMMON = (
    keyword("context", typer.Context),
    keyword("path", PathOption, None),
    keyword("as_json", JsonOption, False),
)


def command(
    name: str,
    summary: str,
    *,
    more: str = "",
    example: str,
    uses_store: bool = True,
    creates: bool = False,
) -> Callable[[Handler], Handler]:
    """Register a command; the function's parameters after the session are its options."""

    def register(function: Handler) -> Handler:
        def parameters() -> list[inspect.Parameter]:
            _, *own = inspect.signature(function, eval_str=True).parameters.values()
            return [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in own]

        REGISTERED_COMMANDS[name] = CommandEntry(
            name, summary, _help(summary, more, example), function, parameters, uses_store, creates
        )
        return function

    return register


def verb_command(
    name: str,
    *,
    more: str = "",
    example: str,
    extra: Sequence[inspect.Parameter] = (),
    verb: str = "",
    summary: str = "",
    preset: Sequence[str] = (),
    creates: bool = False,
) -> Callable[[Handler], Handler]:
    """Register the command of a verb; the function gets the checked request.

    `verb` is needed if the names differ. `preset` are parameters that the command sets itself;
    `extra` are options of its own.
    """
    named = VERBS[verb or name.replace("-", "_").replace(" ", "_")]
    shown = summary or named.summary

    def register(function: Handler) -> Handler:
        REGISTERED_COMMANDS[name] = _entry(
            name, named, shown, _help(shown, more, example), function, extra, preset, creates
        )
        return function

    return register


def derived_command(verb: Verb) -> CommandEntry:
    """Return a command that prints a verb's plain result."""

    def handle(session: Session, request: Request[Any]) -> None:
        result = session.memory.perform(request)
        session.show(result, lambda: plain_lines(result))

    name = verb.name.replace("_", "-")
    help = _help(verb.summary, "", verb.example or f"trivet {name}")
    return _entry(name, verb, verb.summary, help, handle, creates=not verb.read_only)


def _entry(
    name: str,
    verb: Verb,
    summary: str,
    help: str,
    function: Handler,
    extra: Sequence[inspect.Parameter] = (),
    preset: Sequence[str] = (),
    creates: bool = False,
) -> CommandEntry:
    def handle(session: Session, **values: Any) -> Status:
        extras = {parameter.name: values.pop(parameter.name) for parameter in extra}
        typed = arguments_of(verb.request, {**dict.fromkeys(preset), **values})
        try:
            return function(session, check(verb.request, typed), **extras)
        except InvalidInput as error:
            error.args = (in_typed_names(str(error), verb.request, typed),)
            raise

    def parameters() -> list[inspect.Parameter]:
        return [*(one for one in parameters_of(verb.request) if one.name not in preset), *extra]

    return CommandEntry(name, summary, help, handle, parameters, creates=creates)


def _in_session(
    function: Handler, parameters: Sequence[inspect.Parameter], creates: bool
) -> Handler:
    def run(
        context: typer.Context, as_json: bool, path: str | None = None, **values: Any
    ) -> Status:
        root = context.find_root().obj
        assert isinstance(root, RootOptions)
        session = Session(path or root.path, as_json or root.as_json, creates)
        try:
            status = function(session, **values)
            session.save_index_if_missing()
            return status
        except BrokenPipeError:
            discard_output()
            return 0
        finally:
            session.close()

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return run


def _help(summary: str, more: str, example: str) -> str:
    # Click keeps the line breaks of a paragraph that starts with a backspace.
    paragraphs = [summary, *([more] if more else []), "\b\nExample:\n" + _indent(example)]
    return "\n\n".join(paragraphs)


def _indent(text: str) -> str:
    return "\n".join(f"  {row}" for row in text.strip().splitlines())
