"""A plugin folder for Claude Code: manifest, server, hooks, three commands and a skill, in a marketplace of one.

It can be shared: no path of this machine stands in it. Its own script looks for Trivet where it runs.
"""

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
MARKETPLACE = ".claude-plugin/marketplace.json"
# Claude Code puts the plugin's folder in here. Single quotation marks would keep a shell from doing it.
PROGRAM = "${CLAUDE_PLUGIN_ROOT}/bin/trivet"
SCRIPTS = "bin/"
EXECUTABLE = 0o755
AUTHOR = {"name": "The Trivet authors"}
DESCRIPTION = "A long-term memory that recalls what matters, offline, and says why."


def write_plugin(folder: Path, arguments: tuple[str, ...]) -> list[str]:
    """Writes or renews the folder and returns its files. A folder of something else is left alone.

    The arguments name a store, where the plugin is to use another than the usual one.
    """
    launch = Launch(PROGRAM, arguments)
    if folder.exists() and any(folder.iterdir()) and not _is_ours(folder):
        raise Conflict(f"{folder} holds something else. Nothing was written; name a new folder.")
    contents = {
        MANIFEST: _json(_manifest()),
        MARKETPLACE: _json(_marketplace()),
        ".mcp.json": _json({"mcpServers": {"trivet": server_entry(launch)}}),
        "hooks/hooks.json": _json({"hooks": plugin_hooks(launch)}).replace(f"'{PROGRAM}'", f'\\"{PROGRAM}\\"'),
        **_pages(resources.files("trivet.agents.install").joinpath("claude_code"), ""),
    }
    try:
        for name, text in contents.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
            if name.startswith(SCRIPTS):
                (folder / name).chmod(EXECUTABLE)
    except OSError as error:
        raise StoreError(f"{folder} cannot be written: {error.strerror}. Name another folder.") from None
    return sorted(contents)


def _manifest() -> dict[str, Any]:
    return {
        "name": "trivet",
        "version": __version__,
        "description": DESCRIPTION,
        "author": AUTHOR,
        "license": "Apache-2.0",
        "keywords": ["memory", "recall", "mcp"],
    }


def _marketplace() -> dict[str, Any]:
    """With it the folder, or a repository made of it, can be added as it is: `claude plugin marketplace add FOLDER`."""
    plugin = {"name": "trivet", "source": "./", "description": DESCRIPTION, "version": __version__, "author": AUTHOR}
    return {"name": "trivet", "owner": AUTHOR, "metadata": {"description": DESCRIPTION}, "plugins": [plugin]}


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
        else:
            pages[f"{prefix}{entry.name}"] = entry.read_text(encoding="utf-8")
    return pages


def _json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
