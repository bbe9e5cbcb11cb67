"""Variables of the environment that begin like ours and mean nothing: most likely a setting that was mistyped."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from trivet.contract import SCOPE_PATTERN
from trivet.errors import InvalidInput
from trivet.settings.locations import _config_file, default_store, without_password
from trivet.settings.systems import ExternalSystem

PREFIX = "TRIVET_"
# What is no setting and is read all the same: where the configuration is, what an agent may see, keys of services, and
# where the lab's collections, the indexes of code search and those of tenants of PostgreSQL lie.
NON_SETTING_VARIABLES = (
    "CONFIG",
    "MCP_REVEAL",
    "EMBED_API_KEY",
    "RERANK_API_KEY",
    "LLM_API_KEY",
    "DATA",
    "CODE_CACHE",
    "INDEX_CACHE",
)

_warned: set[str] = set()


def unknown_variables(environment: Mapping[str, str], settings: Settings) -> list[str]:
    """A sentence for each that has not been told in this process."""
    named = {
        name
        for system in settings.federation.values()
        for name in (system.key_env, *system.environment)
    }
    known = [
        PREFIX + name
        for name in (
            *(field.upper() for field in Settings.__struct_fields__),
            *NON_SETTING_VARIABLES,
        )
    ]
    unknown = [
        name
        for name in environment
        if name.startswith(PREFIX) and name not in {*known, *named, *_warned}
    ]
    _warned.update(unknown)
    return [_sentence(name, known) for name in unknown]


def _sentence(name: str, known: list[str]) -> str:
    import difflib  # here, because every start of a hook or a command passes by this module

    close = difflib.get_close_matches(name, known, 1)
    hint = f"Did you mean {close[0]}?" if close else "`trivet config` lists the settings."
    return f"The environment variable {name} is not known, and has no effect. {hint}"


CATEGORIES: tuple[str, ...] = (
    "facts",
    "preferences",
    "projects",
    "people",
    "decisions",
    "procedures",
    "problems",
    "events",
    "code",
    "references",
)


# In an environment variable these are names with commas between them,
LISTS = frozenset(("categories", "cells", "earlier_embedders", "replica_urls", "server_hosts"))


# and these are JSON.
TABLES = frozenset(("federation",))


# Secrets: never shown or logged, and sent only to the server or proxy they are for.
HIDDEN = ("key", "proxy")


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    path: Annotated[
        str,
        Meta(
            description="The store's file, postgresql://USER@HOST/DATABASE, or a server such as https://HOST."
        ),
    ] = ""
    key: Annotated[
        str, Meta(description="The key to the server, where the path is the address of one.")
    ] = ""
    tenant: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=200,
            description="Whose memories, where one server keeps those of many.",
        ),
    ] = "default"
    scope: Annotated[
        str, Meta(pattern=SCOPE_PATTERN, description="The scope of a memory that names none.")
    ] = "default"
    categories: Annotated[
        tuple[str, ...], Meta(min_length=1, description="The categories a memory may have.")
    ] = CATEGORIES
    embedder: Annotated[
        str,
        Meta(
            description="Who makes the vectors, such as bundled, folder:/path or openai:MODEL@URL."
        ),
    ] = "bundled"
    earlier_embedders: Annotated[
        tuple[str, ...],
        Meta(
            description="Embedders that made a store's vectors before, which answer while it moves to another."
        ),
    ] = ()
    recipe: Annotated[str, Meta(description="How recall retrieves and fuses.")] = "default"
    rerank: Annotated[
        str,
        Meta(
            description="A second look at the best candidates: off, auto (where it is not clear whether they answer), "
            "fast, best, folder:/path, or an endpoint's name."
        ),
    ] = "auto"
    rerank_time_limit_ms: Annotated[
        int,
        Meta(
            ge=1,
            le=600_000,
            description="A reranker that takes longer is left out; the fused order stands.",
        ),
    ] = 2_000
    changes: Annotated[
        Literal["read", "words", "off"],
        Meta(
            description="How a saved memory is compared with its neighbours, to tell what it may update: read by the "
            "bundled model, by words alone, or off."
        ),
    ] = "read"
    relevance_at_least: Annotated[
        Annotated[float, Meta(ge=0, le=1)] | None,
        Meta(
            description="Only hits that are at least so likely to be relevant; if not set, a recall shows its best "
            "candidates, and what hooks show unasked is gated at the calibrated threshold."
        ),
    ] = None
    expand: Annotated[
        bool,
        Meta(
            description="Where the first answer is unsure, ask the query's parts or rewrites too."
        ),
    ] = False
    expand_llm: Annotated[
        str,
        Meta(
            description="A language model that rewrites such a query, such as openai:MODEL@URL; empty: none."
        ),
    ] = ""
    expand_time_limit_ms: Annotated[
        int,
        Meta(ge=1, le=600_000, description="After so long no further part or rewrite is asked."),
    ] = 3_000
    graph_llm: Annotated[
        str,
        Meta(
            description="A language model that reads memories for the graph, such as openai:MODEL@URL; empty: none."
        ),
    ] = ""
    graph_llm_tokens_a_day: Annotated[
        int,
        Meta(
            ge=0,
            le=10**12,
            description="Most tokens a day that memories are read with, as estimated.",
        ),
    ] = 200_000
    capture: Annotated[
        Literal["off", "inbox", "direct"],
        Meta(
            description="What is learnt from conversations: nothing, proposals for review, or memories at once."
        ),
    ] = "inbox"
    capture_most_a_turn: Annotated[
        int,
        Meta(
            ge=1,
            le=50,
            description="Most proposals or memories that one turn of a conversation makes.",
        ),
    ] = 3
    capture_llm: Annotated[
        str,
        Meta(
            description="A language model that reads conversations and curates proposals, such as openai:MODEL@URL; "
            "empty: rules alone."
        ),
    ] = ""
    capture_llm_tokens_a_day: Annotated[
        int,
        Meta(ge=0, le=10**12, description="Most tokens a day that it is asked with, as estimated."),
    ] = 100_000
    usage_counts: Annotated[
        bool, Meta(description="Count how often recall shows a memory; no rank depends on it.")
    ] = True
    disk_budget_mb: Annotated[
        int,
        Meta(
            ge=0,
            le=10**9,
            description="A store larger than this is told by doctor, and captures rest; 0: any.",
        ),
    ] = 0
    secrets: Annotated[
        Literal["redact", "refuse", "off"],
        Meta(
            description="What happens to secrets in what is stored: redact (encrypt them), refuse the text, or off."
        ),
    ] = "redact"
    secrets_vault: Annotated[
        str,
        Meta(
            description="Where HashiCorp Vault keeps the keys of secrets, such as https://HOST:8200/secret/trivet."
        ),
    ] = ""
    secrets_keyring: Annotated[
        bool,
        Meta(
            description="Keep the keys of secrets in the operating system's keyring where there is one."
        ),
    ] = True
    sync_sensitive: Annotated[
        bool,
        Meta(
            description="Let sensitive memories travel between laptop and server; both sides must say so."
        ),
    ] = False
    sync_hide_days: Annotated[
        int,
        Meta(
            ge=1,
            le=3650,
            description="After so many days without contact a laptop hides what others shared with it.",
        ),
    ] = 30
    leg_time_limit_ms: Annotated[
        int,
        Meta(
            ge=1,
            le=600_000,
            description="A leg, words or vectors, that takes longer is left out of the answer.",
        ),
    ] = 5_000
    busy_time_limit_ms: Annotated[
        int,
        Meta(ge=1, le=600_000, description="How long a write waits for another process's write."),
    ] = 10_000
    postgres_pooler: Annotated[
        Literal["auto", "yes", "no"],
        Meta(
            description="Whether a transaction pooler stands before PostgreSQL; then no statement is prepared."
        ),
    ] = "auto"
    replica_urls: Annotated[
        tuple[str, ...],
        Meta(
            description="Hot standbys of the PostgreSQL database, which answer recalls while they are fresh."
        ),
    ] = ()
    replica_lag_seconds: Annotated[
        float, Meta(gt=0, le=3600, description="How old the answer of a standby may be.")
    ] = 5.0
    cells: Annotated[
        tuple[str, ...],
        Meta(
            description="PostgreSQL databases beside the path's, to which the server follows tenants that moved."
        ),
    ] = ()
    directory: Annotated[
        str,
        Meta(
            description="The PostgreSQL database that says which cell a tenant lives in; the path's own if empty."
        ),
    ] = ""
    vector_memory_mb: Annotated[
        int,
        Meta(
            ge=1,
            le=10**6,
            description="PostgreSQL: memory for vectors; a tenant with too many is searched there.",
        ),
    ] = 512
    answer_time_limit_ms: Annotated[
        int,
        Meta(ge=1, le=3_600_000, description="How long a client waits for its server's answer."),
    ] = 60_000
    proxy: Annotated[
        str, Meta(description="The proxy through which a client reaches its server; empty: none.")
    ] = ""
    recalls_at_once: Annotated[
        int, Meta(ge=1, le=1024, description="How many recalls search by meaning at the same time.")
    ] = 4
    server_requests_at_once: Annotated[
        int,
        Meta(
            ge=1,
            le=10_000,
            description="Server: most requests at the same time; more are told to come back.",
        ),
    ] = 64
    server_threads: Annotated[
        int,
        Meta(
            ge=1,
            le=1024,
            description="Server: how many reads are worked on at the same time, and as many writes.",
        ),
    ] = 8
    server_request_bytes: Annotated[
        int,
        Meta(
            ge=1024, le=2**30, description="Server: the largest body that is read, but for imports."
        ),
    ] = 4 * 2**20
    server_import_bytes: Annotated[
        int, Meta(ge=1024, le=2**40, description="Server: the largest import.")
    ] = 2**30
    server_request_seconds: Annotated[
        float,
        Meta(
            gt=0,
            le=3600,
            description="Server: how long a request may take to arrive, and then to be answered.",
        ),
    ] = 30.0
    server_requests_a_minute: Annotated[
        int, Meta(ge=1, le=10**6, description="Server: how often a key may ask in the long run.")
    ] = 1_200
    server_burst: Annotated[
        int,
        Meta(
            ge=1, le=10**6, description="Server: how many requests a key may save up for a moment."
        ),
    ] = 200
    server_shutdown_seconds: Annotated[
        int,
        Meta(ge=0, le=3600, description="Server: how long the end waits for what was accepted."),
    ] = 30
    server_hosts: Annotated[
        tuple[str, ...],
        Meta(
            description="Server: the host names it answers for; on loopback this machine's own, elsewhere any if none."
        ),
    ] = ()
    server_metrics: Annotated[
        Literal["admin", "loopback"],
        Meta(
            description="Server: who reads /metrics: keys with the right admin, or whoever is on this machine too."
        ),
    ] = "admin"
    resident: Annotated[
        Literal["off", "use", "hooks", "always"],
        Meta(
            description="The resident process: off (never used), use (where it runs), hooks (which start it too), or "
            "always (the command line and MCP start it too)."
        ),
    ] = "hooks"
    resident_idle_seconds: Annotated[
        float,
        Meta(
            ge=0,
            le=10**9,
            description="The resident process ends when nobody asked for so long; 0: never.",
        ),
    ] = 3_600.0
    resident_memory_mb: Annotated[
        int,
        Meta(
            ge=1,
            le=10**6,
            description="The resident process ends when it has more than this in memory.",
        ),
    ] = 1_024
    hook_time_limit_ms: Annotated[
        int, Meta(ge=1, le=600_000, description="After so long a hook gives up and says nothing.")
    ] = 3_000
    hook_memories: Annotated[
        int, Meta(ge=0, le=50, description="Most memories that a hook adds to a prompt; 0: none.")
    ] = 5
    hook_bytes: Annotated[
        int,
        Meta(
            ge=0,
            le=10**6,
            description="Most bytes that a hook adds to a prompt or at a session's start.",
        ),
    ] = 8_192
    hook_start_tokens: Annotated[
        int,
        Meta(
            ge=0,
            le=100_000,
            description="About how many tokens of memories a session starts with; 0: none.",
        ),
    ] = 1_000
    code: Annotated[
        bool, Meta(description="Give agents the tools for code search, over MCP on this machine.")
    ] = True
    code_hook: Annotated[
        bool,
        Meta(
            description="Let the hook before a prompt name the three files that most likely matter for it."
        ),
    ] = False
    federation: Annotated[
        Mapping[str, ExternalSystem],
        Meta(
            description="Other retrieval systems, a table each, which a federated recall asks, too."
        ),
    ] = {}
    background: Annotated[
        bool, Meta(description="Embed in a background thread while the store is open.")
    ] = True

    def __repr__(self) -> str:
        return f"Settings({', '.join(f'{name}={value!r}' for name, value in self.shown.items())})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return list(self.shown.items())

    @property
    def shown(self) -> dict[str, Any]:
        """Every setting as it may be shown."""
        return {
            name: "[hidden]"
            if name in HIDDEN and getattr(self, name)
            else _displayable(getattr(self, name))
            for name in self.__struct_fields__
        }


def _displayable(value: Any) -> Any:
    """The value without secrets: an address of PostgreSQL may hold a password."""
    if isinstance(value, tuple):
        return tuple(_displayable(one) for one in value)
    if isinstance(value, Mapping):
        return {name: member.kind for name, member in value.items()}
    return without_password(value) if isinstance(value, str) else value


def load_settings(environment: Mapping[str, str] | None = None, **overrides: Any) -> Settings:
    """The settings in force. `overrides` come from the caller and win over everything."""
    given, environment = environment, os.environ if environment is None else environment
    values: dict[str, Any] = dict(_from_file(_config_file(environment)))
    values.update(_from_environment(environment))
    values.update({name: value for name, value in overrides.items() if value is not None})
    settings = _validated(values, "the settings")
    if given is None:
        _warn_of_typos(settings)
    return (
        settings
        if settings.path
        else msgspec.structs.replace(settings, path=str(default_store(environment)))
    )


def _warn_of_typos(settings: Settings) -> None:
    """Once a process, in the log, which is standard error unless the program has set up another."""

    for sentence in unknown_variables(os.environ, settings):
        import logging

        logging.getLogger("trivet.settings").warning("%s", sentence)


def _from_file(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path} cannot be read: {error}. Mend it or move it away.") from None
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(f"{path} is not valid TOML: {error}.") from None
    _validated(values, str(path))
    return values


def _from_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name in Settings.__struct_fields__:
        text = environment.get(f"TRIVET_{name.upper()}")
        if text is not None:
            read = _parse_list if name in LISTS else _parse_tables if name in TABLES else str
            values[name] = read(text)
    return values


def _parse_list(text: str) -> list[str]:
    return [item.strip() for item in text.split(",") if item.strip()]


def _parse_tables(text: str) -> Any:
    try:
        return msgspec.json.decode(text or "{}")
    except msgspec.DecodeError as error:
        raise InvalidInput(
            f"TRIVET_FEDERATION is not JSON: {error}. Tables are better kept in trivet.toml."
        ) from None


def _validated(values: Mapping[str, Any], origin: str) -> Settings:
    try:
        return msgspec.convert(dict(values), Settings, strict=False)
    except msgspec.ValidationError as error:
        known = ", ".join(Settings.__struct_fields__)
        raise InvalidInput(
            f"{origin}: {str(error).replace('`', '')}. Known settings: {known}."
        ) from None
