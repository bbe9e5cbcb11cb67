"""`tidy` finds, forgets, and restores memories, and leaves the rest untouched."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from support.command_line import CommandLine
from trivet import InvalidInput, Trivet
from trivet.sources.files import ingest
from trivet.types import Tidy


def found(done: Tidy, kind: str) -> dict[str, str]:
    return {finding.id: finding.act for finding in done.findings if finding.kind == kind}


def days_ago(days: int) -> str:
    return (datetime.now(UTC) - timedelta(days=days)).isoformat()


def test_dry_run_changes_nothing(memory: Trivet) -> None:
    memory.remember("The gate opens at nine.")
    second = memory.remember("the gate opens at NINE").id
    done = memory.tidy()
    assert found(done, "duplicate") == {second: "forget"}
    assert (done.dry_run, done.forgotten, memory.list().total) == (True, 0, 2)


def test_duplicates_are_forgotten_and_can_be_restored(memory: Trivet) -> None:
    first = memory.remember("The gate opens at nine.").id
    copies = {memory.remember("The gate opens at nine!").id for _ in range(2)}
    done = memory.tidy(dry_run=False)
    assert done.forgotten == 2
    assert [one.id for one in memory.list().memories] == [first]
    memory.tidy(undo=True)
    assert {one.id for one in memory.list().memories} == {first, *copies}
    assert memory.tidy(undo=True).notes == ("They were all restored before.",)


def test_most_important_duplicate_is_kept(memory: Trivet) -> None:
    memory.remember("The gate opens at nine.")
    kept = memory.remember("The gate opens at nine.", importance=0.9).id
    memory.tidy(dry_run=False)
    assert [one.id for one in memory.list().memories] == [kept]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"content": "The gate opens at nine."}, {"content": "The gate opens at ten."}),
        ({"content": "The gate opens."}, {"content": "The gate never opens."}),
        ({"content": "The gate opens."}, {"content": "The gate opens.", "scope": "elsewhere"}),
        ({"content": "The gate opens."}, {"content": "The gate opens.", "title": "In winter"}),
        (
            {"content": "The gate opens."},
            {"content": "The gate opens.", "valid_from": "2020-01-01"},
        ),
        (
            {"content": "The gate opens.", "sensitive": True},
            {"content": "The gate opens.", "sensitive": True},
        ),
    ],
)
def test_differing_memories_are_not_duplicates(
    memory: Trivet, one: dict[str, object], other: dict[str, object]
) -> None:
    memory.remember_many([one, other])
    assert memory.tidy().findings == ()


def test_expired_memory_is_forgotten(memory: Trivet) -> None:
    gone = memory.remember("The bridge is closed.", valid_to=days_ago(3)).id
    memory.remember("The bridge is open.", valid_to=days_ago(-3))
    assert found(memory.tidy(dry_run=False), "expired") == {gone: "forget"}
    assert memory.get(gone).state == "deleted"


def test_linked_memory_is_only_reported(memory: Trivet) -> None:
    old, new = (
        memory.remember("The bridge is open.").id,
        memory.remember("Closed.", valid_to=days_ago(1)).id,
    )
    memory.link(new, "supersedes", old)
    done = memory.tidy(dry_run=False)
    assert found(done, "expired") == {new: "look"}
    assert memory.get(new).state == "active"
    assert memory.get(old).state == "superseded"


def test_unused_is_reported_only_after_long_counting(memory: Trivet) -> None:
    memory.remember("Old and unasked for.", created_at=days_ago(400))
    done = memory.tidy(kinds=["unused"])
    assert done.findings == ()
    assert "counted" in done.notes[0]


def test_unused_is_forgotten_only_on_request(memory: Trivet) -> None:
    old = memory.remember("Old and unasked for.", created_at=days_ago(400)).id
    shown = memory.remember("Lamps are green.", created_at=days_ago(400)).id
    memory.remember("Old and dear.", created_at=days_ago(400), importance=0.9)
    memory.remember("New.")
    memory.recall("lamps")
    memory.usage(shown)  # Flushes the counts.
    _set_counting_start(memory, days_ago(300))
    assert found(memory.tidy(), "unused") == {old: "look"}
    memory.tidy(dry_run=False)
    assert memory.get(old).state == "active"
    memory.tidy(dry_run=False, kinds=["unused"])
    assert memory.get(old).state == "deleted"
    assert memory.get(shown).state == "active"


def test_unhelpful_is_forgotten_only_on_request(memory: Trivet) -> None:
    ids = [
        memory.remember(text).id
        for text in ("The lamp is green.", "The lamp is blue.", "The lamp is dear.")
    ]
    for query in ("lamp", "which lamp"):
        memory.feedback(ids[0], "not-useful", query=query)
        memory.feedback(ids[1], "not-useful", query=query)
    memory.feedback(ids[1], "useful", query="what is blue")
    memory.feedback(ids[2], "not-useful", query="lamp")
    assert found(memory.tidy(), "unhelpful") == {ids[0]: "look"}
    memory.tidy(dry_run=False)
    assert memory.get(ids[0]).state == "active"
    done = memory.tidy(dry_run=False, kinds=["unhelpful"])
    assert done.findings[0].reason == "called not useful 2 times, and never useful"
    assert memory.get(ids[0]).state == "deleted"
    memory.tidy(undo=True)
    assert memory.get(ids[0]).state == "active"


def test_often_shown_is_unhelpful_only_with_enough_feedback(
    memory: Trivet,
) -> None:
    often = memory.remember("Bananas are bent.").id
    important = memory.remember("Bananas are yellow.", importance=0.9).id
    useful = [memory.remember(f"Fact number {number} of many.").id for number in range(10)]
    memory.engine.store.usage.note({often: 30, important: 30, useful[0]: 29})
    assert found(memory.tidy(), "unhelpful") == {}  # Too little feedback to compare with.
    for id in useful[1:]:
        memory.feedback(id, "useful")
    assert found(memory.tidy(), "unhelpful") == {}
    memory.feedback(useful[0], "useful")
    assert found(memory.tidy(), "unhelpful") == {often: "look"}


def _set_counting_start(memory: Trivet, moment: str) -> None:
    """Pretend that counting started at this time."""
    import sqlite3

    connection = sqlite3.connect(memory.settings.path)
    with connection:
        connection.execute(
            "UPDATE meta SET value = ? WHERE name = 'usage counted since'", (moment,)
        )
    connection.close()


def test_memory_of_a_deleted_file_is_an_orphan(memory: Trivet, tmp_path: Path) -> None:
    vault = tmp_path / "vault"
    vault.mkdir()
    (vault / "a.md").write_text("# A\n\nApples are red.\n")
    (vault / "b.md").write_text("# B\n\nBananas are bent.\n")
    ingest(memory, vault)
    (vault / "b.md").unlink()
    (gone,) = found(memory.tidy(dry_run=False), "orphan")
    assert "Bananas" in memory.get(gone).content
    assert memory.list().total == 1
    vault.rename(tmp_path / "elsewhere")
    done = memory.tidy(dry_run=False)
    assert list(found(done, "orphan").values()) == ["look"], "a missing folder may be temporary"
    assert memory.list().total == 1


def test_empty_folder_may_be_an_unmounted_disk(memory: Trivet, tmp_path: Path) -> None:
    vault = tmp_path / "vault"
    vault.mkdir()
    (vault / "a.md").write_text("# A\n\nApples are red.\n")
    ingest(memory, vault)
    (vault / "a.md").rename(tmp_path / "a.md")
    assert list(found(memory.tidy(dry_run=False), "orphan").values()) == ["look"]
    assert memory.list().total == 1


def test_orphan_is_restored_with_its_file(memory: Trivet, tmp_path: Path) -> None:
    vault = tmp_path / "vault"
    vault.mkdir()
    (vault / "a.md").write_text("# A\n\nApples are red.\n")
    (vault / "b.md").write_text("# B\n\nBananas are bent.\n")
    ingest(memory, vault)
    (vault / "b.md").rename(tmp_path / "b.md")
    (gone,) = found(memory.tidy(dry_run=False), "orphan")
    assert memory.get(gone).state == "deleted"
    (tmp_path / "b.md").rename(vault / "b.md")
    assert ingest(memory, vault).stored == 1
    assert memory.get(gone).state == "active"


def test_links_to_forgotten_memories_are_reported(memory: Trivet) -> None:
    problem, solution = memory.remember("It leaks.").id, memory.remember("Tighten the nut.").id
    memory.link(problem, "resolved-by", solution)
    memory.forget(solution)
    assert found(memory.tidy(dry_run=False), "orphan") == {problem: "look"}


def test_invalid_calls_are_refused(memory: Trivet) -> None:
    with pytest.raises(InvalidInput, match="nonsense"):
        memory.tidy(kinds=["nonsense"])  # type: ignore[list-item]
    with pytest.raises(InvalidInput, match="nothing to undo"):
        memory.tidy(undo=True)


def test_command_line(memory: Trivet, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    memory.remember("The gate opens at nine.")
    second = memory.remember("The gate opens at nine.").id
    memory.close()
    monkeypatch.setenv("TRIVET_PATH", str(path))
    monkeypatch.setenv("TRIVET_EMBEDDER", "none")
    trivet = CommandLine(monkeypatch)
    assert f"{second}  would be forgotten: says the same as" in trivet("tidy", "--dry-run").out
    assert trivet.json("list")["total"] == 2
    assert "Forgot 1." in trivet("tidy", "--yes").out
    assert trivet.json("list")["total"] == 1
    assert "1 memories are back." in trivet("tidy", "--undo").out
    assert trivet("tidy", "--yes", "--dry-run").status == 2
    assert trivet("feedback", second, "useful").status == 0
    assert "useful once" in trivet("usage", second).out
