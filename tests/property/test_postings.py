"""A posting list returns how often each memory holds a term, whatever the field weights."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from trivet.store.relational.index.postings import postings_from_occurrences

FIELDS = 3
WEIGHTS = st.sampled_from([0.0, 0.3, 0.5, 1.0, 1.7, 2.0])


@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, FIELDS - 1)), max_size=60),
    st.tuples(*[WEIGHTS] * FIELDS),
)
def test_posting_list_sums_weighted_fields(
    stands: list[tuple[int, int]], weights: tuple[float, ...]
) -> None:
    found = postings_from_occurrences(
        np.array(sorted(key * 8 + field for key, field in stands), np.int32), weights
    )
    counts = {key: [0] * FIELDS for key, _ in stands}
    for key, field in stands:
        counts[key][field] += 1
    weighed = {
        key: sum(weight * count for weight, count in zip(weights, held, strict=True))
        for key, held in counts.items()
    }
    expected = {key: weight for key, weight in sorted(weighed.items()) if weight}
    assert found.keys.tolist() == list(expected)
    assert np.allclose(found.frequencies, list(expected.values()), rtol=1e-15)
    assert found.keys.dtype == np.int64
    assert found.frequencies.dtype == np.float64
