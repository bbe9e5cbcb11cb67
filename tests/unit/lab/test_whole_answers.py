"""In the lab no time limit holds, and an answer with a part missing ends the run: it would measure something else."""

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


def test_no_time_limit_holds(tmp_path: Path, embedder: WordEmbedder, endpoint: Endpoint) -> None:
    endpoint.answer = lambda body: Reply(
        [{"index": at, "score": 1.0} for at in range(len(body["texts"]))]
    )
    dataset = load(library.write(tmp_path / "data"))
    limits: dict[str, Any] = {
        "leg_time_limit_ms": 1,
        "rerank_time_limit_ms": 1,
    }  # less than a request over HTTP takes
    with open_bench(
        dataset, tmp_path, embedder.spec(), rerank=f"tei:{endpoint.url}", **limits
    ) as bench:
        decision = bench.ask(dataset.queries[0], "default")
    assert {leg.leg: leg.answered for leg in decision.pool.health} == dict.fromkeys(
        ("lexical", "dense", "graph", "rerank"), True
    )


def test_a_reranker_that_fails_ends_a_run_and_a_delivery(
    tmp_path: Path, endpoint: Endpoint
) -> None:
    endpoint.answer = lambda body: Reply({}, status=400)
    dataset = load(library.write(tmp_path / "data"))
    with open_bench(dataset, tmp_path, "none", rerank=f"tei:{endpoint.url}") as bench:
        with pytest.raises(LegFailed, match="Query q1: rerank did not answer: RerankerError"):
            run_arm(bench, "default")
        with pytest.raises(LegFailed, match="Query q1: rerank did not answer"):
            deliver(bench, ("recall", "prompt"))


def test_a_leg_that_fails_ends_the_command(
    tmp_path: Path, embedder: WordEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    embedder.refused = "hot drink she likes at breakfast"  # which is the fifth query
    data, out = str(library.write(tmp_path / "data")), tmp_path / "out"
    shown = CommandLine(monkeypatch)(
        "lab", "run", data, "--embedder", embedder.spec(), "--out", str(out)
    )
    assert (shown.status, shown.out) == (1, "")
    assert "Query q5: dense did not answer: EmbedderError" in shown.err
    assert not list(out.glob("*/measures.json"))


def test_without_an_embedder_a_leg_is_left_out_and_said_so_but_not_every_leg(
    tmp_path: Path,
) -> None:
    with open_bench(load(library.write(tmp_path / "data")), tmp_path, "none") as bench:
        assert run_arm(bench, "default").left_out == ("dense",)
        with pytest.raises(InvalidInput, match="no leg of it can search"):
            run_arm(bench, "legs(dense)")


def test_memories_compared_by_words_alone_are_no_delivery(
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
            "the next run compares them anew"
        )
