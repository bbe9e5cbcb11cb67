"""A plugin folder for Claude Code: manifest, server, hooks, three commands and a skill."""

from __future__ import annotations

import json
from importlib import resources
from importlib.abc import Traversable
from pathlib import Path
from typing import Any

from trivet import __version__
from trivet.agents.install.agents import Launch, plugin_hooks, server_entry
from trivet.errors import Conflict, StoreError

MANIFEST = ".claude-plugin/plugin.json"


def write_plugin(folder: Path, launch: Launch) -> list[str]:
    """Writes or renews the folder and returns its files. A folder of something else is left alone."""
    if folder.exists() and any(folder.iterdir()) and not _is_ours(folder):
        raise Conflict(f"{folder} holds something else. Nothing was written; name a new folder.")
    contents = {
        MANIFEST: _json(_manifest()),
        ".mcp.json": _json({"mcpServers": {"trivet": server_entry(launch)}}),
        "hooks/hooks.json": _json({"hooks": plugin_hooks(launch)}),
        **_pages(resources.files("trivet.agents.install").joinpath("claude_code"), ""),
    }
    try:
        for name, text in contents.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise StoreError(f"{folder} cannot be written: {error.strerror}. Name another folder.") from None
    return sorted(contents)


def _manifest() -> dict[str, Any]:
    return {
        "name": "trivet",
        "version": __version__,
        "description": "A long-term memory that recalls what matters, offline, and says why.",
        "license": "Apache-2.0",
        "keywords": ["memory", "recall", "mcp"],
    }


def _is_ours(folder: Path) -> bool:
    try:
        return bool(json.loads((folder / MANIFEST).read_text(encoding="utf-8"))["name"] == "trivet")
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _pages(folder: Traversable, prefix: str) -> dict[str, str]:
    pages: dict[str, str] = {}
    for entry in folder.iterdir():
        if entry.is_dir():
            pages |= _pages(entry, f"{prefix}{entry.name}/")
        elif entry.name.endswith(".md"):
            pages[f"{prefix}{entry.name}"] = entry.read_text(encoding="utf-8")
    return pages


def _json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
