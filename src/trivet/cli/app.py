"""The root command. It knows every command's name and loads only the one that is called for."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from trivet.cli.command import ENTRIES, JsonOption, PathOption, Root

# In the order of `trivet --help`.
MODULES: dict[str, tuple[str, ...]] = {
    "write": ("remember",),
    "find": ("recall", "get", "list"),
    "change": ("edit", "forget", "restore", "purge", "link", "unlink"),
    "look": ("history", "diff", "why-not", "stats"),
    "move": ("export", "import", "backup"),
    "upkeep": ("doctor", "reindex", "config"),
    "serve": ("mcp", "demo"),
}
HOMES: dict[str, str] = {name: module for module, names in MODULES.items() for name in names}

HELP = """A memory for AI agents that stands on three legs.

Remember short texts; recall the few that matter, each with the reason why it was found. The store is one file on this
machine, and nothing leaves it. --path and --json may stand before or after the command.

\b
Start here:
  trivet remember "The staging database listens on port 6543."
  trivet recall "which port is staging on?"
  trivet demo
"""


class LazyCommands(MutableMapping[str, Any]):
    """Commands by name, each made when it is first looked up: making all of them costs more than most of them run."""

    def __init__(self) -> None:
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._made:
            self._made[name] = _make(name, HOMES[name])
        return self._made[name]

    def __setitem__(self, name: str, command: Any) -> None:
        self._made[name] = command

    def __delitem__(self, name: str) -> None:
        del self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(HOMES)

    def __len__(self) -> int:
        return len(HOMES)

    def __contains__(self, name: object) -> bool:
        return name in HOMES


class LazyGroup(TyperGroup):
    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = LazyCommands()


def root_command() -> Any:
    app = typer.Typer(cls=LazyGroup, rich_markup_mode=None, pretty_exceptions_enable=False)
    app.callback(invoke_without_command=True, help=HELP, context_settings=_SETTINGS)(_root)
    return get_command(app)


# Long enough for one sentence of help beside the longest option.
_SETTINGS: dict[str, Any] = {"help_option_names": ["-h", "--help"], "max_content_width": 110}


def _root(
    context: typer.Context,
    path: PathOption = None,
    as_json: JsonOption = False,
    version: Annotated[bool, typer.Option("--version", help="Show the version and stop.")] = False,
) -> None:
    context.obj = Root(path, as_json)
    if version:
        from trivet import __version__

        typer.echo(f"trivet {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def _make(name: str, module: str) -> Any:
    import_module(f"trivet.cli.commands.{module}")
    entry = ENTRIES[name]
    single = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    single.command(name, help=entry.help, short_help=entry.short_help, context_settings=_SETTINGS)(entry.callback)
    return get_command(single)
