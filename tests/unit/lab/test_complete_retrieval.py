"""Lab runs have no time limits and stop on incomplete answers, which would distort figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support import library_dataset as library
from support.command_line import CommandLine
from support.endpoint import Endpoint, Reply, endpoint
from support.word_embedder import WordEmbedder, embedder
from trivet.errors import InvalidInput, LegFailed
from trivet.lab.datasets.plain_layout import load
from trivet.lab.measure.bench import open_bench
from trivet.lab.measure.delivery import deliver
from trivet.lab.measure.run import run_arm
from trivet.memory.supersession import verdict as reader

__all__ = ["embedder", "endpoint"]


def test_time_limits_are_ignored(
    tmp_path: Path, embedder: WordEmbedder, endpoint: Endpoint
) -> None:
    endpoint.answer = lambda body: Reply(
        [{"index": at, "score": 1.0} for at in range(len(body["texts"]))]
    )
    dataset = load(library.write(tmp_path / "data"))
    limits: dict[str, Any] = {
        "leg_time_limit_ms": 1,
        "rerank_time_limit_ms": 1,
    }  # shorter than any HTTP request
    with open_bench(
        dataset, tmp_path, embedder.spec(), rerank=f"tei:{endpoint.url}", **limits
    ) as bench:
        decision = bench.ask(dataset.queries[0], "default")
    assert {leg.leg: leg.answered for leg in decision.pool.health} == dict.fromkeys(
        ("lexical", "dense", "graph", "rerank"), True
    )


def test_failing_reranker_ends_run_and_delivery(tmp_path: Path, endpoint: Endpoint) -> None:
    endpoint.answer = lambda body: Reply({}, status=400)
    dataset = load(library.write(tmp_path / "data"))
    with open_bench(dataset, tmp_path, "none", rerank=f"tei:{endpoint.url}") as bench:
        with pytest.raises(LegFailed, match="Query q1: rerank did not answer: RerankerError"):
            run_arm(bench, "default")
        with pytest.raises(LegFailed, match="Query q1: rerank did not answer"):
            deliver(bench, ("recall", "prompt"))


def test_failing_leg_ends_command(
    tmp_path: Path, embedder: WordEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    embedder.refused = "hot drink she likes at breakfast"  # part of the fifth query
    data, out = str(library.write(tmp_path / "data")), tmp_path / "out"
    shown = CommandLine(monkeypatch)(
        "lab", "run", data, "--embedder", embedder.spec(), "--out", str(out)
    )
    assert (shown.status, shown.out) == (1, "")
    assert "Query q5: dense did not answer: EmbedderError" in shown.err
    assert not list(out.glob("*/measures.json"))


def test_missing_embedder_drops_leg_but_not_all(
    tmp_path: Path,
) -> None:
    with open_bench(load(library.write(tmp_path / "data")), tmp_path, "none") as bench:
        assert run_arm(bench, "default").left_out == ("dense",)
        with pytest.raises(InvalidInput, match="no leg of it can search"):
            run_arm(bench, "legs(dense)")


def test_delivery_requires_comparison_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = '{"id": "a", "text": "My dog is called Rex.", "created_at": "2024-01-01"}\n'
    corpus += '{"id": "b", "text": "My dog is called Max now.", "created_at": "2024-02-01"}\n'
    data = library.write(
        tmp_path / "data", corpus=corpus, queries='{"id": "q", "text": "dog"}\n', qrels="q\tb\t2\n"
    )
    monkeypatch.setattr(reader, "FOLDER", "nowhere")
    reader._pair_model.cache_clear()
    with open_bench(load(data), tmp_path, "none") as bench:
        with pytest.raises(LegFailed, match="the model that compares memories did not answer"):
            deliver(bench)
        assert bench.trivet.engine.store.likely_updates.pending() == 2, (
            "the next run must compare them again"
        )
