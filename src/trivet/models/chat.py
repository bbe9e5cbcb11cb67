"""Bounded requests to an OpenAI-compatible chat endpoint that answer in JSON."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from itertools import islice
from typing import Any
from urllib.parse import urlsplit

import msgspec

from trivet.common.threads import prepared_type
from trivet.errors import EmbedderError, InvalidInput
from trivet.models.embed.hosted import OPENAI_URL, key_from
from trivet.models.embed.registry import Spec
from trivet.models.http import Limits, post_json

OPENAI_HOST = "api.openai.com"
OPENAI_KEY = "OPENAI_API_KEY"
OTHER_KEY = "TRIVET_LLM_API_KEY"
# A local model sends nothing before its whole answer: a model of half a billion parameters took 140
# s for four short texts on one core (docs/results/language_model.md).
LIMITS = Limits(seconds=180.0, deadline=360.0, attempts=2, most_bytes=2**20)
MAX_ANSWER_TOKENS = 2_000
# Consecutive failed requests after which the endpoint counts as down.
PATIENCE = 3
# Braces to try as the start of the JSON.
MAX_JSON_STARTS = 8
_brace = re.compile("{")
_decoder = json.JSONDecoder()


class BadAnswer(Exception):
    """An answer in the wrong format."""


class Chat:
    """A chat model; OPENAI_API_KEY is sent to OpenAI only, TRIVET_LLM_API_KEY to others."""

    def __init__(
        self, spec: str, limits: Limits = LIMITS, wait: Callable[[float], object] = time.sleep
    ) -> None:
        value = _checked(spec)
        base = value.url or OPENAI_URL
        self.model = value.name
        self.host = urlsplit(base).hostname or ""
        self.endpoint = f"{base}/chat/completions"
        self._key = key_from(OPENAI_KEY if self._is_openai(base) else OTHER_KEY)
        self._limits = limits
        self._wait = wait

    def ask(
        self,
        instruction: str,
        content: Any,
        most_tokens: int = MAX_ANSWER_TOKENS,
        limits: Limits | None = None,
    ) -> Any:
        """Return the JSON value in the answer.

        Raises:
            EmbedderError: The endpoint gave no answer.
            BadAnswer: The answer holds no JSON.
        """
        body = {
            "model": self.model,
            "messages": [
                {"role": "system", "content": instruction},
                {"role": "user", "content": json.dumps(content, ensure_ascii=False)},
            ],
            "temperature": 0,
            "max_tokens": most_tokens,
            "response_format": {"type": "json_object"},
        }
        bounds = limits or self._limits
        return _value(
            *_text(post_json(self.endpoint, body, self._key, bounds, self._wait, self.model))
        )

    @staticmethod
    def _is_openai(base: str) -> bool:
        parts = urlsplit(base)
        return parts.scheme == "https" and parts.hostname == OPENAI_HOST


def convert(value: Any, kind: type[Any]) -> Any:
    try:
        return msgspec.convert(value, prepared_type(kind), strict=True)
    except msgspec.ValidationError:  # the error may quote the answer
        raise BadAnswer("the answer does not have the requested shape") from None


def _checked(text: str) -> Spec:
    try:
        spec = Spec.parse(text)
    except InvalidInput:
        spec = None
    if spec is None or spec.kind != "openai" or spec.dimensions or spec.window:
        raise InvalidInput(
            "The endpoint must be like openai:MODEL@http://127.0.0.1:11434/v1, or openai:MODEL for "
            "OpenAI itself: a server with OpenAI's chat completions API."
        )
    return spec


def _text(answer: Any) -> tuple[str, bool]:
    try:
        choice = answer["choices"][0]
        text, cut_off = choice["message"]["content"], choice.get("finish_reason") == "length"
    except (KeyError, TypeError, IndexError, AttributeError):
        raise EmbedderError("the answer is not a chat completion. Check the address.") from None
    if not isinstance(text, str):
        raise BadAnswer("the answer has no text")
    return text, cut_off


def _value(text: str, cut_off: bool) -> Any:
    """Return the first JSON object; small models write text around it."""
    for brace in islice(
        _brace.finditer(text), 1 if cut_off else MAX_JSON_STARTS
    ):  # in a cut-off answer, a later brace would be an inner object
        found = _closed(text[brace.start() :]) if cut_off else text[brace.start() :]
        try:
            return _decoder.raw_decode(found)[0]
        except (ValueError, RecursionError):
            continue
    if cut_off:
        raise BadAnswer(
            "the answer was cut off: it is too long, or the model's context is too small"
        )
    raise BadAnswer("the answer is not JSON")


def _closed(text: str) -> str:
    """Cut a broken-off answer, mostly repetitions, after the last whole list entry."""
    open_ones: list[str] = []
    whole, closers = len(text), ""
    quoted = escaped = False
    for at, character in enumerate(text):
        if quoted:
            escaped, quoted = character == "\\" and not escaped, character != '"' or escaped
        elif character == '"':
            quoted = True
        elif character in "{[":
            open_ones.append(character)
        elif character in "}]" and open_ones:
            open_ones.pop()
        elif character == "," and open_ones[-1:] == ["["]:
            whole, closers = at, "".join("]" if one == "[" else "}" for one in reversed(open_ones))
    return text[:whole] + closers
