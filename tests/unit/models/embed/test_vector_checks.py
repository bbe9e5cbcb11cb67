"""Vectors from an embedder are validated and normalized."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trivet.errors import EmbedderError
from trivet.models.embed.base import checked


@pytest.mark.parametrize(
    ("vectors", "says"),
    [
        ([[1.0, 0.0]], "1 vectors for 2 texts"),
        ([[1.0], [2.0]], "dimension 1, expected 2"),
        ([[1.0, float("nan")], [1.0, 0.0]], "NaN or infinite"),
        ([[1.0, float("inf")], [1.0, 0.0]], "NaN or infinite"),
        ([[1e300, 0.0], [1.0, 0.0]], "NaN or infinite"),
        ([[1.0, None], [1.0, 0.0]], "NaN or infinite"),
        ([[0.0, 0.0], [1.0, 0.0]], "zero vector"),
        ([[1.0, 0.0], [1.0]], "unequal length"),
        ([["x", "y"], ["z", "w"]], "values that are not numbers"),
        ([1.0, 0.0], "shape"),
        (3.0, "shape"),
        ([[], []], "shape"),
        ([], "0 vectors for 2 texts"),
    ],
)
def test_invalid_vectors_are_rejected(vectors: Any, says: str) -> None:
    with pytest.raises(EmbedderError, match=says) as refusal:
        checked(vectors, 2, 2, "some model")
    assert "some model" in str(refusal.value)


@given(st.lists(st.floats(-(2.0**100), 2.0**100, width=32), min_size=1, max_size=8).filter(any))
def test_result_has_unit_length(row: list[float]) -> None:
    vector = checked([row], 1, None, "some model")
    assert vector.dtype == np.float32
    assert np.linalg.norm(vector.astype(np.float64)) == pytest.approx(1, abs=1e-5)
