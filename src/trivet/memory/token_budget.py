"""A language model's budget of tokens a day. Kept in the store, so that several processes share it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trivet.store.relational.graph import GraphIndex


# A token has about four bytes of English; three count rather too many tokens than too few.
BYTES_A_TOKEN = 3


class TokenBudget:
    """Tokens are taken before a request is sent, answered or not: a silent server may have worked all the same."""

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
