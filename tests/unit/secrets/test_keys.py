"""Keys are stored safely, rotated, and survive concurrent use and failing key stores."""

from __future__ import annotations

import json
import socket
import sqlite3
import stat
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import keyring
import msgspec
import pytest
from keyring.backend import KeyringBackend

from support.invented_secrets import github
from support.store_fixtures import Opened
from trivet import InvalidInput, Trivet
from trivet.cli.store_transfer import restore_backup
from trivet.contract import Remember, check
from trivet.errors import SecretError
from trivet.memory.remember import guard, new_memory
from trivet.memory.sealed_secrets import add_entries, write_with_current_key
from trivet.secrets.key_ring import KeyRing, key_stores
from trivet.secrets.key_storage import EMPTY, MAX_LISTED_USERS, MORE, UNRECORDED_USERS, FileKeyStore
from trivet.secrets.key_vault import VaultKeyStore

from .vault_server import TOKEN, Vault, vault


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Vault]:
    monkeypatch.setenv("VAULT_TOKEN", TOKEN)
    with vault() as running:
        yield running


class MemoryKeyring(KeyringBackend):
    """Keyring backend like that of an operating system, kept in memory."""

    priority = 5

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.entries: dict[tuple[str, str], str] = {}

    def get_password(self, service: str, username: str) -> str | None:
        return self.entries.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.entries[service, username] = password


@pytest.fixture
def own_keyring() -> Iterator[MemoryKeyring]:
    before = keyring.get_keyring()
    backend = MemoryKeyring()
    keyring.set_keyring(backend)
    yield backend
    keyring.set_keyring(before)


def ring(folder: Path) -> KeyRing:
    return KeyRing(lambda: key_stores("", False, folder))


def test_first_secret_creates_key(trivet: Trivet, configuration: Path) -> None:
    trivet.remember("nothing of note")
    assert not configuration.exists()
    trivet.remember(github("a"))
    file = configuration / "secret-keys.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(configuration.stat().st_mode) == 0o700


def test_key_file_readable_by_others_is_rejected(trivet: Trivet, configuration: Path) -> None:
    id = trivet.remember(github("a")).id
    (configuration / "secret-keys.json").chmod(0o644)
    with pytest.raises(SecretError, match="chmod 600"):
        trivet.remember(github("b"))
    assert trivet.stats().memories == {"active": 1}, "the refused write must store nothing"
    (configuration / "secret-keys.json").chmod(0o600)
    assert trivet.reveal(id).content == github("a")


@pytest.mark.parametrize(
    "text", ["", "{}", "nonsense", '{"current": "a", "keys": {"a": "c2hvcnQ="}}']
)
def test_damaged_key_file_is_named(tmp_path: Path, text: str) -> None:
    file = tmp_path / "secret-keys.json"
    file.write_text(text)
    file.chmod(0o600)
    with pytest.raises(SecretError, match=r"secret-keys\.json"):
        ring(tmp_path).current()


def test_concurrent_callers_create_one_key(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        ids = set(pool.map(lambda _: ring(tmp_path).current().id, range(32)))
    assert len(ids) == 1


def test_key_repr_hides_key(tmp_path: Path) -> None:
    key = ring(tmp_path).current()
    assert repr(key) == f"Key({key.id})"


def test_same_text_seals_differently(trivet: Trivet, path: Path) -> None:
    for _ in range(2):
        trivet.remember(github("a"))
    connection = sqlite3.connect(path)
    rows = connection.execute("SELECT nonce, sealed FROM secret").fetchall()
    connection.close()
    assert len({nonce for nonce, _ in rows}) == len({sealed for _, sealed in rows}) == 2


def test_rotation_reseals_and_keeps_needed_keys(
    trivet: Trivet, path: Path, configuration: Path
) -> None:
    ids = [trivet.remember(github(str(number))).id for number in range(5)]
    backup = path.with_name("backup.db")
    trivet.backup(backup)
    rotated = trivet.rotate_keys()
    assert (rotated.resealed, rotated.dropped) == (5, 0)
    assert [trivet.reveal(id).content for id in ids] == [github(str(number)) for number in range(5)]
    with Trivet.open(backup, embedder="none", background=False) as old:
        assert old.reveal(ids[0]).content == github("0")
    again = trivet.rotate_keys(drop_old=True)
    [(oldest, users)] = again.kept.items()
    assert again.dropped == 1
    assert "backup.db" in users[0], "the opened backup still needs its key"
    assert trivet.rotate_keys(drop_old=True, drop=(oldest,)).dropped == 2
    keys = json.loads((configuration / "secret-keys.json").read_text())
    assert list(keys["keys"]) == [keys["current"]]
    assert trivet.reveal(ids[0]).content == github("0")
    with (
        Trivet.open(backup, embedder="none", background=False) as old,
        pytest.raises(SecretError, match="is not in"),
    ):
        old.reveal(ids[0])


def test_secret_written_after_rotation_is_resealed(trivet: Trivet, open_trivet: Opened) -> None:
    writer = open_trivet().engine
    id = trivet.remember(github("before")).id
    edited, _ = guard(
        writer, msgspec.structs.replace(writer.store.memories.get(id), content=github("edited"))
    )
    new, _ = guard(writer, new_memory(writer, check(Remember, {"content": github("new")})))
    assert trivet.rotate_keys(drop_old=True).dropped == 1
    add_entries(writer, [new])
    replace = writer.store.memories.replace
    write_with_current_key(
        writer,
        [edited],
        lambda one: replace(one[0].memory, one[0].document, "edit", one[0].secrets),
    )
    with Trivet.open(trivet.settings.path, embedder="none", background=False) as later:
        assert [later.reveal(one).content for one in (id, new.memory.id)] == [
            github("edited"),
            github("new"),
        ]


def test_rotation_keeps_key_of_other_store(trivet: Trivet, path: Path) -> None:
    trivet.remember(github("a"))
    with Trivet.open(path.with_name("other.db"), embedder="none", background=False) as other:
        id = other.remember(github("b")).id
        rotated = trivet.rotate_keys(drop_old=True)
        [[user]] = rotated.kept.values()
        assert user.startswith(f"{other.settings.path} [")
    with Trivet.open(path.with_name("other.db"), embedder="none", background=False) as other:
        assert other.reveal(id).content == github("b")
        theirs = other.rotate_keys(drop_old=True)
        assert (theirs.key, theirs.resumed, theirs.dropped, theirs.kept) == (
            rotated.key,
            True,
            1,
            {},
        )
        assert other.reveal(id).content == github("b")


def test_restored_backup_is_recorded_as_key_user(trivet: Trivet, path: Path) -> None:
    trivet.remember(github("a"))
    trivet.backup(path.with_name("backup.db"))
    trivet.rotate_keys()
    assert (
        restore_backup(path.with_name("backup.db"), path.with_name("restored.db"), force=False)
        is None
    )
    [[user]] = trivet.rotate_keys(drop_old=True).kept.values()
    assert user.startswith(f"{path.with_name('restored.db')} [")


def test_key_without_recorded_users_stays_until_named(trivet: Trivet, configuration: Path) -> None:
    trivet.remember(github("a"))
    file = configuration / "secret-keys.json"
    old = json.loads(file.read_text())
    file.write_text(json.dumps({"current": old["current"], "keys": old["keys"]}))
    rotated = trivet.rotate_keys(drop_old=True)
    assert (rotated.dropped, rotated.kept) == (0, {old["current"]: (UNRECORDED_USERS,)})
    assert trivet.rotate_keys(drop_old=True, drop=(old["current"],)).dropped == 2


def test_other_process_uses_rotated_key(trivet: Trivet, open_trivet: Opened) -> None:
    other = open_trivet()
    other.remember(github("a"))
    trivet.rotate_keys(drop_old=True)
    id = other.remember(github("b")).id
    assert trivet.reveal(id).content == github("b")


def test_configured_vault_holds_keys(
    server: Vault, open_trivet: Opened, configuration: Path
) -> None:
    trivet = open_trivet(secrets_vault=server.address)
    id = trivet.remember(github("a")).id
    assert not configuration.exists()
    assert list(server.versions) == ["/v1/secret/data/team/trivet"]
    trivet.rotate_keys(drop_old=True)
    assert trivet.reveal(id).content == github("a")


def test_failing_vault_stores_nothing(
    server: Vault, open_trivet: Opened, configuration: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trivet = open_trivet(secrets_vault=server.address)
    server.sealed = True
    with pytest.raises(SecretError, match="status 503") as error:
        trivet.remember(github("a"))
    assert TOKEN not in str(error.value)
    monkeypatch.delenv("VAULT_TOKEN")
    with pytest.raises(SecretError, match="VAULT_TOKEN"):
        open_trivet(secrets_vault=server.address).remember(github("a"))
    assert trivet.stats().memories == {}
    assert not configuration.exists()
    assert trivet.remember("no secret, no vault").status == "stored"


def test_first_vault_writer_wins(server: Vault, tmp_path: Path) -> None:
    theirs = ring(tmp_path)
    theirs.current()
    server.faster = {"keys": (tmp_path / "secret-keys.json").read_text()}
    ours = KeyRing(lambda: [VaultKeyStore(server.address, TOKEN)])
    assert ours.current() == theirs.current()


def test_vault_requires_https() -> None:
    for address in (
        "http://vault.acme.dev:8200/secret/trivet",
        "ftp://x/secret/trivet",
        "https://vault.acme.dev",
    ):
        with pytest.raises(InvalidInput, match="secrets_vault"):
            VaultKeyStore(address, TOKEN)


def test_keyring_is_preferred_over_file(
    own_keyring: MemoryKeyring, open_trivet: Opened, configuration: Path
) -> None:
    trivet = open_trivet(secrets_keyring=True)
    id = trivet.remember(github("a")).id
    assert list(own_keyring.entries) == [("trivet", "secret-keys")]
    assert not (configuration / "secret-keys.json").exists()
    trivet.rotate_keys()
    assert trivet.reveal(id).content == github("a")


def test_concurrent_callers_create_one_keyring_key(
    own_keyring: MemoryKeyring, tmp_path: Path
) -> None:
    def made(number: int) -> str:
        one = KeyRing(lambda: key_stores("", True, tmp_path), lambda: f"store {number}")
        return one.current().id

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(made, range(24)))) == 1
    [document] = own_keyring.entries.values()
    [users] = json.loads(document)["users"].values()
    assert sorted(users) == sorted(f"store {number}" for number in range(24))


def test_file_key_is_found_with_keyring_enabled(
    own_keyring: MemoryKeyring, open_trivet: Opened
) -> None:
    id = open_trivet(secrets_keyring=False).remember(github("a")).id
    assert open_trivet(secrets_keyring=True).reveal(id).content == github("a")


def test_full_user_list_keeps_key() -> None:
    keys = EMPTY.with_new()
    for number in range(1_000):
        keys = keys.used(keys.current, f"store {number}")
    users = keys.users_of(keys.current)
    assert len(users) == MAX_LISTED_USERS + 1
    for number in range(1_000):
        keys = keys.release([keys.current], f"store {number}")
    assert keys.users_of(keys.current) == (MORE,)


def test_file_write_requires_current_content(tmp_path: Path) -> None:
    place = FileKeyStore(tmp_path / "keys")
    one, two = EMPTY.with_new(), EMPTY.with_new()
    assert place.write(EMPTY, one)
    assert not place.write(EMPTY, two)
    assert place.read() == one


def test_hanging_vault_is_tried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trivet.secrets.key_vault.SECONDS", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        place = VaultKeyStore(f"http://127.0.0.1:{silent.getsockname()[1]}/secret/trivet", "token")
        with pytest.raises(SecretError, match="does not answer"):
            place.read()
        for _ in range(5):
            with pytest.raises(SecretError, match="is skipped"):
                place.read()
        silent.setblocking(False)
        silent.accept()[0].close()
        with pytest.raises(BlockingIOError):
            silent.accept()
