"""What is asked: collections of the lab, all documents of one in one store, with nothing but their text."""

from __future__ import annotations

from pathlib import Path

from trivet.lab.datasets.catalog import import_original
from trivet.lab.datasets.dataset import Dataset, Document

CORPORA = ("locomo", "cranfield")


def read(name: str, data: Path) -> Dataset:
    return import_original(name, data)


def text_of(document: Document) -> str:
    """The text as every product gets it: the title before it, where it does not begin with it already."""
    title = (document.title or "").strip()
    return (
        document.text
        if not title or document.text.startswith(title)
        else f"{title}\n{document.text}"
    )
