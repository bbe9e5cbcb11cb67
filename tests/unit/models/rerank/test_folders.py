"""Cross-encoder folders score texts, truncate long ones and report invalid contents."""

from __future__ import annotations

import json
import multiprocessing
import shutil
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from support.tiny_reranker import LOVE, write_reranker
from trivet.common.threads import worker_cores
from trivet.errors import RerankerError
from trivet.models import WEIGHTS
from trivet.models.rerank import local as onnx
from trivet.models.rerank.local import bundled, open_folder
from trivet.models.rerank.registry import Reranker

FOREVER = float("inf")
QUERY = "zebra relay"


def scored(reranker: Reranker, *texts: str) -> list[float]:
    return reranker.score(QUERY, texts, FOREVER)


def test_scores_follow_input_order(tiny: Path) -> None:
    texts = ("zebra", "nothing", "zebra relay " * 40, "an emerald", "relay of the zebra")
    assert scored(open_folder(str(tiny)), *texts) == [1.0, 0.0, 80.0, LOVE, 2.0]


def test_batch_scores_equal_single_scores(tiny: Path) -> None:
    reranker = open_folder(str(tiny))
    texts = [f"zebra {'relay ' * number}" for number in range(9)]
    assert scored(reranker, *texts) == [scored(reranker, text)[0] for text in texts]


def test_long_text_is_truncated_at_end(tmp_path: Path) -> None:
    reranker = open_folder(str(write_reranker(tmp_path / "short", max_tokens=16)))
    early, late = "emerald " + "stone " * 50, "stone " * 50 + "emerald"
    assert scored(reranker, early, late) == [LOVE, 0.0]
    assert reranker.score("zebra " * 200, ["emerald"], FOREVER) == [LOVE], (
        "a long query must leave room for the text"
    )


def test_hostile_texts_are_scored(tiny: Path) -> None:
    texts = ("", " ", "\ud800 zebra", "\x00", "🦓" * 2_000, "[SEP] zebra [CLS]", "zebra " * 10_000)
    scores = scored(open_folder(str(tiny)), *texts)
    assert len(scores) == len(texts)
    assert scores[2] == 1.0


def test_scoring_stops_at_deadline(tiny: Path) -> None:
    with pytest.raises(RerankerError, match="ran out of time"):
        open_folder(str(tiny)).score(QUERY, ["zebra"] * 20, time.monotonic() - 1)


def test_concurrent_scoring_is_limited_to_cores(
    tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each text takes tens of megabytes, and more threads than cores bring no speed."""
    reading, most, guard, read = 0, 0, threading.Lock(), onnx._Pairs.run

    def counted(*arguments: Any) -> float:
        nonlocal reading, most
        with guard:
            reading += 1
            most = max(most, reading)
        try:
            return read(*arguments)
        finally:
            with guard:
                reading -= 1

    monkeypatch.setattr(onnx._Pairs, "run", counted)
    reranker = open_folder(str(tiny))
    with ThreadPoolExecutor(4) as many:
        answers = list(
            many.map(
                lambda number: scored(reranker, *["zebra relay " * (50 + number)] * 20), range(8)
            )
        )
    assert answers == [[2.0 * (50 + number)] * 20 for number in range(8)]
    assert most <= worker_cores()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows forks no process")
def test_forked_child_can_score(tiny: Path) -> None:
    reranker = open_folder(str(tiny))
    assert scored(reranker, "zebra", "relay") == [1.0, 1.0]
    child = multiprocessing.get_context("fork").Process(target=_score_in_child, args=(reranker,))
    child.start()
    child.join(30)
    assert child.exitcode == 0


def _score_in_child(reranker: Reranker) -> None:
    assert scored(reranker, "zebra", "zebra relay") == [1.0, 2.0]


def test_plain_onnx_folder_needs_no_description(tiny: Path) -> None:
    (tiny / "model.json").unlink()
    assert scored(open_folder(str(tiny)), "zebra") == [1.0]
    (tiny / "onnx").mkdir()
    (tiny / "model.onnx").rename(tiny / "onnx" / "model.onnx")
    assert scored(open_folder(str(tiny)), "zebra") == [1.0]


def test_model_is_read_at_first_use(tiny: Path) -> None:
    (tiny / "model.onnx").write_bytes(b"no model at all")
    reranker = open_folder(str(tiny))
    assert reranker.identity.startswith("tiny-reranker/")
    with pytest.raises(RerankerError, match="cannot open the ONNX model"):
        scored(reranker, "zebra")


def test_model_with_several_outputs_is_rejected(tmp_path: Path) -> None:
    folder = write_reranker(tmp_path / "classes", answers=3)
    with pytest.raises(RerankerError, match="one score"):
        scored(open_folder(str(folder)), "zebra")


def test_embedder_folder_is_rejected(tiny: Path) -> None:
    description = json.loads((tiny / "model.json").read_text())
    (tiny / "model.json").write_text(json.dumps({**description, "kind": "embedder"}))
    with pytest.raises(RerankerError, match="not a reranker"):
        open_folder(str(tiny))


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"kind": "reranker"}', "{"])
def test_broken_description_is_named(tiny: Path, text: str) -> None:
    (tiny / "model.json").write_text(text)
    with pytest.raises(RerankerError, match=r"model\.json"):
        open_folder(str(tiny))


def test_folder_without_model_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RerankerError, match="nowhere does not exist"):
        open_folder(str(tmp_path / "nowhere"))
    with pytest.raises(RerankerError, match="holds no reranker"):
        open_folder(str(tmp_path))
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    (tmp_path / "model.safetensors").write_bytes(b"weights")
    with pytest.raises(RerankerError, match=r"pip install 'sentence-transformers"):
        open_folder(str(tmp_path))


@pytest.mark.parametrize(
    ("folder", "identity"),
    [
        ("reranker", "trivet-reranker-12/6d7760f3f5b3"),
        ("reranker-fast", "trivet-reranker-3/16dc4ac9edf6"),
        ("changes", "trivet-changes-3/42994ba41df4"),
    ],
)
def test_shared_word_table_keeps_model_identity(
    folder: str, identity: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stores hold the change model's identity, and calibrations hold those of the rerankers."""
    reranker = bundled(folder)
    assert reranker.identity == identity
    near, far = reranker.score(
        "The zebra lives in Rome now.", ["The zebra lives in Paris.", "Rye takes long."], FOREVER
    )
    assert near > far
    monkeypatch.setattr(onnx, "SHARED", tmp_path)
    shutil.copy(WEIGHTS / "words" / "tokenizer.json", tmp_path)
    with pytest.raises(
        RerankerError, match=r"the word table .*words\.npy .*is the installation complete"
    ):
        scored(bundled(folder), "zebra")
