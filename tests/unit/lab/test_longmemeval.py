"""LongMemEval files are imported as a stream, and invalid ones are rejected."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from support.command_line import CommandLine
from trivet.errors import InvalidInput
from trivet.lab.datasets import read_files as json_stream
from trivet.lab.datasets.catalog import find_dataset
from trivet.lab.datasets.plain_layout import load


def said(role: str, content: str, **more: Any) -> dict[str, Any]:
    return {"role": role, "content": content, **more}


KITE = [
    said("user", 'My kite is red; its "string" ends in a brace: }', has_answer=True),
    said("assistant", "A fine colour \\ for a kite.", has_answer=False),
]
BREAD = [
    said("user", "How long does rye bread take?"),
    said("assistant", "Two hours."),
    said("user", " "),
]
KITE_AGAIN = [said("user", "The red kite tore. The new one is blue.", has_answer=True)]


def question(id: str = "kites", **changes: Any) -> dict[str, Any]:
    usual = {
        "question_id": id,
        "question_type": "knowledge-update",
        "question": "Which colour has my kite?",
        "answer": 7,
        "question_date": "2023/06/01 (Thu) 08:30",
        "haystack_dates": [
            "2023/05/20 (Sat) 02:21",
            "2023/05/21 (Sun) 12:00",
            "2023/05/30 (Tue) 23:40",
        ],
        "haystack_session_ids": ["answer_1", "filler", "answer_2"],
        "haystack_sessions": [KITE, BREAD, KITE_AGAIN],
        "answer_session_ids": ["answer_1", "answer_2"],
    }
    return usual | changes


def written(folder: Path, *questions: dict[str, Any], name: str = "lme.json") -> Path:
    data = json.dumps(questions, indent=1).encode()
    (folder / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return folder / name


@pytest.fixture
def trivet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return CommandLine(monkeypatch)


def test_import_by_turns(trivet: CommandLine, tmp_path: Path) -> None:
    plain = [said(turn["role"], turn["content"]) for turn in KITE]
    path = written(
        tmp_path,
        question(),
        question("kites_abs"),
        question("unmarked", haystack_sessions=[plain, BREAD, BREAD]),
    )
    value = trivet.json("lab", "import", "longmemeval", str(path), "--out", str(tmp_path / "lme"))
    dataset = load(tmp_path / "lme")
    assert value == {
        "name": "longmemeval",
        "folder": str(tmp_path / "lme"),
        "documents": 10,
        "queries": 2,
        "judgements": 4,
        "sha256": dataset.fingerprint,
        "left_out": 1,
    }
    assert [(one.id, one.scope, one.created_at) for one in dataset.documents[:5]] == [
        ("kites/answer_1:1", "kites", "2023-05-20T02:21:00Z"),
        ("kites/answer_1:2", "kites", "2023-05-20T02:21:00Z"),
        ("kites/filler:1", "kites", "2023-05-21T12:00:00Z"),
        ("kites/filler:2", "kites", "2023-05-21T12:00:00Z"),
        ("kites/answer_2:1", "kites", "2023-05-30T23:40:00Z"),
    ]
    assert dataset.documents[0].text == KITE[0]["content"]
    asked = [(one.id, one.scope, one.stratum, one.asked_at) for one in dataset.queries]
    assert asked == [
        ("kites", "kites", "knowledge-update", "2023-06-01T08:30:00Z"),
        ("kites_abs", "kites_abs", "abstention", "2023-06-01T08:30:00Z"),
    ]
    assert dataset.grades["kites"] == {"kites/answer_1:1": 1, "kites/answer_2:1": 1}


def test_import_sessions_from_gzip_into_cache(trivet: CommandLine, tmp_path: Path) -> None:
    path = written(
        tmp_path, question(haystack_session_ids=["answer_1", "twice", "twice"]), name="lme.json.gz"
    )
    with pytest.raises(InvalidInput, match="trivet lab import longmemeval-sessions FILE"):
        find_dataset("longmemeval-sessions")
    assert trivet("lab", "import", "longmemeval-sessions", str(path)).status == 0
    dataset = find_dataset("longmemeval-sessions")
    assert [one.id for one in dataset.documents] == [
        "kites/answer_1",
        "kites/twice",
        "kites/twice#2",
    ]
    assert dataset.documents[1].text == "user: How long does rye bread take?\nassistant: Two hours."
    assert dataset.grades["kites"] == {"kites/answer_1": 1}


def test_import_every_third_question(trivet: CommandLine, tmp_path: Path) -> None:
    path = written(tmp_path, *(question(f"q{number}") for number in range(7)))
    trivet(
        "lab", "import", "longmemeval", str(path), "--every", "3", "--out", str(tmp_path / "lme")
    )
    assert [one.id for one in load(tmp_path / "lme").queries] == ["q0", "q3", "q6"]


@pytest.mark.parametrize("size", [1, 2, 5, 64])
def test_objects_split_between_reads_are_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(json_stream, "READ_AT_ONCE", size)
    values = [question(), {}, question(answer='"}]{[\\"'), {"deep": [[{"a": ["\\\\", {}]}]]}]
    counted: list[int] = []
    path = written(tmp_path, *values)
    assert [json.loads(one) for one in json_stream.list_elements(path, counted.append)] == values
    assert sum(counted) == path.stat().st_size


def test_only_one_object_is_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_stream, "READ_AT_ONCE", 1_000)
    monkeypatch.setattr(json_stream, "LARGEST_ELEMENT", 10_000)
    path = written(tmp_path, *(question(answer="x" * 3_000) for _ in range(50)))
    assert sum(1 for _ in json_stream.list_elements(path)) == 50
    with pytest.raises(InvalidInput, match="object 1 is larger than"):
        list(json_stream.list_elements(written(tmp_path, question(answer="x" * 30_000))))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "it is empty, not with the [ of a JSON list"),
        ('{"question_id": "x"}', "it begins with '{', not with the ["),
        ("[1, 2]", "'1' where an object should begin"),
        ('[{"question_id": "x"', "it ends within object 1. Download the whole file again"),
        ('[{"question_id": "x}]', "it ends within object 1"),
        ("[", "it ends within object 1"),
        (json.dumps([question()])[:-1], "it ends within object 1"),
        (json.dumps([question()]) + "x", "'x' after the end of the list"),
        (
            "[{} {}]",
            "question 1: Object missing required field `question_id`. Give longmemeval_s_cleaned.json",
        ),
        (json.dumps([question(), question()]), "question kites appears twice"),
        (json.dumps([question("a b")]), "question 1: Expected `str` matching"),
        (json.dumps([question(haystack_dates=[])]), "has 3 sessions, 3 ids and 0 dates"),
        (json.dumps([question(question_date="yesterday")]), "'yesterday' is not a time such as"),
        (
            json.dumps([question(question_date="2023/02/31 (Fri) 08:30")]),
            "'2023/02/31 (Fri) 08:30' is not a time",
        ),
        (
            json.dumps([question(haystack_sessions=[[said("robot", "x")]] * 3)]),
            "Invalid enum value 'robot'",
        ),
        (json.dumps([question(haystack_sessions=[BREAD] * 3)]), "no question in it has evidence"),
        ('[{"question_id": "\\ud800"}]', "question 1: "),
        ('[{"x": ' + "[" * 5_000 + "]" * 5_000 + "}]", "question 1: "),
        ("[]", "no question in it has evidence"),
    ],
)
def test_invalid_file_is_rejected_and_writes_nothing(
    trivet: CommandLine, tmp_path: Path, text: str, problem: str
) -> None:
    (tmp_path / "lme.json").write_text(text)
    refused = trivet(
        "lab", "import", "longmemeval", str(tmp_path / "lme.json"), "--out", str(tmp_path / "lme")
    )
    assert refused.status == 2
    assert f"{tmp_path}/lme.json: " in refused.err
    assert problem in " ".join(refused.err.split())
    assert list((tmp_path / "lme").iterdir()) == []


def test_missing_file_and_wrong_options_are_reported(trivet: CommandLine, tmp_path: Path) -> None:
    path = str(written(tmp_path, question()))
    assert "trivet lab import longmemeval FILE" in trivet("lab", "import", "longmemeval").err
    assert "does not exist" in trivet("lab", "import", "longmemeval", str(tmp_path / "no.json")).err
    assert "FILE works only with longmemeval" in trivet("lab", "import", "locomo", path).err
    assert (
        "--every works only with longmemeval"
        in trivet("lab", "import", "locomo", "--every", "2").err
    )
    (tmp_path / "broken.json.gz").write_bytes(gzip.compress(b"[{}]")[:-3])
    assert (
        "not a complete gzip file"
        in trivet("lab", "import", "longmemeval", str(tmp_path / "broken.json.gz")).err
    )
