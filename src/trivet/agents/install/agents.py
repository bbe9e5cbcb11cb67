"""Each agent's settings files, and a plugin folder for Claude Code.

The plugin contains no local path, so it can be shared.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Mapping
from importlib import resources
from importlib.abc import Traversable
from pathlib import Path
from typing import Any, Literal

import msgspec

from trivet import __version__
from trivet.errors import Conflict, StoreError

AgentName = Literal[
    "claude-code", "cursor", "codex", "gemini", "windsurf", "vscode", "zed", "opencode"
]
SERVER = "trivet"


class Launch(msgspec.Struct, frozen=True):
    """The command that starts Trivet; `arguments` name the store."""

    program: str
    arguments: tuple[str, ...] = ()
    hook_program: tuple[str, ...] = ()

    @property
    def server(self) -> tuple[str, ...]:
        return ("mcp", *self.arguments)

    @property
    def hook_words(self) -> tuple[str, ...]:
        return self.hook_program or (self.program, "hook")

    def hook(self, moment: str) -> str:
        """Return a command that exits with 0 even without the program.

        Some agents treat a failed hook as a veto.
        """
        return f"{shlex.join([*self.hook_words, moment, *self.arguments])} || exit 0"


class DesiredFile(msgspec.Struct, frozen=True):
    """Trivet's part of a file: values and list items at paths, or a whole text."""

    file: Path
    values: tuple[tuple[tuple[str, ...], Any], ...] = ()
    items: tuple[tuple[tuple[str, ...], Any], ...] = ()
    text: str = ""


def desired_files(
    agent: AgentName, launch: Launch, home: Path, project: Path | None, hooks: bool
) -> list[DesiredFile]:
    files = _AGENTS[agent](launch, home, project)
    return [file for file in files if hooks or file.values]


def plugin_hooks(launch: Launch) -> dict[str, Any]:
    return {path[-1]: [group] for path, group in _nested(launch, _CLAUDE_CODE)}


# Agents cancel a slower hook; by default Claude Code does so after 1.5 s at a session's end. Longer
# than hook_time_limit_ms, so that the hook gives up first and its failure is counted.
HOOK_SECONDS = 30
AFTERWARDS: Mapping[AgentName, str] = {
    "codex": "Codex runs a new hook only after you trust it: start codex, type /hooks and trust "
    "Trivet's hooks. Until then it recalls only with its tools. It asks again after each change.",
}

# Each agent's events and their moments. Agents whose prompt event cannot add text have no prompt
# hook.
_CLAUDE_CODE = {
    "SessionStart": "start",
    "UserPromptSubmit": "prompt",
    "Stop": "stop",
    "PreCompact": "compact",
    "SessionEnd": "end",
}
_CODEX = {
    "SessionStart": "start",
    "UserPromptSubmit": "prompt",
    "Stop": "stop",
    "PreCompact": "compact",
}
_GEMINI = {
    "SessionStart": "start",
    "BeforeAgent": "prompt",
    "AfterAgent": "stop",
    "PreCompress": "compact",
    "SessionEnd": "end",
}
_CURSOR = {"sessionStart": "start", "stop": "stop", "preCompact": "compact", "sessionEnd": "end"}
_WINDSURF = {"post_cascade_response": "stop"}


def _claude_code(launch: Launch, home: Path, project: Path | None) -> list[DesiredFile]:
    server = {"type": "stdio", **server_entry(launch)}
    folder = (
        project / ".claude" if project else _from_environment("CLAUDE_CONFIG_DIR", home / ".claude")
    )
    inside = os.environ.get("CLAUDE_CONFIG_DIR")
    servers = project / ".mcp.json" if project else (folder if inside else home) / ".claude.json"
    return [
        DesiredFile(servers, ((("mcpServers", SERVER), server),)),
        DesiredFile(folder / "settings.json", (), _nested(launch, _CLAUDE_CODE)),
    ]


def _cursor(launch: Launch, home: Path, project: Path | None) -> list[DesiredFile]:
    folder = (project or home) / ".cursor"
    hooks = tuple(
        (("hooks", event), {"command": launch.hook(moment)}) for event, moment in _CURSOR.items()
    )
    return [
        DesiredFile(folder / "mcp.json", ((("mcpServers", SERVER), server_entry(launch)),)),
        DesiredFile(folder / "hooks.json", ((("version",), 1),), hooks),
    ]


def _codex(launch: Launch, home: Path, project: Path | None) -> list[DesiredFile]:
    folder = project / ".codex" if project else _from_environment("CODEX_HOME", home / ".codex")
    return [
        DesiredFile(folder / "config.toml", ((("mcp_servers", SERVER), server_entry(launch)),)),
        DesiredFile(folder / "hooks.json", (), _nested(launch, _CODEX)),
    ]


def _gemini(launch: Launch, home: Path, project: Path | None) -> list[DesiredFile]:
    file = (project or home) / ".gemini" / "settings.json"
    return [
        DesiredFile(
            file,
            ((("mcpServers", SERVER), server_entry(launch)),),
            _nested(launch, _GEMINI, HOOK_SECONDS * 1000, SERVER),
        )
    ]


def _windsurf(launch: Launch, home: Path, project: Path | None) -> list[DesiredFile]:
    folder = home / ".codeium" / "windsurf"
    hooks = tuple(
        (("hooks", event), {"command": launch.hook(moment)}) for event, moment in _WINDSURF.items()
    )
    return [
        DesiredFile(folder / "mcp_config.json", ((("mcpServers", SERVER), server_entry(launch)),)),
        DesiredFile(
            project / ".windsurf" / "hooks.json" if project else folder / "hooks.json", (), hooks
        ),
    ]


def _vscode(launch: Launch, home: Path, project: Path | None) -> list[DesiredFile]:
    folder = project / ".vscode" if project else _application(home, "Code") / "User"
    return [
        DesiredFile(
            folder / "mcp.json", ((("servers", SERVER), {"type": "stdio", **server_entry(launch)}),)
        )
    ]


def _zed(launch: Launch, home: Path, project: Path | None) -> list[DesiredFile]:
    folder = project / ".zed" if project else _configuration(home) / "zed"
    server = {"source": "custom", **server_entry(launch), "env": {}}
    return [DesiredFile(folder / "settings.json", ((("context_servers", SERVER), server),))]


def _opencode(launch: Launch, home: Path, project: Path | None) -> list[DesiredFile]:
    folder = project or _configuration(home) / "opencode"
    with_comments = folder / "opencode.jsonc"
    file = with_comments if with_comments.exists() else folder / "opencode.json"
    server = {"type": "local", "command": [launch.program, *launch.server], "enabled": True}
    plugin = (project / ".opencode" if project else folder) / "plugin" / "trivet.js"
    return [
        DesiredFile(file, ((("mcp", SERVER), server),)),
        DesiredFile(plugin, text=_opencode_plugin(launch)),
    ]


def _opencode_plugin(launch: Launch) -> str:
    """Return a script: opencode runs no commands at its events."""
    script = (
        resources.files("trivet.agents.install")
        .joinpath("opencode/trivet.js")
        .read_text(encoding="utf-8")
    )
    for name, words in (("PROGRAM", launch.hook_words), ("ARGUMENTS", launch.arguments)):
        script = script.replace(f'= "{name}"', f"= {json.dumps(words)}")
    return script


_AGENTS: Mapping[AgentName, Any] = {
    "claude-code": _claude_code,
    "cursor": _cursor,
    "codex": _codex,
    "gemini": _gemini,
    "windsurf": _windsurf,
    "vscode": _vscode,
    "zed": _zed,
    "opencode": _opencode,
}


def server_entry(launch: Launch) -> dict[str, Any]:
    return {"command": launch.program, "args": list(launch.server)}


def _nested(
    launch: Launch, events: Mapping[str, str], timeout: int = HOOK_SECONDS, name: str = ""
) -> tuple[tuple[tuple[str, ...], Any], ...]:
    named = {"name": name} if name else {}
    return tuple(
        (
            ("hooks", event),
            {
                "hooks": [
                    {**named, "type": "command", "command": launch.hook(moment), "timeout": timeout}
                ]
            },
        )
        for event, moment in events.items()
    )


def _from_environment(name: str, otherwise: Path) -> Path:
    return Path(os.environ[name]).expanduser() if os.environ.get(name) else otherwise


def _configuration(home: Path) -> Path:
    return _from_environment("XDG_CONFIG_HOME", home / ".config")


def _application(home: Path, name: str) -> Path:
    if sys.platform == "darwin":
        return home / "Library" / "Application Support" / name
    if sys.platform == "win32":
        return _from_environment("APPDATA", home / "AppData" / "Roaming") / name
    return _configuration(home) / name


MANIFEST = ".claude-plugin/plugin.json"
MARKETPLACE = ".claude-plugin/marketplace.json"
# The shell expands the variable that Claude Code sets; single quotes would prevent it.
PROGRAM = "${CLAUDE_PLUGIN_ROOT}/bin/trivet"
SCRIPTS = "bin/"
EXECUTABLE = 0o755
AUTHOR = {"name": "The Trivet authors"}
DESCRIPTION = "A long-term memory that recalls what matters, offline, and says why."


def write_plugin(folder: Path, arguments: tuple[str, ...]) -> list[str]:
    """Write or update the plugin folder and return its files.

    Args:
        folder: The folder, empty or with an older plugin.
        arguments: Options that name a store other than the default.
    """
    launch = Launch(PROGRAM, arguments)
    if folder.exists() and any(folder.iterdir()) and not _is_ours(folder):
        raise Conflict(f"{folder} contains other files. Nothing was written; choose a new folder.")
    contents = {
        MANIFEST: _json(_manifest()),
        MARKETPLACE: _json(_marketplace()),
        ".mcp.json": _json({"mcpServers": {"trivet": server_entry(launch)}}),
        "hooks/hooks.json": _json({"hooks": plugin_hooks(launch)}).replace(
            f"'{PROGRAM}'", f'\\"{PROGRAM}\\"'
        ),
        **_pages(resources.files("trivet.agents.install").joinpath("claude_code"), ""),
    }
    try:
        for name, text in contents.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
            if name.startswith(SCRIPTS):
                (folder / name).chmod(EXECUTABLE)
    except OSError as error:
        raise StoreError(
            f"{folder} cannot be written: {error.strerror}. Choose another folder."
        ) from None
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
    """Return a marketplace of one plugin."""
    plugin = {
        "name": "trivet",
        "source": "./",
        "description": DESCRIPTION,
        "version": __version__,
        "author": AUTHOR,
    }
    return {
        "name": "trivet",
        "owner": AUTHOR,
        "metadata": {"description": DESCRIPTION},
        "plugins": [plugin],
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
        else:
            pages[f"{prefix}{entry.name}"] = entry.read_text(encoding="utf-8")
    return pages


def _json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
