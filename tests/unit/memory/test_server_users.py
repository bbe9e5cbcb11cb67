"""Rights, visibility, and audit records of server users."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from functools import partial
from typing import Any, get_args

import pytest

from support.store_fixtures import Opened
from trivet import Conflict, InvalidInput, NotFound, Trivet
from trivet.common.clock import clock_fixed_at
from trivet.contract import VERBS
from trivet.errors import Forbidden, TooMany, TrivetError, Unauthorised
from trivet.memory.admin.accounts import RIGHTS, authenticate, make_key, tenant_in_key
from trivet.memory.answer.present import COARSE_STEP_MS
from trivet.memory.sealed_secrets import MAX_GUESSES, REJECTED_GUESS_ACT
from trivet.secrets.masking import MASK
from trivet.types import Caller, Permission, Right

EVERY_RIGHT: frozenset[Right] = frozenset(get_args(Right))
SECRET = "the deploy token is ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


def caller(user: str, rights: frozenset[Right] = EVERY_RIGHT) -> Caller:
    return Caller(tenant="default", user=user, role="admin", key="k", rights=rights)


@pytest.fixture
def ana(trivet: Trivet) -> Trivet:
    trivet.engine.store.accounts.add_user("ana", "writer")
    return trivet.acting_as(caller("ana"))


@pytest.fixture
def bo(trivet: Trivet) -> Trivet:
    trivet.engine.store.accounts.add_user("bo", "writer")
    return trivet.acting_as(caller("bo", frozenset(("read", "write", "share", "reveal"))))


def test_users_get_coarse_timings_and_owner_exact_ones(trivet: Trivet, ana: Trivet) -> None:
    """Exact timings would reveal whether another user's memories hold a word."""
    ana.remember("zebra relay")
    answer = ana.recall("zebra relay")
    times = [
        answer.took_ms,
        *answer.stages_ms.values(),
        *(leg.took_ms for leg in answer.health.legs),
    ]
    assert answer.took_ms > 0
    assert {took % COARSE_STEP_MS for took in times} == {0.0}
    exact = trivet.recall("zebra relay")
    assert exact.took_ms % COARSE_STEP_MS
    assert any(leg.took_ms % COARSE_STEP_MS for leg in exact.health.legs)


def error_of(call: Callable[[Trivet], Any], it: Trivet) -> TrivetError | None:
    try:
        call(it)
    except TrivetError as error:
        return error
    return None


ID = "0199c2f4-7d1e-7a3b-9c55-2f6f0f6c1a2b"
# Every method of the facade and the right it requires.
METHODS: dict[str, tuple[Right, Callable[[Trivet], Any]]] = {
    "remember": ("write", lambda it: it.remember("x")),
    "remember_many": ("write", lambda it: it.remember_many([{"content": "x"}])),
    "recall": ("read", lambda it: it.recall("x")),
    "recall revealing": ("reveal", lambda it: it.recall("x", reveal=True)),
    "get": ("read", lambda it: it.get(ID)),
    "list": ("read", lambda it: it.list()),
    "list revealing": ("reveal", lambda it: it.list(reveal=True)),
    "edit": ("write", lambda it: it.edit(ID, title="x")),
    "forget": ("write", lambda it: it.forget(ID)),
    "restore": ("write", lambda it: it.restore(ID)),
    "purge": ("write", lambda it: it.purge(ID)),
    "link": ("write", lambda it: it.link(ID, "see-also", ID[:-1] + "c")),
    "unlink": ("write", lambda it: it.unlink(ID, "see-also", ID[:-1] + "c")),
    "links": ("read", lambda it: it.links(ID)),
    "share": ("share", lambda it: it.share("bo", id=ID)),
    "unshare": ("share", lambda it: it.unshare("bo", id=ID)),
    "shares": ("read", lambda it: it.shares()),
    "reveal": ("reveal", lambda it: it.reveal(ID)),
    "history": ("read", lambda it: it.history(ID)),
    "diff": ("read", lambda it: it.diff(ID, 1, 2)),
    "diff revealing": ("reveal", lambda it: it.diff(ID, 1, 2, reveal=True)),
    "history revealing": ("reveal", lambda it: it.history(ID, reveal=True)),
    "get revealing": ("reveal", lambda it: it.get(ID, reveal=True)),
    "why_not": ("read", lambda it: it.why_not("x", ID)),
    "concepts": ("read", lambda it: it.concepts()),
    "graph": ("read", lambda it: it.graph(ID)),
    "tags": ("read", lambda it: it.tags()),
    "categories": ("read", lambda it: it.categories()),
    "sources": ("read", lambda it: it.sources()),
    "days": ("read", lambda it: it.days()),
    "inbox_list": ("read", lambda it: it.inbox_list()),
    "inbox_show": ("read", lambda it: it.inbox_show(ID)),
    "inbox_propose": ("write", lambda it: it.inbox_propose("x")),
    "inbox_accept": ("write", lambda it: it.inbox_accept([ID])),
    "inbox_edit": ("write", lambda it: it.inbox_edit(ID, content="x")),
    "inbox_reject": ("write", lambda it: it.inbox_reject([ID])),
    "inbox_reopen": ("write", lambda it: it.inbox_reopen([ID])),
    "feedback": ("write", lambda it: it.feedback(ID, "useful")),
    "usage": ("read", lambda it: it.usage(ID)),
    "sync_conflicts": ("read", lambda it: it.sync_conflicts()),
    "sync_conflicts revealing": ("reveal", lambda it: it.sync_conflicts(reveal=True)),
    "sync_resolve": ("write", lambda it: it.sync_resolve(ID)),
    "sync_status": ("read", lambda it: it.sync_status()),
    "sync_refused": ("read", lambda it: it.sync_refused()),
    "sync_refused revealing": ("reveal", lambda it: it.sync_refused(reveal=True)),
    "sync_drop": ("write", lambda it: it.sync_drop(ID)),
    "stats": ("read", lambda it: it.stats()),
    "doctor": ("admin", lambda it: it.doctor()),
    "mend": ("admin", lambda it: it.mend("embed")),
    "budgets": ("admin", lambda it: it.budgets()),
    "list_users": ("admin", lambda it: it.list_users()),
    "add_user": ("admin", lambda it: it.add_user("eve")),
    "set_role": ("admin", lambda it: it.set_role("eve", "reader")),
    "remove_user": ("admin", lambda it: it.remove_user("eve")),
    "own_key": ("read", lambda it: it.own_key()),
    "sign_out": ("read", lambda it: it.sign_out()),
    "list_keys": ("read", lambda it: it.list_keys()),
    "add_key": ("admin", lambda it: it.add_key("ana")),
    "revoke_key": ("admin", lambda it: it.revoke_key("k")),
    "audit": ("read", lambda it: it.audit()),
    "export": ("read", lambda it: list(it.export())),
    "export of sensitive memories": ("reveal", lambda it: list(it.export(include_sensitive=True))),
    "import_": ("write", lambda it: it.import_([])),
}
OWNER_ONLY: dict[str, Callable[[Trivet], Any]] = {
    "rotate_keys": lambda it: it.rotate_keys(),
    "redact": lambda it: it.redact(),
    "backup": lambda it: it.backup("/nonexistent/x"),
    "reindex": lambda it: it.reindex(),
    "embed": lambda it: it.embed(),
    "drain": lambda it: it.drain(),
    "tidy": lambda it: it.tidy(),
}
NOT_VERBS = {
    "open",
    "server",
    "remote",
    "through",
    "of",
    "acting_as",
    "close",
    "settings",
    "engine",
    "perform",
}


def test_every_method_is_covered() -> None:
    public = {name for name in vars(Trivet) if not name.startswith("_")} | set(VERBS)
    assert public - NOT_VERBS == {name.partition(" ")[0] for name in METHODS} | set(OWNER_ONLY)


@pytest.mark.parametrize("name", METHODS)
def test_method_requires_its_right(trivet: Trivet, ana: Trivet, name: str) -> None:
    right, call = METHODS[name]
    without = trivet.acting_as(caller("ana", EVERY_RIGHT - {right}))
    with pytest.raises(Forbidden, match=right):
        call(without)
    assert list(trivet.list().memories) == []
    with_it: frozenset[Right] = frozenset(
        (right, "read", "write") if "reveal" in name or right == "reveal" else (right,)
    )
    # The arguments are invented, so the call may fail; only the right matters.
    assert not isinstance(error_of(call, trivet.acting_as(caller("ana", with_it))), Forbidden)


@pytest.mark.parametrize("name", OWNER_ONLY)
def test_upkeep_is_for_the_store_owner(ana: Trivet, name: str) -> None:
    with pytest.raises(Forbidden, match="the owner of the store"):
        OWNER_ONLY[name](ana)


def test_users_see_their_own_and_shared_memories(trivet: Trivet, ana: Trivet, bo: Trivet) -> None:
    mine = trivet.remember("the harbour opens at six").id
    hers = ana.remember("the harbour opens at seven", tags=["harbour"]).id
    assert [hit.id for hit in ana.recall("harbour").hits] == [hers]
    assert bo.recall("harbour").hits == ()
    assert {hit.id for hit in trivet.recall("harbour", collapse=False).hits} == {mine, hers}
    assert ana.get(hers).owner == "ana"
    ana.share("bo", tag="harbour")
    assert [hit.id for hit in bo.recall("harbour").hits] == [hers]
    assert bo.why_not("harbour", hers).verdict
    ana.unshare("bo", tag="harbour")
    for ask in (bo.get, bo.history, bo.links, bo.reveal, bo.forget, bo.restore, bo.purge, bo.graph):
        with pytest.raises(NotFound):
            ask(hers)
    with pytest.raises(NotFound):
        bo.why_not("harbour", hers)


def test_near_duplicates_of_others_are_hidden(ana: Trivet, bo: Trivet) -> None:
    text = "the harbour opens at seven in the morning on every day but Sunday"
    ana.remember(text)
    assert bo.remember(text).near_duplicates == ()
    assert len(ana.remember(text + "s").near_duplicates) == 1


def test_counts_cover_own_memories(trivet: Trivet, ana: Trivet, bo: Trivet) -> None:
    ana.remember("a", tags=["x"], category="events")
    stats = bo.stats()
    assert (stats.memories, stats.tags, stats.revisions, stats.bytes) == ({}, {}, 0, None)
    assert str(trivet.settings.path) not in stats.path
    assert bo.tags() == ()
    assert {count.memories for count in bo.categories()} == {0}
    assert [(count.name, count.memories) for count in ana.tags()] == [("x", 1)]
    assert ("events", 1) in [(count.name, count.memories) for count in ana.categories()]


def test_only_owner_reveals_and_it_is_audited(trivet: Trivet, ana: Trivet, bo: Trivet) -> None:
    plain = ana.remember(SECRET).id
    sensitive = ana.remember("my diagnosis", sensitive=True, tags=["health"]).id
    ana.share("bo", id=plain)
    ana.share("bo", tag="health")
    with pytest.raises(Forbidden, match="only they can reveal"):
        bo.reveal(plain)
    with pytest.raises(NotFound):
        bo.get(sensitive, reveal=True)
    assert bo.recall("diagnosis", reveal=True).hits == ()
    assert bo.remember("my diagnosis").near_duplicates == (), "a guess must not be confirmed"
    assert ana.get(sensitive).content == MASK
    assert ana.get(sensitive, reveal=True).content == "my diagnosis"
    assert ana.reveal(plain).content == SECRET
    ana.edit(sensitive, content="my other diagnosis")
    assert "my diagnosis" in ana.diff(sensitive, 1, 2, reveal=True)
    assert any("my other diagnosis" in line for line in ana.export(include_sensitive=True))
    acts = [(entry.actor, entry.act, entry.memory) for entry in trivet.audit(limit=50)]
    assert ("ana", "reveal", plain) in acts
    assert acts.count(("ana", "reveal sensitive", sensitive)) == 2
    assert ("ana", "reveal sensitive", None) in acts
    assert ("bo", "reveal", plain) not in acts


def test_audit_shows_own_entries_unless_admin(trivet: Trivet, ana: Trivet, bo: Trivet) -> None:
    ana.remember("x")
    bo.remember("y")
    assert {entry.actor for entry in bo.audit()} == {"bo"}
    assert {entry.actor for entry in ana.audit()} == {"ana", "bo", None}
    assert all(finding.ok for finding in trivet.doctor())


def test_export_holds_visible_memories_and_imports_as_own(
    trivet: Trivet, ana: Trivet, bo: Trivet
) -> None:
    first = ana.remember("first of all", tags=["t"]).id
    second = ana.remember("second of all").id
    ana.edit(first, content="first, changed")
    ana.link(first, "see-also", second)
    lines = list(ana.export())
    assert not any("first" in line for line in bo.export())
    done = bo.import_(lines)
    assert (done.stored, done.links, done.errors) == (2, 1, ())
    his = bo.list().memories
    assert {memory.owner for memory in his} == {"bo"}
    assert {memory.id for memory in his}.isdisjoint({first, second}), "imported copies get new ids"
    changed = next(memory for memory in his if memory.content == "first, changed")
    assert len(bo.history(changed.id)) == 2
    assert len(bo.links(changed.id)) == 1
    assert bo.import_(lines).unchanged == 2, "importing again changes nothing"
    assert ana.import_(lines).unchanged == 2
    assert [memory.owner for memory in ana.list().memories] == ["ana", "ana"]


def test_link_import_does_not_disclose_hidden_memory(ana: Trivet, bo: Trivet) -> None:
    hers, mine = ana.remember("hers").id, bo.remember("mine").id
    errors_seen = []
    for target in (hers, ID):
        line = {
            "link": {
                "kind": "see-also",
                "source": mine,
                "target": target,
                "created_at": "2024-01-01T00:00:00Z",
            }
        }
        errors_seen.append(bo.import_([json.dumps(line)]).errors[0].replace(target, "ID"))
    assert errors_seen[0] == errors_seen[1]


def test_taken_id_of_another_user_is_not_disclosed(ana: Trivet, bo: Trivet) -> None:
    ana.remember("hers", id=ID)
    stored = bo.remember(SECRET, id=ID)
    assert stored.status == "stored"
    assert stored.id != ID
    again = bo.remember(SECRET, id=ID)
    assert (again.status, again.id) == ("unchanged", stored.id)
    assert bo.reveal(stored.id).content == SECRET
    assert ana.get(ID).content == "hers"
    with pytest.raises(Conflict):
        ana.remember("something else", id=ID)


def test_write_share_allows_content_edits_only(ana: Trivet, bo: Trivet) -> None:
    id = ana.remember("draft").id
    ana.share("bo", id=id, permission="write")
    assert bo.edit(id, content="better draft").owner == "ana"
    with pytest.raises(Forbidden):
        bo.edit(id, tags=["mine"])
    with pytest.raises(Forbidden):
        bo.forget(id)
    assert ana.get(id).content == "better draft"
    assert [entry.actor for entry in ana.audit() if entry.act == "edit"] == ["bo"]


def test_write_share_cannot_guess_secret_by_placeholder(ana: Trivet, bo: Trivet) -> None:
    id = ana.remember(SECRET).id
    ana.share("bo", id=id, permission="write")
    guessed = bo.edit(id, content=SECRET).content
    other = bo.edit(id, content=SECRET.replace("a1B2", "z9Y8")).content
    assert "[secret:github-token:2]" in guessed
    assert "[secret:github-token:3]" in other
    assert "[secret:github-token:1]" in ana.edit(id, content=SECRET).content


def outcome(call: Callable[[], Any]) -> str:
    try:
        return str(call())
    except TrivetError as error:
        return f"{type(error).__name__}: {error}"


PRIVATE = "the safe opens with <private>4711</private>"
# Calls by which a user might test a guess about sealed text in a shared memory.
GUESSES: dict[str, Callable[[Trivet, str, str], Any]] = {
    "remember": lambda it, id, guess: it.remember(guess, id=id),
    "remember_many": lambda it, id, guess: it.remember_many([{"content": guess, "id": id}]),
    "import": lambda it, id, guess: it.import_([json.dumps({"content": guess, "id": id})]),
    "import later": lambda it, id, guess: it.import_(
        [json.dumps({"content": guess, "id": id, "created_at": "2999"})]
    ),
    "import of an export": lambda it, id, guess: it.import_(
        [row.replace(it.get(id).content, guess) for row in it.export() if id in row]
    ),
}


@pytest.mark.parametrize("permission", ["read", "write"])
@pytest.mark.parametrize("name", GUESSES)
@pytest.mark.parametrize("text", [SECRET, PRIVATE], ids=["secret", "private"])
def test_answers_do_not_depend_on_sealed_text(
    trivet: Trivet, ana: Trivet, bo: Trivet, name: str, permission: Permission, text: str
) -> None:
    id = ana.remember(text).id
    ana.share("bo", id=id, permission=permission)
    wrong = text.replace("a1B2", "z9Y8").replace("4711", "4712")
    assert wrong != text
    answers = [outcome(partial(GUESSES[name], bo, id, guess)) for guess in (text, wrong)]
    assert answers[0] == answers[1]
    assert "unchanged=1" not in answers[0]
    assert ana.remember(text, id=id).status == "unchanged", "the owner's retry is still recognized"
    noted = [entry for entry in trivet.audit() if entry.actor == "bo"]
    assert [(entry.act, entry.memory) for entry in noted] == [(REJECTED_GUESS_ACT, id)] * 2
    assert ana.reveal(id).content == text


def test_guesses_are_limited(trivet: Trivet, ana: Trivet, bo: Trivet) -> None:
    id = ana.remember(PRIVATE).id
    ana.share("bo", id=id)
    lines = [
        json.dumps({"content": PRIVATE.replace("4711", f"{n:04}"), "id": id})
        for n in range(MAX_GUESSES + 5)
    ]
    errors = bo.import_(lines).errors
    assert len([one for one in errors if "within an hour" in one]) == 5
    with pytest.raises(TooMany):
        bo.remember(PRIVATE, id=id)
    assert (
        len([entry for entry in trivet.audit(limit=100) if entry.act == REJECTED_GUESS_ACT])
        == MAX_GUESSES
    )
    assert bo.remember(PRIVATE).status == "stored", "the limit does not apply to own memories"
    with clock_fixed_at("2999-01-01"), pytest.raises(Conflict):
        bo.remember(PRIVATE, id=id)


def test_key_without_reveal_has_limited_guesses(trivet: Trivet, ana: Trivet) -> None:
    agent = trivet.acting_as(caller("ana", frozenset(("read", "write"))))
    id = agent.remember(PRIVATE).id
    wrong = PRIVATE.replace("4711", "4712")
    assert agent.remember(PRIVATE, id=id).status == "unchanged"
    for _ in range(MAX_GUESSES // 2):
        with pytest.raises(Conflict):
            agent.remember(wrong, id=id)
        assert (
            agent.import_([json.dumps({"content": wrong, "id": id, "created_at": "2001"})]).kept
            == 1
        )
    for guess in (wrong, PRIVATE):
        with pytest.raises(TooMany):
            agent.remember(guess, id=id)
    assert agent.import_([json.dumps({"content": PRIVATE, "id": id})]).unchanged == 0
    with pytest.raises(Conflict):
        ana.remember(wrong, id=id)
    assert "[private:2]" in agent.edit(id, content=PRIVATE).content
    assert (
        len([entry for entry in trivet.audit(limit=100) if entry.act == REJECTED_GUESS_ACT])
        == MAX_GUESSES
    )


def test_formerly_sensitive_revision_is_not_exported_to_others(ana: Trivet, bo: Trivet) -> None:
    id = ana.remember("my diagnosis", sensitive=True).id
    ana.edit(id, content="all is well", sensitive=False)
    ana.share("bo", id=id)
    assert any("diagnosis" in line for line in ana.export(include_sensitive=True))
    assert not any("diagnosis" in line for line in bo.export(include_sensitive=True))
    assert bo.import_(list(bo.export(include_sensitive=True))).errors == ()


@pytest.mark.parametrize("text", ["the heron nests here", SECRET], ids=["plain", "secret"])
def test_imported_id_does_not_disclose_other_owners(
    trivet: Trivet, ana: Trivet, bo: Trivet, text: str
) -> None:
    line = json.dumps({"content": text})
    ana.import_([line])
    [hers] = ana.list().memories
    ana.share("bo", id=hers.id)
    assert bo.import_([line]).stored == 1
    assert len({memory.id for memory in bo.list().memories}) == 2
    assert [bo.import_([line]).unchanged, ana.import_([line]).unchanged] == [1, 1]
    assert trivet.import_([line]).stored == 1
    guess = str(uuid.uuid5(uuid.NAMESPACE_URL, f"trivet-import:default:{text}"))
    assert bo.remember("mine", id=guess).id == guess, "the computable id must be free"


def test_earlier_import_keeps_its_id(ana: Trivet) -> None:
    """Earlier versions derived the id from the text alone."""
    id = str(uuid.uuid5(uuid.NAMESPACE_URL, "trivet-import:default:one fact"))
    ana.remember("one fact", id=id)
    assert ana.import_(['{"content": "one fact"}']).unchanged == 1


def test_refused_restore_writes_nothing(open_trivet: Opened) -> None:
    before = open_trivet(secrets="off")
    before.engine.store.accounts.add_user("bo", "writer")
    ana = before.acting_as(caller("ana"))
    id = ana.remember(SECRET).id
    odd = ana.remember(f"odd {SECRET}", category="events").id
    for one in (id, odd):
        ana.edit(one, title="now", category="facts")
        ana.share("bo", id=one, permission="write")
    before.close()
    trivet = open_trivet(categories=("facts",))
    ana, bo = (trivet.acting_as(caller(user)) for user in ("ana", "bo"))
    refusals: list[tuple[type[TrivetError], Callable[[], Any]]] = [
        (Forbidden, lambda: bo.restore(id, revision=1)),
        (Forbidden, lambda: bo.restore(id)),
        (Conflict, lambda: ana.restore(id)),
        (NotFound, lambda: ana.restore(id, revision=9)),
        (InvalidInput, lambda: ana.restore(odd, revision=1)),
    ]
    stored, noted = list(trivet.export()), trivet.audit()
    for error, call in refusals:
        with pytest.raises(error):
            call()
    assert (list(trivet.export()), trivet.audit()) == (stored, noted)
    assert "[secret:github-token:1]" in ana.restore(id, revision=1).content
    assert [entry.act for entry in ana.audit()][:2] == ["restore", "redact"]


@pytest.mark.parametrize(
    "fields",
    [
        {"state": "archived"},
        {"valid_to": "2001-01-01"},
        {"valid_from": "2999-01-01"},
        {"tags": ["mine"]},
        {"scope": "elsewhere"},
        {"sensitive": True},
    ],
)
def test_write_share_cannot_hide_a_memory(ana: Trivet, bo: Trivet, fields: dict[str, Any]) -> None:
    id = ana.remember("draft").id
    ana.share("bo", id=id, permission="write")
    with pytest.raises(Forbidden, match="Only its owner ana can"):
        bo.edit(id, **fields)
    assert ana.get(id) == ana.history(id)[0].memory
    assert ana.edit(id, **fields).revision == 2


def test_read_share_refuses_edit_without_changes(ana: Trivet, bo: Trivet) -> None:
    id = ana.remember("draft").id
    ana.share("bo", id=id)
    with pytest.raises(Forbidden, match="for reading"):
        bo.edit(id, content="draft")


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"user": "bo"}, "either"),
        ({"user": "bo", "id": ID, "tag": "x"}, "either"),
        ({"user": "ana", "tag": "x"}, "yourself"),
        ({"user": "nobody", "tag": "x"}, "no user"),
        ({"user": "Bo Ek", "tag": "x"}, "user"),
        ({"user": "bo", "tag": ""}, "tag"),
        ({"user": "bo", "tag": "x", "permission": "own"}, "permission"),
    ],
)
def test_invalid_shares_change_nothing(
    ana: Trivet, bo: Trivet, given: dict[str, Any], problem: str
) -> None:
    with pytest.raises((InvalidInput, NotFound), match=problem):
        ana.share(**given)
    assert ana.shares() == ()


def test_key_rights_follow_role_and_revocation(trivet: Trivet) -> None:
    store = trivet.engine.store
    store.accounts.add_user("ana", "writer")
    made = make_key(store, "acme", "ana", label="laptop")
    assert tenant_in_key(made.text) == "acme"
    known = authenticate(store, "acme", made.text)
    assert (known.user, known.role, known.key) == ("ana", "writer", made.key.id)
    assert known.rights == {"read", "write", "share"}, "reveal is not a default right"
    assert authenticate(
        store, "acme", make_key(store, "acme", "ana", ["read", "reveal"]).text
    ).rights == {
        "read",
        "reveal",
    }
    with pytest.raises(InvalidInput, match="writer cannot have admin"):
        make_key(store, "acme", "ana", ["admin"])
    store.accounts.set_role("ana", "reader")
    assert authenticate(store, "acme", made.text).rights == {"read"}, (
        "a lower role limits existing keys"
    )
    for bad in (
        made.text + "x",
        made.text[:-1],
        made.text.replace(made.key.id, "0" * 12),
        "",
        "tvt",
        "a.b.c.d",
        "\udcff",
    ):
        with pytest.raises(Unauthorised):
            authenticate(store, "acme", bad)
    with pytest.raises(Unauthorised):
        authenticate(store, "acme", made.text, is_here=False)
    store.accounts.revoke(made.key.id)
    with pytest.raises(Unauthorised):
        authenticate(store, "acme", made.text)
    assert set(RIGHTS["admin"]) == EVERY_RIGHT


def test_expired_key_is_refused(trivet: Trivet, monkeypatch: pytest.MonkeyPatch) -> None:
    store = trivet.engine.store
    store.accounts.add_user("ana", "writer")
    made = make_key(store, "acme", "ana", expires_at="2999-01-01T00:00:00Z")
    authenticate(store, "acme", made.text)
    monkeypatch.setattr("trivet.memory.admin.accounts.now", lambda: "2999-01-01T00:00:00.000000Z")
    with pytest.raises(Unauthorised):
        authenticate(store, "acme", made.text)
    with pytest.raises(InvalidInput, match="has passed"):
        make_key(store, "acme", "ana", expires_at="2990-01-01T00:00:00Z")


def test_key_secret_is_not_stored(trivet: Trivet) -> None:
    store = trivet.engine.store
    store.accounts.add_user("ana", "writer")
    secret = make_key(store, "acme", "ana").text.rpartition(".")[2]
    stored = b"".join(
        file.read_bytes()
        for file in trivet.engine.store._database.path.parent.glob("memory.db*")  # type: ignore[attr-defined]
    )
    assert secret.encode() not in stored
