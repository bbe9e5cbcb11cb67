"""Another retrieval system as the settings declare it: how to ask it, where its hits are, what its ids mean."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from trivet.errors import InvalidInput

Kind = Literal["command", "http", "trivet", "mcp"]
# What a command prints: one JSON document, a hit a line, `rg --json`, or `path:line:text` as `grep -n` prints it.
Format = Literal["json", "jsonl", "rg", "lines"]

NAME = re.compile(r"[a-z][a-z0-9_-]*")
# Names that a trace or the grammar of fusions uses already.
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
    """Exactly one of `command`, `http`, `trivet` and `mcp` says how to ask it. Paths into JSON have dots."""

    command: tuple[str, ...] = ()
    http: str = ""
    trivet: str = ""
    mcp: tuple[str, ...] | str = ()

    enabled: bool = True
    users: bool = False  # whether recalls of a server's users ask it too
    fetch_k: Annotated[int, Meta(ge=1, le=1000)] = 30
    weight: Annotated[float, Meta(ge=0, le=1000)] = 1.0
    time_limit_ms: Annotated[int, Meta(ge=1, le=600_000)] = 2_000
    most_bytes: Annotated[int, Meta(ge=1024, le=2**28)] = 8 * 2**20
    scope: str = ""  # the scope of its hits, for a recall within a scope

    format: Format = "json"
    environment: tuple[
        str, ...
    ] = ()  # names of variables that a program gets besides PATH and the like
    method: Literal["", "GET", "POST"] = ""
    body: Any = None
    key_env: str = ""  # the variable that holds the key, which is sent as a bearer token
    tool: str = ""
    arguments: Mapping[str, Any] = msgspec.field(default_factory=lambda: {"query": QUERY})

    hits: str = "hits"
    id: str = "id"
    score: str = "score"
    text: str = "text"
    title: str = "title"
    line: str = "line"
    lower_is_better: bool = False
    floor: float | None = (
        None  # the least score it can give; 0, or its last score where that is below
    )

    map: str = ""  # a file that says which URI an id means
    rewrite: Mapping[str, str] = {}  # prefixes of its ids, and what replaces them here

    @property
    def kind(self) -> Kind:
        kinds: tuple[Kind, ...] = ("command", "http", "trivet", "mcp")
        return next(kind for kind in kinds if getattr(self, kind))


def check_systems(systems: Mapping[str, ExternalSystem], legs: Iterable[str] = ()) -> None:
    """Refuses what cannot be asked. `legs` are names that are taken besides: those of legs that were added later."""
    taken = RESERVED_NAMES.union(legs)
    for name, system in systems.items():
        try:
            _check(name, system, taken)
        except InvalidInput as error:
            raise InvalidInput(f"The setting federation.{name}: {error}") from None


def _check(name: str, system: ExternalSystem, taken: frozenset[str]) -> None:
    if not NAME.fullmatch(name) or name in taken:
        raise InvalidInput(
            f"the name {name!r} cannot be that of a system: use a-z, 0-9, '_' and '-', beginning with a letter, and "
            f"none of {', '.join(sorted(taken))}."
        )
    given = [kind for kind in ("command", "http", "trivet", "mcp") if getattr(system, kind)]
    if len(given) != 1:
        raise InvalidInput(
            f"say in one way how to ask it: command, http, trivet or mcp. Here it is {' and '.join(given) or 'none'}."
        )
    if system.kind == "mcp" and not system.tool:
        raise InvalidInput("name the tool that searches, such as tool = 'search'.")
    if system.kind == "http" and not system.http.startswith(("http://", "https://")):
        raise InvalidInput("http must be an address that begins with http:// or https://.")
    _check_program(system.command or (system.mcp if isinstance(system.mcp, tuple) else ()))


def _check_program(command: tuple[str, ...]) -> None:
    """Refuses commands in which a shell would run the query as code."""
    if not command:
        return
    if any(mark in command[0] for mark in PLACEHOLDERS):
        raise InvalidInput("the program itself cannot be taken from the query.")
    if any(mark in part for part in _shell_script_arguments(command) for mark in PLACEHOLDERS):
        raise InvalidInput(
            "the query would be run as a part of the shell's script. Give it as an argument instead: "
            '["sh", "-c", \'grep -rn -e "$1" notes\', "sh", "{words}"].'
        )
    if _reads_script_from_stdin(command):
        raise InvalidInput(
            "a shell without a script would run the query, which stands on its standard input."
        )


def _reads_script_from_stdin(command: tuple[str, ...]) -> bool:
    name = PurePath(command[0]).name.lower().removesuffix(".exe")
    return name in SHELLS and all(
        part.startswith("-") and not _COMMAND_OPTION.fullmatch(part) for part in command[1:]
    )


def _shell_script_arguments(command: tuple[str, ...]) -> tuple[str, ...]:
    """The arguments that a shell would run, also a shell started by another program such as `env` or `nice`."""
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
    # Options may stand between -c and the script, and some of them have a value.
    script = next(
        (place for place in range(option + 1, len(rest)) if _is_script(rest, place)), len(rest)
    )
    return rest[option : script + 1]


def _is_script(rest: tuple[str, ...], place: int) -> bool:
    return not rest[place].startswith(("-", "+")) and not _OPTION_WITH_VALUE.fullmatch(
        rest[place - 1]
    )
