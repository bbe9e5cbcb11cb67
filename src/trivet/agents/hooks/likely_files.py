"""The files that most likely matter for a prompt, where the user wants them named (`code_hook`).

Only from an index that the resident process has open: a prompt never waits for files to be read.
"""

from __future__ import annotations

from pathlib import Path

from trivet.agents.hooks.event import Event
from trivet.code.plain_reason import reason
from trivet.code.questions import Search
from trivet.code.types import CodeHit
from trivet.errors import InvalidInput
from trivet.serve.code_search import project
from trivet.serve.resident.hook_calls import HookCall

MOST_FILES = 3
# Of one file several parts may come first.
MOST_HITS = 12
OPENING = "Files that most likely matter for this prompt (Trivet code search):"


def likely_files(call: HookCall, event: Event, query: str) -> str:
    if not call.settings.code_hook or call.code is None or not event.folder:
        return ""
    try:
        folder = project(Path(event.folder))
    except InvalidInput:  # the agent works in no project
        return ""
    found = call.code(str(folder), Search(query=query, limit=MOST_HITS, budget=None))
    files: dict[str, CodeHit] = {}
    for hit in found.hits if found else ():
        files.setdefault(hit.path, hit)
    rows = [f"- {path}:{hit.start} ({reason(hit)})" for path, hit in list(files.items())[:MOST_FILES]]
    return "\n".join([OPENING, *rows]) if rows else ""
