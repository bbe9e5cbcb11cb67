"""LangChain: a retriever over a Trivet store."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import ConfigDict

from trivet.adapters.shared import hit_metadata, run_in_thread
from trivet.trivet import Trivet
from trivet.types import Answer


class TrivetRetriever(BaseRetriever):
    """The hits of a recall as documents, best first.

    Args:
        memory: The store; the caller closes it.
        options: Further arguments of every recall, such as `limit` or `scope`.
        abstain: Return nothing, instead of the best guesses, if nothing is relevant.
    """

    memory: Trivet
    options: Mapping[str, Any] = {}
    abstain: bool = True

    model_config = ConfigDict(arbitrary_types_allowed=True)

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        return list(self._documents(self.memory.recall(query, **self.options)))

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun
    ) -> list[Document]:
        answer = await run_in_thread(lambda: self.memory.recall(query, **self.options))
        return list(self._documents(answer))

    def _documents(self, answer: Answer) -> Iterator[Document]:
        if answer.nothing_relevant and self.abstain:
            return
        for hit in answer.hits:
            yield Document(id=hit.id, page_content=hit.content, metadata=hit_metadata(hit))
