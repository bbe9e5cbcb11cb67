import hashlib
import json
import threading

import numpy as np
import pytest

from support.waiting import ended
from trivet.errors import EmbedderError
from trivet.models.embed.onnx import STOCK, OnnxEmbedder, OnnxFiles, described, stock

TEXTS = [
    "The deploy script failed on Friday because the token had expired.",
    "cats",
    "",
    "東京の天気は今日も晴れです",
    "Où est la clé de la base de données ? 🗝️",
    "def parse_config(path: Path) -> Config: ...",
    "the cat sat on the mat " * 100,
]


def test_checksums_are_those_of_the_files() -> None:
    description = json.loads((STOCK / "model.json").read_text())
    found = {name: hashlib.sha256((STOCK / name).read_bytes()).hexdigest() for name in description["sha256"]}
    assert found == description["sha256"]
    assert set(found) == {"model.onnx", "tokenizer.json"}


def test_licence_travels_with_the_model() -> None:
    assert "Apache License" in (STOCK / "LICENSE").read_text()
    assert "all-MiniLM-L6-v2" in (STOCK / "NOTICE.md").read_text()


def test_says_what_it_is(minilm: OnnxEmbedder) -> None:
    assert minilm.identity.startswith("all-MiniLM-L6-v2/")
    assert (minilm.dimension, minilm.window, minilm.local) == (384, 254, True)


def test_similar_texts_are_closer(minilm: OnnxEmbedder) -> None:
    documents = minilm.embed_documents(
        ["The production database password is rotated monthly.", "Bake the bread for forty minutes."]
    )
    secret, bread = documents @ minilm.embed_query("how often do we change the db credentials?")
    assert secret > 0.4 > bread


def test_vectors_are_unit_length_and_in_order(minilm: OnnxEmbedder) -> None:
    vectors = minilm.embed_documents(TEXTS)
    assert vectors.shape == (len(TEXTS), 384)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    np.testing.assert_array_equal(minilm.embed_documents(TEXTS[::-1]), vectors[::-1])


def test_a_vector_does_not_depend_on_its_neighbours(minilm: OnnxEmbedder) -> None:
    together = minilm.embed_documents(TEXTS)
    alone = np.stack([minilm.embed_query(text) for text in TEXTS])
    np.testing.assert_array_equal(together, alone)


def test_a_fresh_embedder_gives_the_same_vectors(minilm: OnnxEmbedder) -> None:
    np.testing.assert_array_equal(stock().embed_documents(TEXTS), minilm.embed_documents(TEXTS))


def test_text_beyond_the_window_is_cut(minilm: OnnxEmbedder) -> None:
    whole = "word " * minilm.window
    assert minilm.count_tokens([whole]) == [minilm.window]
    np.testing.assert_array_equal(minilm.embed_query(whole + "and much more"), minilm.embed_query(whole))
    assert not np.array_equal(minilm.embed_query("word " * (minilm.window - 1)), minilm.embed_query(whole))


def test_token_counts_are_not_cut(minilm: OnnxEmbedder) -> None:
    assert minilm.count_tokens(["", "cats", "cats and dogs", "cat " * 1000]) == [0, 1, 3, 1000]


def test_no_texts_give_no_vectors(minilm: OnnxEmbedder) -> None:
    assert minilm.embed_documents([]).shape == (0, 384)
    assert minilm.count_tokens([]) == []


def test_a_lone_surrogate_is_survived(minilm: OnnxEmbedder) -> None:
    assert np.isfinite(minilm.embed_query("broken \ud83d emoji")).all()


def test_threads_share_one_session() -> None:
    embedder = stock()
    vectors: list[object] = []
    threads = [threading.Thread(target=lambda: vectors.append(embedder.embed_query("hello"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        ended(thread)
    assert len(vectors) == 8
    np.testing.assert_array_equal(vectors, np.stack([embedder.embed_query("hello")] * 8))


def test_a_wrong_dimension_is_an_error() -> None:
    files = described(STOCK)
    wrong = OnnxFiles(files.identity, files.model, files.tokenizer, files.max_tokens, dimension=768)
    with pytest.raises(EmbedderError, match="dimension 384, expected 768"):
        OnnxEmbedder(wrong).embed_query("hello")
