"""LangChain: a retriever over a Trivet store.

from trivet import Trivet
from trivet.adapters.langchain import TrivetRetriever

retriever = TrivetRetriever(memory=Trivet.open(), options={"limit": 5, "scope": "work"})
documents = retriever.invoke("which port is staging on?")
"""

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
    """Gives the hits of a recall as documents, best first, each with its score, relevance and reason as metadata.

    :param memory: The store, which is closed by whoever opened it.
    :param options: Further arguments of every recall, such as `limit`, `scope`, `tags` or `relevance_at_least`.
    :param abstain: Return nothing where recall says that probably nothing is relevant, instead of its best guesses.
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
