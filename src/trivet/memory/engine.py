"""What the bodies of the verbs work with: a store, its embedding, the worker, the models and the settings."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from trivet.contract import Need
from trivet.errors import Forbidden, InvalidInput, RerankerError
from trivet.memory.background.usage_counter import UsageCounter
from trivet.memory.background.worker import Worker
from trivet.memory.open_store import open_store
from trivet.models.embed.base import Embedder
from trivet.models.embed.registry import DEFAULT, load
from trivet.models.rerank.registry import Rerankers
from trivet.models.rerank.spec import RerankSpec
from trivet.search.embedding import Embedding
from trivet.search.load import Load
from trivet.search.parallel import ParallelLegs
from trivet.search.recipe import Recipe, parse_recipe
from trivet.search.systems.systems import Systems
from trivet.secrets.keys import KeyRing, places_of
from trivet.secrets.protect import Guard
from trivet.settings import Settings, config_path
from trivet.settings.address import database_of, is_file
from trivet.store.servers import DatabaseServer, open_server
from trivet.types import LOCAL, Caller, Right

if TYPE_CHECKING:
    from trivet.memory.answer.expand import Rewriter
    from trivet.memory.background.triples.reader import Triples
    from trivet.models.chat import Chat
    from trivet.store import Store


# So many recalls ask a database server at once.
TURNS_AT_A_SERVER = 4

HTTP_STATUS = re.compile(r"\(HTTP ([0-9]{3})\)")


class Shared(msgspec.Struct, frozen=True):
    """What the engines of a server's tenants have in common: one of each model in memory, one set of threads."""

    embedder: Embedder | None
    earlier: tuple[Embedder, ...]
    rerankers: Rerankers
    systems: Systems
    legs: ParallelLegs
    load: Load
    server: DatabaseServer | None  # where one keeps the tenants

    @classmethod
    def of(cls, settings: Settings, processes: int = 1) -> Shared:
        """`processes`: so many share the machine's cores, this one among them."""
        kind = database_of(settings.path)
        server = open_server(settings, kind) if kind else None
        legs = ParallelLegs(settings.recalls_at_once, _turns(settings))
        systems = Systems(settings.federation)
        return cls(
            load(settings.embedder), _earlier(settings), _rerankers(settings), systems, legs, Load(processes), server
        )

    def close(self) -> None:
        self.systems.close()
        self.legs.stop()
        if self.server:
            self.server.close()


_SPELLED_OUT: dict[Right, str] = {
    "read": "read",
    "write": "store or change memories",
    "share": "share",
    "reveal": "reveal secrets or sensitive contents",
    "admin": "administer",
}


def demand(caller: Caller, need: Need) -> None:
    """The one check of a caller's rights."""
    if need == "store":
        raise Forbidden("Only the owner, who has the store, can do this, with the command line on the server.")
    if need not in caller.rights:
        raise Forbidden(
            f"The key {caller.key} does not allow to {_SPELLED_OUT[need]}. Ask an admin for one with the right {need}."
        )


class Engine(msgspec.Struct, frozen=True):
    settings: Settings
    store: Store
    embedding: Embedding
    worker: Worker
    legs: ParallelLegs
    load: Load
    recipe: Recipe
    guard: Guard
    rerankers: Rerankers
    rewriter: Rewriter | None
    tally: UsageCounter
    systems: Systems
    shares_legs: bool = False
    follows: bool = False  # a laptop's store that follows a server: its owner is one user among others, offline too
    caller: Caller | None = None  # None: the owner of the store, who may do everything

    @property
    def viewer(self) -> str | None:
        if self.caller:
            return self.caller.user
        return LOCAL if self.follows else None

    def error_for_caller(self, error: str | None) -> str | None:
        """What last went wrong in the background. It concerns the texts of all users, so a user is told a code alone.

        The owner and admins see the whole sentence.
        """
        if not error or self.caller is None or "admin" in self.caller.rights:
            return error or None
        status = HTTP_STATUS.search(error)
        return f"a model refused (HTTP {status[1]})" if status else "background work fails; an admin sees why"

    def acting_as(self, caller: Caller) -> Engine:
        """The same engine for a user of a server, who sees and does what they may."""
        return msgspec.structs.replace(self, store=self.store.seen_by(caller.user), caller=caller)

    def demand(self, need: Need) -> None:
        if self.caller is not None:
            demand(self.caller, need)

    def close(self) -> None:
        if self.caller:
            return  # the engine that opened the store closes it
        self.worker.stop()
        self.tally.write_down()
        if not self.shares_legs:
            self.systems.close()
            self.legs.stop()
        self.store.close()


def open_engine(settings: Settings, shared: Shared | None = None) -> Engine:
    """Checks every setting before it touches the store, so that a bad one writes nothing."""
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
        store.feed.hide_if_away(settings.sync_hide_days)
        store = store.followed_by_owner()
    embedding = Embedding(store, settings.embedder, embedder, earlier)
    embedding.drop_unused()
    if embedding.local:
        embedding.adopt()  # costs nothing, and lets the first write carry its job
    tally = UsageCounter(store.usage, settings.usage_counts)
    at_work = shared.load if shared else Load()
    worker = Worker(store, embedding, _triples(settings, store, chat), tally, settings.changes, at_work)
    legs = shared.legs if shared else ParallelLegs(settings.recalls_at_once, _turns(settings))
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
        tally,
        systems,
        shares_legs=shared is not None,
        follows=follows,
    )


def _turns(settings: Settings) -> int:
    """A recall over a file computes; one over a database server mostly waits for it."""
    return 1 if is_file(settings.path) else TURNS_AT_A_SERVER


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
    from trivet.memory.answer.expand import Rewriter

    try:
        return Rewriter(settings.expand_llm, settings.expand_time_limit_ms)
    except InvalidInput as error:
        raise InvalidInput(f"The setting expand_llm: {error}") from None


def _guard(settings: Settings, store: Store) -> Guard:
    """The places of keys are looked for when one is needed: most stores never hold a secret."""
    folder = config_path().parent
    keys = KeyRing(
        lambda: places_of(settings.secrets_vault, settings.secrets_keyring, folder), lambda: store.upkeep.identity()
    )
    return Guard(settings.secrets, keys)


def _language_model(settings: Settings) -> Chat | None:
    if not settings.graph_llm:
        return None
    from trivet.memory.background.triples.reader import LIMITS
    from trivet.models.chat import Chat

    try:
        return Chat(settings.graph_llm, LIMITS)
    except InvalidInput as error:
        raise InvalidInput(f"The setting graph_llm: {error}") from None


def _triples(settings: Settings, store: Store, chat: Chat | None) -> Triples | None:
    if chat is None:
        return None
    from trivet.memory.background.triples.reader import Triples

    # Names are compared by the bundled model whatever the embedder is: the thresholds were measured with it.
    names = load(DEFAULT)
    assert names is not None, "the bundled model is always there"
    return Triples(store, chat, settings.graph_llm_tokens_a_day, names)
