"""The lexical index computes standard BM25, sees all writes, and is deterministic."""

from __future__ import annotations

import math

import msgspec
import pytest

from support.stores import PLAIN_BM25, Open, add, document, embed, found, memory, replace
from trivet.analyse import Reading, analyse, language_markers
from trivet.common.bounded_cache import KIB
from trivet.memory.similarity import fingerprint
from trivet.store.records import Bm25, Entry
from trivet.store.relational.index import lexical, visibility
from trivet.store.relational.store import RelationalStore as Store
from trivet.types import Candidate, Filter


def search(
    store: Store,
    words: str,
    *,
    required: str = "",
    enough: int = 1,
    filter: Filter | None = None,
    bm25: Bm25 = PLAIN_BM25,
    depth: int = 100,
) -> list[Candidate]:
    return store.lexical.search(
        analyse(words), analyse(required), enough, filter or Filter(), bm25, depth
    )


def test_scores_are_bm25(store: Store) -> None:
    """Computed by hand with k1 = 1.2 and b = 0.75.

    Lengths are 2, 4, 3 (mean 3); two of three hold relay, one holds port.
    """
    one, two, three = (
        memory("relay port"),
        memory("relay relay door wall"),
        memory("roof door wall"),
    )
    add(store, one, two, three)
    idf_relay = math.log(1 + (3 - 2 + 0.5) / (2 + 0.5))
    idf_port = math.log(1 + (3 - 1 + 0.5) / (1 + 0.5))
    short, long = 1.2 * (0.25 + 0.75 * 2 / 3), 1.2 * (0.25 + 0.75 * 4 / 3)
    expected_one = idf_relay * 1 * 2.2 / (1 + short) + idf_port * 1 * 2.2 / (1 + short)
    expected_two = idf_relay * 2 * 2.2 / (2 + long)
    scored = search(store, "relay port")
    assert [one_found.id for one_found in scored] == [one.id, two.id]
    assert scored[0].score == pytest.approx(expected_one, rel=1e-6)
    assert scored[1].score == pytest.approx(expected_two, rel=1e-6)


def test_statistics_cover_only_visible_memories(store: Store) -> None:
    """Hidden memories must not shift a caller's scores or reveal how common a word is."""
    mine = [memory("relay port", scope="mine"), memory("door wall", scope="mine")]
    add(store, *mine)
    alone = search(store, "relay", filter=Filter(scope="mine"))
    add(
        store,
        *[memory("relay relay relay with many more words", scope="theirs") for _ in range(20)],
    )
    assert search(store, "relay", filter=Filter(scope="mine")) == alone


def test_each_field_counts_by_its_weight(store: Store) -> None:
    filler = "some words here"
    by_field = {
        "content": memory(f"zebra {filler}"),
        "title": memory(filler, title="zebra"),
        "keywords": memory(filler, keywords=("zebra",)),
        "tags": memory(filler, tags=("zebra",)),
        "category": memory(filler, category="zebra"),
    }
    add(store, *by_field.values())
    for field, one in by_field.items():
        weights = dict.fromkeys(("content", "title", "keywords", "tags", "category"), 1.0) | {
            field: 5.0
        }
        assert search(store, "zebra", bm25=Bm25(k1=1.2, b=0.0, **weights))[0].id == one.id


def test_field_with_zero_weight_does_not_match(store: Store) -> None:
    tagged, said = memory("door", tags=("zebra",)), memory("zebra wall")
    add(store, tagged, said)
    silent = msgspec.structs.replace(PLAIN_BM25, tags=0.0)
    assert [one.id for one in search(store, "zebra", bm25=silent)] == [said.id]
    no_k1 = msgspec.structs.replace(silent, k1=0.0)
    scored = search(store, "zebra", bm25=no_k1)
    assert [one.id for one in scored] == [said.id]
    assert all(math.isfinite(one.score) and one.score > 0 for one in scored)


def test_scores_do_not_depend_on_earlier_queries(open_store: Open) -> None:
    """A cache updated after writes gives the same numbers as one loaded afterwards."""
    warm = open_store()
    add(warm, memory("zebra wall"), memory("door wall"))
    silent = msgspec.structs.replace(PLAIN_BM25, tags=0.0)
    search(warm, "zebra door", bm25=silent)
    search(warm, "zebra door")
    added = memory("door zebra zebra", title="zebra")
    add(warm, memory("wall", tags=("zebra",)), added, memory("zebra"))
    replace(warm, msgspec.structs.replace(added, content="zebra roof"))
    fresh = open_store()
    for bm25 in (PLAIN_BM25, silent):
        assert search(warm, "zebra door", bm25=bm25) == search(fresh, "zebra door", bm25=bm25)


def test_memories_with_all_words_are_preferred_if_enough(store: Store) -> None:
    both = [memory(f"relay port and {'many ' * number} other words") for number in range(1, 4)]
    one_word = [memory("relay relay relay"), memory("port port port")]
    add(store, *both, *one_word)
    assert {one.id for one in search(store, "relay port", required="relay port", enough=3)} == {
        one.id for one in both
    }
    widened = search(store, "relay port", required="relay port", enough=4)
    assert {one.id for one in widened} == {one.id for one in (*both, *one_word)}


def test_unknown_required_word_widens_the_search(store: Store) -> None:
    one = memory("relay")
    add(store, one)
    assert [it.id for it in search(store, "relay absent", required="relay absent")] == [one.id]


def test_depth_limits_results_and_ties_go_by_id(store: Store) -> None:
    memories = [memory("relay port") for _ in range(30)]
    add(store, *reversed(memories))
    ordered = sorted(one.id for one in memories)
    assert [one.id for one in search(store, "relay", depth=7)] == ordered[:7]
    assert [one.id for one in search(store, "relay")] == ordered


def test_common_words_score_but_do_not_match_alone(store: Store) -> None:
    common = [memory(f"relay number{number}") for number in range(2_500)]
    special = memory("relay zebra")
    add(store, *common, special)
    scored = search(store, "relay zebra", depth=10)
    assert [one.id for one in scored] == [special.id]
    assert scored[0].score > search(store, "zebra", depth=10)[0].score
    assert len(search(store, "relay", depth=10)) == 10


def test_no_words_find_nothing(store: Store) -> None:
    add(store, memory("relay"))
    assert search(store, "") == []
    assert search(store, "absent") == []


def test_cache_sees_other_connections(open_store: Open) -> None:
    ours, theirs = open_store(), open_store()
    one = memory("relay")
    add(ours, one)
    assert found(ours, "relay") == found(theirs, "relay") == [one.id]
    two = memory("relay too")
    add(theirs, two)
    assert set(found(ours, "relay")) == {one.id, two.id}
    replace(theirs, msgspec.structs.replace(one, content="door"))
    assert found(ours, "relay") == [two.id]
    assert found(ours, "door") == [one.id]
    theirs.memories.purge(two.id)
    assert found(ours, "relay") == []


def test_cache_follows_one_memory_through_many_edits(open_store: Open) -> None:
    ours, theirs = open_store(), open_store()
    one = memory("relay")
    add(ours, one, memory("wall"))
    for word, gone in (("door", "relay"), ("relay", "door"), ("roof", "relay"), ("door", "roof")):
        assert found(ours, gone) == [one.id]
        assert found(ours, word) == []
        one = replace(theirs, msgspec.structs.replace(one, content=word))
        assert found(ours, word) == [one.id]
        assert found(ours, gone) == []


def test_cache_survives_more_changes_than_are_logged(
    open_store: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between two queries a memory changes, and later changes push that one out of the log."""
    for module in ("sqlite.connections", "postgres.transactions"):
        monkeypatch.setattr(
            f"trivet.store.{module}.MAX_CHANGES_KEPT", 1_000
        )  # a shorter log, to save time
    ours, theirs = open_store(), open_store()
    one = memory("relay", tags=("x",), sensitive=True)
    add(ours, one, *[memory("wall") for _ in range(500)])
    model = ours.vectors.adopt("tiny", "a", 2)
    embed(ours, model, {"wall": (1, 0)})
    tagged = Filter(tags=("x",))
    assert found(ours, "relay") == found(ours, "relay", tagged) == [one.id]
    replace(theirs, msgspec.structs.replace(one, content="relay door", tags=()))
    for _ in range(5):
        theirs.upkeep.rebuild_vectors()
        embed(theirs, model, {"wall": (1, 0)})
    assert found(ours, "relay", tagged) == []
    assert found(ours, "door") == [one.id]


def similar(store: Store, text: str, but: str = "", limit: int = 10) -> list[str]:
    return store.lexical.similar(but, fingerprint(text), limit)


def test_similar_finds_shared_word_sequences(store: Store) -> None:
    text = "the zebra relay listens on the purple door"
    near, far = memory(f"{text} of the house"), memory("the wall has a roof")
    add(store, near, far)
    assert similar(store, text) == [near.id]
    assert similar(store, text, but=near.id) == []
    assert similar(store, "an unheard thing was said") == []


def test_similar_follows_every_change(open_store: Open) -> None:
    ours, theirs = open_store(), open_store()
    text = "the zebra relay listens on the purple door"
    one = memory(text)
    add(ours, one)
    assert similar(theirs, text) == [one.id]
    two = replace(theirs, msgspec.structs.replace(one, content="the wall has a roof"))
    assert similar(ours, text) == []
    three = replace(ours, msgspec.structs.replace(two, content=text))
    assert similar(theirs, text) == [one.id]
    ours.upkeep.rebuild_lexical((kept, document(kept)) for kept in ours.memories.everything())
    assert similar(theirs, text) == [one.id]
    four = replace(ours, msgspec.structs.replace(three, state="deleted"))
    assert similar(theirs, text) == []
    replace(ours, msgspec.structs.replace(four, state="active"))
    ours.memories.purge(one.id)
    assert similar(theirs, text) == []


def test_similar_is_bounded(store: Store) -> None:
    text = "the zebra relay listens on the purple door"
    add(store, *[memory(text) for _ in range(20)])
    assert len(similar(store, text, limit=7)) == 7


def test_similar_checks_the_latest_that_share_a_common_pair(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a save would slow down with every memory that shares a common phrase.

    A rare pair finds older ones too.
    """
    monkeypatch.setattr(lexical, "MAX_SIMILAR_CANDIDATES", 3)
    common = "the zebra relay listens on the purple door"
    rare = memory(f"{common} while seven mild otters juggle warm bricks")
    alike = [memory(common) for _ in range(10)]
    add(store, rare, *alike)
    assert set(similar(store, common)) == {one.id for one in alike[-3:]}
    assert rare.id in similar(store, f"{common} while seven mild otters juggle cold bricks")


def test_terms_of_every_shape_are_kept_apart(store: Store) -> None:
    """Each term that the analyzer emits comes back from the index as one term."""
    texts = [
        "a/b.py:10",
        "C++",
        "C#",
        "foo_bar",
        "x-y",
        "user@host.com",
        "v1.2.3",
        r"c:\temp\x",
        "größe",
        "数据库",
        "naïve",
    ]
    memories = {text: memory(text) for text in texts}
    add(store, *memories.values())
    for text, one in memories.items():
        for term in set(analyse(text)):
            ids = [it.id for it in store.lexical.search([term], (), 0, Filter(), PLAIN_BM25, 100)]
            assert one.id in ids, term


def test_language_reading_counts_only_in_its_language(store: Store) -> None:
    """`chat` is a cat in French and a conversation in English."""
    french, english = memory("cat", keywords=("marked",)), memory("cat")
    marked = msgspec.structs.replace(document(french), keywords=language_markers("french"))
    store.memories.add_many([Entry(french, marked), Entry(english, document(english))])
    bm25 = msgspec.structs.replace(
        PLAIN_BM25, keywords=0.0
    )  # matches are marked whatever weight keywords have

    def ids(language: str) -> list[str]:
        others = {"chats": (Reading("cat", language),)}
        return [
            one.id
            for one in store.lexical.search(["chats"], ["chats"], 1, Filter(), bm25, 10, others)
        ]

    assert ids("french") == [french.id]
    assert ids("english") == [english.id]
    assert ids("german") == []
    assert store.lexical.languages(Filter()) == ("french",)
    assert store.lexical.languages(Filter(scope="elsewhere")) == ()


def test_unknown_words_and_scopes_do_not_fill_memory(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = memory("zebra relay")
    add(store, kept)
    bound = 24 * KIB
    lists, filters = store.lexical._postings._entries, store.lexical._visibility._entries
    lists.most_bytes = bound
    monkeypatch.setattr(visibility, "FILTERS_BYTES", bound)
    for number in range(120):
        assert found(store, f"unheard{number} zebra", Filter(scope=f"nowhere/{number}")) == []
        assert lists.bytes <= bound
        assert filters.bytes <= bound
    assert min(len(lists), len(filters)) < 100
    assert found(store, "zebra relay") == [kept.id]


def test_terms_of_each_memory_are_known_and_follow_changes(store: Store) -> None:
    """In any field; recall reports them as matched words and measures relevance with them."""
    one, two = (
        memory("The relays listen on a port.", tags=("harbour",)),
        memory("A door.", title="Relay room"),
    )
    add(store, one, two)
    asked = analyse("relay harbour port zebra")
    assert store.lexical.held(asked, [one.id, two.id], PLAIN_BM25) == {
        one.id: {*asked[:3]},
        two.id: {asked[0]},
    }
    replace(store, msgspec.structs.replace(one, content="A window."))
    assert store.lexical.held(asked, [one.id], PLAIN_BM25) == {one.id: {asked[1]}}


def test_terms_of_a_text_keep_their_order_until_purged(store: Store) -> None:
    one, two = memory("The relays listen on a port.", title="Relay room"), memory("A door.")
    add(store, one, two)
    kept = store.memories.terms_of([one.id, two.id])
    assert kept == {one.id: ("relay listen port", "relay room"), two.id: ("door", "")}
    store.memories.purge(one.id)
    assert store.memories.terms_of([one.id, two.id]) == {two.id: ("door", "")}


def test_terms_are_listed_by_prefix(store: Store) -> None:
    add(store, memory("vault vault vat"), memory("vault valve wall"))
    assert sorted(store.lexical.terms_from("va")) == ["valv", "vat", "vault"]
    assert store.lexical.terms_from("zz") == []
