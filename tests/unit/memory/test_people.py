"""Users and keys as an admin of a server manages them: no right is won by it, and nothing private is opened."""

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
    """The store as somebody who comes with a new key of this user sees it."""
    store = trivet.engine.store
    if not store.accounts.has(user):
        store.accounts.add_user(user, "admin")
    return acting(trivet, make_key(store, "default", user, rights).text)


def acting(trivet: Trivet, key: str) -> Trivet:
    return trivet.acting_as(authenticate(trivet.engine.store, "default", key))


@pytest.fixture
def admin(trivet: Trivet) -> Trivet:
    return with_key(trivet, "ada")


def test_an_admin_adds_a_user_hands_over_their_first_key_and_takes_it_back(
    trivet: Trivet, admin: Trivet
) -> None:
    assert admin.add_user("bo").role == "writer"
    made = admin.add_key("bo", label="laptop", days=30)
    assert (made.user, made.label, made.rights) == ("bo", "laptop", ("read", "write", "share"))
    assert made.expires_at is not None
    bo = acting(trivet, made.key)
    bo.remember("the ferry leaves at nine")
    secret = made.key.rpartition(".")[2]
    assert {key.user for key in admin.list_keys()} == {"ada", "bo"}
    assert secret not in str(admin.list_keys())
    assert [key.id for key in bo.list_keys()] == [made.id], "others see their own"
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


def test_no_key_opens_what_is_private_to_another(trivet: Trivet, admin: Trivet) -> None:
    """Whoever could make a key for another, could read as them: also by removing and adding them, or as `local`."""
    trivet.remember("stored without a server")
    admin.add_user("bo")
    bo = acting(trivet, admin.add_key("bo").key)
    with pytest.raises(Forbidden, match="is not new"):
        admin.add_key("bo")
    bo.remember("bo alone knows")
    admin.remove_user("bo")
    for name in ("bo", "local"):
        admin.add_user(name)
        with pytest.raises(Forbidden, match="private to them"):
            admin.add_key(name)
    assert trivet.add_key("bo").user == "bo", "whoever has the store may"
    assert [key.user for key in admin.list_keys()].count("bo") == 1


def test_a_key_gives_no_right_that_it_lacks(trivet: Trivet) -> None:
    less = with_key(trivet, "ada", ("read", "admin"))
    for right in ("reveal", "write", "share"):
        with pytest.raises(Forbidden, match=f"does not allow {right}"):
            less.add_key("ada", rights=["read", right])
    assert less.add_key("ada").rights == ("read", "admin")
    less.add_user("eve", role="admin")
    assert less.add_key("eve").rights == ("read", "admin")
    less.add_user("rea", role="reader")
    with pytest.raises(InvalidInput, match="a reader cannot have admin"):
        less.add_key("rea", rights=["admin"])
    reader = with_key(trivet, "rob", ("read",))
    for act in (reader.list_users, reader.doctor, reader.budgets, lambda: reader.add_key("rob")):
        with pytest.raises(Forbidden):
            act()


@pytest.mark.parametrize(
    "name", ["*", "Ana", "", "-x", "a b", "a" * 65, "ana\n", "../x", "x/y", "ana'; --"]
)
@pytest.mark.parametrize("verb", ["add_user", "set_role", "remove_user", "add_key"])
def test_names_that_are_none(admin: Trivet, verb: str, name: str) -> None:
    more: dict[str, Any] = {"role": "admin"} if verb == "set_role" else {}
    with pytest.raises(InvalidInput):
        getattr(admin, verb)(name, **more)
    assert [user.name for user in admin.list_users()] == ["ada"]


def test_an_admin_is_left(trivet: Trivet, admin: Trivet) -> None:
    mine = next(iter(admin.list_keys())).id
    for act in (lambda: admin.set_role("ada", "reader"), lambda: admin.remove_user("ada")):
        with pytest.raises(InvalidInput, match="Another admin"):
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
