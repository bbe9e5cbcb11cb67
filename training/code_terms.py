r"""Turn question and code pairs into the terms of the product's index, as numbers.

python training/code_terms.py --pairs pairs.jsonl.xz --dev dev.jsonl.xz \
    --chunks chunks.jsonl.xz --words 40000 --output terms.npz

Runs in the environment of `make install`. `terms.npz`, the terms' usual spellings (`terms.txt`) and
the pairs go to the GPU, to code_words.py.
"""

from __future__ import annotations

import argparse
import json
import lzma
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

_part = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z]+")
# Repositories a term must occur in: a single project's names would be memorized.
REPOSITORIES = 3
# Seven bits count occurrences; the eighth says that the path holds the term.
MAX_COUNTED_WORDS, IN_PATH = 127, 128


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=Path, required=True)
    parser.add_argument("--dev", type=Path, required=True)
    parser.add_argument("--chunks", type=Path, required=True)
    parser.add_argument("--words", type=int, default=40_000)
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args()
    rows, trained, tested = all_rows(options)
    documents = [document(row) for row in rows]
    queries = [Counter(terms(row.get("query", ""))) for row in rows]
    seen = [at for at in range(len(rows)) if not trained <= at < tested]
    vocabulary = chosen([(rows[at], documents[at], queries[at]) for at in seen], options.words)
    numbers = {term: number for number, term in enumerate(vocabulary)}
    repositories = {
        name: number for number, name in enumerate(dict.fromkeys(row["repo"] for row in rows))
    }
    options.output.with_suffix(".txt").write_text(
        "\n".join(surfaces(rows, vocabulary)), encoding="utf-8"
    )
    np.savez(
        options.output,
        vocabulary=np.frombuffer("\n".join(vocabulary).encode(), np.uint8),
        repository=np.array([repositories[row["repo"]] for row in rows], np.int32),
        trained=np.array(trained),
        tested=np.array(tested),
        **columns("document", documents, numbers),  # type: ignore[arg-type]
        **columns("query", queries, numbers),  # type: ignore[arg-type]
    )
    print(options.output, len(rows), "pairs,", len(vocabulary), "terms")


def all_rows(options: argparse.Namespace) -> tuple[list[dict[str, Any]], int, int]:
    """Return training pairs, test pairs and chunks in sequence, and where each ends."""
    pairs, dev = list(read(options.pairs)), list(read(options.dev))
    return [*pairs, *dev, *read(options.chunks)], len(pairs), len(pairs) + len(dev)


def read(path: Path) -> Iterator[dict[str, Any]]:
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def terms(text: str) -> list[str]:
    """Import the product's analyzer here: the GPU machine has only the rest of this file."""
    from trivet.code.encoder import words_of

    return [term for word in words_of(text) for term in _of_word(word)]


@cache
def _of_word(word: str) -> tuple[str, ...]:
    from trivet.analyse import ENGLISH
    from trivet.analyse.terms import terms_in

    return tuple(dict.fromkeys(terms_in(ENGLISH)(word)))


def document(row: dict[str, Any]) -> Counter[str]:
    """Count the code's terms; a term of the path adds `IN_PATH`."""
    path = row["path"]
    counts = Counter(
        {term: min(count, MAX_COUNTED_WORDS) for term, count in Counter(terms(row["code"])).items()}
    )
    for term in set(terms(path.rpartition(".")[0] or path)):
        counts[term] += IN_PATH
    return counts


def chosen(rows: list[tuple[dict[str, Any], Counter[str], Counter[str]]], most: int) -> list[str]:
    """Return the most frequent terms among those in several repositories."""
    held: Counter[str] = Counter()
    where: dict[str, set[str]] = {}
    for row, document_terms, query_terms in rows:
        for term in document_terms.keys() | query_terms.keys():
            held[term] += 1
            seen = where.setdefault(term, set())
            if len(seen) < REPOSITORIES:
                seen.add(row["repo"])
    return [term for term, _ in held.most_common() if len(where[term]) >= REPOSITORIES][:most]


def surfaces(rows: list[dict[str, Any]], vocabulary: list[str]) -> list[str]:
    """Return each term's most frequent spelling in words: `HTTPConnection` for `httpconnect`."""
    written = Counter(
        word for row in rows[::3] for word in _written(row["code"]) + _written(row.get("query", ""))
    )
    seen: dict[str, Counter[str]] = {term: Counter() for term in vocabulary}
    for word, count in written.items():
        parts = [part.lower() for part in _part.findall(word)]
        own = _of_word(word)[:1]
        for term, text in [
            *((term, " ".join(parts)) for term in own),
            *((t, p) for p in parts for t in _of_word(p)),
        ]:
            if term in seen:
                seen[term][text] += count
    return [
        max(found, key=found.__getitem__) if (found := seen[term]) else term for term in vocabulary
    ]


def _written(text: str) -> list[str]:
    from trivet.code.encoder import words_of

    return words_of(text)


def columns(
    name: str, bags: Iterable[Counter[str]], numbers: dict[str, int]
) -> dict[str, np.ndarray]:
    terms_, counts, lengths = [], [], []
    for bag in bags:
        known = [(numbers[term], count) for term, count in bag.items() if term in numbers]
        lengths.append(len(known))
        terms_ += [number for number, _ in known]
        counts += [min(count, 255) for _, count in known]
    return {
        f"{name}_terms": np.array(terms_, np.uint16),
        f"{name}_counts": np.array(counts, np.uint8),
        f"{name}_lengths": np.array(lengths, np.uint16),
    }


if __name__ == "__main__":
    main()
