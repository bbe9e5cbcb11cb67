"""The tenants of a server process: each its own store, opened for whoever comes with a key of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from trivet import InvalidInput, Trivet
from trivet.errors import StoreError, Unauthorised
from trivet.memory.admin.accounts import make_key
from trivet.serve.http.tenants import TENANT_IDLE_SECONDS, Tenants
from trivet.settings import Settings
from trivet.store.relational.tables.access import Accounts
from trivet.store.relational.tables.memories import Memories


@pytest.fixture
def settings(path: Path) -> Settings:
    return Settings(path=str(path), embedder="none", background=False, changes="off")


@pytest.fixture
def house(settings: Settings) -> Iterator[Tenants]:
    house = Tenants(settings)
    yield house
    house.close()


def key_of(settings: Settings, tenant: str, user: str = "ana") -> str:
    with Trivet.open(settings=settings, tenant=tenant) as trivet:
        store = trivet.engine.store
        if not store.accounts.has(user):
            store.accounts.add_user(user, "writer")
        return make_key(store, tenant, user).text


def test_tenants_do_not_see_each_other(house: Tenants, settings: Settings) -> None:
    acme, birch = (house.trivet(house.caller(key_of(settings, name))) for name in ("acme", "birch"))
    id = acme.remember("the harbour opens at six").id
    assert len(acme.recall("harbour").hits) == 1
    assert birch.recall("harbour").hits == ()
    birch.remember("ours, by the same id", id=id)
    assert birch.get(id).content != acme.get(id).content
    assert {file.name for file in Path(settings.path).with_name("memory.tenants").glob("*.db")} == {
        "acme.db",
        "birch.db",
    }


def test_a_key_opens_only_its_own_tenant_and_others_tell_nothing(
    house: Tenants, settings: Settings
) -> None:
    key = key_of(settings, "acme")
    assert house.caller(key).tenant == "acme"
    key_of(settings, "birch")
    said = set()
    for bad in (
        key.replace(".acme.", ".birch."), key.replace(".acme.", ".nobody."), key.replace(".acme.", ".default."),
        key.replace(".acme.", ".../acme."), key[:-1], "tvt.acme.x.y", "nonsense", "tvt.Acme.x.y",
    ):  # fmt: skip
        with pytest.raises(Unauthorised) as refused:
            house.caller(bad)
        said.add(str(refused.value))
    assert len(said) == 1, "whatever is wrong, the same is said"
    assert not Path(settings.path).with_name("memory.tenants").joinpath("nobody.db").exists(), (
        "nothing is made for it"
    )


@pytest.mark.parametrize("name", ["../x", "a b", "", "A", "x" * 64, ".", "ä"])
def test_a_tenant_cannot_have_any_name(settings: Settings, name: str) -> None:
    with pytest.raises(InvalidInput, match="tenant"):
        Trivet.open(settings=settings, tenant=name).close()


def test_an_idle_tenant_is_closed_and_opened_again(
    house: Tenants, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    caller = house.caller(key_of(settings, "acme"))
    first = house.trivet(caller)
    first.remember("kept")
    moment = [0.0]
    monkeypatch.setattr("trivet.serve.http.tenants.time.monotonic", lambda: moment[0])
    house.trivet(caller)
    moment[0] = TENANT_IDLE_SECONDS + 1
    house.check()
    assert list(house._tenants) == ["default"]
    assert len(house.trivet(caller).recall("kept").hits) == 1


def test_no_more_are_open_than_there_is_room_for_but_those_in_use(
    house: Tenants, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trivet.serve.http.tenants.MAX_OPEN_TENANTS", 3)
    callers = {
        name: house.caller(key_of(settings, name)) for name in ("acme", "birch", "cedar", "dune")
    }
    with house.using(callers["acme"]) as acme, house.using(callers["birch"]):
        for name in ("cedar", "dune", "cedar"):
            house.trivet(callers[name])
            assert house._tenants.keys() == {"default", "acme", "birch"}
        acme.remember("kept")
    house.trivet(callers["cedar"])
    assert house._tenants.keys() == {"default", "acme", "cedar"}, "birch is unused for longest"
    assert len(house.trivet(callers["acme"]).recall("kept").hits) == 1


def test_one_model_serves_all_tenants(settings: Settings) -> None:
    import msgspec

    house = Tenants(msgspec.structs.replace(settings, embedder="bundled"))
    try:
        engines = [
            house.trivet(house.caller(key_of(settings, name))).engine for name in ("acme", "birch")
        ]
        assert engines[0].embedding._configured is engines[1].embedding._configured
        assert engines[0].legs is engines[1].legs
        house._tenants["acme"].trivet.close()
        assert engines[1].acting_as(engines[1].caller).viewer == "ana"  # type: ignore[arg-type]
        assert house.trivet(house.caller(key_of(settings, "birch"))).recall("anything").hits == ()
    finally:
        house.close()


def test_who_has_no_key_does_not_learn_where_the_store_is(
    house: Tenants, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def troubled(*_: object) -> None:
        raise StoreError(f"The disk that holds {settings.path} is full. Nothing was written.")

    monkeypatch.setattr(Accounts, "key", troubled)
    monkeypatch.setattr(Memories, "page", troubled)
    for attempt in (house.check, lambda: house.caller("tvt.default.x.y")):
        with pytest.raises(StoreError) as error:
            attempt()
        assert (
            str(error.value)
            == "The disk that holds the server's store is full. Nothing was written."
        )
