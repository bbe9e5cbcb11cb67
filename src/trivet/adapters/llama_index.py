"""LlamaIndex: a retriever over a Trivet store, and a memory block for its `Memory`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.memory import BaseMemoryBlock
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from trivet.adapters.shared import hit_metadata, pieces, run_in_thread
from trivet.contract.parameters import MAX_CONTENT_BYTES, MAX_QUERY_CHARACTERS
from trivet.secrets.detect import find
from trivet.secrets.masking import remove_private_parts
from trivet.serve.mcp.text import Wrapper
from trivet.trivet import Trivet
from trivet.types import Answer, Hit

SOURCE_PREFIX = "llama-index:"
# Metadata shown to models; scores and reasons are for programs.
SHOWN_TO_MODELS = ("title", "created_at")
# A character takes up to four bytes; 100 characters leave room for the role.
PIECE_CHARACTERS = MAX_CONTENT_BYTES // 4 - 100
SPEAKERS: Mapping[MessageRole, str] = {MessageRole.USER: "user", MessageRole.ASSISTANT: "assistant"}


class TrivetRetriever(BaseRetriever):
    """The hits of a recall as nodes, best first, scored by relevance from 0 to 1.

    Args:
        trivet: The store; the caller closes it.
        abstain: Return nothing, instead of the best guesses, if nothing is relevant.
        options: Further arguments of every recall, such as `limit` or `scope`.
    """

    def __init__(self, trivet: Trivet, *, abstain: bool = True, **options: Any) -> None:
        super().__init__()
        self._trivet = trivet
        self._abstain = abstain
        self._options = options

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        answer = self._trivet.recall(query_bundle.query_str, **self._options)
        return [_node(hit) for hit in _hits(answer, self._abstain)]

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await run_in_thread(lambda: self._retrieve(query_bundle))


class TrivetMemoryBlock(BaseMemoryBlock[str]):
    """Long-term memory: stores what leaves short-term memory, and recalls for the latest message.

    Args:
        trivet: The store; the caller closes it.
        scope: Where to store and search; give each user their own. By default messages go to the
            configured scope and searches cover all.
        options: Further arguments of every recall, such as `limit` or `tags`.
        abstain: Add nothing, instead of the best guesses, if nothing is relevant.
    """

    name: str = "long_term_memory"
    trivet: Trivet
    scope: str | None = None
    options: Mapping[str, Any] = {"limit": 5}
    abstain: bool = True

    async def _aget(self, messages: list[ChatMessage] | None = None, **block_kwargs: Any) -> str:
        query = _latest_of_user(messages or ())[:MAX_QUERY_CHARACTERS]
        if not query.strip():
            return ""
        answer = await run_in_thread(
            lambda: self.trivet.recall(query, **{"scope": self.scope, **self.options})
        )
        hits = _hits(answer, self.abstain)
        return _as_data(hits) if hits else ""

    async def _aput(self, messages: list[ChatMessage]) -> None:
        rows = [row for message in messages for row in self._rows(message)]
        if rows:
            await run_in_thread(lambda: self.trivet.remember_many(rows))

    def _rows(self, message: ChatMessage) -> Iterator[dict[str, Any]]:
        # Tool calls and their results are not stored.
        content, speaker = message.content or "", SPEAKERS.get(message.role)
        if speaker is None or not content.strip():
            return
        session = message.additional_kwargs.get("session_id")
        for text in _split_to_fit(f"{speaker}: {content}"):
            yield {
                "content": text,
                "category": "events",
                "scope": self.scope,
                "source": f"{SOURCE_PREFIX}{session}" if session else None,
            }


def _hits(answer: Answer, abstain: bool) -> Sequence[Hit]:
    return () if abstain and answer.nothing_relevant else answer.hits


def _node(hit: Hit) -> NodeWithScore:
    metadata = hit_metadata(hit)
    hidden = [name for name in metadata if name not in SHOWN_TO_MODELS]
    node = TextNode(
        id_=hit.id,
        text=hit.content,
        metadata=metadata,
        excluded_llm_metadata_keys=hidden,
        excluded_embed_metadata_keys=list(metadata),
    )
    return NodeWithScore(node=node, score=hit.relevance)


def _latest_of_user(messages: Sequence[ChatMessage]) -> str:
    return next(
        (
            message.content or ""
            for message in reversed(messages)
            if message.role == MessageRole.USER
        ),
        "",
    )


def _as_data(hits: Sequence[Hit]) -> str:
    """Wrap hits in marks that a memory's author cannot forge."""
    wrapper = Wrapper()
    return "\n".join([wrapper.notice, *(wrapper.wrap(hit.content, hit.id) for hit in hits)])


def _split_to_fit(text: str) -> Iterator[str]:
    """Yield the text without NUL; in pieces without private parts if it is too large."""
    text = text.replace("\0", "")
    if len(text.encode()) <= MAX_CONTENT_BYTES:
        yield text
        return
    text = remove_private_parts(text)
    yield from (piece for piece in pieces(text, PIECE_CHARACTERS, find(text)) if piece.strip())
