"""LangChain's retriever over Trivet, with LangChain itself."""

from __future__ import annotations

import asyncio
import json

import pytest

from trivet import Trivet

pytest.importorskip(
    "langchain_core.retrievers", reason="langchain-core is not installed: `make adapters` tests it"
)

from langchain_core.runnables import RunnableLambda

from trivet.adapters.langchain import TrivetRetriever


@pytest.fixture
def retriever(trivet: Trivet) -> TrivetRetriever:
    trivet.remember(
        "The staging database listens on port 6543.",
        tags=["staging"],
        scope="work",
        source="notes.md",
    )
    trivet.remember("Ana likes green tea.", scope="home")
    return TrivetRetriever(memory=trivet, options={"limit": 1})


def test_a_hit_is_a_document_with_its_reason(retriever: TrivetRetriever) -> None:
    [document] = retriever.invoke("which port has staging?")
    hit = retriever.memory.recall("which port has staging?").hits[0]
    assert (document.id, document.page_content) == (hit.id, hit.content)
    metadata = document.metadata
    assert (metadata["score"], metadata["relevance"], metadata["rank"]) == (
        hit.score,
        hit.relevance,
        1,
    )
    assert metadata["why"]["matched_words"] == list(hit.why.matched_words)
    assert metadata["source"]["uri"] == "notes.md"
    assert json.loads(json.dumps(metadata)) == metadata


def test_the_asynchronous_call_gives_the_same(retriever: TrivetRetriever) -> None:
    [document] = asyncio.run(retriever.ainvoke("green tea"))
    assert document.page_content == "Ana likes green tea."


def test_options_reach_recall(retriever: TrivetRetriever) -> None:
    assert (
        TrivetRetriever(memory=retriever.memory, options={"scope": "home"}).invoke("staging port")
        == []
    )


def test_it_abstains_unless_told_otherwise(retriever: TrivetRetriever) -> None:
    query = "staging of Shakespeare tragedies in medieval Lisbon theatres during winter"
    answer = retriever.memory.recall(query)
    assert answer.nothing_relevant
    assert answer.hits
    assert retriever.invoke(query) == []
    assert len(TrivetRetriever(memory=retriever.memory, abstain=False).invoke(query)) == len(
        answer.hits
    )


def test_it_is_a_link_of_a_chain(retriever: TrivetRetriever) -> None:
    chain = retriever | RunnableLambda(lambda documents: documents[0].page_content)
    assert chain.invoke("green tea") == "Ana likes green tea."
