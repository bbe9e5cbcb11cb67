"""How many tokens a day may be asked for. Kept in the store, so that several processes share one budget."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trivet.store.relational.graph import GraphIndex


# Bytes a token: about four of English; three err on the side of counting too many.
BYTES_A_TOKEN = 3


class Budget:
    """Taken before a request is sent, whether or not it is answered: a silent server may have worked all the same."""

    def __init__(self, graph: GraphIndex, tokens_a_day: int) -> None:
        self._graph = graph
        self.tokens_a_day = tokens_a_day

    def take(self, instruction: str, question: Any, answer_tokens: int) -> bool:
        return self._graph.spend(estimate(instruction, question) + answer_tokens, self.tokens_a_day)

    def used(self) -> int:
        return self._graph.spent()


def estimate(instruction: str, question: Any) -> int:
    text = instruction + json.dumps(question, ensure_ascii=False)
    return len(text.encode("utf-8", "replace")) // BYTES_A_TOKEN
