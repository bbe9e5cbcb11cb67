"""Loading the settings from trivet.toml, the environment and the caller."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from trivet.errors import InvalidInput
from trivet.settings.locations import config_path, default_store
from trivet.settings.settings import Settings

PREFIX = "TRIVET_"
# Comma-separated in an environment variable.
LISTS = frozenset(("categories", "cells", "earlier_embedders", "replica_urls", "server_hosts"))
# JSON in an environment variable.
TABLES = frozenset(("federation",))
# Variables that are not settings: the configuration file, what an agent may see, API keys of
# services, and folders (lab collections, code indexes, index files of PostgreSQL tenants).
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


def load_settings(environment: Mapping[str, str] | None = None, **overrides: Any) -> Settings:
    """Return the settings in force.

    Args:
        environment: Variables to use instead of those of the process.
        **overrides: Settings by name; they win over everything except None values.
    """
    given, environment = environment, os.environ if environment is None else environment
    values: dict[str, Any] = dict(_from_file(config_path(environment)))
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
    for sentence in unknown_variables(os.environ, settings):
        import logging

        logging.getLogger("trivet.settings").warning("%s", sentence)


def _from_file(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path} cannot be read: {error}. Fix it or move it away.") from None
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(f"{path} is not valid TOML: {error}. Fix it.") from None
    _validated(values, str(path))
    return values


def _from_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name in Settings.__struct_fields__:
        text = environment.get(PREFIX + name.upper())
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
            f"TRIVET_FEDERATION is not JSON: {error}. Put tables into trivet.toml instead."
        ) from None


def _validated(values: Mapping[str, Any], origin: str) -> Settings:
    try:
        return msgspec.convert(dict(values), Settings, strict=False)
    except msgspec.ValidationError as error:
        known = ", ".join(Settings.__struct_fields__)
        raise InvalidInput(
            f"{origin}: {str(error).replace('`', '')}. Known settings: {known}."
        ) from None


_warned: set[str] = set()


def unknown_variables(environment: Mapping[str, str], settings: Settings) -> list[str]:
    """Return a warning for each unknown TRIVET_ variable, once per process."""
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
    import difflib  # here, because every hook and command loads this module at startup

    close = difflib.get_close_matches(name, known, 1)
    hint = f"Did you mean {close[0]}?" if close else "`trivet config` lists the settings."
    return f"The environment variable {name} is unknown and has no effect. {hint}"
