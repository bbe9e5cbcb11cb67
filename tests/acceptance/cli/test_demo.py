"""The demo shows what each scene claims, changes nothing on a second run and repairs damage."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.command_line import CommandLine, process
from trivet.cli import demonstration as cli_demo
from trivet.cli.demonstration import SCENES, demo_path, lines, open_demo
from trivet.cli.session import Session
from trivet.errors import InvalidInput


def ignore(count: int) -> None:
    """Ignore progress reports."""


def test_each_scene_shows_its_point(trivet: CommandLine, store: Path) -> None:
    first = process("demo", "--json", TRIVET_EMBEDDER="bundled")
    assert first.status == 0, first.err
    for scene, answer in zip(SCENES, first.json()["recalls"], strict=True):
        assert answer["hits"][0]["id"] == scene.expected, scene.title
        assert not answer["health"]["degraded"]
    exact, paraphrase, identifier, two_steps, superseded = (
        answer["hits"][0] for answer in first.json()["recalls"]
    )
    assert exact["why"]["exactness"] == 1
    assert exact["resolved_by"]
    assert len(paraphrase["why"]["matched_words"]) == 1
    assert paraphrase["why"]["legs"]["dense"]["rank"] == 1
    assert identifier["why"]["exactness"] == 1
    assert two_steps["why"]["path"] == [{"kind": "concept", "name": "speech-v3.md"}]
    further = first.json()["recalls"][3]["hits"][1]
    assert (further["why"]["legs"]["dense"]["rank"], further["why"]["legs"]["graph"]["rank"]) == (
        None,
        1,
    )
    assert superseded["why"]["redirected_from"]
    assert not first.json()["why_not"]["returned"]
    again = trivet("demo")
    assert again.status == 0
    assert again.err == ""
    assert again.out.count("trivet recall") == len(SCENES)
    assert again.out.count("why: ") >= 2 * len(SCENES)
    assert not store.exists()


def test_second_run_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "demo.db"
    exports = []
    for _ in range(2):
        with open_demo(path, ignore, ignore, embedder="none") as memory:
            exports.append(list(memory.export(include_sensitive=True)))
    assert exports[0] == exports[1]


@pytest.mark.parametrize("damage", ["rubbish", "edited"])
def test_damaged_store_is_rebuilt(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "demo.db"
    if damage == "rubbish":
        path.write_bytes(b"rubbish" * 1000)
    else:
        with open_demo(path, ignore, ignore, embedder="none") as memory:
            memory.edit(SCENES[0].expected, content="Somebody was here.")
    with open_demo(path, ignore, ignore, embedder="none") as memory:
        assert sum(memory.stats().memories.values()) == sum(1 for _ in lines())
        assert memory.get(SCENES[0].expected).content != "Somebody was here."


def test_demo_has_its_own_store(tmp_path: Path, store: Path) -> None:
    assert demo_path() == tmp_path / "cache" / "trivet" / "demo.db"
    with pytest.raises(InvalidInput, match="its own store"):
        cli_demo.show_demo(Session(str(store), as_json=True), embedder="none")
    assert not store.exists()
