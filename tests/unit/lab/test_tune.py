"""Tuning on a real store: probes, acceptance, rejection and settings."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import pytest

from support.chat_server import chat_server
from trivet import Trivet
from trivet.analyse import analyse
from trivet.errors import InvalidInput
from trivet.lab.measure.measures import Measured
from trivet.lab.tune.adopt import write_setting
from trivet.lab.tune.probes import Probe, feedback_file, feedback_probes, read_feedback
from trivet.lab.tune.query_rules import LITERAL, REWORDED, document_frequencies, equivalents
from trivet.lab.tune.search import no_significant_loss, worth
from trivet.lab.tune.tuning import Tuning, judged
from trivet.models.chat import Chat
from trivet.types import Memory

MOMENT = datetime(2024, 1, 1, tzinfo=UTC)


def test_synonyms_have_other_stems() -> None:
    assert "db" in equivalents("databases")
    assert "config" in equivalents("configuration")
    assert equivalents("xylophone") == ()
    assert all(analyse(other) != analyse("deleted") for other in equivalents("deleted"))


def test_too_few_memories_is_rejected(tmp_path: Path) -> None:
    with Trivet.open(tmp_path / "few.db", embedder="none", background=False) as few:
        few.remember("The only one.")
        few.drain()
        with pytest.raises(InvalidInput, match="Tuning needs 50"):
            Tuning(few.engine)


def test_probe_halves_weigh_equally() -> None:
    assert worth({"words": 1.0, "cloze": 0.5, "title": 0.0, REWORDED: 0.1}) == pytest.approx(
        (0.5 + 0.1) / 2
    )
    assert worth({REWORDED: 0.1}) == pytest.approx(0.1)


def test_insignificant_loss_is_accepted() -> None:
    assert no_significant_loss([0.5, 0.5], [0.5, 0.5])
    assert no_significant_loss([1.0, 0.0, 0.5], [0.5, 0.4, 0.5])  # loses 0.03, plus or minus 0.26
    assert not no_significant_loss([0.5] * 20, [0.49] * 20)
    assert not no_significant_loss([1.0], [0.9])


def _measured(values: dict[str, float]) -> Measured:
    names = ("recall@5", "recall@10", "nDCG@10", "MRR", "any@5", "all@5")
    kinds = {
        kind: tuple(id for id in values if id.startswith(kind)) for kind in ("words", REWORDED)
    }
    return Measured(per_query=dict.fromkeys(names, values), overall={}, by_stratum={}, strata=kinds)


def _synthetic(kind: str, number: int) -> Probe:
    id = f"{kind}:{number}"
    return Probe(
        id=id, query="?", kind=kind, memory=str(number), group=str(number), grades={str(number): 3}
    )


def test_gate_rejects_losing_candidate() -> None:
    probes = [_synthetic(kind, number) for kind in ("words", REWORDED) for number in range(60)]
    base = {probe.id: 0.5 for probe in probes}
    better = {id: value + 0.1 for id, value in base.items()}
    one_sided = {
        id: value + 0.3 if id.startswith("words") else value - 0.05 for id, value in base.items()
    }
    worse = {id: value - 0.1 for id, value in base.items()}
    breaking = {**better, "words:0": 0.0}
    assert judged(_measured(base), _measured(better), probes, "r").passed
    lost = judged(_measured(base), _measured(one_sided), probes, "r")
    assert lost.gate.passed
    assert not lost.passed
    assert all(one.startswith(REWORDED) for one in lost.losing)
    assert not judged(_measured(base), _measured(worse), probes, "r").passed
    assert judged(_measured(base), _measured(breaking), probes, "r").gate.broken == ("words:0",)


def test_latest_feedback_on_existing_memories_counts(tmp_path: Path) -> None:
    path = feedback_file(tmp_path / "memory.db")
    assert read_feedback(path) == []
    rows = [
        {"query": "which port", "id": "a", "useful": False},
        {"query": "which  port", "id": "a", "useful": True, "at": "2026-05-01T10:00:00Z"},
        {"query": "which port", "id": "b", "useful": False},
        {"query": "which port", "id": "gone", "useful": True},
        {"query": "nothing helped", "id": "b", "useful": False},
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    given = feedback_probes(read_feedback(path), {"a", "b"})
    assert [(probe.query, probe.grades) for probe in given.probes] == [
        ("which port", {"a": 3, "b": 0})
    ]
    assert sorted(given.skipped.values()) == [1, 1]


def test_invalid_feedback_error_names_line(tmp_path: Path) -> None:
    path = tmp_path / "feedback.jsonl"
    path.write_text(
        '{"query": "q", "id": "a", "useful": true}\n{"query": "q", "id": "a", "useful": "yes"}\n'
    )
    with pytest.raises(InvalidInput, match=r"feedback.jsonl:2: useful"):
        read_feedback(path)


def test_llm_key_is_not_other_services_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-openai")
    monkeypatch.setenv("TRIVET_EMBED_API_KEY", "embed-key")
    with chat_server(lambda _: "{}") as server:
        Chat(server.spec).ask("say", [])
        monkeypatch.setenv("TRIVET_LLM_API_KEY", "own-key")
        Chat(server.spec).ask("say", [])
    assert server.keys == [None, "Bearer own-key"]


@pytest.mark.parametrize(
    "spec", ["bundled", "cohere:x", "gpt-4", "openai:m@http://me:secret@host/v1", "openai:"]
)
def test_invalid_endpoint_error_hides_password(spec: str) -> None:
    with pytest.raises(InvalidInput, match="openai:MODEL@http") as caught:
        Chat(spec)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        'recipe = """\nrrf(k=60)"""\n',
        'scope = """\nrecipe = "a"\n"""\n',
        '"\\u0072ecipe" = "rrf"\n',
    ],
)
def test_unsafe_settings_file_is_left_unchanged(tmp_path: Path, text: str) -> None:
    path = tmp_path / "trivet.toml"
    path.write_text(text)
    with pytest.raises(InvalidInput, match="so nothing was written"):
        write_setting(path, "recipe", "rrf(k=20)")
    assert path.read_text() == text


def test_probe_rules_handle_odd_text() -> None:
    random = Random(5)
    texts = [
        '"',
        "a",
        "???",
        "E_CONN_4012",
        "don't stop",
        "日本",
        "x" * 500,
        "one. two. three; four five six seven",
        "\x1b[2J\n\n",
    ]
    for text in texts:
        memory = Memory(
            id="m",
            content=text,
            title=text,
            created_at=MOMENT,
            updated_at=MOMENT,
            tags=(text[:64],),
        )
        for rule in LITERAL.values():
            query = rule(memory, document_frequencies([memory]), random)
            assert query is None or (query.strip() and '"' not in query)
