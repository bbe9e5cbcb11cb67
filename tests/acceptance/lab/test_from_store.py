"""`trivet lab from-store` builds a dataset from a store without its private parts."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from support.chat_server import chat_server
from support.command_line import CommandLine
from support.invented_secrets import github
from support.lab_fixtures import CANARY
from trivet import Trivet
from trivet.cli.demonstration import lines
from trivet.lab.datasets.plain_layout import load
from trivet.lab.tune.query_rules import STRATA, inflected
from trivet.settings import Settings

TOKEN, OPEN_TOKEN, PRIVATE = github("sealed"), github("left in the store"), "quokkasong"
NOUNS = "whale lantern ferry granite orchard violin saddle compass kettle harbour meadow parrot"
LONG = " ".join(
    f"The keeper of the {one} wrote a long letter on the {one} and on weather."
    for one in NOUNS.split()
)


@pytest.fixture
def with_secrets(tmp_path: Path) -> Path:
    """Without vectors, since no question needs them."""
    path = tmp_path / "memory.db"
    texts = {
        "redact": (
            f"The deploy token {TOKEN} opens the northern mirror.",
            f"Bring <private>{PRIVATE}</private> soup.",
        ),
        "off": (f"The token {OPEN_TOKEN} was kept in clear by a careless gardener.", LONG),
    }
    for mode, contents in texts.items():
        settings: dict[str, Any] = {"secrets": mode, "secrets_keyring": False, "embedder": "none"}
        with Trivet.open(
            settings=Settings(path=str(path), background=False, changes="off", **settings)
        ) as memory:
            for content in contents:
                memory.remember(content)
    with Trivet.open(
        settings=Settings(path=str(path), background=False, embedder="none")
    ) as memory:
        assert not memory.import_(islice(lines(), 80)).errors
        memory.remember(f"The {CANARY} phrase opens the vault door.", sensitive=True)
    return path


def test_dataset_of_own_memories(trivet: CommandLine, with_secrets: Path, tmp_path: Path) -> None:
    out = tmp_path / "mine"
    command = (
        "--path",
        str(with_secrets),
        "lab",
        "from-store",
        "--questions",
        "6",
        "--out",
        str(out),
    )
    shown = trivet(*command)
    assert (shown.status, shown.err) == (0, "")
    assert "They cannot show how well questions in your own words are answered." in shown.out
    assert "(sensitive)." in shown.out
    dataset = load(out)
    assert set(dataset.strata) == set(STRATA)
    assert all(len(queries) <= 6 for queries in dataset.strata.values())
    written = "".join(path.read_text() for path in out.iterdir())
    assert "northern mirror" in written
    assert "careless gardener" in written
    for secret in (CANARY, TOKEN, OPEN_TOKEN, PRIVATE):
        assert secret not in written
    again = trivet(*command)
    assert again.status == 4
    assert "nothing was overwritten" in again.err
    other = trivet.json(*command[:-1], str(tmp_path / "again"))
    assert (
        other["dataset_sha256"]
        == dataset.fingerprint
        == json.loads((out / "manifest.json").read_text())["dataset_sha256"]
    )
    ran = trivet.json(
        "lab",
        "run",
        str(out),
        "--embedder",
        "none",
        "--measure",
        "any@1",
        "--out",
        str(tmp_path / "runs"),
    )
    assert ran[0]["by_stratum"]["keyword"]["any@1"] > 0.5
    assert ran[0]["lengths"]["by_stratum"]["length-long"]["answers"] > 60


def test_configured_language_model_writes_questions(
    trivet: CommandLine, with_secrets: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(notes: Any) -> str:
        questions = [
            {"note": note["note"], "question": f"What was number {note['text'][:20]}?"}
            for note in notes
        ]
        return json.dumps({"questions": questions})

    command = ("--path", str(with_secrets), "lab", "from-store", "--questions", "90")
    with chat_server(answer) as server:
        monkeypatch.setenv("TRIVET_CAPTURE_LLM", server.spec)
        made = trivet.json(*command, "--out", str(tmp_path / "mine"))
        sent = "".join(server.bodies)
        assert "northern mirror" in sent
        assert not any(secret in sent for secret in (CANARY, TOKEN, OPEN_TOKEN, PRIVATE))
        assert made["strata"]["paraphrase"]["questions"] > 10
        requests = len(server.bodies)
        trivet.json(*command, "--rules-only", "--out", str(tmp_path / "ruled"))
        assert len(server.bodies) == requests
        server.answer = lambda notes: "no JSON"
        failed = trivet(*command, "--out", str(tmp_path / "none"))
    assert failed.status == 6
    assert "wrote no question" in failed.err
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    ("word", "other"),
    [
        ("city", "cities"),
        ("cities", "city"),
        ("box", "box"),
        ("match", "matches"),
        ("boxes", "box"),
        ("E_4012", "E_4012"),
    ],
)
def test_singular_and_plural_forms_match(word: str, other: str) -> None:
    assert inflected(word) == other


def test_judgments_of_the_page_become_a_dataset(
    trivet: CommandLine, with_secrets: Path, tmp_path: Path
) -> None:
    with Trivet.open(
        settings=Settings(path=str(with_secrets), background=False, embedder="none")
    ) as memory:
        listed = memory.list(limit=1000).memories
        hidden = next(one.id for one in listed if one.sensitive)
        [first, second, *_] = [
            one.id for one in listed if not one.sensitive and one.state == "active"
        ]
    graded = [
        ("who keeps it", first, 3),
        ("who keeps it", second, 0),
        ("who keeps it", hidden, 2),
        ("nothing", first, 0),
    ]
    file, out = tmp_path / "judged.jsonl", tmp_path / "mine"
    file.write_text(
        "".join(json.dumps({"query": one, "id": id, "grade": n}) + "\n" for one, id, n in graded)
    )
    made = trivet.json(
        "--path", str(with_secrets), "lab", "from-store", "--judged", str(file), "--out", str(out)
    )
    assert made["skipped"] == {
        "judged: memory gone or excluded": 1,
        "judged: no memory that answers": 1,
    }
    dataset = load(out)
    assert [query.text for query in dataset.queries] == ["who keeps it"]
    assert next(iter(dataset.grades.values())) == {first: 3, second: 0}
    file.write_text('{"query": "x", "id": "y", "grade": 4}')
    refused = trivet(
        "--path",
        str(with_secrets),
        "lab",
        "from-store",
        "--judged",
        str(file),
        "--out",
        str(out / "2"),
    )
    assert "judged.jsonl:1" in refused.err
