"""A model's readings lead to the same facts in any order."""

from __future__ import annotations

import sqlite3
from itertools import permutations
from pathlib import Path
from typing import Any

from support.triples_model import knows, serving
from trivet import Trivet
from unit.memory.triples.test_validity import CITIES, ReadingStore


def test_reading_order_does_not_matter(tmp_path: Path) -> None:
    texts = [
        ("Berlin", "2020-01-01"),
        ("Paris", "2022-01-01"),
        ("Rome", "2021-01-01"),
        ("Berlin", "2023-01-01"),
    ]
    seen: set[tuple[Any, ...]] = set()
    with serving(knows(CITIES)) as model:
        for number, order in enumerate(permutations(texts)):
            path = tmp_path / f"{number}.db"
            with Trivet.open(
                path, embedder="none", background=False, graph_llm=model.spec
            ) as trivet:
                store = ReadingStore(trivet)
                for city, since in order:
                    store.remember(f"Mira is in {city}.", since)
            connection = sqlite3.connect(path)
            query = (
                "SELECT h.valid_from, t.name, h.valid_to, m.content "
                "FROM held AS h JOIN concept AS t ON t.concept = h.target"
                " LEFT JOIN memory AS m ON m.key = h.ended_by ORDER BY 1, 2"
            )
            seen.add(tuple(connection.execute(query).fetchall()))
            connection.close()
    assert len(seen) == 1
