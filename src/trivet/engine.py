"""What the two paths work with: a store, its embedding, a worker and the settings."""

from __future__ import annotations

from pathlib import Path

import msgspec

from trivet.embed.registry import load
from trivet.embedding import Embedding
from trivet.recipe import Recipe, parse_recipe
from trivet.settings import Settings
from trivet.side_by_side import SideBySide
from trivet.store.base import Store
from trivet.store.sqlite import SqliteStore
from trivet.worker import Worker


class Engine(msgspec.Struct, frozen=True):
    settings: Settings
    store: Store
    embedding: Embedding
    worker: Worker
    legs: SideBySide
    recipe: Recipe

    def close(self) -> None:
        self.worker.stop()
        self.legs.stop()
        self.store.close()


def open_engine(settings: Settings) -> Engine:
    """Checks every setting before it touches the store, so that a bad one writes nothing."""
    recipe = parse_recipe(settings.recipe)
    embedder = load(settings.embedder)
    store = SqliteStore(Path(settings.path).expanduser(), settings.busy_time_limit_ms)
    embedding = Embedding(store, settings.embedder, embedder)
    if embedding.local:
        embedding.adopt()  # costs nothing, and lets the first write carry its job
    worker = Worker(store, embedding)
    return Engine(settings, store, embedding, worker, SideBySide(), recipe)
