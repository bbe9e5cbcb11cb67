"""A LangGraph agent that remembers between conversations, with a scripted model.

pip install 'trivet[langgraph]'
python examples/langgraph_store.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TypedDict

from langgraph.config import get_store
from langgraph.graph import START, StateGraph

from trivet import Trivet
from trivet.adapters.langgraph import TrivetStore

USER = ("users", "ana")


class State(TypedDict):
    said: str
    answer: str


def answer(state: State) -> dict[str, str]:
    """Store statements and answer questions, in place of a model."""
    store = get_store()
    if not state["said"].endswith("?"):
        store.put(USER, f"said {state['said']}", {"text": state["said"]})
        return {"answer": "I will remember that."}
    found = store.search(USER, query=state["said"], limit=1)
    return {"answer": found[0].value["text"] if found else "I do not know."}


def main() -> None:
    builder = StateGraph(State)
    builder.add_node("answer", answer)
    builder.add_edge(START, "answer")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "memory.db"
        for said in (
            "The staging database listens on port 6543.",
            "I prefer green tea.",
            "Which port has staging?",
        ):
            with Trivet.open(file) as memory:  # Each conversation may run in another process.
                graph = builder.compile(store=TrivetStore(memory))
                print(f"{said} -> {graph.invoke({'said': said, 'answer': ''})['answer']}")


if __name__ == "__main__":
    main()
