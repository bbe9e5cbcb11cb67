"""The settings in force, each with where it comes from."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Any, Literal

import msgspec

from trivet.contract import json_schema
from trivet.settings import Settings, config_path, load_settings

Origin = Literal["option", "environment", "file", "default"]


class Setting(msgspec.Struct, frozen=True):
    name: str
    value: Any
    origin: Origin
    description: str


def config_file() -> Path:
    return config_path()


def settings_in_force(path: str | None) -> tuple[Setting, ...]:
    settings = load_settings(path=path)
    in_file = _names_in_file()
    properties = json_schema(Settings)["properties"]
    return tuple(
        Setting(
            name=name,
            value=settings.shown[name],
            origin="option" if name == "path" and path else _origin(name, in_file),
            description=properties[name].get("description", ""),
        )
        for name in Settings.__struct_fields__
    )


def _origin(name: str, in_file: frozenset[str]) -> Origin:
    if f"TRIVET_{name.upper()}" in os.environ:
        return "environment"
    return "file" if name in in_file else "default"


def _names_in_file() -> frozenset[str]:
    """Loading the settings has checked the file already."""
    file = config_file()
    return frozenset(tomllib.loads(file.read_text(encoding="utf-8"))) if file.exists() else frozenset()
