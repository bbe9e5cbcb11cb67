"""A dataset small enough to check by hand, and a function to write one."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from trivet.lab.datasets.dataset import Dataset, Document, Judgement, Query

CORPUS: Sequence[Mapping[str, Any]] = ({"id": "a", "text": "apples"}, {"id": "b", "text": "pears"})
QUERIES: Sequence[Mapping[str, Any]] = (
    {"id": "q1", "text": "fruit", "stratum": "exact"},
    {"id": "q2", "text": "pear"},
)
QRELS = "q1\ta\t2\nq1\tb\t0\nq2\tb\t1\n"


def write(folder: Path, **files: Any) -> Path:
    """Write the small dataset.

    Each of corpus, queries and qrels can be replaced, or omitted with None.
    """
    folder.mkdir(parents=True, exist_ok=True)
    contents = {"corpus": CORPUS, "queries": QUERIES, "qrels": QRELS, **files}
    for name, content in contents.items():
        path = folder / ("qrels.tsv" if name == "qrels" else f"{name}.jsonl")
        if content is not None:
            text = (
                content
                if isinstance(content, str)
                else "".join(json.dumps(line) + "\n" for line in content)
            )
            path.write_text(text, encoding="utf-8")
    return folder


def dataset(
    grades: Mapping[str, Mapping[str, int]], strata: Mapping[str, str] | None = None, pool: int = 0
) -> Dataset:
    """Return a dataset of these judgments.

    The corpus holds the judged documents and `pool` more, d0, d1, ...
    """
    documents = dict.fromkeys(
        [*(one for judged in grades.values() for one in judged), *(f"d{n}" for n in range(pool))]
    )
    return Dataset(
        name="small",
        documents=tuple(Document(id=one, text=one) for one in documents),
        queries=tuple(Query(id=one, text=one, stratum=(strata or {}).get(one)) for one in grades),
        judgements=tuple(
            Judgement(query=query, document=document, grade=grade)
            for query, judged in grades.items()
            for document, grade in judged.items()
        ),
    )
