"""Admins manage users and keys without gaining rights or access to private memories."""

from __future__ import annotations

from typing import Any

import pytest

from trivet import Conflict, InvalidInput, NotFound, Trivet
from trivet.common.clock import clock_fixed_at
from trivet.errors import Forbidden, Unauthorised
from trivet.memory.admin.accounts import authenticate, make_key
from trivet.types import Right


def with_key(
    trivet: Trivet, user: str, rights: tuple[Right, ...] = ("read", "write", "share", "admin")
) -> Trivet:
    """Return the store as seen with a new key of this user."""
    store = trivet.engine.store
    if not store.accounts.has(user):
        store.accounts.add_user(user, "admin")
    return acting(trivet, make_key(store, "default", user, rights).text)


def acting(trivet: Trivet, key: str) -> Trivet:
    return trivet.acting_as(authenticate(trivet.engine.store, "default", key))


@pytest.fixture
def admin(trivet: Trivet) -> Trivet:
    return with_key(trivet, "ada")


def test_admin_adds_user_issues_key_and_revokes_it(trivet: Trivet, admin: Trivet) -> None:
    assert admin.add_user("bo").role == "writer"
    made = admin.add_key("bo", label="laptop", days=30)
    assert (made.user, made.label, made.rights) == ("bo", "laptop", ("read", "write", "share"))
    assert made.expires_at is not None
    bo = acting(trivet, made.key)
    bo.remember("the ferry leaves at nine")
    secret = made.key.rpartition(".")[2]
    assert {key.user for key in admin.list_keys()} == {"ada", "bo"}
    assert secret not in str(admin.list_keys())
    assert [key.id for key in bo.list_keys()] == [made.id], "users see only their own keys"
    assert admin.set_role("bo", "reader").role == "reader"
    admin.revoke_key(made.id)
    with pytest.raises(Unauthorised):
        acting(trivet, made.key)
    admin.remove_user("bo")
    assert [user.name for user in admin.list_users()] == ["ada"]
    acts = {(entry.actor, entry.act) for entry in trivet.audit() if entry.actor == "ada"}
    assert acts == {
        ("ada", act) for act in ("add user", "add key", "change role", "revoke key", "remove user")
    }


def test_admin_keys_do_not_open_private_memories(trivet: Trivet, admin: Trivet) -> None:
    """A key for another user would read their memories, also after removing and re-adding them."""
    trivet.remember("stored without a server")
    admin.add_user("bo")
    bo = acting(trivet, admin.add_key("bo").key)
    with pytest.raises(Forbidden, match="is not new"):
        admin.add_key("bo")
    bo.remember("bo alone knows")
    admin.remove_user("bo")
    for name in ("bo", "local"):
        admin.add_user(name)
        with pytest.raises(Forbidden, match="their private memories"):
            admin.add_key(name)
    assert trivet.add_key("bo").user == "bo", "the store's owner may"
    assert [key.user for key in admin.list_keys()].count("bo") == 1


def test_key_cannot_grant_rights_it_lacks(trivet: Trivet) -> None:
    limited = with_key(trivet, "ada", ("read", "admin"))
    for right in ("reveal", "write", "share"):
        with pytest.raises(Forbidden, match=f"lacks these rights.*{right}"):
            limited.add_key("ada", rights=["read", right])
    assert limited.add_key("ada").rights == ("read", "admin")
    limited.add_user("eve", role="admin")
    assert limited.add_key("eve").rights == ("read", "admin")
    limited.add_user("rea", role="reader")
    with pytest.raises(InvalidInput, match="a reader cannot have admin"):
        limited.add_key("rea", rights=["admin"])
    reader = with_key(trivet, "rob", ("read",))
    for act in (reader.list_users, reader.doctor, reader.budgets, lambda: reader.add_key("rob")):
        with pytest.raises(Forbidden):
            act()


@pytest.mark.parametrize(
    "name", ["*", "Ana", "", "-x", "a b", "a" * 65, "ana\n", "../x", "x/y", "ana'; --"]
)
@pytest.mark.parametrize("verb", ["add_user", "set_role", "remove_user", "add_key"])
def test_invalid_names_are_refused(admin: Trivet, verb: str, name: str) -> None:
    options: dict[str, Any] = {"role": "admin"} if verb == "set_role" else {}
    with pytest.raises(InvalidInput):
        getattr(admin, verb)(name, **options)
    assert [user.name for user in admin.list_users()] == ["ada"]


def test_last_admin_cannot_be_removed(trivet: Trivet, admin: Trivet) -> None:
    mine = next(iter(admin.list_keys())).id
    for act in (lambda: admin.set_role("ada", "reader"), lambda: admin.remove_user("ada")):
        with pytest.raises(InvalidInput, match="Only another admin"):
            act()
    with pytest.raises(Conflict, match="last key of an admin"):
        admin.revoke_key(mine)
    admin.add_key("ada", rights=["read"])
    admin.add_user("bo", role="admin")
    with clock_fixed_at("2020-01-01"):
        admin.add_key("bo", days=1)
    with pytest.raises(Conflict, match="last key of an admin"):
        admin.revoke_key(mine)
    page = acting(trivet, admin.add_key("ada", days=1).key)
    for key in page.list_keys():
        if key.expires_at is not None and key.user == "ada":
            page.revoke_key(key.id)
    with pytest.raises(Conflict, match="last key of an admin"):
        admin.revoke_key(mine)
    admin.add_key("ada")
    admin.revoke_key(mine)
    with pytest.raises(NotFound):
        admin.revoke_key("nothing")
