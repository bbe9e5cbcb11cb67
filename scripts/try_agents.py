"""Try Trivet in the real agent programs, installed from npm, with a stand-in provider.

It checks everything that should reach the model or come back from it.

.venv/bin/python scripts/try_agents.py                 # all of them
.venv/bin/python scripts/try_agents.py codex --keep /tmp/agents
.venv/bin/python scripts/try_agents.py --write         # and the table in docs/connect.md

It needs npm and its registry, so it is not part of `make test`. The user's settings and store are
not touched.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from agent_provider import MODEL, Provider, results_in, tools_in

TRIVET = str(Path(sys.executable).parent / "trivet")
DOCUMENT = Path(__file__).parents[1] / "docs" / "connect.md"
# If the newest version lacks a part for this machine, earlier ones are tried.
MOST_VERSIONS = 20
# A program that does not wait for its servers may prompt before the tools exist.
MOST_ATTEMPTS = 4
SECONDS = 180

OF_PROJECT = "The staging database of shop listens on port 6543."
OF_USER = "Rex is the name of the office dog."
PROMPT = "What is the name of the office dog? Please remember that the canteen closes at three."
LEARNT = "The canteen closes at three."
QUERY = {"query": "port of the staging database"}
# Room for one memory at the start, so the other one must come with the prompt.
START_TOKENS = "75"
# Placeholder for the provider's address, known at run time.
ADDRESS = "@PROVIDER@"
COLUMNS = ("server", "tools", "start", "prompt", "tool call", "capture", "uninstall")


class Agent(msgspec.Struct, frozen=True):
    """A program: how it lists servers, takes a prompt, and connects to the stand-in provider."""

    name: str
    package: str
    program: str
    prompt: Sequence[str]
    variables: Mapping[str, str]
    files: Mapping[str, str] = {}  # Existing settings of its user.
    servers: Sequence[str] = ("mcp", "list")
    connected: str = "onnected"  # What the list prints for a server that answers.


_CHAT = {
    "model": f"local/{MODEL}",
    "small_model": f"local/{MODEL}",
    "provider": {
        "local": {
            "npm": "@ai-sdk/openai-compatible",
            "options": {"baseURL": f"{ADDRESS}/v1", "apiKey": "none"},
            "models": {MODEL: {"name": MODEL, "tool_call": True}},
        }
    },
}
_CODEX = (
    'model_provider="local"',
    f'model="{MODEL}"',
    f'model_providers.local={{name="local",base_url="{ADDRESS}/v1",wire_api="responses",env_key="LOCAL_KEY"}}',
    # Otherwise Codex sends a prompt from its command line before a server is up.
    "mcp_servers.trivet.required=true",
)
_CODEX_OPTIONS = tuple(word for setting in _CODEX for word in ("-c", setting))

AGENTS = (
    Agent(
        "claude-code",
        "@anthropic-ai/claude-code",
        "claude",
        (
            "-p",
            PROMPT,
            "--allowedTools",
            "mcp__trivet__memory_recall,mcp__plugin_trivet_trivet__memory_recall",
        ),
        {
            "ANTHROPIC_BASE_URL": ADDRESS,
            "ANTHROPIC_API_KEY": "none",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            # Otherwise a prompt on the command line may be sent before a server is up.
            "MCP_CONNECTION_NONBLOCKING": "0",
        },
        {".claude/settings.json": '{\n  "includeCoAuthoredBy": false\n}\n'},
    ),
    Agent(
        "codex",
        "@openai/codex",
        "codex",
        (
            "exec",
            *_CODEX_OPTIONS,
            "--skip-git-repo-check",
            "--dangerously-bypass-hook-trust",
            PROMPT,
        ),
        {"LOCAL_KEY": "none"},
        {".codex/config.toml": "# mine\nhide_agent_reasoning = true  # quiet\n"},
        connected="enabled",
    ),
    Agent(
        "gemini",
        "@google/gemini-cli",
        "gemini",
        ("-p", PROMPT, "--yolo", "-m", "gemini-2.5-pro"),
        {
            "GEMINI_API_KEY": "none",
            "GOOGLE_GEMINI_BASE_URL": ADDRESS,
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
        },
        {".gemini/settings.json": '{"security": {"auth": {"selectedType": "gemini-api-key"}}}'},
    ),
    Agent(
        "opencode",
        "opencode-ai",
        "opencode",
        ("run", PROMPT),
        {"OPENCODE_CONFIG_CONTENT": json.dumps(_CHAT), "OPENCODE_DISABLE_AUTOUPDATE": "1"},
        {
            ".config/opencode/opencode.jsonc": '{\n  // mine\n  "$schema": "https://opencode.ai/config.json"\n}\n'
        },
    ),
)


class Tried(msgspec.Struct):
    """What one program did; `passed` has a word per column."""

    name: str
    version: str
    passed: dict[str, str]
    notes: list[str]


class Place:
    """Its own home, store, work folder and sockets. A socket's path must be short."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="tried-"))
        self.home, self.work, runtime = (self.folder / name for name in ("home", "shop", "run"))
        for folder in (self.home, self.work, runtime):
            folder.mkdir(mode=0o700)
        kept = {
            name: value
            for name, value in os.environ.items()
            if name.startswith(("npm_", "NODE_", "SSL_", "LANG"))
        }
        self.environment = {
            **kept,
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "XDG_RUNTIME_DIR": str(runtime),
            "TERM": "dumb",
            "TRIVET_HOOK_START_TOKENS": START_TOKENS,
            "TRIVET_HOOK_TIME_LIMIT_MS": "20000",
            "TRIVET_SECRETS_KEYRING": "false",
        }

    def run(self, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            cwd=self.work,
            env={**self.environment, **variables},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )

    def trivet(self, *arguments: str) -> Any:
        ended = self.run(TRIVET, *arguments, "--json")
        if ended.returncode:
            raise SystemExit(f"trivet {' '.join(arguments)} failed: {ended.stderr}")
        return json.loads(ended.stdout)

    def close(self) -> None:
        self.run(TRIVET, "down")
        shutil.rmtree(self.folder, ignore_errors=True)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "agents",
        nargs="*",
        metavar="AGENT",
        help="claude-code, codex, gemini, opencode, plugin or inspector",
    )
    parser.add_argument(
        "--keep",
        type=Path,
        metavar="FOLDER",
        help="install the programs here, and leave them there",
    )
    parser.add_argument("--write", action="store_true", help="write the table into docs/connect.md")
    given = parser.parse_args()
    folder = given.keep or Path(tempfile.mkdtemp(prefix="agents-"))
    try:
        tried = [
            try_agent(agent, folder)
            for agent in AGENTS
            if not given.agents or agent.name in given.agents
        ]
        if not given.agents or "plugin" in given.agents:
            tried.append(try_plugin(folder))
        if not given.agents or "inspector" in given.agents:
            tried.append(try_inspector(folder))
    finally:
        if not given.keep:
            shutil.rmtree(folder, ignore_errors=True)
    report = written(tried)
    print(report)
    if given.write:
        text = DOCUMENT.read_text(encoding="utf-8")
        whole = re.sub(
            r"(<!-- tried -->\n).*?(<!-- end -->)",
            lambda found: f"{found[1]}\n{report}\n{found[2]}",
            text,
            flags=re.S,
        )
        DOCUMENT.write_text(whole, encoding="utf-8")
    return int(any("no" in one.passed.values() for one in tried))


def try_agent(agent: Agent, folder: Path) -> Tried:
    program, version = installed(agent.package, agent.program, folder / agent.name)
    place, tried = Place(), Tried(agent.name, version, {}, [])
    print(f"{agent.name} {version}", file=sys.stderr)
    try:
        for name, text in agent.files.items():
            (place.home / name).parent.mkdir(parents=True, exist_ok=True)
            (place.home / name).write_text(text)
        place.trivet("remember", OF_PROJECT, "--scope", "acme/shop")
        place.trivet("remember", OF_USER)
        files = [Path(one["path"]) for one in place.trivet("install", agent.name, "--yes")["files"]]
        with Provider("memory_recall", QUERY) as provider:
            variables = {
                name: value.replace(ADDRESS, provider.url)
                for name, value in agent.variables.items()
            }
            _servers(agent, program, place, variables, tried)
            if agent.name == "codex":
                _untrusted(agent, program, place, provider, variables, tried)
            _prompts(agent, program, place, provider, variables, tried)
        _uninstall(agent, place, files, tried)
    finally:
        place.close()
    return tried


def _servers(
    agent: Agent, program: str, place: Place, variables: Mapping[str, str], tried: Tried
) -> None:
    ended = place.run(program, *agent.servers, **variables)
    told = ended.stdout + ended.stderr
    tried.passed["server"] = _word("trivet" in told and agent.connected in told)


def _untrusted(
    agent: Agent,
    program: str,
    place: Place,
    provider: Provider,
    variables: Mapping[str, str],
    tried: Tried,
) -> None:
    """Run Codex as before /hooks: no hook may run."""
    words = [word.replace(ADDRESS, provider.url) for word in agent.prompt if "bypass" not in word]
    place.run(program, *words, **variables)
    silent = not _told(provider, "From the user's long-term memory")
    tried.notes.append(
        "hooks run once they are trusted" if silent else "hooks run without being trusted"
    )
    provider.requests.clear()


def _prompts(
    agent: Agent,
    program: str,
    place: Place,
    provider: Provider,
    variables: Mapping[str, str],
    tried: Tried,
) -> None:
    for attempt in range(1, MOST_ATTEMPTS + 1):
        ended = place.run(
            program, *(word.replace(ADDRESS, provider.url) for word in agent.prompt), **variables
        )
        offered = [
            tool
            for _, body in provider.requests
            for tool in tools_in(body)
            if "memory_" in tool["name"]
        ]
        if offered or attempt == MOST_ATTEMPTS:
            break
        tried.notes.append("a prompt was sent before the server was up")
    if "Hook cancelled" in ended.stderr + ended.stdout:
        tried.notes.append("a hook was cancelled")
    if not provider.requests:
        tried.notes.append(f"it sent nothing: {(ended.stderr or ended.stdout).strip()[-200:]}")
    results = json.dumps([result for _, body in provider.requests for result in results_in(body)])
    learnt = [one["content"] for one in place.trivet("inbox", "list")["proposals"]]
    tried.passed |= {
        "tools": _word(bool(offered) and "outputSchema" not in json.dumps(offered)),
        "start": _word(_told(provider, "for this session") and _told(provider, OF_PROJECT)),
        "prompt": _word(_told(provider, "for this prompt") and _told(provider, OF_USER)),
        "tool call": _word(OF_PROJECT in results and "memory-data nonce=" in results),
        "capture": _word(LEARNT in learnt),
    }
    failed = place.run(TRIVET, "status", "--json")
    count = json.loads(failed.stdout).get("hook_failures", {}).get("count", 0)
    tried.notes += [f"{count} hooks failed"] if count else []


def _uninstall(agent: Agent, place: Place, files: Sequence[Path], tried: Tried) -> None:
    """Uninstall from changed files; then install and uninstall again, restoring every byte."""
    place.trivet("uninstall", agent.name, "--yes")
    clean = not any("trivet mcp" in text or "hook_client" in text for text in map(_text, files))
    before = [file.read_bytes() if file.exists() else None for file in files]
    place.trivet("install", agent.name, "--yes")
    changed = [file.read_bytes() if file.exists() else None for file in files] != before
    place.trivet("uninstall", agent.name, "--yes")
    after = [file.read_bytes() if file.exists() else None for file in files]
    tried.passed["uninstall"] = _word(clean and changed and after == before)


def try_plugin(folder: Path) -> Tried:
    """Try the Claude Code plugin from its folder as a marketplace.

    It must find Trivet on the path.
    """
    (agent,) = (one for one in AGENTS if one.name == "claude-code")
    program, version = installed(agent.package, agent.program, folder / agent.name)
    place, tried = Place(), Tried("claude-code, the plugin", version, {}, [])
    place.environment["PATH"] = f"{Path(TRIVET).parent}:{place.environment['PATH']}"
    print(f"plugin {version}", file=sys.stderr)
    market = str(place.folder / "market")
    try:
        place.trivet("remember", OF_PROJECT, "--scope", "acme/shop")
        place.trivet("remember", OF_USER)
        place.trivet("install", agent.name, "--plugin", market)
        for words in (
            ("validate", market),
            ("marketplace", "add", market),
            ("install", "trivet@trivet"),
        ):
            ended = place.run(program, "plugin", *words)
            tried.notes += (
                [f"plugin {words[0]}: {ended.stderr or ended.stdout}"] if ended.returncode else []
            )
        with Provider("memory_recall", QUERY) as provider:
            variables = {
                name: value.replace(ADDRESS, provider.url)
                for name, value in agent.variables.items()
            }
            _servers(agent, program, place, variables, tried)
            _prompts(agent, program, place, provider, variables, tried)
        place.run(program, "plugin", "uninstall", "trivet@trivet")
        tried.passed["uninstall"] = _word(
            "trivet mcp" not in place.run(program, "mcp", "list").stdout
        )
    finally:
        place.close()
    return tried


def try_inspector(folder: Path) -> Tried:
    """Try the reference client, which is strict about the protocol."""
    program, version = installed(
        "@modelcontextprotocol/inspector", "mcp-inspector", folder / "inspector"
    )
    place, tried = Place(), Tried("inspector", version, {}, [])
    print(f"inspector {version}", file=sys.stderr)
    try:
        place.trivet("remember", OF_PROJECT)
        listed = place.run(program, "--cli", TRIVET, "mcp", "--method", "tools/list")
        tried.passed["tools"] = _word("memory_recall" in listed.stdout)
        words = (
            "--method",
            "tools/call",
            "--tool-name",
            "memory_recall",
            "--tool-arg",
            f"query={QUERY['query']}",
        )
        called = place.run(program, "--cli", TRIVET, "mcp", *words)
        tried.passed["tool call"] = _word(
            OF_PROJECT in called.stdout and "memory-data nonce=" in called.stdout
        )
        tried.notes += [one.stderr.strip()[-200:] for one in (listed, called) if one.returncode]
    finally:
        place.close()
    return tried


def installed(package: str, program: str, folder: Path) -> tuple[str, str]:
    """Return a program's path and version, installing it from npm if missing."""
    found = folder / "node_modules" / ".bin" / program
    for version in [] if _runs(found) else ["latest", *_earlier(package)]:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        command = [
            "npm",
            "install",
            "--prefix",
            str(folder),
            "--no-audit",
            "--no-fund",
            f"{package}@{version}",
        ]
        subprocess.run(command, capture_output=True, check=False, timeout=SECONDS * 2)
        if _runs(found):
            break
    if not _runs(found):
        raise SystemExit(f"{package} could not be installed for this machine.")
    about = json.loads((folder / "node_modules" / package / "package.json").read_text())
    return str(found), str(about["version"])


def _runs(program: Path) -> bool:
    if not program.exists():
        return False
    return (
        "inspector" in program.name
        or subprocess.run([program, "--version"], capture_output=True).returncode == 0
    )


def _earlier(package: str) -> list[str]:
    told = subprocess.run(
        ["npm", "view", package, "versions", "--json"], capture_output=True, text=True, check=True
    )
    finished = [version for version in json.loads(told.stdout) if re.fullmatch(r"[\d.]+", version)]
    return finished[-2 : -2 - MOST_VERSIONS : -1]


def written(tried: Sequence[Tried]) -> str:
    rows = [f"| program | version | {' | '.join(COLUMNS)} |", f"|---|---|{'---|' * len(COLUMNS)}"]
    for one in tried:
        cells = [one.passed.get(column, "") for column in COLUMNS]
        rows.append(f"| {one.name} | {one.version} | {' | '.join(cells)} |")
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    notes = [f"{one.name}: {note}." for one in tried for note in dict.fromkeys(one.notes)]
    return (
        "\n".join(
            [f"On {today}, {platform.system()} {platform.machine()}:", "", *rows, "", *notes]
        ).rstrip()
        + "\n"
    )


def _told(provider: Provider, text: str) -> bool:
    return any(text in json.dumps(body, ensure_ascii=False) for _, body in provider.requests)


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8") if file.exists() else ""


def _word(passed: bool) -> str:
    return "yes" if passed else "no"


if __name__ == "__main__":
    sys.exit(main())
