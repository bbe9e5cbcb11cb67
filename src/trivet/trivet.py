"""The facade: one object for a store, the same verbs as the command line and MCP."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import wraps
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, Self, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from trivet import contract
from trivet.settings import Settings, load_settings
from trivet.settings.address import is_server
from trivet.types import (
    Answer,
    AuditEntry,
    Budget,
    Caller,
    ConceptPage,
    ConceptSort,
    Count,
    Finding,
    Imported,
    Link,
    LinkKind,
    Memory,
    Neighbourhood,
    Page,
    Permission,
    Progress,
    Proposal,
    ProposalAction,
    ProposalKind,
    ProposalPage,
    ProposalState,
    Proposed,
    Redacted,
    Remembered,
    Rerank,
    Revision,
    Rotated,
    Share,
    Sort,
    State,
    Stats,
    Tidy,
    TidyKind,
    Usage,
    Usefulness,
    WhyNot,
)

if TYPE_CHECKING:
    from trivet.memory.engine import Engine
    from trivet.types import ConceptKind


class Elsewhere(Protocol):
    """Who does the verbs where it is not this process: a server, or this user's resident process."""

    @property
    def address(self) -> str | None: ...

    @property
    def settings(self) -> Settings: ...

    def do(self, method: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any: ...

    def close(self) -> None: ...


R = TypeVar("R", bound=contract.Request)
P = ParamSpec("P")
T = TypeVar("T")


def anywhere(method: Callable[Concatenate[Trivet, P], T]) -> Callable[Concatenate[Trivet, P], T]:
    """A verb: its body works on a store of one's own; if a server is behind the object, that is asked instead."""

    @wraps(method)
    def done(self: Trivet, /, *args: P.args, **kwargs: P.kwargs) -> T:
        if self._server is None:
            return method(self, *args, **kwargs)
        answer: T = self._server.do(method, args, kwargs)
        return answer

    return done


class Trivet:
    """A memory. Open it with `Trivet.open()`; use it as a context manager or call `close()`."""

    _server: Elsewhere | None = None

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @classmethod
    def open(
        cls, path: str | PathLike[str] | None = None, *, settings: Settings | None = None, **overrides: Any
    ) -> Self:
        """Opens the store at `path`, or the configured one. `overrides` are settings such as embedder="none".

        The path may be the address of a server, such as https://memory.example.org, with a `key` for it.
        """
        named = None if path is None else str(path)
        if settings is None:
            settings = load_settings(path=named, **overrides)
        else:
            given = {**overrides, "path": named} if named is not None else overrides
            settings = msgspec.structs.replace(settings, **given)
        if is_server(settings.path):
            return cls._connected(settings)
        from trivet.memory.engine import open_engine

        return cls.of(open_engine(settings))

    @classmethod
    def of(cls, engine: Engine) -> Self:
        """Takes up the work that an engine finds waiting."""
        from trivet.memory.upkeep import refresh

        refresh(engine)
        if engine.settings.background:
            engine.worker.start()
        return cls(engine)

    @classmethod
    def _connected(cls, settings: Settings) -> Self:
        from trivet.client.connection import Connection

        return cls.through(Connection(settings))

    @classmethod
    def through(cls, elsewhere: Elsewhere) -> Self:
        """A memory whose verbs are done by somebody else."""
        trivet = cls.__new__(cls)
        trivet._server = elsewhere
        return trivet

    @property
    def settings(self) -> Settings:
        return self._engine.settings if self._server is None else self._server.settings

    @property
    def server(self) -> str | None:
        """The address of the server that this object speaks to; None for a store of one's own."""
        return None if self._server is None else self._server.address

    @property
    def elsewhere(self) -> Elsewhere | None:
        """Who does the verbs, if it is not this object."""
        return self._server

    @property
    @anywhere
    def engine(self) -> Engine:
        """The parts behind the verbs, for tools that look inside, such as the lab."""
        return self._engine

    @anywhere
    def acting_as(self, caller: Caller) -> Trivet:
        """The same store for a user of a server, who sees and does what they may. It need not be closed."""
        return Trivet(self._engine.acting_as(caller))

    @anywhere
    def remember(
        self,
        content: str,
        *,
        title: str | None = None,
        category: str = "facts",
        tags: Sequence[str] = (),
        importance: float = 0.5,
        confidence: float = 1.0,
        expanded_keywords: Sequence[str] = (),
        scope: str | None = None,
        source: str | None = None,
        start_line: int | None = None,
        end_line: int | None = None,
        created_at: str | None = None,
        valid_from: str | None = None,
        valid_to: str | None = None,
        sensitive: bool = False,
        id: str | None = None,
    ) -> Remembered:
        """Store one memory. Near-duplicates already stored are reported, never merged."""
        from trivet.memory.remember import remember

        return remember(self._engine, self._asked("remember", contract.Remember, locals()))

    @anywhere
    def remember_many(self, memories: Iterable[Mapping[str, Any]]) -> list[Remembered]:
        """Store several memories in one transaction; each is a mapping of `remember`'s arguments."""
        self._engine.demand("write")
        from trivet.memory.remember import remember_many

        return remember_many(self._engine, [contract.check(contract.Remember, memory) for memory in memories])

    @anywhere
    def recall(
        self,
        query: str,
        *,
        limit: int = 10,
        scope: str | None = None,
        category: Sequence[str] = (),
        tags: Sequence[str] = (),
        state: Sequence[State] = (),
        source: str | None = None,
        created_after: str | None = None,
        created_before: str | None = None,
        as_of: str | None = None,
        sort: Sort = "relevance",
        minimum_score: float = 0.0,
        relevance_at_least: float | None = None,
        token_budget: int | None = None,
        per_source: int | None = None,
        collapse: bool = True,
        reveal: bool = False,
        recipe: str | None = None,
        expand: bool | None = None,
        rerank: Rerank | None = None,
        federated: bool = False,
    ) -> Answer:
        """Find the memories that matter for a query, each with the reason why it was found."""
        from trivet.memory.recall import recall

        return recall(self._engine, self._asked("recall", contract.RecallRequest, locals()))

    @anywhere
    def get(self, id: str, *, reveal: bool = False) -> Memory:
        """Show one memory by its id."""
        from trivet.secrets import masked

        request = self._asked("get", contract.Get, locals())
        return masked(self._engine.store.memories.get(_id(request.id)), reveal, self._engine.viewer)

    @anywhere
    def list(
        self,
        *,
        limit: int = 20,
        offset: int = 0,
        sort: Sort = "recency",
        scope: str | None = None,
        category: Sequence[str] = (),
        tags: Sequence[str] = (),
        state: Sequence[State] = (),
        source: str | None = None,
        created_after: str | None = None,
        created_before: str | None = None,
        as_of: str | None = None,
        reveal: bool = False,
    ) -> Page:
        """List memories, newest first, with filters."""
        from trivet.search.filters import filter_of
        from trivet.secrets import masked

        request = self._asked("list", contract.List, locals())
        page = self._engine.store.memories.page(
            filter_of(request, self.settings, self._engine.viewer), request.sort, request.limit, request.offset
        )
        shown = tuple(masked(memory, request.reveal, self._engine.viewer) for memory in page.memories)
        return msgspec.structs.replace(page, memories=shown)

    @anywhere
    def edit(
        self,
        id: str,
        *,
        content: str | UnsetType = UNSET,
        title: str | UnsetType | None = UNSET,
        category: str | UnsetType = UNSET,
        tags: Sequence[str] | UnsetType = UNSET,
        importance: float | UnsetType = UNSET,
        confidence: float | UnsetType = UNSET,
        expanded_keywords: Sequence[str] | UnsetType = UNSET,
        scope: str | UnsetType = UNSET,
        source: str | UnsetType | None = UNSET,
        start_line: int | UnsetType | None = UNSET,
        end_line: int | UnsetType | None = UNSET,
        valid_from: str | UnsetType | None = UNSET,
        valid_to: str | UnsetType | None = UNSET,
        state: State | UnsetType = UNSET,
        sensitive: bool | UnsetType = UNSET,
        if_revision: int | None = None,
    ) -> Memory:
        """Change a memory. The old revision is kept; search sees the new text at once."""
        from trivet.memory.remember import edit
        from trivet.secrets import masked

        return masked(edit(self._engine, self._asked("edit", contract.Edit, locals())))

    @anywhere
    def forget(self, id: str) -> Memory:
        """Delete a memory softly: it leaves every index at once and can be restored."""
        from trivet.memory.lifecycle import forget
        from trivet.secrets import masked

        return masked(forget(self._engine, self._asked("forget", contract.Forget, locals())))

    @anywhere
    def restore(self, id: str, *, revision: int | None = None) -> Memory:
        """Bring back a forgotten memory, or an earlier revision of it."""
        from trivet.memory.lifecycle import restore
        from trivet.secrets import masked

        return masked(restore(self._engine, self._asked("restore", contract.Restore, locals())))

    @anywhere
    def purge(self, id: str) -> None:
        """Remove a memory, its history, vectors and links for good. This cannot be undone."""
        request = self._asked("purge", contract.Purge, locals())
        self._engine.store.memories.purge(_id(request.id))

    @anywhere
    def link(self, source: str, kind: LinkKind, target: str) -> Link:
        """Link two memories: SOURCE supersedes, is resolved by, is part of, or see also TARGET."""
        from trivet.memory.lifecycle import link

        return link(self._engine, self._asked("link", contract.LinkRequest, locals()))

    @anywhere
    def unlink(self, source: str, kind: LinkKind, target: str) -> None:
        """Remove a link between two memories."""
        request = self._asked("unlink", contract.LinkRequest, locals())
        self._engine.store.links.remove(_id(request.source, "source"), request.kind, _id(request.target, "target"))

    @anywhere
    def links(self, id: str) -> tuple[Link, ...]:
        """Show every link that starts or ends at a memory."""
        request = self._asked("links", contract.LinksRequest, locals())
        memory = self._engine.store.memories.get(_id(request.id))
        return self._engine.store.links.touching([memory.id])

    @anywhere
    def share(
        self, user: str, *, id: str | None = None, tag: str | None = None, permission: Permission = "read"
    ) -> Share:
        """Let another user of the server see a memory, or all of yours with a tag."""
        from trivet.memory.sharing import share

        return share(self._engine, self._asked("share", contract.ShareRequest, locals()))

    @anywhere
    def unshare(self, user: str, *, id: str | None = None, tag: str | None = None) -> None:
        """Take back what was shared; it is out of the other's sight at once."""
        from trivet.memory.sharing import unshare

        unshare(self._engine, self._asked("unshare", contract.UnshareRequest, locals()))

    @anywhere
    def shares(self) -> tuple[Share, ...]:
        """List what you share and what is shared with you."""
        self._asked("shares", contract.SharesRequest, {})
        return self._engine.store.shares.all()

    @anywhere
    def reveal(self, id: str) -> Memory:
        """Show one memory with its secrets and private parts, which is written to the audit record."""
        from trivet.memory.secrets import reveal

        return reveal(self._engine, self._asked("reveal", contract.Reveal, locals()))

    @anywhere
    def rotate_keys(self, *, drop_old: bool = False) -> Rotated:
        """Seal every secret of this store with a new key. The old ones stay, for backups, unless they are dropped."""
        self._engine.demand_store()
        from trivet.memory.secrets import rotate

        return rotate(self._engine, drop_old)

    @anywhere
    def redact(self, *, progress: Progress | None = None) -> Redacted:
        """Take secrets out of memories and revisions that were stored while nothing looked for them."""
        self._engine.demand_store()
        from trivet.memory.redact import redact_all

        return redact_all(self._engine, progress)

    @anywhere
    def audit(self, *, limit: int = 50) -> tuple[AuditEntry, ...]:
        """Show who did what, the latest first: your own acts, or everybody's if you have the store."""
        from trivet.memory.secrets import audit

        return audit(self._engine, self._asked("audit", contract.AuditRequest, locals()).limit)

    @anywhere
    def history(self, id: str, *, reveal: bool = False) -> tuple[Revision, ...]:
        """Show every revision of a memory, oldest first."""
        from trivet.memory.lifecycle import history

        return history(self._engine, self._asked("history", contract.History, locals()))

    @anywhere
    def diff(self, id: str, older: int, newer: int, *, reveal: bool = False) -> str:
        """What changed between two revisions, as a unified diff."""
        self._engine.demand("read")
        if reveal:
            self._revealing("diff", id)
        from trivet.memory.lifecycle import diff

        return diff(self._engine, id, older, newer, reveal)

    @anywhere
    def why_not(
        self,
        query: str,
        id: str,
        *,
        limit: int = 10,
        scope: str | None = None,
        category: Sequence[str] = (),
        tags: Sequence[str] = (),
        state: Sequence[State] = (),
        source: str | None = None,
        created_after: str | None = None,
        created_before: str | None = None,
        as_of: str | None = None,
        sort: Sort = "relevance",
        minimum_score: float = 0.0,
        relevance_at_least: float | None = None,
        token_budget: int | None = None,
        per_source: int | None = None,
        collapse: bool = True,
        reveal: bool = False,
        recipe: str | None = None,
        expand: bool | None = None,
        rerank: Rerank | None = None,
    ) -> WhyNot:
        """Explain why a memory did not come back for a query, or where it came."""
        from trivet.memory.why_not import why_not

        return why_not(self._engine, self._asked("why_not", contract.WhyNotRequest, locals()))

    @anywhere
    def concepts(
        self,
        text: str | None = None,
        *,
        kind: ConceptKind | None = None,
        sort: ConceptSort = "memories",
        limit: int = 50,
        offset: int = 0,
        scope: str | None = None,
        category: Sequence[str] = (),
        tags: Sequence[str] = (),
        state: Sequence[State] = (),
        source: str | None = None,
        created_after: str | None = None,
        created_before: str | None = None,
        as_of: str | None = None,
    ) -> ConceptPage:
        """List the concepts that memories mention, those mentioned most first."""
        from trivet.memory.concepts import concepts

        return concepts(self._engine, self._asked("concepts", contract.ConceptsRequest, locals()))

    @anywhere
    def graph(
        self,
        start: str,
        *,
        depth: int = 2,
        limit: int = 40,
        scope: str | None = None,
        category: Sequence[str] = (),
        tags: Sequence[str] = (),
        state: Sequence[State] = (),
        source: str | None = None,
        created_after: str | None = None,
        created_before: str | None = None,
        as_of: str | None = None,
    ) -> Neighbourhood:
        """Show what a memory or a concept is connected with, and how."""
        from trivet.memory.concepts import graph

        return graph(self._engine, self._asked("graph", contract.GraphRequest, locals()))

    @anywhere
    def tags(
        self,
        *,
        limit: int = 100,
        scope: str | None = None,
        category: Sequence[str] = (),
        tags: Sequence[str] = (),
        state: Sequence[State] = (),
        source: str | None = None,
        created_after: str | None = None,
        created_before: str | None = None,
        as_of: str | None = None,
    ) -> tuple[Count, ...]:
        """Count the memories of each tag, the most used first."""
        from trivet.search.filters import filter_of

        request = self._asked("tags", contract.TagsRequest, locals())
        return self._engine.store.memories.tags(filter_of(request, self.settings, self._engine.viewer), request.limit)

    @anywhere
    def categories(
        self,
        *,
        scope: str | None = None,
        category: Sequence[str] = (),
        tags: Sequence[str] = (),
        state: Sequence[State] = (),
        source: str | None = None,
        created_after: str | None = None,
        created_before: str | None = None,
        as_of: str | None = None,
    ) -> tuple[Count, ...]:
        """Count the memories of each category, those without any included."""
        from trivet.memory.concepts import categories

        return categories(self._engine, self._asked("categories", contract.CategoriesRequest, locals()))

    @anywhere
    def inbox_list(self, *, state: ProposalState = "waiting", limit: int = 20, offset: int = 0) -> ProposalPage:
        """List the proposals of your inbox, newest first."""
        request = self._asked("inbox_list", contract.InboxList, locals())
        return self._engine.store.inbox.page(request.state, request.limit, request.offset)

    @anywhere
    def inbox_show(self, id: str) -> Proposal:
        """Show one proposal by its id."""
        return self._engine.store.inbox.get(_id(self._asked("inbox_show", contract.InboxShow, locals()).id))

    @anywhere
    def inbox_propose(
        self,
        content: str,
        *,
        kind: ProposalKind = "told",
        reason: str = "",
        action: ProposalAction = "add",
        memory: str | None = None,
        category: str = "facts",
        tags: Sequence[str] = (),
        scope: str | None = None,
        source: str | None = None,
    ) -> Proposed:
        """Propose a memory for review. What is stored, waits or was rejected already is not proposed again."""
        from trivet.memory.inbox import propose

        return propose(self._engine, self._asked("inbox_propose", contract.InboxPropose, locals()))

    @anywhere
    def inbox_accept(self, ids: Sequence[str]) -> tuple[Proposal, ...]:
        """Accept proposals: all of them are stored, or at the first error none."""
        from trivet.memory.inbox import accept

        return accept(self._engine, self._asked("inbox_accept", contract.InboxAccept, locals()))

    @anywhere
    def inbox_edit(
        self,
        id: str,
        *,
        content: str | UnsetType = UNSET,
        category: str | UnsetType = UNSET,
        tags: Sequence[str] | UnsetType = UNSET,
        action: ProposalAction | UnsetType = UNSET,
        memory: str | UnsetType | None = UNSET,
    ) -> Proposal:
        """Change a waiting proposal before it is accepted."""
        from trivet.memory.inbox import edit

        return edit(self._engine, self._asked("inbox_edit", contract.InboxEdit, locals()))

    @anywhere
    def inbox_reject(self, ids: Sequence[str]) -> tuple[Proposal, ...]:
        """Reject proposals. What they say is not proposed again."""
        from trivet.memory.inbox import reject

        return reject(self._engine, self._asked("inbox_reject", contract.InboxReject, locals()))

    @anywhere
    def feedback(self, id: str, verdict: Usefulness, *, query: str | None = None) -> Usage:
        """Say whether a memory that came was useful. It is kept for tuning and changes no rank."""
        from trivet.memory.feedback import feedback

        return feedback(self._engine, self._asked("feedback", contract.FeedbackRequest, locals()))

    @anywhere
    def usage(self, id: str) -> Usage:
        """Show how often recall showed a memory, and what was said of it."""
        from trivet.memory.feedback import usage

        return usage(self._engine, self._asked("usage", contract.UsageRequest, locals()))

    @anywhere
    def tidy(
        self, *, kinds: Sequence[TidyKind] = (), dry_run: bool = True, unused_days: int = 180, undo: bool = False
    ) -> Tidy:
        """Find duplicates, what has expired, was never recalled or lost its file, and forget it if that is wanted."""
        self._engine.demand_store()
        from trivet.memory.tidy import tidy, undo_last

        return undo_last(self._engine) if undo else tidy(self._engine, frozenset(kinds), dry_run, unused_days)

    @anywhere
    def budgets(self) -> tuple[Budget, ...]:
        """How much memory, disk and tokens are used, and how much is allowed."""
        self._engine.demand_store()
        from trivet.memory.budgets import budgets

        return budgets(self._engine)

    @anywhere
    def stats(self) -> Stats:
        """Count what the store holds and the work waiting."""
        from trivet.memory.upkeep import stats

        self._asked("stats", contract.StatsRequest, {})
        return stats(self._engine)

    @anywhere
    def export(self, *, include_sensitive: bool = False) -> Iterator[str]:
        """The whole store as lines of JSON: header, memories with their history, links."""
        self._engine.demand("read")
        if include_sensitive:
            self._revealing("export", None)
        from trivet.memory.export_import import export_lines

        return export_lines(self._engine, include_sensitive)

    @anywhere
    def import_(self, lines: Iterable[str], *, progress: Progress | None = None) -> Imported:
        """Take in lines of an export, or plain memories with at least a `content`. Nothing here is deleted."""
        self._engine.demand("write")
        from trivet.memory.export_import import import_lines

        return import_lines(self._engine, lines, progress)

    @anywhere
    def backup(self, target: str | PathLike[str]) -> None:
        """Copy the store to a new file while others go on using it."""
        self._engine.demand_store()
        self._engine.store.upkeep.backup(Path(target))

    @anywhere
    def doctor(self) -> tuple[Finding, ...]:
        """Check the store, its indexes, the embedder and the other systems; each problem comes with its remedy."""
        self._engine.demand_store()
        from trivet.memory.doctor import doctor, explained
        from trivet.memory.federation.doctor import findings

        return (*doctor(self._engine), *(explained(finding) for finding in findings(self._engine)))

    @anywhere
    def reindex(
        self, *, lexical: bool = True, vectors: bool = True, graph: bool = True, progress: Progress | None = None
    ) -> int:
        """Rebuild derived data from the memories and return how many memories were embedded."""
        self._engine.demand_store()
        from trivet.memory.upkeep import reindex

        return reindex(self._engine, lexical, vectors, graph, progress)

    @anywhere
    def drain(self, *, progress: Progress | None = None) -> int:
        """Embed what is due, unless a background worker has done it; returns how many memories this call embedded."""
        self._engine.demand_store()
        return self._engine.worker.drain(progress)

    @anywhere
    def embed(self, *, progress: Progress | None = None) -> int:
        """Embed everything that waits, also what failed before and would be retried later."""
        self._engine.demand_store()
        from trivet.memory.upkeep import embed_now

        return embed_now(self._engine, progress)

    def close(self) -> None:
        (self._server or self._engine).close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _asked(self, operation: str, kind: type[R], arguments: Mapping[str, Any]) -> R:
        """A method's own arguments as a checked request of somebody who may make it."""
        self._engine.demand(contract.BY_NAME[operation].needs)
        request = contract.request_of(kind, arguments)
        if getattr(request, "reveal", False):
            self._revealing(operation, getattr(request, "id", None))
        return request

    def _revealing(self, operation: str, id: str | None) -> None:
        """Sensitive contents are shown to those with the right to it, and that they were is on the record."""
        self._engine.demand("reveal")
        if self._engine.caller:
            self._engine.store.audit.note("reveal sensitive", id, operation)


def _id(text: str, field: str = "id") -> str:
    from trivet.ids import check_id

    return check_id(text, field)
