"""Tuning on a real store: what probes are made of, what is adopted and what is refused, and the way back."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from random import Random
from typing import Any

import pytest

from support.chat_server import chat_server
from support.lab_fixtures import CANARY, SMALL
from trivet import Trivet
from trivet.analyse import analyse
from trivet.errors import Conflict, InvalidInput, NotFound, StoreError
from trivet.lab.measures import Measured
from trivet.lab.tune import adopt
from trivet.lab.tune.adopt import tune_folder, write_setting
from trivet.lab.tune.feedback import feedback_file, feedback_probes, read_feedback
from trivet.lab.tune.paraphrase import paraphrase
from trivet.lab.tune.probes import Probe, make_probes, relatives_of, sample, usable_memories
from trivet.lab.tune.rules import LITERAL, REWORDED, commonness, equivalents
from trivet.lab.tune.search import Space, held, worth
from trivet.lab.tune.tuning import Tuning, judged
from trivet.models.chat import Chat
from trivet.models.http import Limits
from trivet.search.recipe import parse_recipe
from trivet.settings import config_path
from trivet.types import Memory

QUICK = Limits(seconds=0.3, deadline=0.5, attempts=1)


def _probes(memory: Trivet, seed: int = 0) -> tuple[list[Probe], dict[str, Memory]]:
    usable = {one.id: one for one in usable_memories(memory.engine)}
    chosen = sample(list(usable.values()), 200, seed)
    relatives = relatives_of(memory.engine, chosen, usable)
    return make_probes(chosen, relatives, commonness(usable.values()), seed), usable


def test_probes_are_the_same_for_the_same_seed_and_of_many_kinds(memory: Trivet) -> None:
    probes, usable = _probes(memory)
    assert probes == _probes(memory)[0]
    assert [probe.query for probe in probes] != [probe.query for probe in _probes(memory, seed=1)[0]]
    kinds = {probe.kind for probe in probes}
    assert kinds == {REWORDED, *LITERAL}
    assert all(probe.grades[probe.memory] == 3 and set(probe.grades) <= set(usable) for probe in probes)
    assert any(1 in probe.grades.values() for probe in probes)  # linked ones count a little
    assert not any('"' in probe.query for probe in probes)


def test_near_duplicates_are_nearly_as_good_and_stay_in_one_fold(memory: Trivet) -> None:
    text = "The lighthouse lamp in Bergen is serviced every second Tuesday by Ingrid and her brother."
    one = memory.remember(text).id
    other = memory.remember(text.replace("brother", "sister")).id
    usable = {each.id: each for each in usable_memories(memory.engine)}
    relatives = relatives_of(memory.engine, [usable[one], usable[other]], usable)
    assert relatives[one].grades == {one: 3, other: 2}
    assert relatives[one].group == relatives[other].group


def test_reworded_probes_share_no_word_with_their_memory(memory: Trivet) -> None:
    probes, usable = _probes(memory)
    for probe in probes:
        if probe.kind == REWORDED:
            found = usable[probe.memory]
            texts = (found.content, found.title or "", *found.tags, *found.expanded_keywords)
            assert not {term for text in texts for term in analyse(text)} & set(analyse(probe.query))


def test_synonyms_never_have_the_stem_of_the_word() -> None:
    assert "db" in equivalents("databases")
    assert "config" in equivalents("configuration")
    assert equivalents("xylophone") == ()
    assert all(analyse(other) != analyse("deleted") for other in equivalents("deleted"))


def test_titles_are_not_asked_for_whole(memory: Trivet) -> None:
    probes, usable = _probes(memory)
    titles = {(usable[probe.memory].title or "").lower() for probe in probes if probe.kind == "title"}
    assert titles
    assert not titles & {probe.query.lower() for probe in probes}


def test_a_memory_in_a_script_without_spaces_gives_probes(memory: Trivet) -> None:
    id = memory.remember("新宿の事務所の鍵は山田さんが持っています。水曜日は閉まっています。").id
    probes, _ = _probes(memory)
    assert any(probe.memory == id and probe.kind == "words" for probe in probes)


def test_sampling_keeps_the_shares(memory: Trivet) -> None:
    usable = usable_memories(memory.engine)
    chosen = sample(usable, len(usable) // 2, seed=3)
    assert len({one.id for one in chosen}) == len(usable) // 2
    for scope in {one.scope for one in usable}:
        share = sum(one.scope == scope for one in usable) / len(usable)
        assert abs(sum(one.scope == scope for one in chosen) / len(chosen) - share) < 0.05


def test_too_few_memories_is_a_lesson_and_not_a_result(tmp_path: Path) -> None:
    with Trivet.open(tmp_path / "few.db", embedder="none") as few:
        few.remember("The only one.")
        with pytest.raises(InvalidInput, match="tuning needs 50"):
            Tuning(few.engine)


def test_a_store_half_embedded_is_refused(memory: Trivet) -> None:
    memory.remember("This one waits for its vector.")
    with pytest.raises(InvalidInput, match="not embedded yet"):
        Tuning(memory.engine, space=SMALL)


def test_without_an_embedder_only_words_are_tuned(store: Path) -> None:
    with Trivet.open(store, embedder="none") as words_only:
        tuning = Tuning(words_only.engine, space=Space(bs=(0.75,), depths=(20,), bonuses=(0.1,)))
        assert tuning.plan.candidates == 1 + 6 * 3
        assert parse_recipe(tuning.run().recipe).fusion == words_only.engine.recipe.fusion


def test_the_two_halves_count_alike() -> None:
    assert worth({"words": 1.0, "cloze": 0.5, "title": 0.0, REWORDED: 0.1}) == pytest.approx((0.5 + 0.1) / 2)
    assert worth({REWORDED: 0.1}) == pytest.approx(0.1)


def test_a_kind_may_lose_what_its_number_cannot_tell() -> None:
    assert held([0.5, 0.5], [0.5, 0.5])
    assert held([1.0, 0.0, 0.5], [0.5, 0.4, 0.5])  # loses 0.03, give or take 0.26
    assert not held([0.5] * 20, [0.49] * 20)
    assert not held([1.0], [0.9])


def _measured(values: dict[str, float]) -> Measured:
    names = ("recall@5", "recall@10", "nDCG@10", "MRR", "any@5", "all@5")
    kinds = {kind: tuple(id for id in values if id.startswith(kind)) for kind in ("words", REWORDED)}
    return Measured(per_query=dict.fromkeys(names, values), overall={}, by_stratum={}, strata=kinds)


def _made_up(kind: str, number: int) -> Probe:
    id = f"{kind}:{number}"
    return Probe(id=id, query="?", kind=kind, memory=str(number), group=str(number), grades={str(number): 3})


def test_the_gate_refuses_a_candidate_that_loses() -> None:
    probes = [_made_up(kind, number) for kind in ("words", REWORDED) for number in range(60)]
    base = {probe.id: 0.5 for probe in probes}
    better = {id: value + 0.1 for id, value in base.items()}
    one_sided = {id: value + 0.3 if id.startswith("words") else value - 0.05 for id, value in base.items()}
    worse = {id: value - 0.1 for id, value in base.items()}
    breaking = {**better, "words:0": 0.0}
    assert judged(_measured(base), _measured(better), probes, "r").passed
    lost = judged(_measured(base), _measured(one_sided), probes, "r")
    assert lost.gate.passed
    assert not lost.passed
    assert all(one.startswith(REWORDED) for one in lost.losing)
    assert not judged(_measured(base), _measured(worse), probes, "r").passed
    assert judged(_measured(base), _measured(breaking), probes, "r").gate.broken == ("words:0",)


def test_feedback_counts_the_last_word_and_only_what_is_there(tmp_path: Path) -> None:
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
    assert [(probe.query, probe.grades) for probe in given.probes] == [("which port", {"a": 3, "b": 0})]
    assert sorted(given.skipped.values()) == [1, 1]


def test_bad_feedback_names_its_line(tmp_path: Path) -> None:
    path = tmp_path / "feedback.jsonl"
    path.write_text('{"query": "q", "id": "a", "useful": true}\n{"query": "q", "id": "a", "useful": "yes"}\n')
    with pytest.raises(InvalidInput, match=r"feedback.jsonl:2: useful"):
        read_feedback(path)


def test_feedback_becomes_probes_of_its_own_kind(memory: Trivet, store: Path) -> None:
    id = usable_memories(memory.engine)[0].id
    feedback_file(store).write_text(json.dumps({"query": "my real question", "id": id, "useful": True}) + "\n")
    assert Tuning(memory.engine, space=SMALL).plan.kinds["feedback"] == 1


def _questions(notes: Any) -> str:
    return json.dumps({"questions": [{"note": note["note"], "question": "What was it about?"} for note in notes]})


def test_a_model_asks_better_questions_and_never_sees_what_is_sensitive(memory: Trivet) -> None:
    with chat_server(_questions) as server:
        tuning = Tuning(memory.engine, space=SMALL, chat=Chat(server.spec))
    assert tuning.plan.kinds["paraphrase"] == len({probe.memory for probe in tuning.plan.probes})
    assert server.bodies
    assert not any(CANARY in body for body in server.bodies)
    assert not any(CANARY in probe.query for probe in tuning.plan.probes)
    assert not any(memory.get(probe.memory).sensitive for probe in tuning.plan.probes)


HOSTILE = json.dumps(
    {
        "questions": [
            {"note": 1, "question": '\x1b[2J\u202ewhere "is" it kept?\n\n'},
            {"note": 2, "question": "x" * 100_000},
            {"note": 99, "question": "Which one is that?"},
            {"note": 3, "question": "  "},
        ]
    }
)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("no JSON at all", "the answer is not JSON"),
        ('{"questions": "all of them"}', "the answer has another shape than asked for"),
        ('{"questions": [{"note": "1", "question": 7}]}', "the answer has another shape than asked for"),
        ("[" * 100_000, "the answer is not JSON"),
        (None, "no answer"),
    ],
)
def test_bad_answers_cost_their_memories_and_are_counted(memory: Trivet, answer: str | None, reason: str) -> None:
    _, usable = _probes(memory)
    few = list(usable.values())[:30]
    relatives = relatives_of(memory.engine, few, usable)
    with chat_server(lambda _: answer) as server:
        written = paraphrase(Chat(server.spec, QUICK), few, relatives)
    assert written.probes == ()
    assert sum(written.skipped.values()) == 30
    assert any(reason in one for one in written.skipped)
    assert len(server.bodies) == 3  # then it gives up


def test_a_hostile_answer_is_cleaned_or_dropped(memory: Trivet) -> None:
    _, usable = _probes(memory)
    few = list(usable.values())[:4]
    relatives = relatives_of(memory.engine, few, usable)
    with chat_server(lambda _: f"```json\n{HOSTILE}\n```") as server:
        written = paraphrase(Chat(server.spec, QUICK), few, relatives)
    assert [probe.query for probe in written.probes] == ["[2J where is it kept?"]
    assert written.skipped == {"no usable question": 3}


def test_keys_go_where_they_belong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-openai")
    monkeypatch.setenv("TRIVET_EMBED_API_KEY", "embed-key")
    with chat_server(lambda _: "{}") as server:
        Chat(server.spec).ask("say", [])
        monkeypatch.setenv("TRIVET_LLM_API_KEY", "own-key")
        Chat(server.spec).ask("say", [])
    assert server.keys == [None, "Bearer own-key"]


@pytest.mark.parametrize("spec", ["bundled", "cohere:x", "gpt-4", "openai:m@http://me:secret@host/v1", "openai:"])
def test_a_bad_endpoint_is_told_without_repeating_a_password(spec: str) -> None:
    with pytest.raises(InvalidInput, match="openai:MODEL@http") as caught:
        Chat(spec)
    assert "secret" not in str(caught.value)


ORIGINAL = "# my settings\r\nscope = \"me\"   # keep\r\n\r\nrecipe = 'rrf(k=60)'  # tried in May\r\nbackground = false"


def test_apply_and_rollback_leave_every_other_byte(store: Path, config: Path) -> None:
    config.parent.mkdir(parents=True)
    config.write_bytes(ORIGINAL.encode())
    config.chmod(0o640)
    adopt.apply(store, "rrf(k=20)")
    assert config.read_bytes().decode() == ORIGINAL.replace("'rrf(k=60)'", '"rrf(k=20)"')
    assert stat.S_IMODE(config.stat().st_mode) == 0o640
    adopt.apply(store, "rrf(k=10)")
    assert adopt.roll_back(store).after == "rrf(k=20)"
    assert adopt.roll_back(store).after == "rrf(k=60)"
    assert config.read_bytes().decode() == ORIGINAL.replace("'rrf(k=60)'", '"rrf(k=60)"')
    with pytest.raises(NotFound, match="no tuning"):
        adopt.roll_back(store)


@pytest.mark.parametrize("before", [None, "", '# only a remark\nscope = "me"\n', 'scope = "me"'])
def test_where_no_recipe_was_set_none_is_left(store: Path, config: Path, before: str | None) -> None:
    if before is not None:
        config.parent.mkdir(parents=True)
        config.write_text(before)
    adopt.apply(store, "rrf(k=20)")
    assert Trivet.open(store, embedder="none").settings.recipe == "rrf(k=20)"
    adopt.roll_back(store)
    assert config.read_text().rstrip("\n") == (before or "").rstrip("\n")


def test_a_link_to_the_settings_stays_a_link(store: Path, config: Path, tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.toml"
    real.write_text('scope = "me"\n')
    config.parent.mkdir(parents=True)
    config.symlink_to(real)
    adopt.apply(store, "rrf(k=20)")
    assert config.is_symlink()
    assert 'recipe = "rrf(k=20)"' in real.read_text()


def test_a_recipe_changed_by_hand_is_not_rolled_back(store: Path, config: Path) -> None:
    adopt.apply(store, "rrf(k=20)")
    config.write_text('recipe = "rrf(k=7)"\n')
    with pytest.raises(Conflict, match="changed since"):
        adopt.roll_back(store)
    assert config.read_text() == 'recipe = "rrf(k=7)"\n'


@pytest.mark.parametrize(
    "text", ['recipe = """\nrrf(k=60)"""\n', 'scope = """\nrecipe = "a"\n"""\n', '"\\u0072ecipe" = "rrf"\n']
)
def test_a_file_that_cannot_be_changed_safely_is_left_alone(tmp_path: Path, text: str) -> None:
    path = tmp_path / "trivet.toml"
    path.write_text(text)
    with pytest.raises(InvalidInput, match="Put this into it"):
        write_setting(path, "recipe", "rrf(k=20)")
    assert path.read_text() == text


def test_apply_says_when_the_environment_would_win(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIVET_RECIPE", "default")
    with pytest.raises(InvalidInput, match="TRIVET_RECIPE"):
        adopt.apply(store, "rrf(k=20)")


def test_a_link_in_the_place_of_the_private_folder_is_refused(store: Path, tmp_path: Path) -> None:
    (tmp_path / "public").mkdir()
    tune_folder(store).symlink_to(tmp_path / "public")
    with pytest.raises(StoreError, match="not a folder of its own"):
        adopt.apply(store, "rrf(k=20)")
    assert not list((tmp_path / "public").iterdir())
    assert not config_path().exists()


def test_random_words_never_crash_a_rule() -> None:
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
        memory = Memory(id="m", content=text, title=text, created_at="", updated_at="", tags=(text[:64],))
        for rule in LITERAL.values():
            query = rule(memory, commonness([memory]), random)
            assert query is None or (query.strip() and '"' not in query)
