"""One question to an OpenAI-compatible chat endpoint, answered in JSON, with bounds on time, size and attempts."""

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
# A local model sends nothing until its whole answer is made: half a billion parameters on one core took 140 s for a
# batch of four short texts (docs/results/language_model.md).
LIMITS = Limits(seconds=180.0, deadline=360.0, attempts=2, most_bytes=2**20)
MAX_ANSWER_TOKENS = 2_000
# After so many failed requests in a row the endpoint is taken to be down.
PATIENCE = 3
# Braces at which the JSON of an answer may begin: chatter before it seldom holds more.
MAX_JSON_STARTS = 8
_brace = re.compile("{")
_decoder = json.JSONDecoder()


class BadAnswer(Exception):
    """The endpoint answered, but not what was asked for."""


class Chat:
    """Asks a model. The key for OpenAI goes to OpenAI alone; other servers get TRIVET_LLM_API_KEY if it is set."""

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
        """The JSON value in the model's answer. EmbedderError if none is to be had, BadAnswer if it is no JSON."""
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
    """The value as what was asked for; a model that answers anything else has given a bad answer."""
    try:
        return msgspec.convert(value, prepared_type(kind), strict=True)
    except msgspec.ValidationError:  # which may quote the answer
        raise BadAnswer("the answer has another shape than asked for") from None


def _checked(text: str) -> Spec:
    try:
        spec = Spec.parse(text)
    except InvalidInput:
        spec = None
    if spec is None or spec.kind != "openai" or spec.dimensions or spec.window:
        raise InvalidInput(
            "The endpoint must be like openai:MODEL@http://127.0.0.1:11434/v1, or openai:MODEL for OpenAI itself: "
            "a server that speaks OpenAI's chat completions."
        )
    return spec


def _text(answer: Any) -> tuple[str, bool]:
    """What the model said, and whether it was cut off."""
    try:
        choice = answer["choices"][0]
        text, cut_off = choice["message"]["content"], choice.get("finish_reason") == "length"
    except (KeyError, TypeError, IndexError, AttributeError):
        raise EmbedderError("the answer is no chat completion: is the address right?") from None
    if not isinstance(text, str):
        raise BadAnswer("the answer holds no text")
    return text, cut_off


def _value(text: str, cut_off: bool) -> Any:
    """The first JSON object in the answer: small models put it into a fence, or say something before or after it."""
    for brace in islice(
        _brace.finditer(text), 1 if cut_off else MAX_JSON_STARTS
    ):  # an inner object is no answer
        found = _closed(text[brace.start() :]) if cut_off else text[brace.start() :]
        try:
            return _decoder.raw_decode(found)[0]
        except (ValueError, RecursionError):
            continue
    if cut_off:
        raise BadAnswer(
            "the answer broke off: the model said too much, or its context is too small"
        )
    raise BadAnswer("the answer is not JSON")


def _closed(text: str) -> str:
    """An answer that broke off, up to the last whole entry of a list: small models repeat themselves until then."""
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
