"""What a recall asks of the server: the record of changes once, and little else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from trivet import Trivet
from trivet.store.postgres.connection import Reader


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    seen: list[str] = []
    plain = Reader.execute_with

    def noting(self: Reader, settings: Mapping[str, str], sql: str, parameters: Any) -> Any:
        seen.append(" ".join(sql.split()))
        return plain(self, settings, sql, parameters)

    monkeypatch.setattr(Reader, "execute_with", noting)
    return seen


def test_a_warm_recall_asks_little(url: str, asked: list[str]) -> None:
    with Trivet.open(url, background=False, rerank="off") as trivet:
        for place in ("Paris", "Rome", "Oslo", "Bern"):
            trivet.remember(f"We met Clara in {place}.")
        trivet.drain()
        for _ in range(2):
            trivet.recall("whom did we meet in Rome")
        asked.clear()
        answer = trivet.recall("whom did we meet in Rome")
        assert {leg.leg for leg in answer.health.legs if leg.answered} == {"lexical", "dense", "graph"}
        assert len([sql for sql in asked if "FROM change" in sql]) == 1
        assert not [sql for sql in asked if "FROM posting" in sql or "FROM passage AS p JOIN" in sql]
        assert len(asked) <= 8, asked
