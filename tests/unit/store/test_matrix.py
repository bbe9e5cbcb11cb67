"""Sign-bit shortlists find what the full product finds, for any mask."""

from __future__ import annotations

import numpy as np
import pytest

from trivet.store.relational.index import vector_matrix as matrices
from trivet.store.relational.index.vector_matrix import Matrix, dot_products, to_float32

ROWS, DIMENSION = 700, 96


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make shortlists from few rows, in several blocks, on two threads."""
    monkeypatch.setattr(matrices, "EXACT_SEARCH_MAX_ROWS", 40)
    monkeypatch.setattr(matrices, "SHORTLIST", 60)
    monkeypatch.setattr(matrices, "BLOCK", 64)
    monkeypatch.setattr(matrices, "MIN_ROWS_PER_CORE", 300)


@pytest.mark.parametrize("shown", [1.0, 0.9, 0.2], ids=["all", "most", "few"])
def test_nearest_visible_rows_are_found(shown: float) -> None:
    chance = np.random.default_rng(5)
    vectors = chance.standard_normal((ROWS, DIMENSION)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    matrix = Matrix(DIMENSION)
    matrix.add(range(ROWS), [0] * ROWS, vectors)
    mask = np.append(chance.random(ROWS) < shown, False)
    for target in np.flatnonzero(mask[:-1])[::25]:
        query = vectors[target] + 0.05 * chance.standard_normal(DIMENSION).astype(np.float32)
        found = matrix.search(query, mask, 5).keys
        assert found[0] == target
        assert mask[found].all()


def test_hidden_nearest_row_is_not_found() -> None:
    vectors = np.eye(DIMENSION, dtype=np.float32)
    matrix = Matrix(DIMENSION)
    matrix.add(range(DIMENSION), [0] * DIMENSION, vectors)
    mask = np.append(np.ones(DIMENSION, bool), False)
    mask[7] = False
    assert 7 not in matrix.search(vectors[7], mask, DIMENSION).keys
    mask = mask.copy()
    mask[7] = True
    assert matrix.search(vectors[7], mask, 1).keys[0] == 7


def test_float16_converts_to_equal_float32() -> None:
    every = np.arange(2**16, dtype=np.uint16).view(np.float16)
    halves = every[np.isfinite(every)].reshape(-1, 64)
    assert (to_float32(halves).view(np.uint32) == halves.astype(np.float32).view(np.uint32)).all()
    assert (to_float32(halves[::3, ::2]) == halves[::3, ::2].astype(np.float32)).all()
    singles = np.ones((2, 2), np.float32)
    assert (to_float32(singles) == singles).all()


def test_score_does_not_depend_on_other_rows() -> None:
    """The same memory must get the same score in any store or database."""
    chance = np.random.default_rng(5)
    vectors, query = (
        chance.standard_normal((300, 96), np.float32),
        chance.standard_normal(96, np.float32),
    )
    alone = [float(dot_products(vectors[row : row + 1], query)[0]) for row in range(len(vectors))]
    assert dot_products(vectors, query).tolist() == alone
