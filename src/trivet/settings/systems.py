"""Other retrieval systems, as the settings declare them for federated recalls."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from trivet.errors import InvalidInput

Kind = Literal["command", "http", "trivet", "mcp"]
# A command's output: one JSON document, one JSON hit per line, `rg --json`, or `path:line:text` as
# `grep -n` prints it.
Format = Literal["json", "jsonl", "rg", "lines"]

NAME = re.compile(r"[a-z][a-z0-9_-]*")
# Names already used in traces and in the grammar of recipes.
RESERVED_NAMES = frozenset(
    ("lexical", "dense", "graph", "words", "fused", "rerank", "expand", "trivet", "k", "norm")
)
QUERY, WORDS, FETCH_K = "{query}", "{words}", "{fetch_k}"
PLACEHOLDERS = (QUERY, WORDS, FETCH_K)
SHELLS = frozenset(
    ("sh", "bash", "dash", "zsh", "ksh", "fish", "csh", "tcsh", "cmd", "powershell", "pwsh")
)
# Shells that run all their arguments as one script, unless -file names one.
SINGLE_SCRIPT_SHELLS = frozenset(("cmd", "powershell", "pwsh"))
_COMMAND_OPTION = re.compile(r"-[abd-zA-Z]*c[a-zA-Z]*|--command.*")
_OPTION_WITH_VALUE = re.compile(r"[-+][a-zA-Z]*[oO]")


class ExternalSystem(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How to query a system and read its hits; paths into JSON use dots.

    Exactly one of `command`, `http`, `trivet` and `mcp` is set.
    """

    command: tuple[str, ...] = ()
    http: str = ""
    trivet: str = ""
    mcp: tuple[str, ...] | str = ()

    enabled: bool = True
    users: bool = False  # whether recalls of a server's users query it too
    fetch_k: Annotated[int, Meta(ge=1, le=1000)] = 30
    weight: Annotated[float, Meta(ge=0, le=1000)] = 1.0
    time_limit_ms: Annotated[int, Meta(ge=1, le=600_000)] = 2_000
    most_bytes: Annotated[int, Meta(ge=1024, le=2**28)] = 8 * 2**20
    scope: str = ""  # the scope of its hits, for a recall within a scope

    format: Format = "json"
    environment: tuple[str, ...] = ()  # variables a program gets besides PATH and the like
    method: Literal["", "GET", "POST"] = ""
    body: Any = None
    key_env: str = ""  # the variable that holds the key, sent as a bearer token
    tool: str = ""
    arguments: Mapping[str, Any] = msgspec.field(default_factory=lambda: {"query": QUERY})

    hits: str = "hits"
    id: str = "id"
    score: str = "score"
    text: str = "text"
    title: str = "title"
    line: str = "line"
    lower_is_better: bool = False
    floor: float | None = None  # its lowest possible score; default 0 or its last score if lower

    map: str = ""  # a file that maps its ids to URIs
    rewrite: Mapping[str, str] = {}  # prefixes of its ids and their replacements

    @property
    def kind(self) -> Kind:
        kinds: tuple[Kind, ...] = ("command", "http", "trivet", "mcp")
        return next(kind for kind in kinds if getattr(self, kind))


def check_systems(systems: Mapping[str, ExternalSystem], legs: Iterable[str] = ()) -> None:
    """Reject declarations that cannot be queried; `legs` are further names taken."""
    taken = RESERVED_NAMES.union(legs)
    for name, system in systems.items():
        try:
            _check(name, system, taken)
        except InvalidInput as error:
            raise InvalidInput(f"The setting federation.{name}: {error}") from None


def _check(name: str, system: ExternalSystem, taken: frozenset[str]) -> None:
    if not NAME.fullmatch(name) or name in taken:
        raise InvalidInput(
            f"the name {name!r} is not allowed. Use a-z, 0-9, '_' and '-', starting with a letter, "
            f"and none of {', '.join(sorted(taken))}."
        )
    given = [kind for kind in ("command", "http", "trivet", "mcp") if getattr(system, kind)]
    if len(given) != 1:
        raise InvalidInput(
            "set exactly one of command, http, trivet and mcp. "
            f"It has {' and '.join(given) or 'none'}."
        )
    if system.kind == "mcp" and not system.tool:
        raise InvalidInput("mcp needs the tool that searches, such as tool = 'search'.")
    if system.kind == "http" and not system.http.startswith(("http://", "https://")):
        raise InvalidInput("http must be an address that starts with http:// or https://.")
    _check_program(system.command or (system.mcp if isinstance(system.mcp, tuple) else ()))


def _check_program(command: tuple[str, ...]) -> None:
    """Reject commands in which a shell would run the query as code."""
    if not command:
        return
    if any(mark in command[0] for mark in PLACEHOLDERS):
        raise InvalidInput("the query must not name the program to run.")
    if any(mark in part for part in _shell_script_arguments(command) for mark in PLACEHOLDERS):
        raise InvalidInput(
            "the shell would run the query as part of its script. Pass it as an argument: "
            '["sh", "-c", \'grep -rn -e "$1" notes\', "sh", "{words}"].'
        )
    if _reads_script_from_stdin(command):
        raise InvalidInput("a shell without a script would run the query from its standard input.")


def _reads_script_from_stdin(command: tuple[str, ...]) -> bool:
    name = PurePath(command[0]).name.lower().removesuffix(".exe")
    return name in SHELLS and all(
        part.startswith("-") and not _COMMAND_OPTION.fullmatch(part) for part in command[1:]
    )


def _shell_script_arguments(command: tuple[str, ...]) -> tuple[str, ...]:
    """Return the arguments that a shell would run, even if `env` or `nice` starts it."""
    names = [PurePath(part).name.lower().removesuffix(".exe") for part in command]
    shell = next((place for place, name in enumerate(names) if name in SHELLS), len(command))
    rest = command[shell + 1 :]
    if rest and names[shell] in SINGLE_SCRIPT_SHELLS:
        return rest[
            : next((place for place, part in enumerate(rest) if part.lower() == "-file"), len(rest))
        ]
    option = next(
        (place for place, part in enumerate(rest) if _COMMAND_OPTION.fullmatch(part)), len(rest)
    )
    # Options may come between -c and the script; some of them take a value.
    script = next(
        (place for place in range(option + 1, len(rest)) if _is_script(rest, place)), len(rest)
    )
    return rest[option : script + 1]


def _is_script(rest: tuple[str, ...], place: int) -> bool:
    return not rest[place].startswith(("-", "+")) and not _OPTION_WITH_VALUE.fullmatch(
        rest[place - 1]
    )
