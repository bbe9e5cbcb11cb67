"""Passages of a long text: how to cut it for an embedder's window, and which ones to show."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import msgspec

from trivet.analyse import Question
from trivet.store.records import EmbeddingJob, Model, Passage, PassageWithTerms
from trivet.store.relational.index.lexical import count_held_terms, encode_passage_terms
from trivet.types import Memory, Ranking

if TYPE_CHECKING:
    from trivet.models.embed.base import Embedder
    from trivet.store import Store


# Vectors of different versions cannot be compared: raise it with any change to `cut` or to
# `JobPassages.texts`.
PASSAGE_VERSION = 1

CountTokens = Callable[[Sequence[str]], list[int]]

# Share of a passage that the next one repeats, in whole sentences.
PASSAGE_OVERLAP = 0.15
# This many characters fit every embedder's window.
ALWAYS_ONE_PASSAGE = 250
# Estimated tokens per passage if no embedder has cut the text.
WINDOW_TOKENS = 200

_sentence_end = re.compile(r"(?<=[.!?])[\"')\]]*\s+|(?<=[\u3002\uff01\uff1f])|\n\s*")


def cut(text: str, count_tokens: CountTokens, window: int) -> tuple[Passage, ...]:
    """Return the passages of a text as character positions."""
    if len(text) <= window or count_tokens([text])[0] <= window:
        return (Passage(0, 0, len(text)),)
    spans = _spans_that_fit(text, count_tokens, window)
    sizes = count_tokens([text[start:stop] for start, stop in spans])
    return tuple(
        Passage(ordinal, spans[first][0], spans[last - 1][1])
        for ordinal, (first, last) in enumerate(_windows(sizes, window))
    )


def _windows(sizes: Sequence[int], window: int) -> list[tuple[int, int]]:
    windows: list[tuple[int, int]] = []
    first = 0
    while True:
        last, total = first, 0
        while last < len(sizes) and (last == first or total + sizes[last] <= window):
            total += sizes[last]
            last += 1
        windows.append((first, last))
        if last == len(sizes):
            return windows
        first = _step_back(sizes, first, last, int(window * PASSAGE_OVERLAP))


def _step_back(sizes: Sequence[int], first: int, last: int, most: int) -> int:
    start, repeated = last, 0
    while start - 1 > first and repeated + sizes[start - 1] <= most:
        start -= 1
        repeated += sizes[start]
    return start


def _spans_that_fit(text: str, count_tokens: CountTokens, window: int) -> list[tuple[int, int]]:
    spans = _sentences(text)
    sizes = count_tokens([text[start:stop] for start, stop in spans])
    return [
        piece
        for span, size in zip(spans, sizes, strict=True)
        for piece in (_split_in_half(text, span, count_tokens, window) if size > window else [span])
    ]


def _sentences(text: str) -> list[tuple[int, int]]:
    cuts = [match.end() for match in _sentence_end.finditer(text)]
    edges = sorted({0, *cuts, len(text)})
    return [(start, stop) for start, stop in pairwise(edges) if text[start:stop].strip()]


def _split_in_half(
    text: str, span: tuple[int, int], count_tokens: CountTokens, window: int
) -> list[tuple[int, int]]:
    start, stop = span
    if stop - start < 2 or count_tokens([text[start:stop]])[0] <= window:
        return [span]
    middle = (start + stop) // 2
    space = text.rfind(" ", start + 1, middle)
    at = space + 1 if space > start + (stop - start) // 4 else middle
    return [
        piece
        for part in ((start, at), (at, stop))
        for piece in _split_in_half(text, part, count_tokens, window)
    ]


def best_passages(rankings: Sequence[Ranking]) -> dict[str, int]:
    return {
        candidate.id: candidate.passage
        for ranking in rankings
        for candidate in ranking.candidates
        if candidate.passage is not None
    }


def best_excerpts(
    store: Store,
    model: Model | None,
    memories: Sequence[Memory],
    best: Mapping[str, int],
    question: Question,
    most: int = 1,
) -> dict[str, list[str]]:
    """Return up to `most` passages per memory: a leg's best, then by query words."""
    long = [memory for memory in memories if len(memory.content) > ALWAYS_ONE_PASSAGE]
    found = (
        {memory.id: best[memory.id] for memory in long if memory.id in best} if most == 1 else {}
    )
    known = store.vectors.spans_at(model, found) if model is not None and found else {}
    rest = [memory.id for memory in long if memory.id not in known]
    cuts = store.vectors.described(model, rest) if model is not None and rest else {}
    shown: dict[str, list[str]] = {}
    for memory in memories:
        if len(memory.content) <= ALWAYS_ONE_PASSAGE:
            shown[memory.id] = [memory.content]
        elif memory.id in known:
            shown[memory.id] = [_text(memory, known[memory.id])]
        else:
            chosen = _chosen(
                memory.content, cuts.get(memory.id, ()), best.get(memory.id), question, most
            )
            shown[memory.id] = [_text(memory, one) for one in chosen]
    return shown


def _text(memory: Memory, passage: Passage) -> str:
    return memory.content[passage.start : passage.stop].strip()


def _chosen(
    content: str,
    described: Sequence[PassageWithTerms],
    best: int | None,
    question: Question,
    most: int,
) -> list[Passage]:
    passages: Sequence[Passage] = described or cut(content, _estimated, WINDOW_TOKENS)
    if len(passages) == 1:
        return list(passages)
    first = [best] if best is not None and best < len(passages) else []
    if len(first) < most:
        terms = [one.terms for one in described if one.terms is not None]
        if len(terms) < len(passages):  # embedded by an earlier version, or not embedded
            terms = encode_passage_terms(content, passages)
        holding = count_held_terms(question.every_term, terms)
        first = list(
            dict.fromkeys([*first, *sorted(range(len(passages)), key=lambda at: -holding[at])])
        )[:most]
    return [passages[at] for at in first]


def _estimated(texts: Sequence[str]) -> list[int]:
    return [estimate_tokens(text) for text in texts]


def estimate_tokens(text: str) -> int:
    """Count one token per four ASCII characters or one other character."""
    ascii_count = len(text) if text.isascii() else len(text.encode("ascii", "ignore"))
    return -(-ascii_count // 4) + len(text) - ascii_count


class JobPassages(msgspec.Struct, frozen=True):
    job: EmbeddingJob
    passages: tuple[Passage, ...]

    @property
    def texts(self) -> list[str]:
        """Return each passage under its memory's title."""
        texts = (self.job.content[passage.start : passage.stop] for passage in self.passages)
        return [f"{self.job.title}\n{text}" if self.job.title else text for text in texts]


def split_job(job: EmbeddingJob, embedder: Embedder) -> JobPassages:
    window = embedder.window
    if job.title:
        window = max(window // 2, window - embedder.count_tokens([job.title])[0])
    return JobPassages(job, cut(job.content, embedder.count_tokens, window))
