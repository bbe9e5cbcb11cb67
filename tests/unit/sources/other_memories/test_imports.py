"""Files of other memory systems import completely and repeatably, without being modified."""

from __future__ import annotations

import json
import os
import sqlite3
from datetime import date
from pathlib import Path
from typing import Any, get_args

import pytest

from support.command_line import CommandLine
from trivet import Trivet
from trivet.common.clock import moment
from trivet.secrets.masking import remove_private_parts
from trivet.sources.other_memories.foreign import SystemName
from trivet.sources.other_memories.systems import SYSTEMS
from trivet.types import Memory

UUID = "6b0c1f5e-8f5b-4d0a-9a57-2d9f4f1c7a11"
SECRET = "ghp_" + "x7Kq2Lm9Pz4Rt6Vw8Yb1Nc3Df5Gh0JsAeUiT"


def reference_server(folder: Path) -> Path:
    lines = [
        {
            "type": "entity",
            "name": "Ana",
            "entityType": "person",
            "observations": ["Speaks Spanish", "Likes tea"],
        },
        {"type": "entity", "name": "Acme", "entityType": "organization", "observations": []},
        {"type": "relation", "from": "Ana", "to": "Acme", "relationType": "works_at"},
        {"type": "relation", "from": "Ana", "to": "Nobody", "relationType": "knows"},
    ]
    return _text(folder / "memory.jsonl", "\n".join(json.dumps(line) for line in lines))


def claude_memory_mcp(folder: Path) -> Path:
    return _database(
        folder / "theirs.db",
        """CREATE TABLE memories (id INTEGER PRIMARY KEY AUTOINCREMENT, content TEXT NOT NULL, category TEXT DEFAULT
        'facts', tags TEXT DEFAULT '', expanded_keywords TEXT DEFAULT '', importance REAL DEFAULT 0.5, is_sensitive
        INTEGER DEFAULT 0, created_at TEXT NOT NULL, updated_at TEXT NOT NULL, server_id INTEGER)""",
        (
            "INSERT INTO memories VALUES (1, 'Ships on Tuesdays', 'decisions', 'deploy, ops', 'release ship', 0.9, 0, "
            "'2026-01-02T03:04:05+00:00', '2026-02-02T03:04:05+00:00', 12)",
            f"INSERT INTO memories VALUES (2, 'The token is {SECRET}', 'oddities', '', '', 0.5, 1, "
            "'2026-01-02T03:04:05+00:00', '2026-01-02T03:04:05+00:00', NULL)",
        ),
    )


def mem0(folder: Path) -> Path:
    results = [
        {
            "id": UUID,
            "memory": "Likes tea",
            "hash": "x",
            "metadata": {"category": "preferences"},
            "categories": ["food"],
            "created_at": "2026-01-02T03:04:05.123456-08:00",
            "updated_at": None,
            "user_id": "ana",
        },
        {
            "id": "short-id",
            "memory": "Lives in Berlin",
            "metadata": None,
            "created_at": "2026-01-02T03:04:05Z",
        },
    ]
    return _text(folder / "mem0.json", json.dumps({"results": results}))


def basic_memory(folder: Path) -> Path:
    note = """---
title: Auth Design
type: note
tags: [auth]
permalink: auth-design
---
# Auth Design

Why we do it so.

## Observations
- [decision] JWT for sessions #security
- [x] a task, not an observation

## Relations
- implements [[User Schema]]
"""
    _text(folder / "project" / "design" / "Auth Design.md", note)
    _text(
        folder / "project" / "User Schema.md", "---\ntitle: User Schema\n---\nUsers have names.\n"
    )
    return folder / "project"


def claude_mem(folder: Path) -> Path:
    return _database(
        folder / "claude-mem.db",
        """CREATE TABLE observations (id INTEGER PRIMARY KEY AUTOINCREMENT, memory_session_id TEXT NOT NULL, project
        TEXT NOT NULL, text TEXT, type TEXT NOT NULL, title TEXT, subtitle TEXT, facts TEXT, narrative TEXT,
        concepts TEXT, files_read TEXT, files_modified TEXT, prompt_number INTEGER, created_at TEXT NOT
        NULL, created_at_epoch INTEGER NOT NULL);
        CREATE TABLE session_summaries (id INTEGER PRIMARY KEY AUTOINCREMENT, memory_session_id TEXT NOT NULL, project
        TEXT NOT NULL, request TEXT, investigated TEXT, learned TEXT, completed TEXT, next_steps TEXT, notes TEXT,
        created_at TEXT NOT NULL, created_at_epoch INTEGER NOT NULL);
        CREATE TABLE directives (id INTEGER PRIMARY KEY AUTOINCREMENT, scope TEXT, project TEXT, content TEXT NOT NULL,
        status TEXT, source TEXT, created_at TEXT NOT NULL, created_at_epoch INTEGER NOT NULL)""",
        (
            "INSERT INTO observations VALUES (1, 's', 'shop', NULL, 'bugfix', 'Cache mended', 'It was stale', "
            """'["TTL was 0", "Now 60 s"]', 'The cache never expired.', '["cache"]', '[]', '[]', 1, """
            "'2026-01-02T03:04:05.000Z', 1767323045000)",
            "INSERT INTO session_summaries VALUES (1, 's', 'shop', 'Mend the cache', NULL, 'TTL matters', 'Done', "
            "NULL, NULL, '2026-01-02T03:05:00.000Z', 1767323100000)",
            "INSERT INTO directives VALUES (1, 'global', NULL, 'Answer in German', 'active', 'manual', "
            "'2026-01-02T03:05:00.000Z', 1767323100000)",
            "INSERT INTO directives VALUES (2, 'global', NULL, 'Old rule', 'retired', 'manual', "
            "'2026-01-02T03:05:00.000Z', 1767323100000)",
        ),
    )


def agentmemory(folder: Path) -> Path:
    times = {"createdAt": "2026-01-02T03:04:05.000Z", "updatedAt": "2026-01-03T03:04:05.000Z"}
    base = {
        "concepts": ["db"],
        "files": [],
        "sessionIds": [],
        "version": 1,
        "isLatest": True,
        **times,
    }
    data = {
        "version": "0.9.29",
        "exportedAt": "2026-02-01T00:00:00.000Z",
        "sessions": [],
        "memories": [
            {**base, "id": "mem_1", "type": "fact", "title": "Port", "content": "Port 5432", "strength": 7,
             "isLatest": False},
            {**base, "id": "mem_2", "type": "architecture", "title": "Port", "content": "Port 6543", "strength": 0.8,
             "supersedes": ["mem_1"], "project": "shop"},
        ],
        "observations": {
            "s": [{"id": "obs_1", "sessionId": "s", "timestamp": "2026-01-02T03:04:05.000Z", "type": "error",
                   "title": "Crash", "facts": ["out of memory"], "narrative": "It fell over.", "concepts": [],
                   "files": [], "importance": 8}]
        },
        "summaries": [],
        "proceduralMemories": [{"id": "p", "name": "Release", "steps": ["tag", "push"],
                                "triggerCondition": "On Tuesday", "frequency": 1, "strength": 0.5, **times}],
    }  # fmt: skip
    return _text(folder / "export.json", json.dumps(data))


FILES: dict[SystemName, Any] = {
    "mcp-memory": reference_server,
    "claude-memory-mcp": claude_memory_mcp,
    "mem0": mem0,
    "basic-memory": basic_memory,
    "claude-mem": claude_mem,
    "agentmemory": agentmemory,
}


def _text(file: Path, text: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    os.utime(file, (1_700_000_000, 1_700_000_000))
    return file


def _database(file: Path, schema: str, statements: tuple[str, ...]) -> Path:
    connection = sqlite3.connect(file)
    connection.executescript(schema)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()
    return file


@pytest.fixture
def trivet(path: Path, monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    monkeypatch.setenv("TRIVET_PATH", str(path))
    monkeypatch.setenv("TRIVET_EMBEDDER", "none")
    return CommandLine(monkeypatch)


@pytest.fixture
def held(path: Path) -> Any:
    def of() -> dict[str, Memory]:
        with Trivet.open(path, embedder="none", background=False) as memory:
            return {one.content: one for one in memory.list(limit=100, reveal=True).memories}

    return of


@pytest.mark.parametrize("system", get_args(SystemName))
def test_import_is_complete_repeatable_and_has_dry_run(
    trivet: CommandLine, tmp_path: Path, held: Any, system: SystemName
) -> None:
    source = FILES[system](tmp_path)
    before = {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}
    dry = trivet("import", "--from", system, str(source), "--dry-run")
    assert dry.status == 0
    assert " -> " in dry.out
    assert SECRET not in dry.out
    assert held() == {}
    first = trivet.json("import", "--from", system, str(source), "--scope", "old/ones")
    assert first["errors"] == []
    assert first["stored"] == len(held()) > 1
    assert first["mapping"]
    assert {one.scope for one in held().values()} == {"old/ones"}
    again = trivet.json("import", "--from", system, str(source), "--scope", "old/ones")
    assert (again["stored"], again["updated"], again["unchanged"]) == (0, 0, first["stored"])
    assert {file: file.read_bytes() for file in before} == before


def test_reference_server(trivet: CommandLine, tmp_path: Path, held: Any) -> None:
    imported = trivet.json("import", "--from", "mcp-memory", str(reference_server(tmp_path)))
    ana = held()["Ana (person)\nSpeaks Spanish\nLikes tea\nAna works at Acme.\nAna knows Nobody."]
    assert (ana.title, ana.category, ana.tags, imported["links"]) == (
        "Ana",
        "people",
        ("person",),
        1,
    )


def test_claude_memory_mcp(trivet: CommandLine, tmp_path: Path, held: Any) -> None:
    file = claude_memory_mcp(tmp_path)
    trivet.json("import", "--from", "claude-memory-mcp", str(file))
    ships = held()["Ships on Tuesdays"]
    assert (ships.category, ships.tags, ships.expanded_keywords) == (
        "decisions",
        ("deploy", "ops"),
        ("release", "ship"),
    )
    assert (ships.importance, ships.updated_at) == (0.9, moment("2026-02-02T03:04:05Z"))
    hidden = next(one for text, one in held().items() if text != "Ships on Tuesdays")
    assert (hidden.sensitive, hidden.category, hidden.tags) == (True, "facts", ("oddities",))
    assert SECRET not in hidden.content
    connection = sqlite3.connect(file)
    connection.execute(
        "UPDATE memories SET content = 'On Fridays', updated_at = '2027-01-01T00:00:00+00:00' WHERE id = 1"
    )
    connection.commit()
    connection.close()
    assert trivet.json("import", "--from", "claude-memory-mcp", str(file))["updated"] == 1
    assert held()["On Fridays"].id == ships.id


def test_mem0(trivet: CommandLine, tmp_path: Path, held: Any) -> None:
    trivet.json("import", "--from", "mem0", str(mem0(tmp_path)))
    tea = held()["Likes tea"]
    assert (tea.id, tea.category, tea.tags) == (UUID, "preferences", ("food", "ana"))
    assert tea.created_at == moment("2026-01-02T11:04:05.123456Z")


def test_mem0_history_imports_final_state(trivet: CommandLine, tmp_path: Path, held: Any) -> None:
    file = _database(
        tmp_path / "history.db",
        """CREATE TABLE history (id TEXT PRIMARY KEY, memory_id TEXT, old_memory TEXT, new_memory TEXT, event TEXT,
        created_at DATETIME, updated_at DATETIME, is_deleted INTEGER, actor_id TEXT, role TEXT)""",
        (
            f"INSERT INTO history VALUES ('1', '{UUID}', NULL, 'Likes tea', 'ADD', '2026-01-01', NULL, 0, NULL, NULL)",
            f"INSERT INTO history VALUES ('2', '{UUID}', 'Likes tea', 'Likes coffee', 'UPDATE', '2026-01-02', "
            "'2026-01-05', 0, NULL, NULL)",
            "INSERT INTO history VALUES ('3', 'b', NULL, 'Hates rain', 'ADD', '2026-01-03', NULL, 0, NULL, NULL)",
            "INSERT INTO history VALUES ('4', 'b', 'Hates rain', NULL, 'DELETE', '2026-01-04', NULL, 1, NULL, NULL)",
        ),
    )
    trivet.json("import", "--from", "mem0", str(file))
    assert set(held()) == {"Likes coffee"}
    assert held()["Likes coffee"].created_at.date() == date(2026, 1, 1)


def test_basic_memory(trivet: CommandLine, tmp_path: Path, held: Any, path: Path) -> None:
    trivet.json("import", "--from", "basic-memory", str(basic_memory(tmp_path)))
    found = held()
    decision = found["JWT for sessions #security"]
    assert (decision.title, decision.category) == ("Auth Design: Observations", "decisions")
    assert decision.tags == ("auth", "security", "decision")
    assert found["- [x] a task, not an observation"].category == "references"
    with Trivet.open(path, embedder="none", background=False) as memory:
        schema = found["Users have names."].id
        assert {link.source for link in memory.links(schema)} == {
            found["- implements [[User Schema]]"].id
        }


def test_claude_mem(trivet: CommandLine, tmp_path: Path, held: Any) -> None:
    trivet.json("import", "--from", "claude-mem", str(claude_mem(tmp_path)))
    found = held()
    cache = found["It was stale\n\nThe cache never expired.\n\n- TTL was 0\n- Now 60 s"]
    assert (cache.title, cache.category, cache.tags) == (
        "Cache mended",
        "problems",
        ("bugfix", "cache", "shop"),
    )
    assert found["Answer in German"].category == "preferences"
    assert "Old rule" not in found


def test_agentmemory(trivet: CommandLine, tmp_path: Path, held: Any) -> None:
    imported = trivet.json("import", "--from", "agentmemory", str(agentmemory(tmp_path)))
    found = held()
    assert (found["Port 5432"].state, found["Port 6543"].state, imported["links"]) == (
        "superseded",
        "active",
        1,
    )
    assert (found["Port 5432"].importance, found["Port 6543"].category) == (0.7, "decisions")
    assert found["On Tuesday\n1. tag\n2. push"].title == "Release"
    assert found["It fell over.\n\n- out of memory"].category == "problems"


@pytest.mark.parametrize("system", get_args(SystemName))
@pytest.mark.parametrize(
    "content", [b"", b"nonsense \xff", b"{}", b"SQLite format 3\x00 and no more"]
)
def test_wrong_file_is_rejected_and_writes_nothing(
    trivet: CommandLine, tmp_path: Path, held: Any, system: SystemName, content: bytes
) -> None:
    file = tmp_path / "wrong"
    file.write_bytes(content)
    result = trivet("import", "--from", system, str(file))
    if system == "mcp-memory" and content == b"":
        assert result.status == 0  # an empty memory file is valid
    else:
        assert (result.status, "wrong" in result.err) == (2, True), result
    assert trivet("import", "--from", system, str(tmp_path / "absent")).status == 2
    assert held() == {}


def test_dry_run_requires_from(trivet: CommandLine, tmp_path: Path) -> None:
    file = _text(tmp_path / "x.jsonl", '{"content": "x"}')
    assert trivet("import", str(file), "--dry-run").status == 2


def test_basic_memory_hides_private_parts_and_keeps_duplicates(
    tmp_path: Path,
) -> None:
    text = "# N\n\n## A\n\nfirst\n\n## A\n\nsecond\n\n<private>\n- [fact] zanzibar #zanzibar\n</private>\n"
    (tmp_path / "n.md").write_text(text)
    found = list(SYSTEMS["basic-memory"].read(tmp_path))
    assert len({one.key for one in found}) == len(found) == 2
    assert not [
        one for one in found if "zanzibar" in f"{remove_private_parts(one.content)}{one.tags}"
    ]


@pytest.mark.parametrize(
    ("system", "name", "text"),
    [
        (
            "mcp-memory",
            "m.jsonl",
            '{"type":"entity","name":"Ana"}\n{"type":"relation","from":["x"],"to":"Ana"}\n',
        ),
        (
            "agentmemory",
            "a.json",
            json.dumps({"memories": [{"id": "1", "content": "x", "supersedes": "[" * 60_000}]}),
        ),
    ],
)
def test_invalid_values_are_skipped(
    tmp_path: Path, system: SystemName, name: str, text: str
) -> None:
    (tmp_path / name).write_text(text)
    assert len(list(SYSTEMS[system].read(tmp_path / name))) == 1
