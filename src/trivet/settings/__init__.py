"""The user's settings: environment variables override trivet.toml, which overrides defaults."""

from __future__ import annotations

from trivet.settings.load import LISTS, TABLES, load_settings
from trivet.settings.locations import cache_folder, config_path, data_folder, default_store
from trivet.settings.settings import CATEGORIES, HIDDEN, Settings

__all__ = [
    "CATEGORIES",
    "HIDDEN",
    "LISTS",
    "TABLES",
    "Settings",
    "cache_folder",
    "config_path",
    "data_folder",
    "default_store",
    "load_settings",
]
