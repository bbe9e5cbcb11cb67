"""Hosted rerankers use the three request formats and reject unusable responses."""

from __future__ import annotations

import time
from typing import Any

import pytest

from trivet.errors import InvalidInput, RerankerError
from trivet.models.rerank.registry import KINDS, OFF, RerankSpec, load

from .conftest import Endpoint, Reply

TEXTS = ["one", "three words here", "two words"]


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COHERE_API_KEY", "cohere-key")
    monkeypatch.setenv("JINA_API_KEY", "jina-key")


def soon() -> float:
    return time.monotonic() + 30


def by_length(name: str, texts: str) -> Any:
    """Return a response in relevance order, as these services do."""

    def answer(body: dict[str, Any]) -> Reply:
        entries = [{"index": at, name: float(len(text))} for at, text in enumerate(body[texts])]
        entries.sort(key=lambda entry: -entry[name])
        return Reply(entries if name == "score" else {"results": entries})

    return answer


@pytest.mark.parametrize(
    ("spec", "score", "texts", "more", "key"),
    [
        (
            "cohere:rank-3@{}",
            "relevance_score",
            "documents",
            {"model": "rank-3", "top_n": 3},
            "cohere-key",
        ),
        (
            "jina:m@{}",
            "relevance_score",
            "documents",
            {"model": "m", "top_n": 3, "return_documents": False},
            "jina-key",
        ),
        ("tei:{}", "score", "texts", {"raw_scores": True, "truncate": True}, None),
    ],
)
def test_request_formats(
    endpoint: Endpoint, spec: str, score: str, texts: str, more: dict[str, Any], key: str | None
) -> None:
    endpoint.answer = by_length(score, texts)
    reranker = load(RerankSpec.parse(spec.format(endpoint.url)))
    assert reranker.score("how many", TEXTS, soon()) == [3.0, 16.0, 9.0]
    (received,) = endpoint.received
    assert received.path == "/v1/rerank"
    assert received.body == {"query": "how many", texts: TEXTS, **more}
    assert received.authorization == (f"Bearer {key}" if key else None)
    assert not reranker.local


@pytest.mark.parametrize(
    "body",
    [
        [],
        {},
        {"results": []},
        [{"index": 0, "score": 1.0}],
        [{"index": at, "score": None} for at in range(3)],
        [{"index": at, "score": "high"} for at in range(3)],
        b'[{"index":0,"score":NaN},{"index":1,"score":1},{"index":2,"score":1}]',
        b"<html>",
    ],
)
def test_unusable_response_is_rejected(endpoint: Endpoint, body: Any) -> None:
    endpoint.answer = lambda _: Reply(body)
    with pytest.raises(RerankerError):
        load(RerankSpec.parse(f"tei:{endpoint.url}")).score("how many", TEXTS, soon())


def test_refusal_is_not_retried_and_hides_key(endpoint: Endpoint) -> None:
    endpoint.answer = lambda _: Reply({"error": "no such key: cohere-key"}, status=503)
    with pytest.raises(RerankerError, match="HTTP 503") as refusal:
        load(RerankSpec.parse(f"cohere:m@{endpoint.url}")).score("how many", TEXTS, soon())
    assert "cohere-key" not in str(refusal.value)
    assert len(endpoint.received) == 1


def test_missing_key_is_reported_before_sending(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JINA_API_KEY")
    with pytest.raises(RerankerError, match="JINA_API_KEY"):
        load(RerankSpec.parse("jina:m"))


@pytest.mark.parametrize(
    "text",
    [
        "off",
        "fast",
        "best",
        "folder:/a b",
        "cohere:m",
        "jina:m@http://localhost:1/v1",
        "tei:https://host/x",
    ],
)
def test_spec_round_trips(text: str) -> None:
    assert str(RerankSpec.parse(text)) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "on",
        "fast:x",
        "folder:",
        "cohere:",
        "tei:",
        "tei:host",
        "cohere:m#window=3",
        "tei:http://u:p@host",
    ],
)
def test_invalid_spec_error_lists_known_kinds(text: str) -> None:
    with pytest.raises(
        InvalidInput, match=r"known are: off, auto, fast, best|must be like"
    ) as refusal:
        RerankSpec.parse(text)
    assert "u:p" not in str(refusal.value)


def test_unknown_kind_error_lists_known_kinds() -> None:
    with pytest.raises(
        InvalidInput, match="unknown reranker 'mine'; known are: off, auto, fast, best, folder"
    ):
        load(RerankSpec("mine", "model"))


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_an_opener(kind: str) -> None:
    assert kind == OFF or callable(KINDS[kind].opener())
