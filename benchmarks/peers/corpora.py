"""The collections, with all documents of one in one store, as plain text."""

from __future__ import annotations

from pathlib import Path

from trivet.lab.datasets.catalog import import_original
from trivet.lab.datasets.dataset import Dataset, Document

CORPORA = ("locomo", "cranfield")


def read(name: str, data: Path) -> Dataset:
    return import_original(name, data)


def text_of(document: Document) -> str:
    """Return the text with its title in front, unless it starts with it."""
    title = (document.title or "").strip()
    return (
        document.text
        if not title or document.text.startswith(title)
        else f"{title}\n{document.text}"
    )
