"""Tuning works on a whole store, from its probes to the settings file."""

from __future__ import annotations

import json
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from support.chat_server import chat_server
from support.lab_fixtures import CANARY, SMALL
from trivet import Trivet
from trivet.analyse import analyse
from trivet.cli import main
from trivet.errors import Conflict, InvalidInput, NotFound, StoreError
from trivet.lab.tune import adopt
from trivet.lab.tune.adopt import tune_folder
from trivet.lab.tune.probes import (
    Probe,
    feedback_file,
    make_probes,
    paraphrase,
    relatives_of,
    sample,
    usable_memories,
)
from trivet.lab.tune.query_rules import LITERAL, REWORDED, document_frequencies
from trivet.lab.tune.search import SearchSpace
from trivet.lab.tune.tuning import Tuning, Validation, assign_folds
from trivet.models.chat import Chat
from trivet.models.http import Limits
from trivet.search.recipe import parse_recipe
from trivet.settings import Settings, config_path
from trivet.types import Memory

Run = tuple[Path, Tuning, Validation, list[int]]
# The command's minimum, which gives enough probes of each kind.
MIN_PROBES = 50


@pytest.fixture(scope="module")
def tuned(filled: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """One run over a copy of the store, with its progress reports."""
    folder = tmp_path_factory.mktemp("tuned")
    shutil.copytree(filled.parent, folder, dirs_exist_ok=True)
    path = folder / filled.name
    with Trivet.open(settings=Settings(path=str(path), background=False, changes="off")) as memory:
        tuning = Tuning(memory.engine, space=SMALL, most_memories=MIN_PROBES)
        done: list[int] = []
        yield path, tuning, tuning.run(done.append), done


def test_each_fold_is_judged_by_a_recipe_chosen_without_it(tuned: Run) -> None:
    _, tuning, found, done = tuned
    folds = assign_folds(tuning.plan.probes, 5, seed=0)
    sizes = [sum(fold == number for fold in folds.values()) for number in range(5)]
    assert max(sizes) - min(sizes) <= 1
    assert sum(done) <= tuning.plan.candidates * len(tuning.plan.probes)
    assert len(found.by_fold) == 5
    assert {gain.kind for gain in found.by_kind} == {probe.kind for probe in tuning.plan.probes}
    assert not found.passed  # the default is good: no recipe here gains 3 % without breaking a case


def test_kept_files_are_private(tuned: Run) -> None:
    store, tuning, found, _ = tuned
    folder = adopt.save_results(store, tuning.plan, found)
    assert folder == tune_folder(store)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    files = sorted(folder.iterdir())
    assert [file.name for file in files] == ["probes.jsonl", "result.json"]
    assert all(stat.S_IMODE(file.stat().st_mode) == 0o600 for file in files)
    assert all(CANARY not in file.read_text(encoding="utf-8") for file in files)
    kept = [
        msgspec.json.decode(row, type=Probe)
        for row in files[0].read_text(encoding="utf-8").splitlines()
    ]
    assert tuple(kept) == tuning.plan.probes


@pytest.fixture
def small_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limit the commands to fewer values to save time."""
    monkeypatch.setattr("trivet.lab.tune.tuning.SearchSpace", lambda: TINY)


TINY = SearchSpace(
    norms=("zscore",),
    dense_weights=(0.5,),
    spread_dense_weights=(8,),
    graph_weights=(8,),
    ks=(),
    bs=(),
    depths=(50,),
    bonuses=(),
)


@pytest.mark.usefixtures("small_grid")
def test_command_adopts_proven_recipe_and_rolls_back(
    store: Path, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config.parent.mkdir(parents=True)
    poor = str(parse_recipe("rrf(k=1000, dense=0.9, lexical=0.1)"))
    config.write_text(f'recipe = "{poor}"  # hardly listens to words\n')
    assert main(["--path", str(store), "tune", "--memories", str(MIN_PROBES), "--json"]) == 0
    found = msgspec.json.decode(capsys.readouterr().out)
    assert found["passed"], found["gate"]
    assert found["applied"] is None
    assert poor in config.read_text()
    assert main(["--path", str(store), "tune", "--memories", str(MIN_PROBES), "--apply"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("Plan")
    assert "Adopted in" in shown
    assert "convex(norm=spread" in config.read_text()
    assert config.read_text().endswith("# hardly listens to words\n")
    assert main(["--path", str(store), "tune", "--rollback"]) == 0
    assert poor in config.read_text()


@pytest.mark.usefixtures("small_grid")
def test_command_changes_nothing_without_proof(
    store: Path, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--path", str(store), "tune", "--memories", str(MIN_PROBES), "--apply"]) == 1
    assert "Adopted in" not in capsys.readouterr().out
    assert not config.exists()
    assert main(["--path", str(store), "tune", "--apply", "--rollback"]) == 2


QUICK = Limits(seconds=0.3, deadline=0.5, attempts=1)


def _probes(memory: Trivet, seed: int = 0) -> tuple[list[Probe], dict[str, Memory]]:
    usable = {one.id: one for one in usable_memories(memory.engine)}
    chosen = sample(list(usable.values()), 200, seed)
    relatives = relatives_of(memory.engine, chosen, usable)
    return make_probes(chosen, relatives, document_frequencies(usable.values()), seed), usable


def test_same_seed_gives_the_same_probes_of_many_kinds(memory: Trivet) -> None:
    probes, usable = _probes(memory)
    assert probes == _probes(memory)[0]
    assert [probe.query for probe in probes] != [
        probe.query for probe in _probes(memory, seed=1)[0]
    ]
    kinds = {probe.kind for probe in probes}
    assert kinds == {REWORDED, *LITERAL}
    assert all(
        probe.grades[probe.memory] == 3 and set(probe.grades) <= set(usable) for probe in probes
    )
    assert any(1 in probe.grades.values() for probe in probes)  # linked memories get a low grade
    assert not any('"' in probe.query for probe in probes)


def test_near_duplicates_grade_high_and_share_a_fold(memory: Trivet) -> None:
    text = (
        "The lighthouse lamp in Bergen is serviced every second Tuesday by Ingrid and her brother."
    )
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
            assert not {term for text in texts for term in analyse(text)} & set(
                analyse(probe.query)
            )


def test_titles_are_not_whole_queries(memory: Trivet) -> None:
    probes, usable = _probes(memory)
    titles = {
        (usable[probe.memory].title or "").lower() for probe in probes if probe.kind == "title"
    }
    assert titles
    assert not titles & {probe.query.lower() for probe in probes}


def test_script_without_spaces_gives_probes(memory: Trivet) -> None:
    id = memory.remember("新宿の事務所の鍵は山田さんが持っています。水曜日は閉まっています。").id
    probes, _ = _probes(memory)
    assert any(probe.memory == id and probe.kind == "words" for probe in probes)


def test_sampling_keeps_the_proportions(memory: Trivet) -> None:
    usable = usable_memories(memory.engine)
    chosen = sample(usable, len(usable) // 2, seed=3)
    assert len({one.id for one in chosen}) == len(usable) // 2
    for scope in {one.scope for one in usable}:
        share = sum(one.scope == scope for one in usable) / len(usable)
        assert abs(sum(one.scope == scope for one in chosen) / len(chosen) - share) < 0.05


def test_half_embedded_store_is_refused(memory: Trivet) -> None:
    memory.remember("This one waits for its vector.")
    with pytest.raises(InvalidInput, match="not embedded yet"):
        Tuning(memory.engine, space=SMALL)


def test_without_an_embedder_only_words_are_tuned(store: Path) -> None:
    with Trivet.open(store, embedder="none") as words_only:
        tuning = Tuning(
            words_only.engine, space=SearchSpace(bs=(0.75,), depths=(20,), bonuses=(0.1,))
        )
        assert tuning.plan.candidates == 1 + 6 * 3
        assert parse_recipe(tuning.run().recipe).fusion == words_only.engine.recipe.fusion


def test_feedback_becomes_probes_of_its_own_kind(memory: Trivet, store: Path) -> None:
    id = usable_memories(memory.engine)[0].id
    feedback_file(store).write_text(
        json.dumps({"query": "my real question", "id": id, "useful": True}) + "\n"
    )
    assert Tuning(memory.engine, space=SMALL).plan.kinds["feedback"] == 1


def _questions(notes: Any) -> str:
    return json.dumps(
        {"questions": [{"note": note["note"], "question": "What was it about?"} for note in notes]}
    )


def test_model_writes_better_questions_without_sensitive_text(memory: Trivet) -> None:
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
        ('{"questions": "all of them"}', "the answer does not have the requested shape"),
        (
            '{"questions": [{"note": "1", "question": 7}]}',
            "the answer does not have the requested shape",
        ),
        ("[" * 100_000, "the answer is not JSON"),
        (None, "no answer"),
    ],
)
def test_bad_answers_skip_their_memories_and_are_counted(
    memory: Trivet, answer: str | None, reason: str
) -> None:
    _, usable = _probes(memory)
    few = list(usable.values())[:30]
    relatives = relatives_of(memory.engine, few, usable)
    with chat_server(lambda _: answer) as server:
        written = paraphrase(Chat(server.spec, QUICK), few, relatives)
    assert written.probes == ()
    assert sum(written.skipped.values()) == 30
    assert any(reason in one for one in written.skipped)
    assert len(server.bodies) == 3  # then the run gives up


def test_hostile_answer_is_cleaned_or_dropped(memory: Trivet) -> None:
    _, usable = _probes(memory)
    few = list(usable.values())[:4]
    relatives = relatives_of(memory.engine, few, usable)
    with chat_server(lambda _: f"```json\n{HOSTILE}\n```") as server:
        written = paraphrase(Chat(server.spec, QUICK), few, relatives)
    assert [probe.query for probe in written.probes] == ["[2J where is it kept?"]
    assert written.skipped == {"no usable question": 3}


ORIGINAL = "# my settings\r\nscope = \"me\"   # keep\r\n\r\nrecipe = 'rrf(k=60)'  # tried in May\r\nbackground = false"


def test_apply_and_rollback_keep_all_other_bytes(store: Path, config: Path) -> None:
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
def test_rollback_leaves_no_recipe_where_none_was_set(
    store: Path, config: Path, before: str | None
) -> None:
    if before is not None:
        config.parent.mkdir(parents=True)
        config.write_text(before)
    adopt.apply(store, "rrf(k=20)")
    assert Trivet.open(store, embedder="none").settings.recipe == "rrf(k=20)"
    adopt.roll_back(store)
    assert config.read_text().rstrip("\n") == (before or "").rstrip("\n")


def test_linked_settings_file_stays_a_link(store: Path, config: Path, tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.toml"
    real.write_text('scope = "me"\n')
    config.parent.mkdir(parents=True)
    config.symlink_to(real)
    adopt.apply(store, "rrf(k=20)")
    assert config.is_symlink()
    assert 'recipe = "rrf(k=20)"' in real.read_text()


def test_recipe_changed_by_hand_is_not_rolled_back(store: Path, config: Path) -> None:
    adopt.apply(store, "rrf(k=20)")
    config.write_text('recipe = "rrf(k=7)"\n')
    with pytest.raises(Conflict, match="changed since"):
        adopt.roll_back(store)
    assert config.read_text() == 'recipe = "rrf(k=7)"\n'


def test_apply_reports_an_overriding_environment(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRIVET_RECIPE", "default")
    with pytest.raises(InvalidInput, match="TRIVET_RECIPE"):
        adopt.apply(store, "rrf(k=20)")


def test_link_in_place_of_the_private_folder_is_refused(store: Path, tmp_path: Path) -> None:
    (tmp_path / "public").mkdir()
    tune_folder(store).symlink_to(tmp_path / "public")
    with pytest.raises(StoreError, match="is a link or not a folder"):
        adopt.apply(store, "rrf(k=20)")
    assert not list((tmp_path / "public").iterdir())
    assert not config_path().exists()
