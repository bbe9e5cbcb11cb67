"""Retrieval and long-term memory for LlamaIndex, with its mock model, which repeats its prompt.

pip install 'trivet[llama-index]'
python examples/llama_index_memory.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from llama_index.core.chat_engine import SimpleChatEngine
from llama_index.core.llms import MockLLM
from llama_index.core.memory import Memory

from trivet import Trivet
from trivet.adapters.llama_index import TrivetMemoryBlock, TrivetRetriever

QUESTION = "Which port has staging?"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, Trivet.open(Path(folder) / "memory.db") as trivet:
        trivet.remember("The staging database listens on port 6543.", tags=["staging"])
        trivet.remember("Deploys happen on Thursdays.")
        for found in TrivetRetriever(trivet, limit=3).retrieve(QUESTION):
            words = found.node.metadata["why"]["matched_words"]
            print(f"{found.score:.2f} {found.node.text}  because of {words}")
        memory = Memory.from_defaults(
            session_id="ana", memory_blocks=[TrivetMemoryBlock(trivet=trivet)]
        )
        print(SimpleChatEngine.from_defaults(llm=MockLLM(), memory=memory).chat(QUESTION))


if __name__ == "__main__":
    main()
