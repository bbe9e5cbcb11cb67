"""Random cases for the lab's measures and statistics."""

from __future__ import annotations

import random

import numpy as np

from support.small_dataset import dataset
from trivet.lab.datasets.dataset import Dataset
from trivet.lab.measure.comparison import Comparison, paired
from trivet.lab.measure.measures import Run


def sides(differences: list[float]) -> tuple[dict[str, float], dict[str, float]]:
    base = {f"q{number:04}": 0.5 for number in range(len(differences))}
    return base, {
        query: 0.5 + difference for query, difference in zip(base, differences, strict=True)
    }


def one(differences: list[float], seed: int = 0) -> Comparison:
    base, candidate = sides(differences)
    (comparison,) = paired({"MRR": base}, {"MRR": candidate}, seed=seed)
    return comparison


def drawn(queries: int, mean: float = 0.05, seed: int = 1) -> list[float]:
    """Return differences as retrieval gives them: most are zero, the rest skewed."""
    generator = np.random.default_rng(seed)
    values = generator.gamma(2, 0.1, queries) - 0.2 + mean
    return [float(value) for value in np.where(generator.random(queries) < 0.4, 0, values)]


def random_case(seed: int) -> tuple[Dataset, Run]:
    """Return grades for some of thirty documents and a ranking of all of them with tied scores."""
    chance = random.Random(seed)
    pool = [f"d{number}" for number in range(30)]
    grades = {
        f"q{number}": {one: chance.randint(0, 3) for one in chance.sample(pool, 12)} | {"d0": 2}
        for number in range(60)
    }
    run = {
        query: [(one, float(chance.randint(0, 15))) for one in chance.sample(pool, 30)]
        for query in grades
    }
    return dataset(grades, pool=30), run
