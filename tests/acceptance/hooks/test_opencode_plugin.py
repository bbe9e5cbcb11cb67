"""The opencode plugin works when Node runs it with the real hooks on a real store."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.resident_home import SCRIPT, Home
from trivet.agents.install.agents import Launch, desired_files

NODE = shutil.which("node")
PORT = "The staging database listens on port 6543."
QUESTION = (
    "which port does the staging database listen on? Remember that the canteen closes at three."
)
# The events opencode sends to a plugin: a user message, a subagent message, then both sessions
# idle.
HARNESS = """
import { TrivetPlugin } from "./trivet.mjs"
const get = async ({ path }) => ({ data: path.id === "child" ? { parentID: "one" } : {} })
const plugin = await TrivetPlugin({ client: { session: { get } }, directory: "/home/ana/shop" })
const say = async (session, text) => {
  const parts = [{ id: "prt_1", type: "text", text }]
  await plugin["chat.message"]({ sessionID: session }, { message: { id: "msg_1" }, parts })
  return parts
}
const parts = await say("one", process.argv[2])
await say("child", "Remember that an agent wrote this.")
for (const session of ["one", "child"])
  await plugin.event({ event: { type: "session.idle", properties: { sessionID: session } } })
console.log(JSON.stringify(parts))
"""


@pytest.mark.skipif(NODE is None, reason="opencode's plugins run in Node or Bun")
def test_plugin_adds_memories_and_captures_the_conversation(warm: Home, tmp_path: Path) -> None:
    id = warm.remember(PORT)
    # `opencode run` wraps the whole text in quotation marks.
    first, added = plugin_says(
        tmp_path, f'"{QUESTION}"', Launch("trivet", (), (sys.executable, "-S", "-I", SCRIPT))
    )
    assert first["text"] == f'"{QUESTION}"'
    assert (added["type"], added["synthetic"], added["messageID"]) == ("text", True, "msg_1")
    assert added["id"] > first["id"]
    assert id in added["text"]
    with warm.memory() as memory:
        assert [one.content for one in memory.inbox_list().proposals] == [
            "The canteen closes at three."
        ]


@pytest.mark.skipif(NODE is None, reason="opencode's plugins run in Node or Bun")
def test_prompt_is_unchanged_without_trivet(tmp_path: Path) -> None:
    assert [
        part["text"] for part in plugin_says(tmp_path, QUESTION, Launch("/nowhere/trivet"))
    ] == [QUESTION]


def plugin_says(folder: Path, prompt: str, launch: Launch) -> list[dict[str, Any]]:
    """Return the parts of the user's message as the model reads them."""
    plugin = desired_files("opencode", launch, folder, None, hooks=True)[1]
    (folder / "trivet.mjs").write_text(plugin.text)
    (folder / "harness.mjs").write_text(HARNESS)
    ended = subprocess.run(
        [str(NODE), "harness.mjs", prompt],
        cwd=folder,
        env=dict(os.environ),
        capture_output=True,
        check=True,
    )
    parts: list[dict[str, Any]] = json.loads(ended.stdout)
    return parts
