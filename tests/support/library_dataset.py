"""A test set that runs in a second: twelve notes, six questions, two strata."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from support import small_dataset as small

NOTES = (
    "The staging database listens on port 6543.",
    "Production backups run every night at two o'clock.",
    "The cat of the office sleeps on the red sofa.",
    "Error E_CONN_4012 means the connection pool is exhausted.",
    "Mira prefers tea over coffee in the morning.",
    "The quarterly review was moved to the first Monday of October.",
    "Deploys are frozen during the last week of December.",
    "The invoice service is written in Rust and owned by team Otter.",
    "Rotate the signing keys with `otter keys rotate --all`.",
    "The printer on the third floor is out of toner again.",
    "Customers in Portugal pay by bank transfer.",
    "Latency of the search page must stay below 200 milliseconds.",
)
QUESTIONS = (
    ("q1", "which port does the staging database use", "plain", {"d0": 3, "d1": 0}),
    ("q2", "when are the backups made", "plain", {"d1": 2}),
    ("q3", "feline napping on the couch", "paraphrase", {"d2": 2, "d4": 0}),
    ("q4", "E_CONN_4012", "plain", {"d3": 3}),
    ("q5", "hot drink she likes at breakfast", "paraphrase", {"d4": 2}),
    ("q6", "when may nothing be released", "paraphrase", {"d6": 2, "d5": 1}),
)


def write(folder: Path, **files: Any) -> Path:
    given = {
        "corpus": [{"id": f"d{place}", "text": text} for place, text in enumerate(NOTES)],
        "queries": [
            {"id": id, "text": text, "stratum": stratum} for id, text, stratum, _ in QUESTIONS
        ],
        "qrels": "".join(
            f"{id}\t{doc}\t{grade}\n"
            for id, _, _, grades in QUESTIONS
            for doc, grade in grades.items()
        ),
    }
    return small.write(folder, **{**given, **files})
