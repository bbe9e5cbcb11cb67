"""The bundled embedder gives stable, normalized vectors that reflect meaning."""

import threading

import numpy as np
import pytest

from support.waiting import ended
from trivet.errors import EmbedderError
from trivet.models.embed.onnx import OURS, OnnxEmbedder, OnnxFiles, bundled, described

TEXTS = [
    "The deploy script failed on Friday because the token had expired.",
    "cats",
    "",
    "東京の天気は今日も晴れです",
    "Où est la clé de la base de données ? 🗝️",
    "def parse_config(path: Path) -> Config: ...",
    "the cat sat on the mat " * 100,
]


@pytest.fixture(scope="module")
def model() -> OnnxEmbedder:
    return bundled()


def test_model_properties(model: OnnxEmbedder) -> None:
    assert model.identity.startswith("trivet-embedder-2/")
    assert (model.dimension, model.window, model.local) == (384, 254, True)


def test_related_text_is_nearer(model: OnnxEmbedder) -> None:
    documents = model.embed_documents(
        [
            "The production database password is rotated monthly.",
            "Bake the bread for forty minutes.",
        ]
    )
    secret, bread = documents @ model.embed_query("how often do we change the db credentials?")
    assert model.background is not None
    assert model.background.nearness(secret) > 0.4 > 0.1 > model.background.nearness(bread)


def test_vectors_are_unit_length_and_in_order(model: OnnxEmbedder) -> None:
    vectors = model.embed_documents(TEXTS)
    assert vectors.shape == (len(TEXTS), 384)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    np.testing.assert_array_equal(model.embed_documents(TEXTS[::-1]), vectors[::-1])


def test_vector_does_not_depend_on_batch(model: OnnxEmbedder) -> None:
    together = model.embed_documents(TEXTS)
    alone = np.stack([model.embed_query(text) for text in TEXTS])
    np.testing.assert_array_equal(together, alone)


def test_new_embedder_gives_same_vectors(model: OnnxEmbedder) -> None:
    np.testing.assert_array_equal(
        OnnxEmbedder(described(OURS)).embed_documents(TEXTS), model.embed_documents(TEXTS)
    )


def test_text_beyond_window_is_truncated(model: OnnxEmbedder) -> None:
    whole = " ".join(["word"] * model.window)
    assert model.count_tokens([whole]) == [model.window]
    np.testing.assert_array_equal(
        model.embed_query(f"{whole} and much more"), model.embed_query(whole)
    )
    assert not np.array_equal(
        model.embed_query(whole.removesuffix(" word")), model.embed_query(whole)
    )


def test_token_counts_are_not_truncated(model: OnnxEmbedder) -> None:
    assert model.count_tokens(["", "cats", "cats and dogs", " ".join(["cat"] * 1000)]) == [
        0,
        1,
        3,
        1000,
    ]


def test_no_texts_give_no_vectors(model: OnnxEmbedder) -> None:
    assert model.embed_documents([]).shape == (0, 384)
    assert model.count_tokens([]) == []


def test_lone_surrogate_is_embedded(model: OnnxEmbedder) -> None:
    assert np.isfinite(model.embed_query("broken \ud83d emoji")).all()


def test_threads_share_one_session() -> None:
    embedder = OnnxEmbedder(described(OURS))
    vectors: list[object] = []
    threads = [
        threading.Thread(target=lambda: vectors.append(embedder.embed_query("hello")))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        ended(thread)
    assert len(vectors) == 8
    np.testing.assert_array_equal(vectors, np.stack([embedder.embed_query("hello")] * 8))


def test_wrong_dimension_is_rejected() -> None:
    files = described(OURS)
    wrong = OnnxFiles(files.identity, files.model, files.tokenizer, files.max_tokens, dimension=768)
    with pytest.raises(EmbedderError, match="dimension 384, expected 768"):
        OnnxEmbedder(wrong).embed_query("hello")
