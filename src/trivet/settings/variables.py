"""Variables of the environment that begin like ours and mean nothing: most likely a setting that was mistyped."""

from __future__ import annotations

from collections.abc import Mapping

from trivet.settings import Settings

PREFIX = "TRIVET_"
# What is no setting and is read all the same: where the configuration is, what an agent may see, keys of services, and
# where the lab's collections, the indexes of code search and those of tenants of PostgreSQL lie.
OTHERS = ("CONFIG", "MCP_REVEAL", "EMBED_API_KEY", "RERANK_API_KEY", "LLM_API_KEY", "DATA", "CODE_CACHE", "INDEX_CACHE")

_told: set[str] = set()


def unknown_variables(environment: Mapping[str, str], settings: Settings) -> list[str]:
    """A sentence for each that has not been told in this process."""
    named = {name for system in settings.federation.values() for name in (system.key_env, *system.environment)}
    known = [PREFIX + name for name in (*(field.upper() for field in Settings.__struct_fields__), *OTHERS)]
    unknown = [name for name in environment if name.startswith(PREFIX) and name not in {*known, *named, *_told}]
    _told.update(unknown)
    return [_sentence(name, known) for name in unknown]


def _sentence(name: str, known: list[str]) -> str:
    import difflib  # here, because every start of a hook or a command passes by this module

    close = difflib.get_close_matches(name, known, 1)
    hint = f"Did you mean {close[0]}?" if close else "`trivet config` lists the settings."
    return f"The environment variable {name} is not known, and has no effect. {hint}"
