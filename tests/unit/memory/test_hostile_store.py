"""A store file from a stranger triggers no network access and opens no foreign model."""

from __future__ import annotations

import shutil
import socket
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from support.second_model import MINILM
from support.store_fixtures import Opened
from trivet import StoreError, Trivet
from trivet.settings import Settings
from unit.models.embed.test_folder import token_model

KEYS = (
    "OPENAI_API_KEY",
    "TRIVET_EMBED_API_KEY",
    "VOYAGE_API_KEY",
    "COHERE_API_KEY",
    "TRIVET_LLM_API_KEY",
)
QUESTION = "where is the staging database"


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """A server socket whose queue shows connection attempts."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        server.setblocking(False)
        yield server


def assert_no_connection(listener: socket.socket) -> None:
    with pytest.raises(BlockingIOError):
        listener.accept()


def address(listener: socket.socket) -> str:
    return f"http://127.0.0.1:{listener.getsockname()[1]}/v1"


@pytest.fixture
def victim(open_trivet: Opened, monkeypatch: pytest.MonkeyPatch) -> Trivet:
    """A store with two embedded memories, not yet tampered with, and the user's API keys."""
    for name in KEYS:
        monkeypatch.setenv(name, "key-of-the-user")
    trivet = open_trivet(embedder="bundled")
    trivet.remember("The staging database listens on port 6543.", source="https://example.com/a")
    trivet.remember("The cat sleeps on the radiator.")
    trivet.drain()
    trivet.close()
    return trivet


def tamper(path: Path, *statements: tuple[str, tuple[Any, ...]]) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        for sql, values in statements:
            connection.execute(sql, values)


def use(trivet: Trivet) -> None:
    """Run every operation that might call a model or another system."""
    trivet.recall(QUESTION)
    trivet.remember("The deploy key lies in the safe.")
    trivet.drain()
    trivet.embed()
    trivet.recall("deploy key", expand=True)
    trivet.why_not("radiator", trivet.list().memories[0].id)
    trivet.inbox_propose("The cat sleeps in the garden.")
    trivet.stats()
    trivet.doctor()
    trivet.tidy(dry_run=True)
    trivet.reindex(vectors=False)
    list(trivet.export())


@pytest.mark.parametrize(
    ("kind", "serving"), [("openai:m@{}#dimensions=384", True), ("cohere:m@{}", False)]
)
def test_embedder_named_only_by_the_file_is_never_called(
    victim: Trivet, open_trivet: Opened, listener: socket.socket, kind: str, serving: bool
) -> None:
    """Earlier releases stored the address in this row."""
    named = kind.format(address(listener))
    path = Path(victim.settings.path)
    if serving:
        tamper(path, ("UPDATE embedding_model SET identity = ?, spec = ?", (named, named)))
    else:
        row = "INSERT INTO embedding_model (model, identity, spec, dimension, serving) VALUES (99, ?, ?, 384, 0)"
        jobs = "INSERT INTO job (memory, model, revision) SELECT key, 99, revision FROM memory"
        tamper(path, (row, (named, named)), (jobs, ()))
    trivet = open_trivet(embedder="bundled")
    use(trivet)
    assert_no_connection(listener)
    health = trivet.recall(QUESTION).health
    assert health.memories == 3
    messages = " ".join(
        (*health.notes, *trivet.stats().notes, *(finding.detail for finding in trivet.doctor()))
    )
    assert "127.0.0.1" not in messages
    assert named.partition("@")[0] in messages
    if serving:
        assert "is not called" in str([leg.reason for leg in health.legs])
        assert trivet.stats().not_embedded == 1, (
            "the new memory waits for a process with the store's model"
        )


def test_known_model_is_called_at_the_users_address(
    victim: Trivet, open_trivet: Opened, listener: socket.socket
) -> None:
    named = f"openai:theirs@{address(listener)}"
    tamper(
        Path(victim.settings.path),
        ("UPDATE embedding_model SET identity = ?, spec = ?", (named, named)),
    )
    with closing(socket.create_server(("127.0.0.1", 0))) as own, ThreadPoolExecutor(1) as threads:
        trivet = open_trivet(
            embedder="bundled", earlier_embedders=[f"openai:theirs@{address(own)}"]
        )
        answer = threads.submit(trivet.recall, QUESTION)
        own.settimeout(30)
        connection, _ = own.accept()
        connection.close()
        own.close()
        answer.result()
    assert_no_connection(listener)


def test_folder_named_only_by_the_file_is_not_opened(
    victim: Trivet, open_trivet: Opened, tmp_path: Path
) -> None:
    """A model sent along with a store could run code when opened."""
    folder = tmp_path / "model"
    folder.mkdir()
    shutil.copy(MINILM / "tokenizer.json", folder)
    token_model(folder / "model.onnx")
    from trivet.models.embed.folder import open_folder

    identity = open_folder(str(folder)).identity
    tamper(
        Path(victim.settings.path),
        ("UPDATE embedding_model SET identity = ?, spec = ?", (identity, f"folder:{folder}")),
    )
    trivet = open_trivet(embedder="bundled")
    use(trivet)
    reasons = [leg.reason or "" for leg in trivet.recall(QUESTION).health.legs]
    assert any(identity in reason and "is not called" in reason for reason in reasons)


def test_settings_and_addresses_in_rows_are_ignored(
    victim: Trivet, open_trivet: Opened, listener: socket.socket, tmp_path: Path
) -> None:
    where = address(listener)
    model, private = f"openai:m@{where}", tmp_path / "private"
    private.mkdir()
    (private / "diary.md").write_text("The diary of whoever opens the store.")
    values = {
        "embedder": model,
        "rerank": f"tei:{where}",
        "federation": f'{{"other": {{"http": "{where}?q={{query}}"}}}}',
    }
    values |= {
        "graph_llm": model,
        "expand_llm": model,
        "capture_llm": model,
        "secrets_vault": f"{where}/a/b",
    }
    rows = [
        ("INSERT OR REPLACE INTO meta (name, value) VALUES (?, ?)", row) for row in values.items()
    ]
    assert values.keys() <= set(Settings.__struct_fields__)
    tamper(
        Path(victim.settings.path),
        *rows,
        ("UPDATE memory SET source_uri = ?", (f"{where}/notes",)),
        ("INSERT INTO vault (name, root, options) VALUES ('notes', ?, '{}')", (str(private),)),
        (
            "INSERT INTO secret (memory, kind, number, revision, field, key, nonce, sealed) "
            "SELECT key, 'password', 1, 1, 'content', ?, x'00', x'00' FROM memory",
            (f"{where}/v1/key",),
        ),
    )
    trivet = open_trivet(embedder="bundled", secrets_keyring=False)
    use(trivet)
    assert_no_connection(listener)
    assert "diary" not in " ".join(trivet.export())


def test_file_with_triggers_is_refused(victim: Trivet, open_trivet: Opened) -> None:
    """A trigger could copy deleted rows and defeat a purge."""
    path = Path(victim.settings.path)
    tamper(
        path,
        ("CREATE TABLE kept (text TEXT)", ()),
        (
            "CREATE TRIGGER keep AFTER DELETE ON memory BEGIN INSERT INTO kept VALUES (old.content); END",
            (),
        ),
    )
    with pytest.raises(StoreError, match="holds triggers"):
        open_trivet()
