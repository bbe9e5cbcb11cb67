"""`trivet install` and `trivet uninstall`: Trivet in the settings of coding agents."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from trivet.agents.install.agents import AFTERWARDS, AgentName, Launch, desired_files
from trivet.cli.command import command
from trivet.cli.session import Session
from trivet.cli.terminal import STOPPED, Line, line
from trivet.errors import InvalidInput
from trivet.serve.resident import hook_client
from trivet.settings import data_folder, load_settings
from trivet.settings.locations import without_password

if TYPE_CHECKING:
    from trivet.agents.install.change import Change

AgentArgument = Annotated[
    AgentName,
    typer.Argument(
        metavar="AGENT",
        help=f"The coding agent: {', '.join(get_args(AgentName))}.",
        show_default=False,
    ),
]
ProjectOption = Annotated[
    Path | None,
    typer.Option(
        "--project",
        metavar="FOLDER",
        help="Install for this project only; default: for all your projects.",
    ),
]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]
DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="Show the changes and write nothing.")
]


@command(
    "install",
    "Add Trivet to the settings of a coding agent: its MCP server, and hooks if the agent has "
    "them.",
    more="Shows the changes and asks before it writes. Everything else in the files stays; a "
    "file that cannot be parsed is refused. The agent gets the store of --path or TRIVET_PATH, "
    "else that of your settings. --plugin writes a plugin for Claude Code that you can share, "
    "with the same hooks and the commands /remember, /recall and /forget.",
    example="trivet install claude-code\ntrivet install claude-code --plugin ./trivet",
)
def install(
    session: Session,
    agent: AgentArgument,
    project: ProjectOption = None,
    hooks: Annotated[
        bool,
        typer.Option("--hooks/--no-hooks", help="Also install the hooks, which recall and learn."),
    ] = True,
    plugin: Annotated[
        Path | None,
        typer.Option(
            "--plugin", metavar="FOLDER", help="Write a plugin folder instead of settings."
        ),
    ] = None,
    yes: YesOption = False,
    dry_run: DryRunOption = False,
) -> int:
    from trivet.agents.install.change import plan_install

    if plugin is not None:
        return _write_plugin(session, agent, plugin)
    changes = plan_install(
        desired_files(agent, _launch(session), Path.home(), _folder(project), hooks)
    )
    return _carry_out(session, agent, changes, yes, dry_run, installing=True)


@command(
    "uninstall",
    "Remove Trivet from the settings of a coding agent.",
    more="Restores a file exactly if it is unchanged since `trivet install`; otherwise removes "
    "only Trivet's entries.",
    example="trivet uninstall claude-code",
)
def uninstall(
    session: Session,
    agent: AgentArgument,
    project: ProjectOption = None,
    yes: YesOption = False,
    dry_run: DryRunOption = False,
) -> int:
    from trivet.agents.install.change import plan_uninstall

    entries = desired_files(agent, _launch(session), Path.home(), _folder(project), hooks=True)
    return _carry_out(
        session, agent, plan_uninstall(entries, _records()), yes, dry_run, installing=False
    )


def _carry_out(
    session: Session,
    agent: AgentName,
    changes: Sequence[Change],
    yes: bool,
    dry_run: bool,
    installing: bool,
) -> int:
    from trivet.agents.install.change import write

    needed = [change for change in changes if change.needed]
    if not session.as_json:
        session.show(None, lambda: _shown(needed, installing))
    wanted_now = bool(needed) and not dry_run
    agreed = wanted_now and (yes or _asked(needed))
    if agreed:
        write(needed, _records(), installing)
    value = {
        "agent": agent,
        "store": without_password(_store(session)),
        "files": [{"path": change.file, "diff": change.diff} for change in needed],
        "written": agreed,
    }
    if session.as_json:
        session.show(value, list)
    elif agreed:
        session.show(value, lambda: _done(session, agent, needed, installing))
    return STOPPED if wanted_now and not agreed else 0


def _asked(needed: Sequence[Change]) -> bool:
    if not sys.stdin.isatty():
        raise InvalidInput(
            "Cannot ask for confirmation because standard input is not a terminal. Nothing was "
            "written; use --yes to write these changes."
        )
    return typer.confirm(f"Write {'this file' if len(needed) == 1 else 'these files'}?", err=True)


def _shown(needed: Sequence[Change], installing: bool) -> Iterator[Line]:
    if not needed:
        yield line("Trivet is already installed." if installing else "Trivet is not installed.")
    for change in needed:
        for row in change.diff.splitlines():
            style = {"+": "green", "-": "red", "@": "cyan"}.get(row[:1], "")
            yield line((row, style))
        if change.after is None:
            yield line((f"{change.file} would be empty, so it is removed.", "yellow"))


def _done(
    session: Session, agent: AgentName, needed: Sequence[Change], installing: bool
) -> Iterator[Line]:
    from trivet.agents.install.change import backup_of

    for change in needed:
        yield line(
            f"Wrote {change.file}." if change.after is not None else f"Removed {change.file}."
        )
        if installing and change.before is not None:
            yield line(
                (
                    f"Its previous content is kept in {backup_of(_records(), Path(change.file))}.",
                    "dim",
                )
            )
    if installing:
        yield line(f"It uses the store {without_password(_store(session))}.")
    yield line(f"Restart {agent} for the change to take effect.")
    if installing and agent in AFTERWARDS and any("hook" in change.file for change in needed):
        yield line((AFTERWARDS[agent], "yellow"))


def _write_plugin(session: Session, agent: str, folder: Path) -> int:
    from trivet.agents.install.agents import write_plugin

    if agent != "claude-code":
        raise InvalidInput(
            f"{agent} has no plugins of this kind; --plugin works only with claude-code. Nothing "
            "was written."
        )
    files = write_plugin(folder, _path_arguments(session.path))
    value: dict[str, Any] = {"agent": agent, "plugin": str(folder), "files": files}
    session.show(
        value,
        lambda: [
            line(f"Wrote {folder}. Try it with: claude --plugin-dir {folder}"),
            line(
                f"Or install it: claude plugin marketplace add {folder} && claude plugin install "
                "trivet@trivet"
            ),
        ],
    )
    return 0


def _launch(session: Session) -> Launch:
    """Return the launch by full paths: a desktop agent lacks the shell's PATH."""
    running = Path(sys.argv[0]).resolve()
    program = (
        str(running) if running.name.startswith("trivet") else shutil.which("trivet") or "trivet"
    )
    return Launch(program, _path_arguments(session.path or _path_of_this_shell()), _hook_program())


def _path_arguments(path: str | None) -> tuple[str, ...]:
    if not path:
        return ()
    return ("--path", path if "://" in path else str(Path(path).expanduser().resolve()))


def _path_of_this_shell() -> str | None:
    """Return the store of this shell's variables; refuse one with a password."""
    if not any(os.environ.get(name) for name in ("TRIVET_PATH", "TRIVET_CONFIG")):
        return None
    path = load_settings().path
    if without_password(path) != path:
        raise InvalidInput(
            "The store's address contains a password, which is not written into other programs' "
            "settings. Nothing was written. Put the address into trivet.toml, unset TRIVET_PATH, "
            "and install again."
        )
    return path


def _store(session: Session) -> str:
    arguments = _path_arguments(session.path or _path_of_this_shell())
    return arguments[1] if arguments else load_settings().path


def _hook_program() -> tuple[str, ...]:
    """Return Python without site packages: a hook runs before every prompt (decision 0018)."""
    script = Path(hook_client.__file__)
    return (sys.executable, "-S", "-I", str(script)) if sys.executable and script.is_file() else ()


def _folder(project: Path | None) -> Path | None:
    if project is not None and not project.is_dir():
        raise InvalidInput(f"{project} is not a folder. Name the project's folder.")
    return project.resolve() if project else None


def _records() -> Path:
    return data_folder() / "install"
