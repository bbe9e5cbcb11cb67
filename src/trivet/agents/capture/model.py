"""The language model of capture, within its budget of tokens a day."""

from __future__ import annotations

from typing import Any

from trivet.errors import EmbedderError, InvalidInput
from trivet.memory.engine import Engine
from trivet.memory.token_budget import estimate
from trivet.models.chat import BadAnswer, Chat
from trivet.models.http import Limits

# A local model sends nothing until its whole answer is made, which may take minutes without a GPU.
LIMITS = Limits(seconds=180.0, deadline=180.0, attempts=1, most_bytes=2**20)
ANSWER_TOKENS = 1_000


class NotAsked(Exception):
    """The model could not be reached or the budget is used up: the caller may try the same again later."""


class Model:
    def __init__(self, engine: Engine) -> None:
        if not engine.settings.capture_llm:
            raise InvalidInput(
                "No language model is set for capture. Set capture_llm, such as openai:MODEL@http://localhost:1234/v1. "
                "The rules need none."
            )
        try:
            self._chat = Chat(engine.settings.capture_llm, LIMITS)
        except InvalidInput as error:
            raise InvalidInput(f"The setting capture_llm: {error}") from None
        self._inbox = engine.store.inbox
        self._most = engine.settings.capture_llm_tokens_a_day

    def ask(self, instruction: str, question: Any) -> Any:
        """Asks the model; a useless answer is a BadAnswer. Tokens count before it is asked, answered or not."""
        if not self._inbox.spend(estimate(instruction, question) + ANSWER_TOKENS, self._most):
            raise NotAsked(
                f"the budget of {self._most} tokens a day is used up; it goes on tomorrow (UTC), or set "
                "capture_llm_tokens_a_day higher"
            )
        try:
            return self._chat.ask(instruction, question, ANSWER_TOKENS)
        except EmbedderError as error:
            raise NotAsked(str(error)) from None


__all__ = ["BadAnswer", "Model", "NotAsked"]
