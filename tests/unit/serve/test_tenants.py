"""Each tenant of a server process has its own store, opened for callers with its key."""

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
def open_tenants(settings: Settings) -> Iterator[Tenants]:
    open_tenants = Tenants(settings)
    yield open_tenants
    open_tenants.close()


def key_of(settings: Settings, tenant: str, user: str = "ana") -> str:
    with Trivet.open(settings=settings, tenant=tenant) as trivet:
        store = trivet.engine.store
        if not store.accounts.has(user):
            store.accounts.add_user(user, "writer")
        return make_key(store, tenant, user).text


def test_tenants_are_isolated(open_tenants: Tenants, settings: Settings) -> None:
    acme, birch = (
        open_tenants.trivet(open_tenants.caller(key_of(settings, name)))
        for name in ("acme", "birch")
    )
    id = acme.remember("the harbour opens at six").id
    assert len(acme.recall("harbour").hits) == 1
    assert birch.recall("harbour").hits == ()
    birch.remember("ours, by the same id", id=id)
    assert birch.get(id).content != acme.get(id).content
    assert {file.name for file in Path(settings.path).with_name("memory.tenants").glob("*.db")} == {
        "acme.db",
        "birch.db",
    }


def test_key_opens_only_its_own_tenant(open_tenants: Tenants, settings: Settings) -> None:
    key = key_of(settings, "acme")
    assert open_tenants.caller(key).tenant == "acme"
    key_of(settings, "birch")
    messages = set()
    for bad in (
        key.replace(".acme.", ".birch."), key.replace(".acme.", ".nobody."), key.replace(".acme.", ".default."),
        key.replace(".acme.", ".../acme."), key[:-1], "tvt.acme.x.y", "nonsense", "tvt.Acme.x.y",
    ):  # fmt: skip
        with pytest.raises(Unauthorised) as refused:
            open_tenants.caller(bad)
        messages.add(str(refused.value))
    assert len(messages) == 1, "every invalid key must give the same message"
    assert not Path(settings.path).with_name("memory.tenants").joinpath("nobody.db").exists(), (
        "an unknown tenant must create no file"
    )


@pytest.mark.parametrize("name", ["../x", "a b", "", "A", "x" * 64, ".", "ä"])
def test_invalid_tenant_name_is_rejected(settings: Settings, name: str) -> None:
    with pytest.raises(InvalidInput, match="tenant"):
        Trivet.open(settings=settings, tenant=name).close()


def test_idle_tenant_is_closed_and_reopened(
    open_tenants: Tenants, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    caller = open_tenants.caller(key_of(settings, "acme"))
    first = open_tenants.trivet(caller)
    first.remember("kept")
    moment = [0.0]
    monkeypatch.setattr("trivet.serve.http.tenants.time.monotonic", lambda: moment[0])
    open_tenants.trivet(caller)
    moment[0] = TENANT_IDLE_SECONDS + 1
    open_tenants.check()
    assert list(open_tenants._tenants) == ["default"]
    assert len(open_tenants.trivet(caller).recall("kept").hits) == 1


def test_open_tenants_are_limited_except_those_in_use(
    open_tenants: Tenants, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trivet.serve.http.tenants.MAX_OPEN_TENANTS", 3)
    callers = {
        name: open_tenants.caller(key_of(settings, name))
        for name in ("acme", "birch", "cedar", "dune")
    }
    with open_tenants.using(callers["acme"]) as acme, open_tenants.using(callers["birch"]):
        for name in ("cedar", "dune", "cedar"):
            open_tenants.trivet(callers[name])
            assert open_tenants._tenants.keys() == {"default", "acme", "birch"}
        acme.remember("kept")
    open_tenants.trivet(callers["cedar"])
    assert open_tenants._tenants.keys() == {"default", "acme", "cedar"}, (
        "birch was unused the longest"
    )
    assert len(open_tenants.trivet(callers["acme"]).recall("kept").hits) == 1


def test_tenants_share_one_model(settings: Settings) -> None:
    import msgspec

    open_tenants = Tenants(msgspec.structs.replace(settings, embedder="bundled"))
    try:
        engines = [
            open_tenants.trivet(open_tenants.caller(key_of(settings, name))).engine
            for name in ("acme", "birch")
        ]
        assert engines[0].embedding._configured is engines[1].embedding._configured
        assert engines[0].legs is engines[1].legs
        open_tenants._tenants["acme"].trivet.close()
        assert engines[1].acting_as(engines[1].caller).viewer == "ana"  # type: ignore[arg-type]
        assert (
            open_tenants.trivet(open_tenants.caller(key_of(settings, "birch")))
            .recall("anything")
            .hits
            == ()
        )
    finally:
        open_tenants.close()


def test_errors_hide_store_path(
    open_tenants: Tenants, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def troubled(*_: object) -> None:
        raise StoreError(f"The disk that holds {settings.path} is full. Nothing was written.")

    monkeypatch.setattr(Accounts, "key", troubled)
    monkeypatch.setattr(Memories, "page", troubled)
    for attempt in (open_tenants.check, lambda: open_tenants.caller("tvt.default.x.y")):
        with pytest.raises(StoreError) as error:
            attempt()
        assert (
            str(error.value)
            == "The disk that holds the server's store is full. Nothing was written."
        )
