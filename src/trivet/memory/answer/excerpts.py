"""Which parts of a long memory stand for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from trivet.analyse import Question, analyse
from trivet.memory.passages import cut
from trivet.store.records import Model, Passage
from trivet.types import Memory, Ranking

if TYPE_CHECKING:
    from trivet.store import Store

# A text this short is one passage for every embedder.
ALWAYS_ONE_PASSAGE = 250
# Where no embedder has cut the text, windows of so many estimated tokens are taken.
WINDOW_TOKENS = 200


def stored_spans(store: Store, model: Model | None, memories: Sequence[Memory]) -> Mapping[str, tuple[Passage, ...]]:
    """How the embedder cut each of these memories that is long enough to be cut at all."""
    long = [memory.id for memory in memories if len(memory.content) > ALWAYS_ONE_PASSAGE]
    return store.vectors.spans(model, long) if model is not None and long else {}


def best_passages(rankings: Sequence[Ranking]) -> dict[str, int]:
    return {
        candidate.id: candidate.passage
        for ranking in rankings
        for candidate in ranking.candidates
        if candidate.passage is not None
    }


def excerpts(
    content: str, passages: Sequence[Passage], best: int | None, question: Question, most: int = 1
) -> list[str]:
    """The passages that matter most: the one a leg found best, then those with most of the query's words."""
    if len(content) <= ALWAYS_ONE_PASSAGE:
        return [content]
    passages = passages or cut(content, lambda texts: [estimate_tokens(text) for text in texts], WINDOW_TOKENS)
    first = [best] if best is not None and best < len(passages) else []
    if len(first) < most:
        held = _words_held(content, passages, question)
        by_words = sorted(range(len(passages)), key=lambda at: -held[at])
        first = list(dict.fromkeys([*first, *by_words]))[:most]
    return [content[passages[at].start : passages[at].stop].strip() for at in first]


def estimate_tokens(text: str) -> int:
    """About what a language model counts: four Latin letters a token, one character of other scripts."""
    ascii_count = sum(character < "\x80" for character in text) if not text.isascii() else len(text)
    return -(-ascii_count // 4) + len(text) - ascii_count


def _words_held(content: str, passages: Sequence[Passage], question: Question) -> list[int]:
    wanted = set(question.terms)
    return [len(wanted.intersection(analyse(content[span.start : span.stop]))) for span in passages]
