"""Retrieval for a LangChain chain, with a scripted model instead of a real one.

pip install 'trivet[langchain]'
python examples/langchain_retriever.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from langchain_core.documents import Document
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnablePassthrough

from trivet import Trivet
from trivet.adapters.langchain import TrivetRetriever

PROMPT = ChatPromptTemplate.from_template(
    "Answer from these notes:\n{notes}\n\nQuestion: {question}"
)


def as_notes(documents: list[Document]) -> str:
    for one in documents:
        words = one.metadata["why"]["matched_words"]
        print(f"  {one.metadata['relevance']:.2f} {one.page_content}  because of {words}")
    return "\n".join(one.page_content for one in documents)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, Trivet.open(Path(folder) / "memory.db") as memory:
        memory.remember("The staging database listens on port 6543.", tags=["staging"])
        memory.remember("Deploys happen on Thursdays.")
        retriever = TrivetRetriever(memory=memory, options={"limit": 3})
        model = GenericFakeChatModel(messages=iter([AIMessage("Staging listens on port 6543.")]))
        chain = (
            {"notes": retriever | as_notes, "question": RunnablePassthrough()}
            | PROMPT
            | model
            | StrOutputParser()
        )
        print(chain.invoke("Which port has staging?"))


if __name__ == "__main__":
    main()
