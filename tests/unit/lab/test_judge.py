"""Pooling and judging are blind and resumable, and judgments export in the plain layout."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from support.chat_server import chat_server
from support.lab_fixtures import CANARY
from trivet.cli import main
from trivet.cli.terminal import printable
from trivet.errors import InvalidInput
from trivet.lab.datasets.judgements import (
    Record,
    agreement,
    export,
    final_grades,
    weighted_kappa,
)
from trivet.lab.datasets.judges import judge_at_terminal, judge_by_endpoint
from trivet.lab.datasets.plain_layout import load
from trivet.lab.datasets.pools import (
    MIN_REPEAT_DISTANCE,
    Pool,
    dataset_of,
    find_arms,
    make_pool,
    read_pool,
    write_pool,
)
from trivet.models.chat import Chat
from trivet.models.http import Limits

QUICK = Limits(seconds=0.3, deadline=0.5, attempts=1)


@pytest.fixture
def pool(folder: Path, runs: Path) -> Pool:
    return make_pool(
        load(folder, allow_unanswerable=True), str(folder), find_arms([runs]), depth=5, double=0.2
    )


def _once(pool: Pool) -> list[tuple[str, str]]:
    return [(entry.query, entry.document) for entry in pool.entries if not entry.again]


def test_pool_is_union_of_top_results(pool: Pool) -> None:
    wanted = {
        (f"q{query}", f"d{query + shift + rank}")
        for query in range(6)
        for shift in (0, 3)
        for rank in range(5)
    }
    assert set(_once(pool)) == wanted
    assert len(_once(pool)) == len(wanted)


def test_pool_is_blind_and_deterministic(
    pool: Pool, folder: Path, runs: Path, tmp_path: Path
) -> None:
    dataset = load(folder, allow_unanswerable=True)
    backwards = list(reversed(find_arms([runs])))
    assert make_pool(dataset, str(folder), backwards, depth=5, double=0.2) == pool
    assert (
        make_pool(dataset, str(folder), backwards, depth=5, double=0.2, seed=1).entries
        != pool.entries
    )
    write_pool(pool, tmp_path / "pool.jsonl")
    text = (tmp_path / "pool.jsonl").read_text()
    assert "rrf" not in text
    assert "default" not in text
    assert read_pool(tmp_path / "pool.jsonl") == pool
    assert _once(pool) != sorted(_once(pool))


def test_repeated_pairs_come_much_later(pool: Pool) -> None:
    again = [(place, entry) for place, entry in enumerate(pool.entries) if entry.again]
    assert len(again) == round(len(_once(pool)) * 0.2 + 0.5)
    for place, entry in again:
        first = _once(pool).index((entry.query, entry.document))
        assert place > first
        assert place - first >= MIN_REPEAT_DISTANCE or place > len(_once(pool)) - 1


def test_judged_pairs_can_be_excluded(folder: Path, runs: Path) -> None:
    dataset = load(folder, allow_unanswerable=True)
    new = make_pool(dataset, str(folder), find_arms([runs]), only_unjudged=True)
    assert ("q0", "d0") not in _once(new)


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ("q0 Q0 d0 1 0.5", "5 columns"),
        ("q9 Q0 d0 1 0.5 x", "no query 'q9'"),
        ("q0 Q0 d99 1 0.5 x", "no document 'd99'"),
        ("q0 Q0 d0 1 nan x", "score 'nan'"),
    ],
)
def test_invalid_run_error_names_line(folder: Path, tmp_path: Path, row: str, problem: str) -> None:
    (tmp_path / "run.trec").write_text(f"q0 Q0 d2 1 0.9 x\n{row}\n")
    with pytest.raises(InvalidInput, match=rf"run.trec:2: .*{problem}"):
        make_pool(load(folder, allow_unanswerable=True), str(folder), [tmp_path])


def test_folder_without_runs_and_invalid_pool_are_rejected(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"no run.trec"):
        find_arms([tmp_path])
    for text in ("", "{}\n", "no json\n"):
        (tmp_path / "pool.jsonl").write_text(text)
        with pytest.raises(InvalidInput, match="this is not a pool"):
            read_pool(tmp_path / "pool.jsonl")


def test_changed_dataset_is_rejected(pool: Pool, folder: Path) -> None:
    assert dataset_of(pool).fingerprint == pool.dataset_sha256
    (folder / "qrels.tsv").write_text("q0\td0\t3\n")
    with pytest.raises(InvalidInput, match="has changed since"):
        dataset_of(pool)


class Desk:
    """A judge whose keyboard and screen are strings."""

    def __init__(self, pool: Pool, tmp_path: Path) -> None:
        self.pool = pool
        self.path = tmp_path / "judgements.jsonl"

    def type(self, keys: str) -> str:
        out = io.StringIO()
        judge_at_terminal(
            self.pool, dataset_of(self.pool), self.record, io.StringIO(keys), out, printable
        )
        return out.getvalue()

    @property
    def record(self) -> Record:
        return Record(self.path, self.pool, "tester")


@pytest.fixture
def desk(pool: Pool, tmp_path: Path) -> Desk:
    return Desk(pool, tmp_path)


def test_keys_grade_skip_undo_and_quit(desk: Desk) -> None:
    screen = desk.type("3\n1xs?2u0q3")
    assert desk.record.grades == {0: 3, 1: 1, 3: 0}
    assert desk.record.skipped == 1
    assert screen.count("Question: ") == 7
    assert "Stopped." in screen


def test_judging_resumes_after_torn_line(desk: Desk) -> None:
    desk.type("32")
    with desk.path.open("ab") as file:
        file.write(b'{"entry":2,"gra')
    assert desk.record.next() == 2
    desk.type("1" * 1000)
    assert desk.record.next() is None
    assert len(desk.record.grades) == len(desk.pool.entries)
    assert "All pairs are judged." in desk.type("")


def test_undo_spans_one_restart_step(desk: Desk) -> None:
    desk.type("32")
    assert "nothing to undo" in desk.type("uuu1")
    assert desk.record.grades == {0: 1}


def test_multi_character_key_is_not_a_grade(desk: Desk) -> None:
    desk.type("\x1b[3~\x1bOP\x1b[1;5C2q")  # Delete, F1, Ctrl+Right, then a grade
    assert desk.record.grades == {0: 2}


def test_text_cannot_control_terminal(desk: Desk) -> None:
    screen = desk.type("0" * 1000)
    assert "Clear\\x1b[2J the \\u202escreen" in screen
    assert "A \\x07bell" in screen
    assert not {"\x1b", "\x07", "\u202e"} & set(screen)


def test_judgments_of_other_pool_are_rejected(desk: Desk) -> None:
    desk.type("3q")
    other = msgspec.structs.replace(desk.pool, entries=desk.pool.entries[::-1])
    with pytest.raises(InvalidInput, match="another pool"):
        Record(desk.path, other, "tester")


def test_invalid_record_line_is_named(desk: Desk) -> None:
    desk.type("3q")
    with desk.path.open("a") as file:
        file.write('{"entry":1,"grade":4,"judge":"x","at":""}\n')
    with pytest.raises(InvalidInput, match=r"judgements.jsonl:3: .*<= 3"):
        _ = desk.record


def test_kappa_matches_hand_computed_value() -> None:
    # Observed: of six pairs, one differs by 1 and one by 2, so (1 + 4) / 6. Firsts: 0 0 1 2 3 3,
    # seconds: 0 1 1 2 3 1. Expected, over all 36 combinations: sum of (first - second)^2 = 6 * 23 +
    # 6 * 16 - 2 * 9 * 8 = 90, so 90 / 36.
    pairs = [(0, 0), (0, 1), (1, 1), (2, 2), (3, 3), (3, 1)]
    assert weighted_kappa(pairs) == pytest.approx(1 - (5 / 6) / (90 / 36))


def test_kappa_limits_and_undefined_cases() -> None:
    assert weighted_kappa([(0, 0), (3, 3), (1, 1)]) == 1
    assert weighted_kappa([(0, 3), (3, 0)]) == -1
    assert weighted_kappa([(2, 2), (2, 2)]) is None
    assert weighted_kappa([]) is None


def test_agreement_uses_repeated_pairs(pool: Pool) -> None:
    steady = {place: int(entry.document[1:]) % 4 for place, entry in enumerate(pool.entries)}
    result = agreement(pool, steady)
    assert (result.pairs, result.same, result.kappa) == (
        sum(entry.again for entry in pool.entries),
    ) * 2 + (1,)
    half = {place: grade for place, grade in steady.items() if not pool.entries[place].again}
    assert agreement(pool, half).pairs == 0


def test_lower_of_two_grades_is_final(pool: Pool) -> None:
    place = next(place for place, entry in enumerate(pool.entries) if entry.again)
    pair = (pool.entries[place].query, pool.entries[place].document)
    first = next(n for n, entry in enumerate(pool.entries) if (entry.query, entry.document) == pair)
    assert final_grades(pool, {first: 3, place: 1}) == {pair: 1}
    assert final_grades(pool, {first: 0, place: 2}) == {pair: 0}


def test_export_replaces_rejudged_pairs_and_keeps_others(desk: Desk, tmp_path: Path) -> None:
    desk.type("2" * 1000)
    result = export(dataset_of(desk.pool), desk.pool, desk.record.grades, tmp_path / "judged")
    assert (result.changed, result.kept, result.confirmed) == (1, 1, 0)
    grades = load(tmp_path / "judged").grades
    assert grades["q0"]["d0"] == 2
    assert grades["q5"]["d29"] == 2
    assert sum(map(len, grades.values())) == len(_once(desk.pool)) + 1
    with pytest.raises(InvalidInput, match="not empty"):
        export(dataset_of(desk.pool), desk.pool, desk.record.grades, tmp_path / "judged")
    with pytest.raises(InvalidInput, match="Nothing is judged"):
        export(dataset_of(desk.pool), desk.pool, {}, tmp_path / "other")


def _grades(content: Any) -> str:
    return json.dumps({"grades": [{"text": one["text"], "grade": 1} for one in content["texts"]]})


def test_model_judge_sees_no_sensitive_text_or_arms(desk: Desk) -> None:
    record = desk.record
    with chat_server(_grades) as server:
        left = judge_by_endpoint(Chat(server.spec), desk.pool, dataset_of(desk.pool), record)
    secret = [place for place, entry in enumerate(desk.pool.entries) if entry.document == "d1"]
    assert secret
    assert left == {"sensitive: never sent": len(secret)}
    assert set(record.grades) == set(range(len(desk.pool.entries))) - set(secret)
    assert not any(word in body for body in server.bodies for word in (CANARY, "rrf", "default"))
    assert desk.record.grades == record.grades


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("three out of three", "not JSON"),
        ('{"grades": [{"text": 1, "grade": 9}]}', "requested shape"),
        ('{"grades": [{"text": 1, "grade": true}]}', "requested shape"),
        ('{"grades": [{"text": "1", "grade": 1}]}', "requested shape"),
        (None, "no answer"),
    ],
)
def test_failing_model_judge_is_given_up(desk: Desk, answer: str | None, reason: str) -> None:
    record = desk.record
    with chat_server(lambda _: answer) as server:
        left = judge_by_endpoint(Chat(server.spec, QUICK), desk.pool, dataset_of(desk.pool), record)
    assert record.grades == {}
    assert sum(left.values()) == len(desk.pool.entries)
    assert any(reason in one for one in left)
    assert len(server.bodies) == 3


def test_ungraded_batch_items_are_asked_singly(
    desk: Desk,
) -> None:
    record = desk.record
    with chat_server(
        lambda content: f"Sure! ```json\n{_grades({'texts': content['texts'][:1]})}\n```\nDone."
    ) as server:
        left = judge_by_endpoint(Chat(server.spec), desk.pool, dataset_of(desk.pool), record)
    assert set(left) == {"sensitive: never sent"}
    assert len(record.grades) + left["sensitive: never sent"] == len(desk.pool.entries)
    sent = [
        json.loads(json.loads(body)["messages"][1]["content"])["texts"] for body in server.bodies
    ]
    assert sum(len(texts) == 1 for texts in sent) > sum(len(texts) > 1 for texts in sent) > 0


def test_pool_judge_and_export_commands(
    folder: Path,
    runs: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    pool = str(tmp_path / "pool.jsonl")
    assert (
        main(["lab", "pool", str(folder), str(runs), "--out", pool, "--depth", "3", "--json"]) == 0
    )
    made = msgspec.json.decode(capsys.readouterr().out)
    with chat_server(lambda _: "no JSON") as server:  # a judge that leaves pairs open must fail
        assert main(["lab", "judge", pool, "--llm", server.spec]) == 1
    assert "Not judged" in capsys.readouterr().out
    monkeypatch.setattr(sys, "stdin", io.StringIO("31" * 500))
    assert main(["lab", "judge", pool]) == 0
    shown = capsys.readouterr()
    assert f"{made['pairs'] + made['judged_twice']} of" in shown.out
    assert "Question: " in shown.err
    assert main(["lab", "judge", pool, "--show", "--json"]) == 0
    assert (
        msgspec.json.decode(capsys.readouterr().out)["agreement"]["pairs"] == made["judged_twice"]
    )
    assert main(["lab", "judge", pool, "--export", str(tmp_path / "judged")]) == 0
    assert "judgments added" in capsys.readouterr().out
    assert len(load(tmp_path / "judged").judgements) >= made["pairs"]
