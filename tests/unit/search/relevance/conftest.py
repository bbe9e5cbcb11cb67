from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.store_fixtures import Opened, open_trivet
from trivet import Trivet

__all__ = ["Opened", "open_trivet"]

NOTES = [
    "The staging database listens on port 6543.",
    "Grandmother's soup needs carrots, leek and two hours of patience.",
    "Rotate the signing certificate every ninety days.",
    "The cat sleeps on the warm radiator all winter.",
    "Deployments are frozen during the last week of December.",
    "Ines presses the button when a release goes to production.",
    "The invoices of 2024 are in the blue folder on the third shelf.",
    "Ahmed reviews pull requests on Mondays and Thursdays.",
]
ANSWERABLE = [
    "which port does the staging database listen on?",
    "what does grandmother put into her soup?",
    "how often must the signing certificate be rotated?",
    "where does the cat sleep in winter?",
    "when are deployments frozen?",
    "who reviews pull requests?",
]
UNANSWERABLE = [
    "what is the capital of Mongolia?",
    "symptoms of vitamin D deficiency in infants",
    "how tall is the Eiffel tower",
    "python function that sorts a dictionary by value",
    "supersonic flow over a blunt body at high mach numbers",
    "who won the 1998 world cup final",
]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trivet]:
    with Trivet.open(
        tmp_path_factory.mktemp("relevance") / "memory.db", background=False
    ) as trivet:
        trivet.remember_many({"content": note} for note in NOTES)
        trivet.drain()
        yield trivet
