"""The engine that performs verbs: a store with its embedding, worker, models and settings."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from trivet.contract import Need
from trivet.errors import Forbidden, InvalidInput, RerankerError
from trivet.memory.open_store import open_store
from trivet.memory.worker.worker import UsageCounter, Worker
from trivet.models.embed.base import Embedder
from trivet.models.embed.registry import DEFAULT, load
from trivet.models.rerank.registry import Rerankers, RerankSpec
from trivet.search.concurrency import ParallelLegs, RecallLoad
from trivet.search.embedding import Embedding
from trivet.search.recipe import Recipe, parse_recipe
from trivet.search.systems.federation import Systems
from trivet.secrets.guard import Guard
from trivet.secrets.key_ring import KeyRing, key_stores
from trivet.settings import Settings, config_path
from trivet.settings.locations import database_of, is_file
from trivet.store.servers import DatabaseServer, open_server
from trivet.types import LOCAL, Caller, Right

if TYPE_CHECKING:
    from trivet.memory.answer.rewriter import Rewriter
    from trivet.memory.worker.triples import Triples
    from trivet.models.chat import Chat
    from trivet.store import Store


MAX_CONCURRENT_SERVER_RECALLS = 4

HTTP_STATUS = re.compile(r"\(HTTP ([0-9]{3})\)")


class Shared(msgspec.Struct, frozen=True):
    embedder: Embedder | None
    earlier: tuple[Embedder, ...]
    rerankers: Rerankers
    systems: Systems
    legs: ParallelLegs
    load: RecallLoad
    server: DatabaseServer | None  # set if the tenants are on a database server

    @classmethod
    def of(cls, settings: Settings, processes: int = 1) -> Shared:
        """Load the models; `processes` share this machine's cores."""
        kind = database_of(settings.path)
        server = open_server(settings, kind) if kind else None
        legs = ParallelLegs(settings.recalls_at_once, _concurrency_limit(settings))
        systems = Systems(settings.federation)
        return cls(
            load(settings.embedder),
            _earlier(settings),
            _rerankers(settings),
            systems,
            legs,
            RecallLoad(processes),
            server,
        )

    def close(self) -> None:
        self.systems.close()
        self.legs.stop()
        if self.server:
            self.server.close()


_RIGHT_DESCRIPTIONS: dict[Right, str] = {
    "read": "read",
    "write": "store or change memories",
    "share": "share",
    "reveal": "reveal secrets or sensitive contents",
    "admin": "administer",
}


def demand(caller: Caller, need: Need) -> None:
    if need == "store":
        raise Forbidden(
            "Only the owner of the store can do this, with the command line on the server."
        )
    if need not in caller.rights:
        raise Forbidden(
            f"The key {caller.key} does not allow you to {_RIGHT_DESCRIPTIONS[need]}. Ask an "
            f"admin for one with the right {need}."
        )


class Engine(msgspec.Struct, frozen=True):
    settings: Settings
    store: Store
    embedding: Embedding
    worker: Worker
    legs: ParallelLegs
    load: RecallLoad
    recipe: Recipe
    guard: Guard
    rerankers: Rerankers
    rewriter: Rewriter | None
    usage_counter: UsageCounter
    systems: Systems
    shares_legs: bool = False
    # The store of a laptop that follows a server: its owner is one user among others.
    follows: bool = False
    caller: Caller | None = None  # None: the owner of the store, with every right

    @property
    def viewer(self) -> str | None:
        if self.caller:
            return self.caller.user
        return LOCAL if self.follows else None

    def error_for_caller(self, error: str | None) -> str | None:
        """Return the error in full to the owner and admins, else its HTTP status.

        It may quote other users' texts.
        """
        if not error or self.caller is None or "admin" in self.caller.rights:
            return error or None
        status = HTTP_STATUS.search(error)
        return (
            f"a model refused (HTTP {status[1]})"
            if status
            else "background work fails; an admin can see why"
        )

    def acting_as(self, caller: Caller) -> Engine:
        return msgspec.structs.replace(self, store=self.store.seen_by(caller.user), caller=caller)

    def demand(self, need: Need) -> None:
        if self.caller is not None:
            demand(self.caller, need)

    def close(self) -> None:
        if self.caller:
            return  # the engine that opened the store closes it
        self.worker.stop()
        self.usage_counter.flush()
        if not self.shares_legs:
            self.systems.close()
            self.legs.stop()
        self.store.close()


def open_engine(settings: Settings, shared: Shared | None = None) -> Engine:
    """Open a store; an invalid setting writes nothing."""
    systems = shared.systems if shared else Systems(settings.federation)
    recipe = parse_recipe(settings.recipe, tuple(systems.declared))
    embedder = shared.embedder if shared else load(settings.embedder)
    earlier = shared.earlier if shared else _earlier(settings)
    rerankers = shared.rerankers if shared else _rerankers(settings)
    rewriter = _rewriter(settings)
    chat = _language_model(settings)
    store = open_store(settings, shared.server if shared else None)
    follows = is_file(settings.path) and store.feed.is_laptop()
    if follows:
        store.feed.hide_shared_if_offline(settings.sync_hide_days)
        store = store.as_follower()
    embedding = Embedding(store, settings.embedder, embedder, earlier)
    embedding.drop_unused()
    if embedding.local:
        embedding.adopt()  # cheap, and the first write can then queue its embedding job
    usage_counter = UsageCounter(store.usage, settings.usage_counts)
    at_work = shared.load if shared else RecallLoad()
    worker = Worker(
        store, embedding, _triples(settings, store, chat), usage_counter, settings.changes, at_work
    )
    legs = (
        shared.legs
        if shared
        else ParallelLegs(settings.recalls_at_once, _concurrency_limit(settings))
    )
    return Engine(
        settings,
        store,
        embedding,
        worker,
        legs,
        at_work,
        recipe,
        _guard(settings, store),
        rerankers,
        rewriter,
        usage_counter,
        systems,
        shares_legs=shared is not None,
        follows=follows,
    )


def _concurrency_limit(settings: Settings) -> int:
    """Use every core for a file: its recalls are CPU-bound, a server's mostly wait."""
    return 1 if is_file(settings.path) else MAX_CONCURRENT_SERVER_RECALLS


def _earlier(settings: Settings) -> tuple[Embedder, ...]:
    found = (load(spec) for spec in settings.earlier_embedders)
    return tuple(one for one in found if one is not None)


def _rerankers(settings: Settings) -> Rerankers:
    try:
        return Rerankers(RerankSpec.parse(settings.rerank))
    except (InvalidInput, RerankerError) as error:
        raise type(error)(f"The setting rerank: {error}") from None


def _rewriter(settings: Settings) -> Rewriter | None:
    if not settings.expand_llm:
        return None
    from trivet.memory.answer.rewriter import Rewriter

    try:
        return Rewriter(settings.expand_llm, settings.expand_time_limit_ms)
    except InvalidInput as error:
        raise InvalidInput(f"The setting expand_llm: {error}") from None


def _guard(settings: Settings, store: Store) -> Guard:
    """Look for key stores only when needed: most stores hold no secret."""
    folder = config_path().parent
    keys = KeyRing(
        lambda: key_stores(settings.secrets_vault, settings.secrets_keyring, folder),
        lambda: store.upkeep.identity(),
    )
    return Guard(settings.secrets, keys)


def _language_model(settings: Settings) -> Chat | None:
    if not settings.graph_llm:
        return None
    from trivet.memory.worker.triples import LIMITS
    from trivet.models.chat import Chat

    try:
        return Chat(settings.graph_llm, LIMITS)
    except InvalidInput as error:
        raise InvalidInput(f"The setting graph_llm: {error}") from None


def _triples(settings: Settings, store: Store, chat: Chat | None) -> Triples | None:
    if chat is None:
        return None
    from trivet.memory.worker.triples import Triples

    # Thresholds for names were measured with the bundled model.
    names = load(DEFAULT)
    assert names is not None, "the bundled model is always installed"
    return Triples(store, chat, settings.graph_llm_tokens_a_day, names)
