"""The product comparison works without the products: driver protocol, figures and page."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))

from peers.corpora import text_of
from peers.drivers import driver
from peers.loads import spread
from peers.page import page
from peers.process import environment, parsed
from peers.products import ARMS, LEFT_OUT, PRODUCTS
from peers.quality import figures, scopes
from peers.vectors import packed
from trivet.lab.datasets.dataset import Dataset, Document, Judgement, Query
from trivet.lab.report.page import as_markdown

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"
DATASET = Dataset(
    name="small",
    documents=tuple(
        Document(id=f"d{number}", text=f"text {number}", scope="one") for number in range(3)
    ),
    queries=(Query(id="q0", text="which", scope="one"), Query(id="q1", text="what", scope="one")),
    judgements=tuple(
        Judgement(query=f"q{number}", document=f"d{number}", grade=1) for number in range(2)
    ),
)


class Shelf:
    """A product that returns its documents, newest first."""

    def __init__(self) -> None:
        self.documents: list[driver.Document] = []

    def open(self, folder: Path, dimension: int, given: bool) -> None:
        self.opened = (folder, dimension, given)

    def add(self, documents: Sequence[driver.Document]) -> None:
        self.documents.extend(documents)

    def finish(self) -> None: ...

    def search(self, text: str, vector: driver.Vector, count: int) -> list[str]:
        return [one.id for one in reversed(self.documents)][:count]

    def held(self) -> list[str]:
        return [one.id for one in self.documents]

    def close(self) -> None: ...


def test_driver_responses_include_seconds() -> None:
    vector, shelf = packed(np.array([0.5, -0.25], dtype=np.float32)), Shelf()
    documents = [{"id": name, "text": f"of {name}", "vector": vector} for name in ("a", "b", "c")]
    opened = driver._answer(
        shelf, {"do": "open", "folder": "/store", "dimension": 2, "given": True}
    )
    assert set(opened) == {"seconds"}
    assert shelf.opened == (Path("/store"), 2, True)
    driver._answer(shelf, {"do": "add", "documents": documents})
    found = driver._answer(shelf, {"do": "search", "text": "x", "vector": vector, "count": 2})
    assert found["ids"] == ["c", "b"]
    assert found["seconds"] >= 0
    assert driver._answer(shelf, {"do": "held"})["ids"] == ["a", "b", "c"]


def test_vectors_are_transferred_and_found_by_text() -> None:
    vector = np.array([0.125, -3.5, 1e-3], dtype=np.float32)
    driver._answer(
        Shelf(),
        {"do": "add", "documents": [{"id": "a", "text": "of long ago", "vector": packed(vector)}]},
    )
    assert driver.vectors_of(["of long ago"]) == [vector.tolist()]


@pytest.mark.parametrize("line", ["", '{"seconds": 0.1', '{"seconds": 0.1}'])
def test_truncated_line_is_not_a_response(line: str) -> None:
    assert parsed(line) is None
    assert parsed('{"seconds": 0.1}\n') == {"seconds": 0.1}


def test_driver_environment_has_no_keys_or_user_home(tmp_path: Path) -> None:
    made = environment(
        tmp_path, {"PATH": "/bin", "HOME": "/root", "OPENAI_API_KEY": "secret", "PYTHONPATH": "x"}
    )
    assert made["HOME"] == str(tmp_path)
    assert made["PATH"] == "/bin"
    assert made["HF_HUB_OFFLINE"] == "1"
    assert "OPENAI_API_KEY" not in made
    assert made["PYTHONPATH"] == str(BENCHMARKS)


def test_title_is_prepended_unless_text_starts_with_it() -> None:
    assert text_of(Document(id="a", text="Lift. Of wings.", title="Lift.")) == "Lift. Of wings."
    assert text_of(Document(id="a", text="Of wings.", title="Lift.")) == "Lift.\nOf wings."


def test_products_have_drivers_and_pinned_versions() -> None:
    for product in PRODUCTS:
        assert (BENCHMARKS / "peers" / "drivers" / f"{product.name}_driver.py").is_file()
        assert all("==" in package for package in product.packages)
    assert len({arm.name for arm in ARMS}) == len(ARMS)


def test_figures_compare_arms_and_count_documents_once() -> None:
    asked: dict[str, dict[str, list[str]]] = {
        "trivet": {"q0": ["d0"], "q1": ["d1"]},
        "other": {"q0": ["d0", "d0", "d1"], "q1": ["d2"]},
    }
    found = figures(DATASET, asked, "trivet")
    assert scopes(DATASET) == ["one"]
    assert found["trivet"]["means"]["recall@5"] == 1
    assert found["other"]["means"]["recall@5"] == 0.5
    assert found["other"]["against"]["recall@5"]["difference"] == -0.5
    assert found["other"]["short_answers"] == 2


def test_page_lists_every_arm_and_unmeasured_values() -> None:
    arms = {name: {"title": name.upper(), "given": True} for name in ("trivet", "other")}
    asked = {
        name: {"q0": ["d0"], "q1": [found]} for name, found in (("trivet", "d1"), ("other", "d2"))
    }
    result: dict[str, Any] = {
        "arms": arms,
        "products": {
            "other": {"title": "OTHER", "setting": "as | told", "versions": {"other": "1.2"}}
        },
        "quality": {
            "small": {"documents": 3, "queries": 2, "arms": figures(DATASET, asked, "trivet")}
        },
        "kills": {
            "other": {"rounds": 6, "acknowledged": 90, "lost": 4, "not_found": 5, "not_opened": []}
        },
        "load": {"other": {"disk_bytes": 3 * 2**20, "memory_bytes": 2**30}},
        "left_out": dict(LEFT_OUT),
    }
    text = as_markdown(page(json.loads(json.dumps(result))), "")
    assert "| **TRIVET** | 1.000 | – | 1.000 | – |" in text
    assert "| OTHER | 0.500 | -0.500 (" in text
    assert "| OTHER | 6 | 90 | 4 | 5 | 3 | 1,024 |" in text
    assert "Not measured yet" in text
    result["times"] = {
        "other": {
            "recall_ms": None,
            "recall_with_embedding_ms": spread([0.002, 0.001, 0.003]),
            "single_write_ms": spread([0.004]),
            "writes_per_second_in_batches": 1234.5,
        }
    }
    assert "| OTHER | – | – | 2.0 | 3.0 | 4.0 | 1,234 |" in as_markdown(page(result), "")
