"""Install keeps the rest of real settings files, with comments, and leaves broken files alone."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any, get_args

import pytest

from support.command_line import CommandLine, process
from trivet.agents.install import jsonc
from trivet.agents.install.agents import AgentName

CLAUDE = """{
  "numStartups": 12,
  "mcpServers": {
    "github": {"type": "http", "url": "https://api.example.com/mcp", "headers": {"Authorization": "Bearer abc"}}
  },
  "projects": {"/home/ana": {"history": ["hallo wörld"]}}
}
"""
CLAUDE_SETTINGS = """{
  "model": "opus",
  "hooks": {
    "Stop": [{"hooks": [{"type": "command", "command": "say done"}]}]
  }
}
"""
CODEX = """# my codex
model = "o4"   # the good one

[mcp_servers.docs]
command = "npx"
args = ["-y", "docs-mcp"]

[projects."/home/ana"]
trust_level = "trusted"
"""
ZED = """// Zed settings
{
  "theme": "One Dark", // nice
  "context_servers": {
    // nothing yet
  },
}
"""
FILES: dict[AgentName, dict[str, str]] = {
    "claude-code": {".claude.json": CLAUDE, ".claude/settings.json": CLAUDE_SETTINGS},
    "cursor": {
        ".cursor/mcp.json": '{"mcpServers": {}}',
        ".cursor/hooks.json": '{\n\t"version": 1,\n\t"hooks": {}\n}\n',
    },
    "codex": {".codex/config.toml": CODEX},
    "gemini": {".gemini/settings.json": '{\n  "selectedAuthType": "oauth" // mine\n}\n'},
    "windsurf": {".codeium/windsurf/mcp_config.json": '{\n  "mcpServers": {\n  }\n}'},
    "vscode": {".config/Code/User/mcp.json": '{\n    "servers": {},\n    "inputs": []\n}\n'},
    "zed": {".config/zed/settings.json": ZED},
    "opencode": {
        ".config/opencode/opencode.jsonc": '{ "$schema": "https://opencode.ai/config.json" }'
    },
}


def write(home: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text)


def settings(home: Path) -> dict[str, str]:
    found = [file for file in home.rglob("*") if file.is_file() and ".local" not in file.parts]
    return {file.relative_to(home).as_posix(): file.read_text() for file in found}


def value(name: str, text: str) -> Any:
    return tomllib.loads(text) if name.endswith(".toml") else jsonc.parse(text).value


def contains(whole: Any, part: Any) -> bool:
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(
            contains(whole.get(key), inner) for key, inner in part.items()
        )
    if isinstance(part, list):
        return isinstance(whole, list) and all(
            any(contains(one, inner) for one in whole) for inner in part
        )
    return bool(whole == part)


@pytest.mark.parametrize("agent", get_args(AgentName))
@pytest.mark.parametrize("there", [True, False], ids=["with-settings", "bare"])
def test_install_twice_and_uninstall_restores_every_byte(
    trivet: CommandLine, home: Path, agent: AgentName, there: bool
) -> None:
    write(home, FILES[agent] if there else {})
    before = settings(home)
    assert trivet("install", agent, "--yes").status == 0
    after = settings(home)
    for name, text in before.items():
        assert contains(value(name, after[name]), value(name, text))
        for comment in ("// mine", "// nice", "// nothing yet", "# the good one"):
            assert (comment in text) == (comment in after[name])
    assert any("trivet" in text and '"mcp"' in text for text in after.values())
    again = trivet.json("install", agent, "--yes")
    assert (again["files"], settings(home)) == ([], after)
    assert trivet("uninstall", agent, "--yes").status == 0
    assert settings(home) == before


@pytest.mark.parametrize("agent", get_args(AgentName))
def test_uninstall_after_other_changes(trivet: CommandLine, home: Path, agent: AgentName) -> None:
    write(home, FILES[agent])
    before = settings(home)
    trivet("install", agent, "--yes")
    for name, text in settings(home).items():
        note = "# later\n" if name.endswith(".toml") else "// later\n"
        (home / name).write_text(note + text)
    assert trivet("uninstall", agent, "--yes").status == 0
    after = settings(home)
    for name, text in after.items():
        assert "trivet" not in text
        assert "later" in text
        if name in before:
            left, was = value(name, text), value(name, before[name])
            assert {key: one for key, one in was.items() if one not in ({}, [])} == {
                key: one for key, one in left.items() if one not in ({}, [])
            }


def test_claude_code_hooks_run_beside_other_hooks(trivet: CommandLine, home: Path) -> None:
    write(home, FILES["claude-code"])
    trivet("install", "claude-code", "--yes", "--path", str(home / "my store.db"))
    hooks = json.loads((home / ".claude/settings.json").read_text())["hooks"]
    assert set(hooks) == {"SessionStart", "UserPromptSubmit", "Stop", "PreCompact", "SessionEnd"}
    assert hooks["Stop"][0]["hooks"][0]["command"] == "say done"
    assert (
        f"hook_client.py stop --path '{home}/my store.db'"
        in hooks["Stop"][1]["hooks"][0]["command"]
    )
    server = json.loads((home / ".claude.json").read_text())["mcpServers"]["trivet"]
    assert server["args"] == ["mcp", "--path", str(home / "my store.db")]
    trivet("install", "claude-code", "--yes")
    hooks = json.loads((home / ".claude/settings.json").read_text())["hooks"]
    assert [len(groups) for groups in hooks.values()].count(1) == 4  # renewed, not duplicated
    assert "my store" not in json.dumps(hooks)


def test_without_hooks(trivet: CommandLine, home: Path) -> None:
    trivet("install", "claude-code", "--yes", "--no-hooks")
    assert set(settings(home)) == {".claude.json"}


def test_for_one_project(trivet: CommandLine, home: Path, tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    trivet("install", "claude-code", "--yes", "--project", str(project))
    assert settings(home) == {}
    assert set(settings(project)) == {".mcp.json", ".claude/settings.json"}
    assert trivet("install", "claude-code", "--project", str(project / "no")).status == 2


@pytest.mark.parametrize(
    ("agent", "name", "text", "reason"),
    [
        ("claude-code", ".claude.json", '{"mcpServers": {', "line 1, column 17"),
        ("claude-code", ".claude/settings.json", '{"hooks": []}', "hooks is not an object"),
        (
            "claude-code",
            ".claude/settings.json",
            '{"hooks": {"Stop": {}}}',
            "hooks.Stop is not a list",
        ),
        ("cursor", ".cursor/mcp.json", '["no"]', "the whole file is not an object"),
        ("codex", ".codex/config.toml", "[mcp_servers\n", "not valid TOML"),
        ("codex", ".codex/config.toml", "mcp_servers = 3\n", "mcp_servers is not a table"),
        ("gemini", ".gemini/settings.json", "\udcff", "not UTF-8"),
    ],
)
def test_broken_file_and_the_other_files_are_left_alone(
    trivet: CommandLine, home: Path, agent: AgentName, name: str, text: str, reason: str
) -> None:
    write(home, FILES[agent])
    (home / name).parent.mkdir(parents=True, exist_ok=True)
    (home / name).write_bytes(text.encode(errors="surrogateescape"))
    before = {file: file.read_bytes() for file in home.rglob("*") if file.is_file()}
    result = trivet("install", agent, "--yes")
    assert result.status == 2
    assert reason in result.err
    assert str(home / name) in result.err
    assert {file: file.read_bytes() for file in home.rglob("*") if file.is_file()} == before


def test_nothing_is_written_without_showing_it_and_consent(trivet: CommandLine, home: Path) -> None:
    write(home, FILES["codex"])
    before = settings(home)
    dry = trivet("install", "codex", "--dry-run")
    assert dry.status == 0
    assert "+[mcp_servers.trivet]" in dry.out
    result = process("install", "codex", HOME=str(home))
    assert (result.status, "use --yes" in result.err, "+[mcp_servers.trivet]" in result.out) == (
        2,
        True,
        True,
    )
    assert settings(home) == before


def test_linked_file_stays_a_link_and_keeps_its_mode(
    trivet: CommandLine, home: Path, tmp_path: Path
) -> None:
    real = tmp_path / "dotfiles.json"
    real.write_text(CLAUDE)
    real.chmod(0o640)
    (home / ".claude.json").symlink_to(real)
    trivet("install", "claude-code", "--yes")
    assert (home / ".claude.json").is_symlink()
    assert real.stat().st_mode & 0o777 == 0o640
    assert "trivet" in json.loads(real.read_text())["mcpServers"]
    records = list((home / ".local/share/trivet/install").iterdir())
    assert {file.stat().st_mode & 0o777 for file in records} == {0o600}


def test_plugin_folder_can_be_shared(trivet: CommandLine, home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "plugin"
    files = trivet.json("install", "claude-code", "--plugin", str(folder))["files"]
    assert files == [
        ".claude-plugin/marketplace.json",
        ".claude-plugin/plugin.json",
        ".mcp.json",
        "bin/trivet",
        "commands/forget.md",
        "commands/recall.md",
        "commands/remember.md",
        "hooks/hooks.json",
        "skills/memory/SKILL.md",
    ]
    whole = "".join((folder / name).read_text() for name in files)
    assert sys.prefix not in whole
    assert str(tmp_path) not in whole
    manifest, market = (json.loads((folder / name).read_text()) for name in (files[1], files[0]))
    assert (manifest["name"], bool(manifest["author"]["name"])) == ("trivet", True)
    assert [(plugin["name"], plugin["source"]) for plugin in market["plugins"]] == [
        ("trivet", "./")
    ]
    hooks = json.loads((folder / "hooks/hooks.json").read_text())["hooks"]
    assert hooks["UserPromptSubmit"][0]["hooks"][0]["command"] == (
        '"${CLAUDE_PLUGIN_ROOT}/bin/trivet" hook prompt || exit 0'
    )
    for name in files:
        if name.endswith(".md"):
            assert (folder / name).read_text().startswith("---\n")
    assert trivet("install", "claude-code", "--plugin", str(folder)).status == 0
    assert trivet("install", "claude-code", "--plugin", str(tmp_path)).status == 4
    assert trivet("install", "zed", "--plugin", str(folder)).status == 2
    assert settings(home) == {}


@pytest.mark.skipif(sys.platform == "win32", reason="the plugin's script is for a shell")
def test_plugin_script_finds_trivet(trivet: CommandLine, tmp_path: Path) -> None:
    """On the path, with uv, and directly as the hook script next to Trivet's own Python."""
    trivet("install", "claude-code", "--plugin", str(tmp_path / "plugin"))

    def found_command(*arguments: str) -> tuple[int, str]:
        ended = subprocess.run(
            [tmp_path / "plugin/bin/trivet", *arguments],
            env={"PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin", "HOME": str(tmp_path)},
            capture_output=True,
            text=True,
        )
        return ended.returncode, ended.stdout.strip() or ended.stderr

    status, message = found_command("mcp")
    assert (status, "uv tool install trivet" in message) == (127, True)
    program(tmp_path / "bin/uvx", 'echo "uvx $*"')
    assert found_command("mcp") == (0, "uvx trivet mcp")
    program(tmp_path / "environment/bin/python", 'shift 2; echo "$*"')
    program(tmp_path / "bin/trivet", 'echo "trivet $*"', shell=f"{tmp_path}/environment/bin/python")
    script = (
        tmp_path / "environment/lib/python3.11/site-packages/trivet/serve/resident/hook_client.py"
    )
    script.parent.mkdir(parents=True)
    script.touch()
    status, message = found_command("hook", "prompt", "--path", "m.db")
    assert (status, message.endswith("hook_client.py prompt --path m.db")) == (0, True)


def program(file: Path, text: str, shell: str = "/bin/sh") -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"#!{shell}\n{text}\n")
    file.chmod(0o755)


@pytest.mark.parametrize(
    ("agent", "timeout"), [("claude-code", 30), ("codex", 30), ("gemini", 30_000)]
)
def test_every_hook_states_its_time_limit(
    trivet: CommandLine, home: Path, agent: AgentName, timeout: int
) -> None:
    """Claude Code cancels other hooks after 1.5 s at session end; Gemini CLI counts in ms."""
    trivet("install", agent, "--yes")
    found = [
        json.loads(text)["hooks"] for name, text in settings(home).items() if '"hooks"' in text
    ]
    hooks = [
        hook
        for events in found
        for groups in events.values()
        for group in groups
        for hook in group["hooks"]
    ]
    assert {hook["timeout"] for hook in hooks} == {timeout}


def test_user_is_told_to_trust_the_hooks_in_codex(trivet: CommandLine, home: Path) -> None:
    assert "/hooks" in trivet("install", "codex", "--yes").out
    assert "/hooks" not in trivet("install", "gemini", "--yes").out


def test_agents_use_the_store_of_this_shell(
    trivet: CommandLine, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(home)
    monkeypatch.setenv("TRIVET_PATH", "work.db")
    output = trivet("install", "claude-code", "--yes").out
    server = json.loads((home / ".claude.json").read_text())["mcpServers"]["trivet"]
    assert server["args"] == ["mcp", "--path", str(home / "work.db")]
    assert (
        f"hook_client.py prompt --path {home}/work.db"
        in (home / ".claude/settings.json").read_text()
    )
    assert f"It uses the store {home}/work.db." in output
    monkeypatch.setenv("TRIVET_PATH", "postgresql://ana:hunter2@db/memory")
    refused = trivet("install", "codex", "--yes")
    assert (refused.status, "contains a password" in refused.err, "hunter2" in refused.err) == (
        2,
        True,
        False,
    )
    monkeypatch.delenv("TRIVET_PATH")
    assert trivet.json("install", "zed", "--dry-run")["store"] == str(
        home / ".local/share/trivet/memory.db"
    )


def test_foreign_opencode_plugin_is_left_alone(trivet: CommandLine, home: Path) -> None:
    write(home, {".config/opencode/plugin/trivet.js": "export const Mine = 1\n"})
    before = settings(home)
    refused = trivet("install", "opencode", "--yes")
    assert (refused.status, "Trivet did not write it" in refused.err) == (2, True)
    assert trivet("uninstall", "opencode", "--yes").status == 0
    assert settings(home) == before
    assert trivet("install", "opencode", "--yes", "--no-hooks").status == 0
    assert set(settings(home)) == {".config/opencode/opencode.json", *before}


def test_uninstall_leaves_unrelated_files_alone(trivet: CommandLine, home: Path) -> None:
    file = home / ".claude" / "settings.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text('{"hooks": {"Stop": []}}')
    assert trivet("uninstall", "claude-code", "--yes").status == 0
    assert file.read_text() == '{"hooks": {"Stop": []}}'
