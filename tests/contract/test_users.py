"""Memories are private by default in every read and write of a server's store."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from support.stores import EARLY, add, document, embed, found, link, memory, near, replace
from trivet.common.clock import moment
from trivet.errors import Conflict, Forbidden, InvalidInput, NotFound, StoreError
from trivet.memory.similarity import fingerprint
from trivet.store.records import WalkSeeds
from trivet.store.relational.store import RelationalStore as Store
from trivet.store.relational.tables.memories import Memories
from trivet.types import Filter, Key, Memory, Permission, Sealed, State

from .graphs import EVERYTHING, HOW, held, read_all

WAYS = set(
    "get page everything words vectors similar count stats tags categories sources days concepts concept named "
    "walked".split()
)
EVERY_STATE: tuple[State, ...] = ("active", "superseded", "archived", "deleted")


@pytest.fixture
def ana(store: Store) -> Store:
    return store.seen_by("ana")


@pytest.fixture
def bo(store: Store) -> Store:
    return store.seen_by("bo")


def ana_memory(text: str, **more: object) -> Memory:
    return memory(text, owner="ana", source="diary.md", **more)  # type: ignore[arg-type]


def seen(store: Store, one: Memory, user: str) -> set[str]:
    """Return every access path through which the user sees this memory."""
    filter = Filter(states=EVERY_STATE, viewer=user)
    theirs = store.seen_by(user)
    model = store.vectors.adopt("tiny", "a", 2)
    embed(store, model, {held.content: (1, 0) for held in store.memories.everything()})
    read_all(store)
    named = store.graph.named(["clara"], EVERYTHING, HOW)
    clara = WalkSeeds(memories={}, concepts={concept.concept: concept.weight for concept in named})
    ways = {
        "get": bool(theirs.memories.get_many([one.id])),
        "page": one.id
        in [held.id for held in theirs.memories.page(filter, "recency", 10, 0).memories],
        "everything": one.id in [held.id for held in theirs.memories.everything()],
        "words": one.id in found(store, one.content, filter),
        "vectors": one.id in near(store, model, (1, 0), filter),
        "similar": one.id in store.lexical.similar("", fingerprint(one.content), 10, user),
        "count": theirs.memories.visible_count(filter) > 0,
        "stats": sum(theirs.memories.stats().memories.values()) > 0,
        "tags": bool(theirs.memories.tags(filter, 10)),
        "categories": bool(theirs.memories.categories(filter)),
        "sources": bool(theirs.memories.sources(filter, None, 10)),
        "days": bool(theirs.memories.days(filter, 0, 10)),
        "concepts": theirs.concepts.page(filter, None, None, "memories", 10, 0).total > 0,
        "concept": theirs.concepts.find("clara", "clara", filter) is not None,
        "named": bool(held(store, "clara", filter=filter)),
        "walked": one.id in [walked.id for walked in store.graph.walk(clara, filter, HOW, 10)],
    }
    assert set(ways) == WAYS
    return {way for way, is_seen in ways.items() if is_seen}


TEXT = "we met Clara at the northern lighthouse on a very windy day"


def test_other_user_sees_nothing_through_any_path(store: Store, ana: Store) -> None:
    one = ana_memory(TEXT, tags=("trip",))
    add(ana, one)
    assert seen(store, one, "ana") == WAYS
    assert seen(store, one, "bo") == set()


@pytest.mark.parametrize("grantee", ["bo", "*"])
@pytest.mark.parametrize("by", ["memory", "tag"])
def test_sharing_shows_it_everywhere_and_unsharing_hides_it(
    store: Store, ana: Store, grantee: str, by: str
) -> None:
    one, other = ana_memory(TEXT, tags=("trip",)), ana_memory(f"{TEXT}, twice", tags=("secret",))
    add(ana, one, other)
    seen(store, one, "bo")  # fill every cache
    if by == "memory":
        ana.shares.share_memory(one.id, grantee, "read")
    else:
        ana.shares.share_tag("trip", grantee, "read")
    assert seen(store, one, "bo") == WAYS
    assert "words" not in seen(store, other, "bo")
    if by == "memory":
        ana.shares.unshare_memory(one.id, grantee)
    else:
        ana.shares.unshare_tag("trip", grantee)
    assert seen(store, one, "bo") == set()


def test_shared_tag_applies_to_later_changes(store: Store, ana: Store, bo: Store) -> None:
    ana.shares.share_tag("trip", "bo", "read")
    one = ana_memory(TEXT)
    add(ana, one)
    assert "words" not in seen(store, one, "bo")
    tagged = replace(ana, msgspec.structs.replace(one, tags=("trip",)))
    assert "words" in seen(store, one, "bo")
    replace(ana, msgspec.structs.replace(tagged, tags=()))
    assert "words" not in seen(store, one, "bo")
    bo_memory = memory("bo was here", owner="bo", tags=("trip",))
    add(bo, bo_memory)
    assert not ana.memories.get_many([bo_memory.id]), (
        "her rule shares her memories, not everyone's with that tag"
    )


@pytest.mark.parametrize("permission", ["read", "write"])
@pytest.mark.parametrize("by", ["memory", "tag"])
def test_writers_change_and_only_owners_forget_or_share(
    ana: Store, bo: Store, permission: Permission, by: str
) -> None:
    one, ana_other = ana_memory(TEXT, tags=("trip",)), ana_memory("another one")
    bo_memory = memory("mine", owner="bo")
    add(ana, one, ana_other)
    add(bo, bo_memory)
    if by == "memory":
        ana.shares.share_memory(one.id, "bo", permission)
    else:
        ana.shares.share_tag("trip", "bo", permission)
    changed = msgspec.structs.replace(bo.memories.get(one.id), content="we met nobody")
    if permission == "read":
        with pytest.raises(Forbidden, match="for reading"):
            replace(bo, changed)
        with pytest.raises(Forbidden):
            bo.links.add(link(one, "see-also", bo_memory))
        with pytest.raises(Forbidden):
            bo.links.add(link(bo_memory, "supersedes", one))
        assert bo.links.add(link(bo_memory, "see-also", one))
    else:
        changed = replace(bo, changed)
        assert ana.memories.get(one.id).content == "we met nobody"
        assert bo.links.add(link(one, "see-also", bo_memory))
        with pytest.raises(Forbidden, match="Only its owner can supersede"):
            bo.links.add(link(bo_memory, "supersedes", one))
        assert bo.links.add(link(one, "supersedes", bo_memory))
    for action in ("forget", "restore", "import"):
        with pytest.raises(Forbidden, match=f"Only its owner can {action}"):
            replace(bo, bo.memories.get(one.id), action)
    with pytest.raises(Forbidden, match="Only its owner can purge"):
        bo.memories.purge(one.id)
    with pytest.raises(Forbidden, match="Only its owner can share"):
        bo.shares.share_memory(one.id, "eve", "read")
    with pytest.raises(Forbidden, match="Only its owner can share"):
        bo.shares.unshare_memory(one.id, "bo")
    for field, value in {"tags": ("public",), "sensitive": True, "scope": "elsewhere"}.items():
        with pytest.raises(Forbidden):
            replace(bo, msgspec.structs.replace(bo.memories.get(one.id), **{field: value}))
    assert ana.memories.get(one.id).tags == ("trip",)


def test_hidden_and_missing_ids_give_the_same_error(ana: Store, bo: Store) -> None:
    one, other = ana_memory(TEXT), memory("mine", owner="bo")
    add(ana, one)
    add(bo, other)
    sealed = Sealed(
        revision=2, field="content", kind="jwt", number=1, key="k", nonce=b"n", sealed=b"s"
    )
    ana.memories.replace(one, document(one), "edit", [sealed])
    nobody = msgspec.structs.replace(one, id="0199c2f4-7d1e-7a3b-9c55-2f6f0f6c1a2b")
    attempts: list[Callable[[Memory], object]] = [
        lambda it: bo.memories.get(it.id),
        lambda it: bo.memories.revisions(it.id),
        lambda it: bo.memories.is_visible(it.id, Filter(viewer="bo")),
        lambda it: replace(bo, it),
        lambda it: bo.memories.purge(it.id),
        lambda it: bo.links.add(link(other, "see-also", it)),
        lambda it: bo.links.add(link(it, "see-also", other)),
        lambda it: bo.links.remove(other.id, "see-also", it.id),
        lambda it: bo.shares.share_memory(it.id, "eve", "read"),
        lambda it: bo.shares.unshare_memory(it.id, "eve"),
    ]
    for attempt in attempts:
        said = []
        for it in (one, nobody):
            with pytest.raises(NotFound) as error:
                attempt(it)
            said.append(str(error.value).replace(it.id, "ID"))
        assert said[0] == said[1]
    assert bo.memories.get_many([one.id]) == {}
    assert bo.links.touching([one.id]) == ()
    assert bo.secrets.of(one.id) == ()
    assert len(ana.secrets.of(one.id)) == 1


def test_sensitive_memory_is_visible_only_to_its_owner(store: Store, ana: Store) -> None:
    one = ana_memory(TEXT, tags=("trip",))
    add(ana, one)
    ana.shares.share_memory(one.id, "bo", "write")
    ana.shares.share_tag("trip", "bo", "read")
    assert seen(store, one, "bo") == WAYS
    hidden = replace(ana, msgspec.structs.replace(one, sensitive=True))
    assert seen(store, one, "bo") == set()
    with pytest.raises(InvalidInput, match="sensitive"):
        ana.shares.share_memory(one.id, "bo", "read")
    replace(ana, msgspec.structs.replace(hidden, sensitive=False))
    assert seen(store, one, "bo") == WAYS


def test_forgotten_memory_is_gone_for_others(store: Store, ana: Store) -> None:
    one = ana_memory(TEXT, tags=("trip",))
    add(ana, one)
    ana.shares.share_memory(one.id, "*", "write")
    forgotten = replace(ana, msgspec.structs.replace(one, state="deleted"), "forget")
    assert seen(store, one, "bo") == set()
    assert store.seen_by("ana").memories.get(one.id).state == "deleted"
    replace(ana, msgspec.structs.replace(forgotten, state="active"), "restore")
    assert seen(store, one, "bo") == WAYS


def test_links_are_shown_when_both_ends_are_visible(ana: Store, bo: Store) -> None:
    one, two = ana_memory(TEXT), ana_memory("the lighthouse has a keeper")
    add(ana, one, two)
    ana.links.add(link(one, "resolved-by", two))
    ana.shares.share_memory(one.id, "bo", "read")
    assert len(ana.links.touching([one.id])) == len(ana.links.everything()) == 1
    assert bo.links.touching([one.id]) == bo.links.everything() == ()
    assert (
        bo.links.from_sources([one.id], "resolved-by")
        == bo.links.to_targets([two.id], "resolved-by")
        == ()
    )
    ana.shares.share_memory(two.id, "bo", "read")
    assert (
        len(bo.links.touching([one.id])) == len(bo.links.from_sources([one.id], "resolved-by")) == 1
    )


def test_id_of_another_user_can_be_claimed_without_a_trace(ana: Store, bo: Store) -> None:
    one = ana_memory(TEXT)
    add(ana, one)
    claimed = bo.memories.claim(one.id)
    assert claimed != one.id
    add(bo, memory("mine", owner="bo", id=claimed))
    assert bo.memories.claim(one.id) == claimed, "a repeated request means the same memory"
    assert bo.memories.claim(claimed) == claimed
    assert ana.memories.claim(one.id) == one.id
    assert ana.memories.get(one.id).content == TEXT
    with pytest.raises(Conflict, match="at once"):
        add(bo, memory("mine", owner="bo", id=one.id))


def test_users_cannot_store_for_others(bo: Store, store: Store) -> None:
    with pytest.raises(Forbidden):
        add(bo, ana_memory("put into her mouth"))
    assert list(store.memories.everything()) == []


def test_writes_of_users_are_recorded_and_those_of_the_store_not(store: Store, ana: Store) -> None:
    one, two = ana_memory(TEXT, tags=("trip",)), ana_memory("another")
    add(store, memory("by whoever has the store"))
    assert store.audit.noted(10) == ()
    add(ana, one, two)
    replace(ana, msgspec.structs.replace(one, content="changed"))
    ana.links.add(link(one, "see-also", two))
    ana.shares.share_memory(one.id, "bo", "write")
    ana.shares.share_tag("trip", "bo", "read")
    ana.shares.unshare_memory(one.id, "bo")
    ana.memories.purge(two.id)
    noted = [(entry.act, entry.memory, entry.actor) for entry in reversed(store.audit.noted(20))]
    assert noted == [
        ("remember", one.id, "ana"),
        ("remember", two.id, "ana"),
        ("edit", one.id, "ana"),
        ("link", one.id, "ana"),
        ("share", one.id, "ana"),
        ("share", "tag trip", "ana"),
        ("unshare", one.id, "ana"),
        ("purge", two.id, "ana"),
    ]
    assert store.audit.noted(20, "bo") == ()
    assert [
        finding.ok for finding in store.upkeep.findings() if finding.check == "audit record"
    ] == [True]


def test_refused_write_is_not_recorded(store: Store, ana: Store, bo: Store) -> None:
    one = ana_memory(TEXT)
    add(ana, one)
    ana.shares.share_memory(one.id, "bo", "read")
    before = store.audit.noted(10)
    with pytest.raises(Forbidden):
        replace(bo, msgspec.structs.replace(bo.memories.get(one.id), content="no"))
    assert store.audit.noted(10) == before


def test_users_and_keys(store: Store) -> None:
    accounts = store.accounts
    accounts.add_user("ana", "writer")
    with pytest.raises(Conflict):
        accounts.add_user("ana", "reader")
    key = Key(id="k1", user="ana", rights=("read",), label="laptop", created_at=moment(EARLY))
    accounts.add_key(key, b"hash")
    with pytest.raises(NotFound, match="user add eve"):
        accounts.add_key(msgspec.structs.replace(key, id="k2", user="eve"), b"hash")
    known = accounts.key("k1")
    assert known is not None
    assert (known.key, known.hash, known.role) == (key, b"hash", "writer")
    assert accounts.key("k2") is None
    accounts.set_role("ana", "reader")
    accounts.revoke("k1")
    known = accounts.key("k1")
    assert known is not None
    assert known.role == "reader"
    assert known.key.revoked_at
    with pytest.raises(NotFound):
        accounts.revoke("k1")
    assert [(user.name, user.role) for user in accounts.users()] == [("ana", "reader")]
    accounts.remove_user("ana")
    assert accounts.keys() == ()
    with pytest.raises(NotFound):
        accounts.remove_user("ana")


def test_user_and_key_changes_record_the_actor(store: Store, ana: Store) -> None:
    store.accounts.add_user("ana", "admin")
    ana.accounts.add_user("bo", "reader")
    ana.accounts.add_key(
        Key(id="k1", user="bo", rights=("read",), label="", created_at=moment(EARLY)), b"hash"
    )
    ana.accounts.set_role("bo", "writer")
    ana.accounts.revoke("k1")
    ana.accounts.remove_user("bo")
    noted = [(entry.actor, entry.act) for entry in reversed(store.audit.noted(10))]
    acts = ("add user", "add key", "change role", "revoke key", "remove user")
    assert noted == [(None, "add user"), *(("ana", act) for act in acts)]


def test_users_with_memories_are_known_after_removal(store: Store, ana: Store) -> None:
    assert not store.accounts.has_stored("ana")
    store.accounts.add_user("ana", "writer")
    one = ana_memory(TEXT)
    add(ana, one)
    replace(ana, msgspec.structs.replace(one, state="deleted"), "forget")
    store.accounts.remove_user("ana")
    assert ana.accounts.has_stored("ana")
    assert not ana.accounts.has_stored("bo")


def test_new_user_does_not_inherit_a_removed_users_shares(
    store: Store, ana: Store, bo: Store
) -> None:
    store.accounts.add_user("bo", "reader")
    one = ana_memory(TEXT, tags=("trip",))
    add(ana, one)
    ana.shares.share_memory(one.id, "bo", "read")
    ana.shares.share_tag("trip", "bo", "read")
    assert {share.user for share in bo.shares.all()} == {"bo"}
    assert seen(store, one, "bo") == WAYS  # fill every cache
    store.accounts.remove_user("bo")
    assert bo.shares.all() == ()
    assert seen(store, one, "bo") == set()


def test_store_location_is_hidden_from_users(
    store: Store, ana: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = store.memories.stats().path

    def fail(*_: object) -> None:
        raise StoreError(f"The disk that holds {place} is full. Nothing was written.")

    monkeypatch.setattr(Memories, "_insert", fail)
    monkeypatch.setattr(type(ana.memories._database), "read", fail)
    for act in (lambda: add(ana, ana_memory("x")), lambda: ana.memories.get(ana_memory("x").id)):
        with pytest.raises(StoreError) as error:
            act()
        assert (
            str(error.value)
            == "The disk that holds the server's store is full. Nothing was written."
        )
