"""What the two paths work with: a store, its embedding, a worker and the settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from trivet.embed.registry import load
from trivet.embedding import Embedding
from trivet.errors import InvalidInput
from trivet.guard.keys import KeyRing, places_of
from trivet.guard.protect import Guard
from trivet.opening import open_store
from trivet.recipe import Recipe, parse_recipe
from trivet.settings import Settings, config_path
from trivet.side_by_side import SideBySide
from trivet.store.base import Store
from trivet.worker import Worker

if TYPE_CHECKING:
    from trivet.chat import Chat
    from trivet.embed.base import Embedder
    from trivet.store.postgres import Server
    from trivet.triples.reader import Triples


class Engine(msgspec.Struct, frozen=True):
    settings: Settings
    store: Store
    embedding: Embedding
    worker: Worker
    legs: SideBySide
    recipe: Recipe
    guard: Guard

    def close(self) -> None:
        self.worker.stop()
        self.legs.stop()
        self.store.close()


def open_engine(settings: Settings, server: Server | None = None) -> Engine:
    """Checks every setting before it touches the store, so that a bad one writes nothing.

    `server` is the PostgreSQL server of the settings where this process has it open already.
    """
    recipe = parse_recipe(settings.recipe)
    embedder = load(settings.embedder)
    chat = _language_model(settings)
    store = open_store(settings, server)
    embedding = Embedding(store, settings.embedder, embedder)
    if embedding.local:
        embedding.adopt()  # costs nothing, and lets the first write carry its job
    worker = Worker(store, embedding, _triples(settings, store, embedder, chat))
    return Engine(settings, store, embedding, worker, SideBySide(), recipe, _guard(settings))


def _guard(settings: Settings) -> Guard:
    """The places of keys are looked for when one is needed: most stores never hold a secret."""
    folder = config_path().parent
    return Guard(settings.secrets, KeyRing(lambda: places_of(settings.secrets_vault, settings.secrets_keyring, folder)))


def _language_model(settings: Settings) -> Chat | None:
    if not settings.graph_llm:
        return None
    from trivet.chat import Chat
    from trivet.triples.reader import LIMITS

    try:
        return Chat(settings.graph_llm, LIMITS)
    except InvalidInput as error:
        raise InvalidInput(f"The setting graph_llm: {error}") from None


def _triples(settings: Settings, store: Store, embedder: Embedder | None, chat: Chat | None) -> Triples | None:
    if chat is None:
        return None
    from trivet.triples.reader import Triples

    # Names are compared by the bundled model whatever the embedder is: the thresholds were measured with it.
    names = embedder if settings.embedder == "bundled" else load("bundled")
    assert names is not None, "the bundled model is always there"
    return Triples(store, chat, settings.graph_llm_tokens_a_day, names)
