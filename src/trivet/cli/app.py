"""The root command, which loads only the module of the command that runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from trivet.cli.command import (
    REGISTERED_COMMANDS,
    JsonOption,
    PathOption,
    RootOptions,
    derived_command,
)
from trivet.contract import VERBS

# The sections of `trivet --help`, of at most eight commands, and each command's module.
SECTIONS: Mapping[str, Mapping[str, str]] = {
    "Every day": {
        **dict.fromkeys(("remember", "recall", "get", "list"), "memories"),
        **dict.fromkeys(("edit", "forget"), "memories"),
        "inbox": "inbox",
        "open": "serve",
    },
    "Look closer": {
        **dict.fromkeys(("why-not", "history", "diff"), "inspection"),
        "links": "memories",
        **dict.fromkeys(("concepts", "graph"), "inspection"),
    },
    "Count": {
        "stats": "inspection",
        **dict.fromkeys(("tags", "categories", "sources", "days"), "inspection"),
    },
    "Connect and correct": {
        **dict.fromkeys(("link", "unlink", "restore", "purge"), "memories"),
        **dict.fromkeys(("feedback", "usage"), "inspection"),
    },
    "Files and other systems": {
        "ingest": "ingest",
        "code": "code",
        **dict.fromkeys(("import", "export", "backup", "move"), "transfer"),
        "fuse": "memories",
        "sync": "sync",
    },
    "Agents": {
        **dict.fromkeys(("install", "uninstall"), "install"),
        "mcp": "serve",
        **dict.fromkeys(("up", "down", "status", "hook"), "serve"),
    },
    "Upkeep": {
        **dict.fromkeys(("doctor", "config", "embed", "reindex"), "maintenance"),
        "tidy": "maintenance",
        **dict.fromkeys(("redact", "rotate-keys"), "access"),
    },
    "A server and its users": {
        "serve": "serve",
        **dict.fromkeys(("user", "key"), "access"),
        **dict.fromkeys(("share", "unshare", "shares"), "access"),
        **dict.fromkeys(("reveal", "audit"), "access"),
    },
    "A server's databases": {"migrate": "transfer", "tenant": "tenants"},
    "Try and measure": {"demo": "serve", "tune": "lab.tune", "lab": "lab.measure"},
}
COMMAND_MODULES: dict[str, str] = {
    name: module for commands in SECTIONS.values() for name, module in commands.items()
}
# The module of verbs without a command of their own.
DERIVED = ""
GROUPS: dict[str, dict[str, str]] = {
    "code": dict.fromkeys(("search", "symbol", "related", "index", "status", "check"), "code"),
    "inbox": dict.fromkeys(
        ("list", "show", "propose", "accept", "edit", "reject", "reopen", "curate"), "inbox"
    ),
    "user": {"add": "access", "list": "access", "role": "access", "remove": "access"},
    "key": {"add": "access", "list": "access", "revoke": "access"},
    "tenant": dict.fromkeys(("move", "show", "forget-moved"), "tenants"),
    "sync": dict.fromkeys(
        ("join", "now", "status", "conflicts", "resolve", "refused", "verify", "leave"), "sync"
    ),
    "lab": {
        "import": "lab.measure",
        "from-store": "lab.from_store",
        "run": "lab.measure",
        "compare": "lab.measure",
        "gate": "lab.measure",
        "countings": "lab.measure",
        "delivery": "lab.measure",
        "sweep": "lab.measure",
        "ablate": "lab.measure",
        "federation": "lab.federation",
        "code": "lab.code",
        "report": "lab.measure",
        "pool": "lab.judge",
        "judge": "lab.judge",
    },
}
GROUP_SECTIONS: Mapping[str, Mapping[str, Iterable[str]]] = {
    "lab": {
        "Measure": (
            "import",
            "from-store",
            "run",
            "compare",
            "gate",
            "countings",
            "delivery",
            "report",
        ),
        "Try others": ("sweep", "ablate", "federation"),
        "Code search": ("code",),
        "Judge": ("pool", "judge"),
    },
}

HELP = """A memory for AI agents that explains every hit.

Remember short texts, then recall the few that matter, each with the reason it was found. The store
is one file on this machine, and nothing leaves it. --path and --json go before or after the
command.

\b
Start here:
  trivet remember "The staging database listens on port 6543."
  trivet recall "which port is staging on?"
  trivet demo
"""

LAB_HELP = """Measure recall recipes on test sets and compare them.

A dataset in the plain layout is a folder with corpus.jsonl, queries.jsonl and qrels.tsv. A SPEC is
a recall recipe in the syntax of the `recipe` setting; `default` is the built-in one. The lab needs
`pip install 'trivet[lab]'`. docs/lab.md explains how to read the figures.

\b
Example:
  trivet lab run house --config default --config "rrf(k=60)" --out runs
  trivet lab compare runs/1-default runs/2-rrf-k-60
  trivet lab report runs
"""

USER_HELP = """Add, list and remove the users of a server.

The store holds its users. Each sees their own memories and those that others share with them.

\b
Example:
  trivet user add ana --role writer
  trivet key add ana --label laptop
"""

KEY_HELP = """Create, list and revoke the API keys of a server's users.

A key is shown once and stored as a hash. Clients send it as TRIVET_KEY, or as
`Authorization: Bearer KEY`.

\b
Example:
  trivet key add ana --label laptop --days 90
  trivet key list
  trivet key revoke 3f9a1c0b77d2
"""

INBOX_HELP = """Review memories proposed from conversations: accept, edit or reject them.

Without a command it lists the waiting proposals. An accepted proposal becomes a memory; an update
keeps the old revision, and a superseded memory leads to its successor.

\b
Example:
  trivet inbox
  trivet inbox accept 0199c2f4-7d1e-7a3b-9c55-2f6f0f6c1a2b
  trivet inbox edit 0199c2f4-7d1e-7a3b-9c55-2f6f0f6c1a2b --content "Staging listens on port 6544."
  trivet inbox reject 0199c2f9-10aa-7d02-8d1f-5b0c7e3a9f44
"""

SYNC_HELP = """Sync this store with a team's server, and work offline.

Offline, everything works the same: your writes wait and are sent later. Memories that others share
with you are copied here. If two edits conflict, both are kept, and so are writes that the server
refuses. docs/sync.md lists the guarantees.

\b
Example:
  trivet sync join https://memory.example.org    (with the key in TRIVET_KEY)
  trivet sync now
  trivet sync status
"""

TENANT_HELP = """Move tenants between PostgreSQL databases while they are in use.

Each database is a cell with its own tenants (docs/scale.md).

\b
Example:
  trivet tenant show acme --path postgresql://trivet@db1/trivet
  trivet tenant move acme --path postgresql://trivet@db1/trivet --to postgresql://trivet@db2/trivet
"""

CODE_HELP = """Search source code by words, names and meaning.

The first search indexes the folder, every later one updates the index. Each repository has one
index, in your cache folder, and nothing leaves this machine. The exit status is 0 if something was
found, 1 if nothing was, 2 on an error. docs/code.md is a tour.

\b
Example:
  trivet code search "where are failed requests retried"
  trivet code symbol Client.send
  trivet code related src/client.py:120
"""

GROUP_HELP = {
    "code": CODE_HELP,
    "sync": SYNC_HELP,
    "inbox": INBOX_HELP,
    "lab": LAB_HELP,
    "user": USER_HELP,
    "key": KEY_HELP,
    "tenant": TENANT_HELP,
}


class SectionedGroup(TyperGroup):
    """A group whose help lists its commands in sections; commands in no section come last."""

    sections: Mapping[str, Iterable[str]] = {}

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        placed = {name for names in self.sections.values() for name in names}
        others = [name for name in self.list_commands(ctx) if name not in placed]
        width = max(map(len, self.list_commands(ctx)))
        for heading, names in {**self.sections, "Others" if placed else "Commands": others}.items():
            found = {name: self.get_command(ctx, name) for name in names}
            rows = [
                (name.ljust(width), one.get_short_help_str(_HELP_CHARACTERS))
                for name, one in found.items()
                if one
            ]
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows)


class LazyCommands(MutableMapping[str, Any]):
    """Commands built at their first lookup: building all takes longer than most of them run."""

    def __init__(self, homes: Mapping[str, str], make: Callable[[str, str], Any]) -> None:
        self._homes = homes
        self._make = make
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._made:
            self._made[name] = self._make(name, self._homes[name])
        return self._made[name]

    def __setitem__(self, name: str, command: Any) -> None:
        self._made[name] = command

    def __delitem__(self, name: str) -> None:
        del self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._homes)

    def __len__(self) -> int:
        return len(self._homes)

    def __contains__(self, name: object) -> bool:
        return name in self._homes


def root_command() -> Any:
    return _group(
        _root, HELP, LazyCommands({**COMMAND_MODULES, **_derived_verbs()}, _make), sections=SECTIONS
    )


def _derived_verbs() -> dict[str, str]:
    grouped = {f"{group}_{name}" for group, names in GROUPS.items() for name in names}
    known = {name.replace("-", "_") for name in COMMAND_MODULES} | grouped
    return {
        name.replace("_", "-"): DERIVED
        for name, verb in VERBS.items()
        if verb.command and name not in known
    }


def _group(
    callback: Callable[..., None],
    help: str,
    commands: LazyCommands,
    completion: bool = True,
    sections: Mapping[str, Iterable[str]] | None = None,
) -> Any:
    app = typer.Typer(
        cls=SectionedGroup,
        add_completion=completion,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )
    register = app.callback(
        invoke_without_command=True,
        help=help,
        short_help=help.partition("\n")[0],  # the default cuts the first sentence short
        context_settings=_SETTINGS,
    )
    register(callback)
    group: Any = get_command(app)
    group.commands, group.sections = commands, sections or {}
    return group


# Longer help in a list is cut at a word.
_HELP_CHARACTERS = 200
# Columns: one sentence of help next to the longest option.
_SETTINGS: dict[str, Any] = {"help_option_names": ["-h", "--help"], "max_content_width": 110}


def _root(
    context: typer.Context,
    path: PathOption = None,
    as_json: JsonOption = False,
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
) -> None:
    context.obj = RootOptions(path, as_json)
    if version:
        from trivet import __version__

        typer.echo(f"trivet {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def _make(name: str, module: str) -> Any:
    if name in GROUPS:
        commands = LazyCommands(
            GROUPS[name], lambda own, home: _make_command(f"{name} {own}", home)
        )
        callback = _list_by_default if name == "inbox" else _help_by_default
        return _group(
            callback,
            GROUP_HELP[name],
            commands,
            completion=False,
            sections=GROUP_SECTIONS.get(name),
        )
    return _make_command(name, module)


def _help_by_default(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def _list_by_default(
    context: typer.Context, path: PathOption = None, as_json: JsonOption = False
) -> Any:
    group: Any = context.command
    given = [*(["--path", path] if path else []), *(["--json"] if as_json else [])]
    if context.invoked_subcommand is not None:
        if given:
            raise typer.BadParameter(f"Put {given[0]} after {context.invoked_subcommand}")
        return None
    listing = group.commands["list"]
    with listing.make_context("list", given, parent=context) as own:
        return listing.invoke(own)


def _make_command(name: str, module: str) -> Any:
    if module == DERIVED:
        entry = derived_command(VERBS[name.replace("-", "_")])
    else:
        import_module(f"trivet.cli.commands.{module}")
        entry = REGISTERED_COMMANDS[name]
    single = typer.Typer(
        add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False
    )
    own_name = name.rpartition(" ")[2]
    single.command(
        own_name, help=entry.help, short_help=entry.short_help, context_settings=_SETTINGS
    )(entry.callback)
    return get_command(single)
