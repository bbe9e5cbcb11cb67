"""Usage counts and feedback are stored without affecting recall cost or order."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.store_fixtures import Opened
from trivet import NotFound, Trivet
from trivet.common.ids import new_id
from trivet.lab.tune.probes import all_feedback


def test_recall_counts_shown_memories(opened: Opened) -> None:
    memory = opened()
    one = memory.remember("Lamp one is green.").id
    two = memory.remember("Lamp two is red.").id
    other = memory.remember("The canteen opens at eleven.").id
    for _ in range(3):
        memory.recall("lamp", limit=2)
    assert (memory.usage(one).shown, memory.usage(two).shown, memory.usage(other).shown) == (
        3,
        3,
        0,
    )
    memory.recall("lamp one", limit=1)
    memory.close()
    again = opened()
    assert again.usage(one).shown == 4, "closing flushes pending counts"
    assert again.usage(one).last_shown is not None


def test_why_not_and_get_do_not_count(memory: Trivet) -> None:
    id = memory.remember("Lamp one is green.").id
    memory.get(id)
    memory.list()
    memory.why_not("lamp", id)
    memory.inbox_propose("Lamp one is green.")
    assert memory.usage(id).shown == 0


def test_counting_can_be_turned_off(opened: Opened) -> None:
    memory = opened(usage_counts=False)
    id = memory.remember("Lamp one is green.").id
    memory.recall("lamp")
    assert memory.usage(id).shown == 0


def test_recall_does_not_write(memory: Trivet, path: Path) -> None:
    memory.remember("Lamp one is green.")
    memory.recall("lamp")
    wal = path.with_name(path.name + "-wal")
    before = (path.stat().st_size, wal.stat().st_size, wal.stat().st_mtime_ns)
    for _ in range(20):
        memory.recall("lamp")
    assert (path.stat().st_size, wal.stat().st_size, wal.stat().st_mtime_ns) == before


def test_counts_and_feedback_do_not_change_the_order(opened: Opened) -> None:
    memory = opened(embedder="bundled")
    for number in range(12):
        memory.remember(f"Lamp {number} of the pier is {'green' if number % 2 else 'red'}.")
    memory.drain()
    queries = ("green lamp on the pier", "lamp 3", "red")
    before = [memory.recall(query).hits for query in queries]
    for hit in before[0]:
        memory.feedback(hit.id, "not-useful", query=queries[0])
    for hit in reversed(before[1]):
        memory.feedback(hit.id, "useful", query=queries[1])
        for _ in range(5):
            memory.recall(f"lamp {hit.memory.content.split()[1]}", limit=1)
    memory.usage(before[0][0].id)
    after = [memory.recall(query).hits for query in queries]
    assert [[(hit.id, hit.score) for hit in hits] for hits in after] == [
        [(hit.id, hit.score) for hit in hits] for hits in before
    ]


def test_feedback_is_counted_and_the_last_vote_stands(memory: Trivet) -> None:
    id = memory.remember("Lamp one is green.").id
    memory.feedback(id, "useful", query="which lamp?")
    memory.feedback(id, "not-useful", query="which  lamp?")
    counts = memory.feedback(id, "useful")
    assert (counts.useful, counts.not_useful) == (1, 1)
    with pytest.raises(NotFound):
        memory.feedback(new_id(), "useful")


def test_tuning_reads_feedback(memory: Trivet) -> None:
    id = memory.remember("Lamp one is green.").id
    memory.feedback(id, "useful", query="which lamp is green?")
    memory.feedback(id, "useful")
    assert [(one.query, one.id, one.useful) for one in all_feedback(memory.engine)] == [
        ("which lamp is green?", id, True)
    ]


def test_secrets_in_a_query_are_not_stored(memory: Trivet, path: Path) -> None:
    from support.invented_secrets import github

    id, secret = memory.remember("The bot deploys.").id, github("feedback")
    memory.feedback(id, "useful", query=f"who uses {secret}?")
    memory.close()
    assert secret.encode() not in path.read_bytes()
    assert secret[10:20].encode() not in path.read_bytes()
