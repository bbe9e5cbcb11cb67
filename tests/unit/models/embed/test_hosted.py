"""Hosted embedders send correct requests, retry with limits and never reveal texts or keys."""

import traceback
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from trivet.errors import EmbedderError
from trivet.models.embed import Spec, load
from trivet.models.embed.hosted import (
    BATCH_TEXTS,
    BATCH_TOKENS,
    CohereEmbedder,
    HostedEmbedder,
    OpenAIEmbedder,
    VoyageEmbedder,
    batched,
)
from trivet.models.http import Limits

from .conftest import Endpoint, Reply

KEY = "sk-very-secret-0123456789"
VARIABLES = ("OPENAI_API_KEY", "TRIVET_EMBED_API_KEY", "VOYAGE_API_KEY", "COHERE_API_KEY")
Answer = Callable[[dict[str, Any]], Reply]


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in VARIABLES:
        monkeypatch.setenv(variable, KEY)
    # A proxy that does not exist: no request may use it.
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)


@pytest.fixture
def waits() -> list[float]:
    return []


Make = Callable[..., HostedEmbedder]


@pytest.fixture
def openai(endpoint: Endpoint, waits: list[float]) -> Make:
    def make(options: str = "", **limits: Any) -> HostedEmbedder:
        given = {"seconds": 30.0, "deadline": 120.0, "attempts": 3, **limits}
        bounds = Limits(**given)
        spec = Spec.parse(f"openai:m@{endpoint.url}{options}")
        return OpenAIEmbedder(spec, query_limits=bounds, document_limits=bounds, wait=waits.append)

    return make


def vector(text: str) -> list[float]:
    return [float(len(text)), 1.0, 2.0]


def entries(texts: Sequence[str]) -> list[dict[str, Any]]:
    return [
        {"object": "embedding", "index": i, "embedding": vector(text)}
        for i, text in enumerate(texts)
    ]


def listed(body: dict[str, Any]) -> Reply:
    return Reply(
        {
            "object": "list",
            "data": entries(body["input"]),
            "model": "m",
            "usage": {"total_tokens": 1},
        }
    )


def shuffled(body: dict[str, Any]) -> Reply:
    return Reply({"data": entries(body["input"])[::-1]})


def one_after_another(*answers: Answer) -> Answer:
    remaining = list(answers)
    return lambda body: (remaining.pop(0) if len(remaining) > 1 else remaining[0])(body)


def always(body: Any, status: int = 200, **headers: str) -> Answer:
    return lambda _: Reply(
        body, status, {name.replace("_", "-"): value for name, value in headers.items()}
    )


def unit(texts: Sequence[str]) -> Any:
    rows = np.array([vector(text) for text in texts])
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_openai_request_and_response(endpoint: Endpoint, openai: Make) -> None:
    endpoint.answer = listed
    embedder = openai("#dimensions=3")
    np.testing.assert_allclose(embedder.embed_documents(["a", "bb"]), unit(["a", "bb"]), atol=1e-6)
    (received,) = endpoint.received
    assert received.path == "/v1/embeddings"
    assert received.body == {
        "model": "m",
        "input": ["a", "bb"],
        "encoding_format": "float",
        "dimensions": 3,
    }
    assert received.authorization == f"Bearer {KEY}"


def test_openai_orders_by_index(endpoint: Endpoint, openai: Make) -> None:
    endpoint.answer = shuffled
    texts = ["a", "bb", "ccc"]
    np.testing.assert_allclose(openai().embed_documents(texts), unit(texts), atol=1e-6)


def test_voyage_distinguishes_queries_from_documents(endpoint: Endpoint) -> None:
    endpoint.answer = listed
    embedder = VoyageEmbedder(Spec.parse(f"voyage:voyage-3.5@{endpoint.url}#dimensions=3"))
    np.testing.assert_allclose(embedder.embed_query("a"), unit(["a"])[0], atol=1e-6)
    embedder.embed_documents(["a"])
    assert [received.body["input_type"] for received in endpoint.received] == ["query", "document"]
    assert endpoint.received[0].body["output_dimension"] == 3
    assert endpoint.received[0].path == "/v1/embeddings"


def test_cohere_distinguishes_queries_from_documents(endpoint: Endpoint) -> None:
    endpoint.answer = lambda body: Reply(
        {"id": "1", "embeddings": {"float": [vector(t) for t in body["texts"]]}}
    )
    embedder = CohereEmbedder(Spec.parse(f"cohere:embed-v4.0@{endpoint.url}"))
    np.testing.assert_allclose(embedder.embed_documents(["a", "bb"]), unit(["a", "bb"]), atol=1e-6)
    embedder.embed_query("a")
    assert endpoint.received[0].body == {
        "model": "embed-v4.0",
        "texts": ["a", "bb"],
        "input_type": "search_document",
        "embedding_types": ["float"],
    }
    assert endpoint.received[1].body["input_type"] == "search_query"
    assert endpoint.received[0].path == "/v1/embed"


def test_load_by_name(endpoint: Endpoint) -> None:
    endpoint.answer = listed
    embedder = load(f"openai:m@{endpoint.url}/#window=100")
    assert embedder is not None
    assert embedder.identity == "openai:m", "identity names the model, not the endpoint"
    assert (embedder.window, embedder.local) == (100, False)
    assert KEY not in repr(embedder)
    assert embedder.embed_query("a").shape == (3,)


def test_unknown_dimension_costs_one_request(endpoint: Endpoint, openai: Make) -> None:
    endpoint.answer = listed
    embedder = openai()
    assert embedder.dimension == embedder.dimension == 3
    assert len(endpoint.received) == 1
    assert embedder.embed_documents([]).shape == (0, 3)


def test_known_dimension_costs_no_request(endpoint: Endpoint, openai: Make) -> None:
    assert openai("#dimensions=5").dimension == 5
    assert endpoint.received == []


def test_batches_keep_text_order(endpoint: Endpoint, openai: Make) -> None:
    endpoint.answer = shuffled
    texts = ["x" * (1 + number % 7) for number in range(2 * BATCH_TEXTS + 1)]
    np.testing.assert_allclose(openai().embed_documents(texts), unit(texts), atol=1e-6)
    assert [len(received.body["input"]) for received in endpoint.received] == [
        BATCH_TEXTS,
        BATCH_TEXTS,
        1,
    ]


def test_large_texts_use_smaller_batches() -> None:
    half = BATCH_TOKENS // 2 + 1
    groups = list(batched(["a", "b", "c", "d"], [half, half, 1, 2 * BATCH_TOKENS]))
    assert groups == [["a"], ["b", "c"], ["d"]]


def test_busy_server_is_retried_after_its_delay(
    endpoint: Endpoint, openai: Make, waits: list[float]
) -> None:
    endpoint.answer = one_after_another(always({}, 429, Retry_After="7"), always({}, 503), listed)
    openai().embed_query("a")
    assert waits[0] == 7
    assert 0 < waits[1] <= 2


def test_retry_after_is_capped(endpoint: Endpoint, openai: Make, waits: list[float]) -> None:
    endpoint.answer = one_after_another(always({}, 429, Retry_After="86400"), listed)
    openai(longest_wait=9.0).embed_query("a")
    assert waits == [9]


def test_retry_after_date_or_nonsense(endpoint: Endpoint, openai: Make, waits: list[float]) -> None:
    past, nonsense = "Wed, 21 Oct 2015 07:28:00 GMT", "soon"
    refusals = [always({}, 429, Retry_After=value) for value in (past, nonsense)]
    endpoint.answer = one_after_another(*refusals, listed)
    openai().embed_query("a")
    assert waits[0] == 0
    assert waits[1] > 0


def test_no_wait_beyond_deadline(endpoint: Endpoint, openai: Make, waits: list[float]) -> None:
    endpoint.answer = always({}, 429, Retry_After="20")
    with pytest.raises(EmbedderError, match="HTTP 429"):
        openai(deadline=10.0).embed_query("a")
    assert waits == []


def test_failing_server_is_given_up(endpoint: Endpoint, openai: Make, waits: list[float]) -> None:
    endpoint.answer = always({"error": "out of memory"}, 500)
    with pytest.raises(EmbedderError, match=r"openai:m: refused \(HTTP 500\) \(attempt 3\)"):
        openai().embed_query("a")
    assert len(endpoint.received) == 3
    assert len(waits) == 2


@pytest.mark.parametrize("status", [400, 401, 404, 422])
def test_client_error_is_not_retried(endpoint: Endpoint, openai: Make, status: int) -> None:
    endpoint.answer = lambda body: Reply({"error": f"bad key {KEY} for {body['input']}"}, status)
    with pytest.raises(EmbedderError, match=f"HTTP {status}") as refusal:
        openai().embed_query("my diagnosis")
    assert len(endpoint.received) == 1
    assert_hides(refusal.value, "diagnosis", KEY, endpoint.url)


def assert_hides(error: BaseException, *texts: str) -> None:
    """Check the error and its causes, because a log prints those too."""
    told = "".join(traceback.format_exception(error))
    assert [text for text in texts if text in told.partition("Error: ")[2]] == []


def test_error_shows_only_known_provider_codes(endpoint: Endpoint, openai: Make) -> None:
    endpoint.answer = one_after_another(
        always({"error": {"code": "model_not_found", "message": "no model my diagnosis"}}, 404),
        always({"error": {"code": "my diagnosis", "type": ["my diagnosis"]}}, 404),
    )
    with pytest.raises(EmbedderError, match=r"HTTP 404.*model_not_found") as named:
        openai().embed_query("a")
    with pytest.raises(EmbedderError, match="HTTP 404") as unnamed:
        openai().embed_query("a")
    for refusal in (named, unnamed):
        assert_hides(refusal.value, "diagnosis")


def test_silent_server_times_out(endpoint: Endpoint, openai: Make, waits: list[float]) -> None:
    endpoint.answer = listed
    endpoint.open.clear()
    with pytest.raises(EmbedderError, match=r"no answer within 0\.02 s"):
        openai(seconds=0.02, attempts=2).embed_query("a")
    assert len(waits) == 1


def test_stopped_server_error_names_model(waits: list[float]) -> None:
    embedder = OpenAIEmbedder(Spec.parse("openai:m@http://127.0.0.1:9/v1"), wait=waits.append)
    with pytest.raises(
        EmbedderError, match=r"openai:m: .*check that the server is running"
    ) as refusal:
        embedder.embed_query("a")
    assert_hides(refusal.value, "127.0.0.1")
    assert waits == []


def test_redirect_is_not_followed(endpoint: Endpoint, openai: Make) -> None:
    endpoint.answer = always({}, 307, Location="http://127.0.0.1:9/steal")
    with pytest.raises(EmbedderError, match="HTTP 307"):
        openai().embed_query("a")
    assert len(endpoint.received) == 1


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"<html>Bad gateway</html>", "not JSON"),
        ({"data": [{"index": "my diagnosis", "embedding": [1.0]}] * 2}, "unknown shape"),
        (b"[" * 100_000, "not JSON"),
        ({"data": entries(["a"])}, "1 vectors for 2 texts"),
        ({"data": entries(["a", "b", "c"])}, "3 vectors for 2 texts"),
        ({"data": [entries(["a"])[0]] * 2}, "unknown shape"),
        (
            {"data": [{"index": 0, "embedding": [1.0, 2.0]}, {"index": 1, "embedding": [1.0]}]},
            "unequal length",
        ),
        (
            {"data": [{"index": i, "embedding": [1.0, 2.0]} for i in range(2)]},
            "dimension 2, expected 3",
        ),
        ({"data": [{"index": i, "embedding": [1.0, float("nan"), 0.0]} for i in range(2)]}, "NaN"),
        ({"data": [{"index": i, "embedding": [0.0, 0.0, 0.0]} for i in range(2)]}, "zero vector"),
        ({"data": [{"index": i, "embedding": "AAAA"} for i in range(2)]}, "numbers"),
        ({"error": "model not found"}, "unknown shape"),
        ({"data": None}, "unknown shape"),
        ([], "unknown shape"),
        (None, "unknown shape"),
    ],
)
def test_invalid_response_is_rejected(
    endpoint: Endpoint, openai: Make, body: Any, says: str
) -> None:
    endpoint.answer = always(body)
    with pytest.raises(EmbedderError, match=says) as told:
        openai("#dimensions=3").embed_documents(["a", "b"])
    assert_hides(told.value, "gateway", "diagnosis", "model not found", "AAAA")


def test_changed_dimension_is_rejected(endpoint: Endpoint, openai: Make) -> None:
    endpoint.answer = one_after_another(
        listed, always({"data": [{"index": 0, "embedding": [1.0]}]})
    )
    embedder = openai()
    embedder.embed_query("a")
    with pytest.raises(EmbedderError, match="dimension 1, expected 3"):
        embedder.embed_query("a")


def test_oversized_response_is_rejected(endpoint: Endpoint, openai: Make) -> None:
    endpoint.answer = always(b" " * 5_000)
    with pytest.raises(EmbedderError, match="larger than 1000 bytes"):
        openai(most_bytes=1000).embed_query("a")


@pytest.mark.parametrize("text", ["", "  \n"])
def test_empty_text_is_not_sent(endpoint: Endpoint, openai: Make, text: str) -> None:
    with pytest.raises(EmbedderError, match="empty text"):
        openai().embed_documents(["a", text])
    assert endpoint.received == []


def test_openai_key_is_sent_only_to_openai(
    endpoint: Endpoint, openai: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TRIVET_EMBED_API_KEY")
    endpoint.answer = listed
    openai().embed_query("a")
    assert endpoint.received[0].authorization is None


@pytest.mark.parametrize(
    ("spec", "variable"),
    [
        ("voyage:v", "VOYAGE_API_KEY"),
        ("cohere:c", "COHERE_API_KEY"),
        ("openai:o", "TRIVET_EMBED_API_KEY or OPENAI_API_KEY"),
    ],
)
def test_missing_key_names_its_variable(
    spec: str, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name)
    embedder = load(spec)
    assert embedder is not None
    with pytest.raises(EmbedderError, match=f"set {variable}"):
        embedder.embed_query("a")


def test_malformed_key_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VOYAGE_API_KEY", f"{KEY}\nX-Other: 1")
    embedder = load("voyage:v")
    assert embedder is not None
    with pytest.raises(EmbedderError, match="VOYAGE_API_KEY") as refusal:
        embedder.embed_query("a")
    assert KEY not in str(refusal.value)


def test_token_estimates_are_conservative(openai: Make) -> None:
    assert openai().count_tokens(["", "four", "東京都", "a" * 300]) == [0, 2, 3, 100]
