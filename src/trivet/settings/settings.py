"""The settings, with their bounds, defaults and descriptions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from trivet.contract import SCOPE_PATTERN
from trivet.settings.locations import without_password
from trivet.settings.systems import ExternalSystem

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
# Secrets: never displayed or logged, and sent only to the server or proxy they are for.
HIDDEN = ("key", "proxy")

Milliseconds = Annotated[int, Meta(ge=1, le=600_000)]
Megabytes = Annotated[int, Meta(ge=1, le=10**6)]
DailyTokens = Annotated[int, Meta(ge=0, le=10**12)]
Concurrency = Annotated[int, Meta(ge=1, le=1024)]


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings; docs/server.md repeats the `server_*` descriptions."""

    path: Annotated[
        str,
        Meta(
            description="The store: a file, postgresql://USER@HOST/DATABASE, or a server such as "
            "https://HOST."
        ),
    ] = ""
    key: Annotated[str, Meta(description="The API key, if the path is a server.")] = ""
    tenant: Annotated[
        str,
        Meta(
            min_length=1, max_length=200, description="The tenant, if one database holds several."
        ),
    ] = "default"
    scope: Annotated[
        str, Meta(pattern=SCOPE_PATTERN, description="The scope of memories stored without one.")
    ] = "default"
    categories: Annotated[
        tuple[str, ...], Meta(min_length=1, description="The categories a memory may have.")
    ] = CATEGORIES
    embedder: Annotated[
        str,
        Meta(
            description="The model for vectors, such as bundled, folder:/path or openai:MODEL@URL."
        ),
    ] = "bundled"
    earlier_embedders: Annotated[
        tuple[str, ...],
        Meta(description="Previous embedders, which answer while the store moves to a new one."),
    ] = ()
    recipe: Annotated[str, Meta(description="How recall retrieves and fuses.")] = "default"
    rerank: Annotated[
        str,
        Meta(
            description="Rerank the best candidates: off, auto (only if their relevance is "
            "unclear), fast, best, folder:/path, or an endpoint."
        ),
    ] = "auto"
    rerank_time_limit_ms: Annotated[
        Milliseconds,
        Meta(description="Time limit of the reranker; after it the fused order stands."),
    ] = 2_000
    changes: Annotated[
        Literal["read", "words", "off"],
        Meta(
            description="How to find what a new memory may update: read (by the bundled model), "
            "words (by words only) or off."
        ),
    ] = "read"
    relevance_at_least: Annotated[
        Annotated[float, Meta(ge=0, le=1)] | None,
        Meta(
            description="Minimum relevance of a hit, 0 to 1. If not set, a recall returns its best "
            "candidates, and hooks use the calibrated threshold."
        ),
    ] = None
    expand: Annotated[
        bool,
        Meta(description="If the first answer is unsure, also try the query's parts or rewrites."),
    ] = False
    expand_llm: Annotated[
        str,
        Meta(
            description="A language model that rewrites unsure queries, such as openai:MODEL@URL; "
            "empty: none."
        ),
    ] = ""
    expand_time_limit_ms: Annotated[
        Milliseconds, Meta(description="Time after which no further part or rewrite is tried.")
    ] = 3_000
    graph_llm: Annotated[
        str,
        Meta(
            description="A language model that reads memories for the graph, such as "
            "openai:MODEL@URL; empty: none."
        ),
    ] = ""
    graph_llm_tokens_a_day: Annotated[
        DailyTokens, Meta(description="Maximum estimated tokens a day for graph_llm.")
    ] = 200_000
    capture: Annotated[
        Literal["off", "inbox", "direct"],
        Meta(
            description="What agents' conversations give: nothing (off), proposals for review "
            "(inbox) or memories at once (direct)."
        ),
    ] = "inbox"
    capture_most_a_turn: Annotated[
        int,
        Meta(ge=1, le=50, description="Maximum proposals or memories per turn of a conversation."),
    ] = 3
    capture_llm: Annotated[
        str,
        Meta(
            description="A language model that reads conversations and curates proposals, such as "
            "openai:MODEL@URL; empty: rules only."
        ),
    ] = ""
    capture_llm_tokens_a_day: Annotated[
        DailyTokens, Meta(description="Maximum estimated tokens a day for capture_llm.")
    ] = 100_000
    usage_counts: Annotated[
        bool, Meta(description="Count how often recall returns a memory; ranks do not use it.")
    ] = True
    disk_budget_mb: Annotated[
        int,
        Meta(
            ge=0,
            le=10**9,
            description="Above this size doctor warns and capture pauses; 0: no limit.",
        ),
    ] = 0
    secrets: Annotated[
        Literal["redact", "refuse", "off"],
        Meta(
            description="What to do with secrets in new texts: redact (encrypt them), refuse (the "
            "text) or off."
        ),
    ] = "redact"
    secrets_vault: Annotated[
        str,
        Meta(
            description="A HashiCorp Vault address that keeps the keys of secrets, such as "
            "https://HOST:8200/secret/trivet."
        ),
    ] = ""
    secrets_keyring: Annotated[
        bool,
        Meta(
            description="Keep the keys of secrets in the operating system's keyring, if it has one."
        ),
    ] = True
    sync_sensitive: Annotated[
        bool,
        Meta(description="Sync sensitive memories between laptop and server; both must enable it."),
    ] = False
    sync_hide_days: Annotated[
        int,
        Meta(
            ge=1,
            le=3650,
            description="Days without contact after which a laptop hides what others shared.",
        ),
    ] = 30
    leg_time_limit_ms: Annotated[
        Milliseconds,
        Meta(description="Time limit of a leg (words or vectors); a slower leg is left out."),
    ] = 5_000
    busy_time_limit_ms: Annotated[
        Milliseconds, Meta(description="Time a write waits for another process's write.")
    ] = 10_000
    postgres_pooler: Annotated[
        Literal["auto", "yes", "no"],
        Meta(
            description="Whether PostgreSQL is behind a transaction pooler; disables prepared "
            "statements."
        ),
    ] = "auto"
    replica_urls: Annotated[
        tuple[str, ...],
        Meta(
            description="Hot standbys of the PostgreSQL database that answer recalls while fresh."
        ),
    ] = ()
    replica_lag_seconds: Annotated[
        float, Meta(gt=0, le=3600, description="Maximum age of a standby's answer.")
    ] = 5.0
    cells: Annotated[
        tuple[str, ...], Meta(description="Further PostgreSQL databases to which tenants may move.")
    ] = ()
    directory: Annotated[
        str,
        Meta(
            description="The PostgreSQL database that records each tenant's cell; empty: the "
            "path's database."
        ),
    ] = ""
    vector_memory_mb: Annotated[
        Megabytes,
        Meta(
            description="PostgreSQL: memory for vectors; larger tenants are searched in the "
            "database."
        ),
    ] = 512
    answer_time_limit_ms: Annotated[
        int, Meta(ge=1, le=3_600_000, description="Time a client waits for its server's answer.")
    ] = 60_000
    proxy: Annotated[
        str, Meta(description="The proxy between a client and its server; empty: none.")
    ] = ""
    recalls_at_once: Annotated[
        Concurrency, Meta(description="Maximum concurrent recalls that search by meaning.")
    ] = 4
    server_requests_at_once: Annotated[
        int,
        Meta(
            ge=1,
            le=10_000,
            description="Server: maximum concurrent requests; further ones must retry.",
        ),
    ] = 64
    server_threads: Annotated[
        Concurrency, Meta(description="Server: maximum concurrent reads, and as many writes.")
    ] = 8
    server_request_bytes: Annotated[
        int,
        Meta(
            ge=1024, le=2**30, description="Server: maximum size of a request body, except imports."
        ),
    ] = 4 * 2**20
    server_import_bytes: Annotated[
        int, Meta(ge=1024, le=2**40, description="Server: maximum size of an import.")
    ] = 2**30
    server_request_seconds: Annotated[
        float,
        Meta(
            gt=0,
            le=3600,
            description="Server: time a request may take to arrive, and again to be answered.",
        ),
    ] = 30.0
    server_requests_a_minute: Annotated[
        int, Meta(ge=1, le=10**6, description="Server: sustained requests a minute per key.")
    ] = 1_200
    server_burst: Annotated[
        int,
        Meta(ge=1, le=10**6, description="Server: requests a key may send at once after a pause."),
    ] = 200
    server_shutdown_seconds: Annotated[
        int, Meta(ge=0, le=3600, description="Server: time a shutdown waits for accepted requests.")
    ] = 30
    server_hosts: Annotated[
        tuple[str, ...],
        Meta(
            description="Server: host names it answers for; by default this machine's own on "
            "loopback, any elsewhere."
        ),
    ] = ()
    server_metrics: Annotated[
        Literal["admin", "loopback"],
        Meta(
            description="Server: who may read /metrics: keys with the right admin, or also any "
            "process on this machine (loopback)."
        ),
    ] = "admin"
    resident: Annotated[
        Literal["off", "use", "hooks", "always"],
        Meta(
            description="The resident process: off (never used), use (only if it runs), hooks "
            "(hooks start it), or always (the command line and MCP start it too)."
        ),
    ] = "hooks"
    resident_idle_seconds: Annotated[
        float,
        Meta(
            ge=0, le=10**9, description="Idle time after which the resident process ends; 0: never."
        ),
    ] = 3_600.0
    resident_memory_mb: Annotated[
        Megabytes, Meta(description="Memory use above which the resident process ends.")
    ] = 1_024
    hook_time_limit_ms: Annotated[
        Milliseconds, Meta(description="Time after which a hook gives up without output.")
    ] = 3_000
    hook_memories: Annotated[
        int, Meta(ge=0, le=50, description="Maximum memories a hook adds to a prompt; 0: none.")
    ] = 5
    hook_bytes: Annotated[
        int,
        Meta(
            ge=0,
            le=10**6,
            description="Maximum bytes a hook adds to a prompt or at a session's start.",
        ),
    ] = 8_192
    hook_start_tokens: Annotated[
        int,
        Meta(
            ge=0,
            le=100_000,
            description="Approximate tokens of memories at a session's start; 0: none.",
        ),
    ] = 1_000
    code: Annotated[
        bool, Meta(description="Offer agents code search over MCP on this machine.")
    ] = True
    code_hook: Annotated[
        bool, Meta(description="Let the prompt hook name the three files most likely to matter.")
    ] = False
    federation: Annotated[
        Mapping[str, ExternalSystem],
        Meta(description="Other retrieval systems, one table each, for federated recalls."),
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
        """Every setting as it may be displayed."""
        return {
            name: "[hidden]"
            if name in HIDDEN and getattr(self, name)
            else _displayable(getattr(self, name))
            for name in self.__struct_fields__
        }


def _displayable(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(_displayable(item) for item in value)
    if isinstance(value, Mapping):
        return {name: member.kind for name, member in value.items()}
    return without_password(value) if isinstance(value, str) else value
