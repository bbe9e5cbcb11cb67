"""The index file never changes an answer, and a doubtful file is not used."""

from __future__ import annotations

import errno
import os
import random
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from support.stores import ADDRESS, STORES, add, embed, found, memory, near, replace, unit
from trivet.analyse import analyse
from trivet.common.ids import new_id
from trivet.common.mapped_arrays import ArrayWriter, map_arrays
from trivet.search.recipe import DEFAULT
from trivet.store.postgres import PostgresStore
from trivet.store.records import Model
from trivet.store.relational.ids import Ids
from trivet.store.relational.index import index_files
from trivet.store.relational.index import vector_matrix as matrix
from trivet.store.relational.index import write_index as build_index
from trivet.store.relational.index import write_index as index_upkeep
from trivet.store.relational.index.postings import postings_from_occurrences
from trivet.store.relational.index.visibility import Visibility
from trivet.store.relational.store import RelationalStore
from trivet.store.sqlite.store import SqliteStore
from trivet.types import Filter, Memory

from .graphs import reached, read_all

WORDS = "Acme Clara Bremen relay door port backup Mira schedule invoice don't C++ été 東京 node.js".split()
WEIGHTS = DEFAULT.bm25.field_weights
ODD_WEIGHTS = (0.1, 0.7, 0.3, 0.3, 0.6)
EARLY, LATE = "2024-03-01T00:00:00.000000Z", "2025-03-01T12:00:00.000001Z"
FILTERS = (
    Filter(),
    Filter(scope="work"),
    Filter(states=("active",)),
    Filter(scope="work", states=("deleted",)),
    Filter(created_after=EARLY),
    Filter(scope="work", created_after=EARLY, created_before=LATE),
)
AS_OF = (
    Filter(as_of=EARLY),
    Filter(as_of="2025-03-01T12:00:00.000000Z", scope="work"),
    Filter(as_of=LATE, created_before="2025-03-01T12:00:00.000000Z"),
    Filter(as_of="9999-12-31T23:59:59.999999Z"),
)
MOMENTS = ("2023-01-01T00:00:00.000000Z", EARLY, "2025-03-01T12:00:00.000000Z", LATE)
Opener = Callable[..., SqliteStore]
OpenEither = Callable[..., RelationalStore]
EITHER = pytest.mark.parametrize("either", ["postgres", "sqlite"], indirect=True)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give stores of a few memories an index file after every change."""
    monkeypatch.setattr(index_upkeep, "MIN_MEMORIES", 1)
    monkeypatch.setattr(index_upkeep, "RENEW_AFTER_CHANGES", 0)


@pytest.fixture
def either(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[OpenEither]:
    """Open the same store repeatedly, of the kind the test selects."""
    stores = []
    server = request.getfixturevalue("postgres") if request.param == "postgres" else None
    if server is not None:
        (tmp_path / ADDRESS).write_text(server.database())

    def open_one(mapped: bool = True) -> RelationalStore:
        store = STORES[request.param](tmp_path)
        if not mapped:
            store._database.index_files.current = lambda: None  # type: ignore[method-assign]
        stores.append(store)
        return store

    yield open_one
    for store in stores:
        store.close()
    if server is not None:
        server.drop((tmp_path / ADDRESS).read_text())


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opener]:
    stores = []

    def open_one(mapped: bool = True, file: Path = tmp_path / "memory.db") -> SqliteStore:
        store = SqliteStore(file)
        if not mapped:
            store._database.index_files.current = lambda: None  # type: ignore[method-assign]
        stores.append(store)
        return store

    yield open_one
    for store in stores:
        store.close()


def text(rng: random.Random) -> str:
    return " ".join(rng.choices(WORDS, k=rng.randint(2, 9)))


def settle(store: RelationalStore) -> Model:
    """Do the worker's job: store vectors made of words, and concepts."""
    model = store.vectors.adopt("words", "spec", len(WORDS))
    jobs = {job.content for job in store.jobs.lease(model, 1000, 0)}
    embed(store, model, {content: numbers(content) for content in jobs})
    read_all(store)
    return model


def numbers(content: str) -> list[float]:
    return [content.split().count(word) + 0.01 for word in WORDS]


def answers(store: RelationalStore) -> dict[str, Any]:
    """Return the results and scores of every index as of one moment."""
    with store.moment():
        return answers_now(store)


def answers_now(store: RelationalStore) -> dict[str, Any]:
    model = next(iter(store.vectors.models()))
    visible: dict[str, Any] = {}
    for filter in (*FILTERS, *AS_OF):
        for word in WORDS:
            terms = analyse(word)
            scored = store.lexical.search(terms, (), 0, filter, DEFAULT.bm25, 100)
            visible[f"{filter} {word}"] = [(one.id, one.score) for one in scored]
        close = store.vectors.search(model, unit(*numbers("Acme door port")), filter, 50, 0.35)
        visible[f"{filter} vector"] = [(one.id, one.passage, round(one.score, 5)) for one in close]
    for one in list(store.memories.everything())[:4]:
        # Scores of rows changed since the arrays were built are summed in another order.
        visible[f"walk {one.id}"] = {id: round(mass, 9) for id, mass in reached(store, one).items()}
    return visible


def apply_random_change(store: RelationalStore, rng: random.Random, known: list[Memory]) -> None:
    what = rng.choice(("add", "add", "edit", "forget", "purge"))
    if what == "add" or len(known) < 5:
        new = [
            memory(
                text(rng),
                scope=rng.choice(("work", "work/trivet", "home")),
                created_at=rng.choice(MOMENTS),
                valid_from=rng.choice((None, None, *MOMENTS)),
                valid_to=rng.choice((None, None, *MOMENTS)),
            )
            for _ in range(3)
        ]
        add(store, *new)
        known += new
        return
    one = store.memories.get(known.pop(rng.randrange(len(known))).id)
    if what == "purge":
        store.memories.purge(one.id)
        return
    changed = {"content": text(rng)} if what == "edit" else {"state": "deleted"}
    known.append(replace(store, msgspec.structs.replace(one, **changed)))


@pytest.mark.parametrize(
    ("either", "seed"),
    [("postgres", 0), ("sqlite", 0), ("sqlite", 1), ("sqlite", 2)],
    indirect=["either"],
)
def test_answers_are_the_same_with_and_without_the_file(either: OpenEither, seed: int) -> None:
    rng, known = random.Random(seed), list[Memory]()
    writer, mapped_in_time = either(), 0
    for turn in range(3):
        for _ in range(rng.randint(1, 6)):
            apply_random_change(writer, rng, known)
        settle(writer)
        if not turn or rng.random() < 0.7:
            assert writer.upkeep.renew_index()
            mapped_in_time += either()._database.mapped_index() is not None
        apply_random_change(writer, rng, known)
        settle(writer)
        new = either()
        plain = answers(either(mapped=False))
        assert answers(new) == plain
        assert answers(writer) == plain
    assert mapped_in_time


@EITHER
def test_every_posting_list_matches_the_database(either: OpenEither) -> None:
    store = either()
    rng = random.Random(1)
    add(
        store,
        *(
            memory(
                text(rng) * 3 + " it's x=1 (a) «b» _c-d: /usr/bin a@b.de #7 +1 'q'",
                title=text(rng),
            )
            for _ in range(20)
        ),
    )
    assert store.upkeep.renew_index()
    index, database = store._database.mapped_index(), store._database
    assert index is not None
    table = "posting" if isinstance(store, PostgresStore) else "lexical_term"
    terms = [
        row[0] for row in database.read().execute(f"SELECT DISTINCT term FROM {table}").fetchall()
    ]
    assert len(terms) > len(WORDS)
    for weights in (WEIGHTS, ODD_WEIGHTS):
        for term, theirs in database.read_postings(terms, weights).items():
            ours = postings_from_occurrences(index.occurrences(term), weights)
            assert ours.keys.tolist() == theirs.keys.tolist(), term
            assert ours.frequencies.tolist() == theirs.frequencies.tolist(), term
    assert not len(index.occurrences("unheard-of"))


def filled(store: RelationalStore) -> list[Memory]:
    memories = [memory(text(random.Random(number)), scope="work") for number in range(20)]
    add(store, *memories)
    settle(store)
    assert store.upkeep.renew_index()
    return memories


def index_file(store: RelationalStore) -> Path:
    (file,) = store._database.index_files.folder.iterdir()
    return file


@EITHER
def test_new_process_reads_no_vectors_and_no_lists(
    either: OpenEither, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(either())
    store = either()
    for name in ("read_postings", "integers", "_read_ids"):
        monkeypatch.setattr(store._database, name, None, raising=False)
    monkeypatch.setattr(store.vectors._cache, "_read", None)  # type: ignore[attr-defined]
    monkeypatch.setattr(Ids, "_read", None)
    assert found(store, "Acme")
    assert near(store, store.vectors.models()[0], numbers("Acme door"))
    assert reached(store, next(store.memories.everything()))


@EITHER
@pytest.mark.skipif(os.name == "nt", reason="file modes are not kept on Windows")
def test_file_is_private_to_its_owner(either: OpenEither) -> None:
    store = either()
    filled(store)
    assert index_file(store).stat().st_mode & 0o777 == 0o600
    assert index_file(store).parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    ("either", "damage"),
    [
        ("postgres", "cut"),
        *(
            ("sqlite", damage)
            for damage in ("cut", "garbled", "head", "empty", "gone", "other kind")
        ),
    ],
    indirect=["either"],
)
def test_damaged_file_is_not_used(either: OpenEither, damage: str) -> None:
    writer = either()
    filled(writer)
    file = index_file(writer)
    whole = file.read_bytes()
    broken = {
        "cut": whole[:-100],
        "garbled": whole[:5000] + bytes(200) + whole[5200:],
        "head": whole[:20] + b"?" + whole[21:],
        "empty": b"",
        "other kind": b"TRIVETXX" + whole[8:],
    }
    file.unlink()
    if damage in broken:
        file.write_bytes(broken[damage])
    new = either()
    assert new._database.mapped_index() is None
    assert answers(new) == answers(either(mapped=False))
    assert new.upkeep.renew_index()
    assert either()._database.mapped_index() is not None


@EITHER
def test_doctor_finds_silent_corruption(either: OpenEither) -> None:
    """The bytes on disk change, but the size and time of the file do not."""
    store = either()
    filled(store)
    file = index_file(store)
    assert finding(store) == (True, "of 20 memories")
    seen, whole = file.stat(), bytearray(file.read_bytes())
    whole[-200] ^= 1
    file.write_bytes(whole)
    os.utime(file, ns=(seen.st_atime_ns, seen.st_mtime_ns))
    ok, detail = finding(either())
    assert not ok
    assert "discarded" in detail
    assert not list(file.parent.iterdir())
    assert finding(either())[0]


def finding(store: RelationalStore) -> tuple[bool, str]:
    (one,) = [one for one in store.upkeep.findings() if one.check == "index file"]
    return one.ok, one.detail


def test_file_of_another_store_is_not_used(opened: Opener, tmp_path: Path) -> None:
    ours, theirs = opened(), opened(file=tmp_path / "theirs.db")
    filled(ours)
    filled(theirs)
    shutil.copy2(index_file(theirs), index_file(ours))
    assert opened()._database.mapped_index() is None


def test_restored_store_ignores_a_later_file(opened: Opener, tmp_path: Path) -> None:
    store = opened()
    filled(store)
    store.upkeep.backup(tmp_path / "backup.db")
    add(store, *(memory(f"lost {number}") for number in range(5)))
    assert store.upkeep.renew_index()
    store.close()
    shutil.copy(tmp_path / "backup.db", tmp_path / "memory.db")
    restored = opened()
    add(restored, *(memory(f"other {number}") for number in range(9)))
    new = opened()
    assert new._database.mapped_index() is None
    assert answers(new) == answers(opened(mapped=False))


def test_copied_store_has_no_file(opened: Opener, tmp_path: Path) -> None:
    store = opened()
    filled(store)
    store.upkeep.backup(tmp_path / "copy.db")
    assert opened(file=tmp_path / "copy.db")._database.mapped_index() is None
    assert not (tmp_path / "copy.db.index").exists()


@EITHER
def test_purged_memory_leaves_nothing_in_the_file(either: OpenEither) -> None:
    store, reader = either(), either()
    memories = filled(store)
    canary = store.vectors.of_memory(store.vectors.models()[0], 1)
    assert canary is not None
    assert canary.tobytes() in index_file(store).read_bytes()
    assert memories[0].id.encode() in index_file(store).read_bytes()
    answers(reader)  # the reader keeps its mapping
    store.memories.purge(memories[0].id)
    assert not list(store._database.index_files.folder.iterdir())
    assert answers(reader) == answers(either(mapped=False))
    assert store.upkeep.renew_index()
    assert canary.tobytes() not in index_file(store).read_bytes()
    assert memories[0].id.encode() not in index_file(store).read_bytes()


@pytest.mark.parametrize("odd", ["é" * 36, "A" * 36, "short", "1" * 37], ids=ascii)
def test_malformed_id_is_looked_up(opened: Opener, odd: str) -> None:
    store = opened()
    memories = filled(store)
    store._database.read().execute("UPDATE memory SET id = ? WHERE id = ?", (odd, memories[3].id))
    store._database.index_files.discard()
    assert store.upkeep.renew_index()
    again = opened()
    assert again._database.all_ids() is not None
    assert odd in {id for word in WORDS for id in found(again, word)}
    assert answers(again) == answers(opened(mapped=False))


@EITHER
def test_purge_during_a_write_discards_the_file(
    either: OpenEither, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, other = either(), either()
    memories = filled(store)
    words = build_index._write_words

    def purge_during_write(*written: Any) -> None:
        other.memories.purge(memories[0].id)
        words(*written)

    monkeypatch.setattr(build_index, "_write_words", purge_during_write)
    add(store, memory("one more"))
    assert not store.upkeep.renew_index()
    assert not list(store._database.index_files.folder.iterdir())
    assert either()._database.mapped_index() is None


def test_partial_file_is_never_read_and_is_deleted(opened: Opener) -> None:
    store = opened()
    filled(store)
    folder = store._database.index_files.folder
    left = folder / f"{'0' * 32}.partial"
    left.write_bytes(b"half")
    add(store, memory("one more"))
    assert not store.upkeep.renew_index(), "another process appears to be writing"
    long_ago = time.time() - index_files.LEASE_SECONDS - 1
    os.utime(left, (long_ago, long_ago))
    assert store.upkeep.renew_index()
    assert len(list(folder.iterdir())) == 1


@EITHER
def test_full_disk_costs_only_the_file(either: OpenEither, monkeypatch: pytest.MonkeyPatch) -> None:
    store = either()
    filled(store)

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(index_files, "ArrayWriter", full)
    add(store, memory("one more door"))
    assert not store.upkeep.renew_index()
    assert len(list(store._database.index_files.folder.iterdir())) == 1, "the earlier file stays"
    assert found(either(), "door") == found(either(mapped=False), "door")


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root can write everywhere"
)
def test_unwritable_folder_costs_only_the_file(opened: Opener, tmp_path: Path) -> None:
    store = opened()
    add(store, memory("a door"))
    tmp_path.chmod(0o500)
    try:
        assert not store.upkeep.renew_index()
    finally:
        tmp_path.chmod(0o700)


def test_file_in_place_of_the_folder_costs_only_the_index(opened: Opener, tmp_path: Path) -> None:
    store = opened()
    add(store, memory("a door"))
    (tmp_path / "memory.db.index").write_text("not ours")
    assert not store.upkeep.renew_index()
    assert found(opened(), "door")
    assert (tmp_path / "memory.db.index").read_text() == "not ours"


def test_small_store_gets_no_file(
    opened: Opener, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(index_upkeep, "MIN_MEMORIES", 2_000)
    store = opened()
    add(store, memory("a door"))
    assert not store.upkeep.renew_index()
    assert not (tmp_path / "memory.db.index").exists()


def test_outdated_file_is_not_used(opened: Opener) -> None:
    store = opened()
    filled(store)
    with sqlite3.connect(store._database.path) as connection:  # simulates that many changes
        connection.executemany("INSERT INTO change (memory) VALUES (?)", [(1,)] * 2_001)
    connection.close()
    new = opened()
    answers(new)
    assert new._visibility._changes.since(last_sequence(store)) is None


def last_sequence(store: SqliteStore) -> int:
    index = store._database.mapped_index()
    assert index is not None
    return index.sequence


def test_many_vectors_take_half_the_space_with_equal_answers(
    opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = opened()
    filled(store)
    visible, size = answers(opened()), index_file(store).stat().st_size
    store._database.index_files.discard()
    monkeypatch.setattr(matrix, "FLOAT32_MAX_BYTES", 0)
    assert store.upkeep.renew_index()
    assert index_file(store).stat().st_size < size
    assert answers(opened()) == visible


def test_invalid_stored_time_costs_only_the_file(opened: Opener) -> None:
    store = opened()
    filled(store)
    add(store, memory("one more door"))
    store._database.read().execute("UPDATE memory SET created_at = 'no time' WHERE key = 1")
    assert not store.upkeep.renew_index()
    assert len(list(store._database.index_files.folder.iterdir())) == 1, "the earlier file stays"


def test_time_queries_use_the_file(opened: Opener) -> None:
    store = opened()
    filled(store)
    index = opened()._database.mapped_index()
    assert index is not None
    assert all(index.shown(filter) is not None for filter in FILTERS)
    assert index.shown(Filter(as_of=EARLY)) is None


@EITHER
def test_as_of_filter_does_not_read_every_memory(
    either: OpenEither, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = either()
    times = [
        (written, start, end)
        for written in MOMENTS
        for start in (None, *MOMENTS)
        for end in (None, *MOMENTS)
    ]
    given = [
        memory("Acme door", created_at=one, valid_from=start, valid_to=end)
        for one, start, end in times
    ]
    add(store, *given, *(msgspec.structs.replace(one, id=new_id(), scope="work") for one in given))
    settle(store)
    assert store.upkeep.renew_index()
    plain, mapped = either(mapped=False), either()
    wanted = [plain._visibility.of(filter) for filter in AS_OF]
    monkeypatch.setattr(Visibility, "_load", None)
    for filter, one in zip(AS_OF, wanted, strict=True):
        visible = mapped._visibility.of(filter)
        assert np.flatnonzero(visible.mask).tolist() == np.flatnonzero(one.mask).tolist(), filter
        assert visible.count == one.count > 0
        assert visible.mean_length == pytest.approx(one.mean_length)


@EITHER
def test_importance_comes_from_the_file_and_later_changes(
    either: OpenEither, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = either()
    given = [
        memory(f"Acme door {number}", importance=number / 7, scope="work") for number in range(8)
    ]
    add(store, *given)
    assert store.upkeep.renew_index()
    reader = either()
    wanted = {one.id: one.importance for one in given}
    replace(store, msgspec.structs.replace(given[3], importance=0.05))
    monkeypatch.setattr(Visibility, "_load", None)
    assert reader.memories.shown(list(wanted), Filter(scope="work")) == wanted | {given[3].id: 0.05}


@EITHER
def test_known_terms_come_from_the_file_and_later_changes(
    either: OpenEither,
) -> None:
    store = either()
    filled(store)
    asked = {"relay", "relais", "harbour"}
    reader = either()
    assert reader.lexical.terms_in_any_memory(asked) == {"relay"}
    add(store, memory("the harbour"))
    assert reader.lexical.terms_in_any_memory(asked) == {"relay", "harbour"}
    assert reader.lexical.terms_in_any_memory(()) == set()
    assert either(mapped=False).lexical.terms_in_any_memory(asked) is None


def test_mismatched_array_is_not_a_valid_file(tmp_path: Path) -> None:
    with (tmp_path / "arrays").open("wb") as stream:
        writer = ArrayWriter(stream, b"KIND0001")
        with pytest.raises(ValueError, match="numbers: got 8 bytes"):
            writer.add_chunks("numbers", np.dtype(np.int64), (2,), [np.zeros(1, np.int64)])
    assert map_arrays(tmp_path / "arrays", b"KIND0001") is None


def test_arrays_written_in_chunks_read_back_equal(tmp_path: Path) -> None:
    rows = np.arange(12, dtype=np.int32).reshape(4, 3)
    with (tmp_path / "arrays").open("wb") as stream:
        writer = ArrayWriter(stream, b"KIND0001")
        writer.add_chunks("rows", rows.dtype, rows.shape, [rows[:1], rows[1:]])
        writer.add("none", np.zeros((0, 3)))
        writer.finish({"about": "rows"})
    mapped = map_arrays(tmp_path / "arrays", b"KIND0001")
    assert mapped is not None
    assert (mapped.arrays["rows"] == rows).all()
    assert mapped.arrays["none"].shape == (0, 3)
    assert (mapped.facts, mapped.damaged()) == ({"about": "rows"}, [])
