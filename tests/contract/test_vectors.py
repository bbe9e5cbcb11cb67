"""The vector index handles models and dimensions, ranks by the best passage, and stays current."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from support.stores import Open, add, embed, memory, near, replace, unit
from trivet.errors import EmbedderError
from trivet.memory.remember import document_of
from trivet.store.records import Model, Passage
from trivet.store.relational.index.lexical import count_held_terms
from trivet.store.relational.store import RelationalStore as Store
from trivet.types import Filter


def test_first_model_serves_and_a_second_waits(store: Store) -> None:
    one = memory("relay")
    add(store, one)
    first = store.vectors.adopt("tiny", "spec-a", 2)
    second = store.vectors.adopt("wide", "spec-b", 3)
    assert first.serving
    assert not second.serving
    assert store.vectors.models() == (first, second)
    assert store.jobs.backlog(first).waiting == store.jobs.backlog(second).waiting == 1
    assert store.vectors.adopt("tiny", "spec-a", 2) == first
    assert len(store.vectors.models()) == 2


def test_adopted_model_keeps_its_dimension(store: Store) -> None:
    store.vectors.adopt("tiny", "spec", 2)
    with pytest.raises(EmbedderError, match="3 dimensions"):
        store.vectors.adopt("tiny", "spec", 3)
    assert [model.dimension for model in store.vectors.models()] == [2]


def test_adopted_model_may_move(store: Store) -> None:
    store.vectors.adopt("tiny", "openai:m@http://old/v1", 2)
    store.vectors.adopt("tiny", "openai:m@http://new/v1", 2)
    assert [model.spec for model in store.vectors.models()] == ["openai:m@http://new/v1"]


def test_serving_drops_the_others(store: Store) -> None:
    one = memory("relay")
    add(store, one)
    first = store.vectors.adopt("tiny", "a", 2)
    embed(store, first, {"relay": (1, 0)})
    second = store.vectors.adopt("wide", "b", 3)
    embed(store, second, {"relay": (1, 0, 0)})
    assert near(store, first, (1, 0)) == near(store, second, (1, 0, 0)) == [one.id]
    store.vectors.serve(second)
    (left,) = store.vectors.models()
    assert (left.identity, left.serving) == ("wide", True)
    assert store.memories.stats().passages == 1
    assert near(store, left, (1, 0, 0)) == [one.id]
    add(store, memory("door"))
    assert store.jobs.backlog(left).waiting == 1


def test_query_of_another_dimension_is_an_error(store: Store) -> None:
    add(store, memory("relay"))
    model = store.vectors.adopt("tiny", "a", 2)
    embed(store, model, {"relay": (1, 0)})
    with pytest.raises(EmbedderError, match="dimensions"):
        near(store, model, (1, 0, 0))


def test_removed_model_leaves_nothing_to_the_next(open_store: Open) -> None:
    """The next model may have the same name and another dimension; no cache may mix them up."""
    ours, theirs = open_store(), open_store()
    one = memory("relay")
    add(ours, one)
    narrow = ours.vectors.adopt("tiny", "a", 2)
    embed(ours, narrow, {"relay": (1, 0)})
    assert near(ours, narrow, (1, 0)) == near(theirs, narrow, (1, 0)) == [one.id]
    theirs.vectors.remove(narrow)
    assert ours.vectors.models() == ()
    assert ours.memories.stats().passages == 0
    wide = theirs.vectors.adopt("tiny", "a", 3)
    assert wide.serving
    assert near(ours, wide, (1, 0, 0)) == near(theirs, wide, (1, 0, 0)) == []
    embed(theirs, wide, {"relay": (1, 0, 0)})
    assert near(ours, wide, (1, 0, 0)) == near(theirs, wide, (1, 0, 0)) == [one.id]


def test_order_and_scores_are_those_of_the_cosine(store: Store) -> None:
    memories = {name: memory(name) for name in ("same", "close", "far", "opposite")}
    add(store, *memories.values())
    model = store.vectors.adopt("tiny", "a", 2)
    embed(store, model, {"same": (1, 0), "close": (1, 1), "far": (0, 1), "opposite": (-1, 0)})
    scored = store.vectors.search(model, unit(1, 0), Filter(), 10)
    assert [one.id for one in scored] == [
        memories[name].id for name in ("same", "close", "far", "opposite")
    ]
    assert [one.score for one in scored] == pytest.approx([1, 2**-0.5, 0, -1], abs=1e-3)
    assert near(store, model, (1, 0), depth=2) == [memories["same"].id, memories["close"].id]


def test_ties_go_by_id_also_at_the_depth_limit(store: Store) -> None:
    memories = [memory("relay") for _ in range(12)]
    add(store, *reversed(memories))
    model = store.vectors.adopt("tiny", "a", 2)
    embed(store, model, {"relay": (1, 0)})
    assert near(store, model, (1, 0), depth=5) == sorted(one.id for one in memories)[:5]


def test_memory_scores_by_its_best_passage(store: Store) -> None:
    long, short = memory("first part. second part."), memory("short")
    add(store, long, short)
    model = store.vectors.adopt("tiny", "a", 2)
    jobs = {job.content: job for job in store.jobs.lease(model, 10, 60)}
    passages = (Passage(0, 0, 12), Passage(1, 12, 24))
    store.jobs.finish(
        [
            (jobs[long.content], passages, np.stack([unit(0, 1), unit(1, 0)])),
            (jobs["short"], (Passage(0, 0, 5),), unit(1, 1)[None, :]),
        ]
    )
    scored = store.vectors.search(model, unit(1, 0), Filter(), 10)
    assert [(one.id, one.passage) for one in scored] == [(long.id, 1), (short.id, 0)]
    scored = store.vectors.search(model, unit(0, 1), Filter(), 10)
    assert [(one.id, one.passage) for one in scored] == [(long.id, 0), (short.id, 0)]
    assert store.vectors.spans(model, [long.id]) == {long.id: passages}
    assert store.vectors.spans_at(model, {long.id: 1, short.id: 0}) == {
        long.id: passages[1],
        short.id: Passage(0, 0, 5),
    }
    assert store.vectors.spans_at(model, {long.id: 2, "nobody": 0}) == {}


def test_passages_know_their_terms(store: Store) -> None:
    long, short = memory("first part. second part."), memory("short")
    add(store, long, short)
    model = store.vectors.adopt("tiny", "a", 2)
    jobs = {job.content: job for job in store.jobs.lease(model, 10, 60)}
    halves = (
        jobs[long.content],
        (Passage(0, 0, 12), Passage(1, 12, 24)),
        np.stack([unit(0, 1), unit(1, 0)]),
    )
    store.jobs.finish([halves, (jobs["short"], (Passage(0, 0, 5),), unit(1, 1)[None, :])])
    found = store.vectors.described(model, [long.id, short.id])
    assert [one.terms for one in found[short.id]] == [""]
    terms = [one.terms or "" for one in found[long.id]]
    assert count_held_terms(["first", "part", "third"], terms) == [2, 1]
    store.upkeep.rebuild_lexical(iter([(long, document_of(long)), (short, document_of(short))]))
    assert store.vectors.described(model, [long.id, short.id]) == found


def test_best_of_many_passages_is_corrected_for_chance(store: Store) -> None:
    long, short = memory("first part. second part."), memory("short")
    add(store, long, short)
    model = store.vectors.adopt("tiny", "a", 2)
    jobs = {job.content: job for job in store.jobs.lease(model, 10, 60)}
    store.jobs.finish(
        [
            (
                jobs[long.content],
                (Passage(0, 0, 12), Passage(1, 12, 24)),
                np.stack([unit(0, 1), unit(1, 0)]),
            ),
            (jobs["short"], (Passage(0, 0, 5),), unit(4, 1)[None, :]),
        ]
    )
    assert near(store, model, (1, 0)) == [long.id, short.id]
    first, second = store.vectors.search(model, unit(1, 0), Filter(), 10, chance=0.5)
    assert [(first.id, first.passage), (second.id, second.passage)] == [(short.id, 0), (long.id, 1)]
    scores = np.array([0, 1, unit(4, 1)[0]])
    assert second.score == pytest.approx(1 - 0.5 * scores.std() * np.log(2), abs=2e-3)


def test_depth_counts_memories_not_passages(store: Store) -> None:
    talkative, quiet = memory("talk talk talk"), memory("quiet")
    add(store, talkative, quiet)
    model = store.vectors.adopt("tiny", "a", 2)
    jobs = {job.content: job for job in store.jobs.lease(model, 10, 60)}
    many = tuple(Passage(number, 0, 4) for number in range(20))
    store.jobs.finish(
        [
            (jobs[talkative.content], many, np.tile(unit(1, 0), (20, 1))),
            (jobs["quiet"], (Passage(0, 0, 5),), unit(0, 1)[None, :]),
        ]
    )
    assert near(store, model, (1, 0), depth=2) == [talkative.id, quiet.id]


def test_changed_memory_has_no_old_vector(store: Store) -> None:
    one = memory("relay")
    add(store, one)
    model = store.vectors.adopt("tiny", "a", 2)
    embed(store, model, {"relay": (1, 0)})
    two = replace(store, msgspec.structs.replace(one, content="door"))
    assert near(store, model, (1, 0)) == []
    embed(store, model, {"door": (0, 1)})
    assert store.vectors.search(model, unit(0, 1), Filter(), 1)[0].score == pytest.approx(
        1, abs=1e-3
    )
    replace(store, msgspec.structs.replace(two, sensitive=True))
    assert near(store, model, (0, 1)) == []
    assert store.memories.stats().passages == 0


def test_sensitive_and_forgotten_memories_need_no_vector(store: Store) -> None:
    add(store, memory("secret", sensitive=True), memory("gone", state="deleted"), memory("known"))
    model = store.vectors.adopt("tiny", "a", 2)
    assert [job.content for job in store.jobs.lease(model, 10, 60)] == ["known"]
    add(store, memory("second secret", sensitive=True))
    assert store.jobs.backlog(model).waiting == 1


def test_matrix_sees_other_connections(open_store: Open) -> None:
    ours, theirs = open_store(), open_store()
    one = memory("relay")
    add(ours, one)
    model = ours.vectors.adopt("tiny", "a", 2)
    embed(ours, model, {"relay": (1, 0)})
    assert near(ours, model, (1, 0)) == near(theirs, model, (1, 0)) == [one.id]
    two = memory("door")
    add(theirs, two)
    embed(theirs, model, {"door": (0, 1)})
    assert near(ours, model, (0, 1)) == [two.id, one.id]
    theirs.memories.purge(one.id)
    assert near(ours, model, (0, 1)) == [two.id]


def test_matrix_is_compacted_after_many_removals(open_store: Open) -> None:
    """Replace more rows than the matrix tolerates as gaps, in several rounds."""
    store = open_store()
    memories = [memory(f"text {number}") for number in range(700)]
    add(store, *memories)
    model = store.vectors.adopt("tiny", "a", 2)
    for turn in range(3):
        jobs = store.jobs.lease(model, 10_000, 60)
        store.jobs.finish(
            [(job, (Passage(0, 0, 1),), unit(1, turn + job.key)[None, :]) for job in jobs]
        )
        assert set(near(store, model, (0, 1), depth=1_000)) == {one.id for one in memories}
        store.upkeep.rebuild_vectors()
    assert near(store, model, (0, 1), depth=50) == near(open_store(), model, (0, 1), depth=50)


def test_large_store_finds_the_nearest(store: Store) -> None:
    """Above the exact-search size, close vectors still come first, with and without a filter."""
    generator = np.random.default_rng(7)
    count, dimension = 6_000, 64
    vectors = generator.normal(size=(count, dimension)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    memories = [
        memory(f"text {number}", tags=("odd",) if number % 2 else ()) for number in range(count)
    ]
    add(store, *memories)
    model = store.vectors.adopt("random", "a", dimension)
    by_content = {one.content: vectors[number] for number, one in enumerate(memories)}
    jobs = store.jobs.lease(model, count, 60)
    store.jobs.finish(
        [(job, (Passage(0, 0, 4),), by_content[job.content][None, :]) for job in jobs]
    )
    for number in (1, 777, 4_321, 5_999):
        assert _ids(store, model, vectors[number], Filter())[0] == memories[number].id
        assert _ids(store, model, vectors[number], Filter(tags=("odd",)))[0] == memories[number].id
        assert memories[number].id not in _ids(
            store, model, vectors[number], Filter(scope="elsewhere")
        )


def _ids(
    store: Store, model: Model, vector: np.typing.NDArray[np.float32], filter: Filter
) -> list[str]:
    return [one.id for one in store.vectors.search(model, vector, filter, 10)]
