"""How a function becomes a command: its options, its help with an example, its session."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import msgspec
import typer

from trivet.cli.options import arguments_of, keyword, parameters_of
from trivet.cli.session import Session
from trivet.cli.terminal import discard_output, plain_lines
from trivet.contract import VERBS, Request, Verb, check

SECOND_CLAUSE = re.compile(r"[.:;]|, (?:each|or) ")

Status = int | None
Handler = Callable[..., Status]


class RootOptions(msgspec.Struct, frozen=True):
    """What was said before the command's name; it means the same after it."""

    path: str | None = None
    as_json: bool = False


class CommandEntry(msgspec.Struct, frozen=True):
    """A command before typer has seen it. Its parameters are made only when it is called for."""

    name: str
    summary: str
    help: str
    function: Handler
    parameters: Callable[[], Sequence[inspect.Parameter]]
    uses_store: bool = True
    creates: bool = False  # whether it makes a store where there is none

    @property
    def callback(self) -> Handler:
        common = COMMON if self.uses_store else [one for one in COMMON if one.name != "path"]
        return _in_session(self.function, [*self.parameters(), *common], self.creates)

    @property
    def short_help(self) -> str:
        """The first clause, which fits beside the name in the list of commands."""
        return SECOND_CLAUSE.split(self.summary, maxsplit=1)[0] + "."


REGISTERED_COMMANDS: dict[str, CommandEntry] = {}

PathOption = Annotated[
    str | None,
    typer.Option(
        "--path",
        metavar="FILE",
        help="The store, or a server's address; the configured one if none.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Answer in JSON, for programs.")]
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
    """A command whose options are the function's own parameters after the session."""

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
    """A command for a verb, whose request gives the options; the function gets the checked request.

    A command that is one way to use a verb of another name says which `verb`, and which parameters are `preset`.
    """
    named = VERBS[verb or name.replace("-", "_").replace(" ", "_")]
    told = summary or named.summary

    def register(function: Handler) -> Handler:
        REGISTERED_COMMANDS[name] = _entry(
            name, named, told, _help(told, more, example), function, extra, preset, creates
        )
        return function

    return register


def derived_command(verb: Verb) -> CommandEntry:
    """The command of a verb that has none of its own: it shows the result as it is."""

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
        return function(session, check(verb.request, typed), **extras)

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
    """Click keeps the lines after a backspace character as they are."""
    paragraphs = [summary, *([more] if more else []), "\b\nExample:\n" + _indent(example)]
    return "\n\n".join(paragraphs)


def _indent(text: str) -> str:
    return "\n".join(f"  {row}" for row in text.strip().splitlines())
