"""Which concept a name means: one of that name in the graph, one of a nearly equal name, or else a new one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from trivet.analyse import analyse
from trivet.errors import EmbedderError
from trivet.graph.canonical import canonical, form, singular
from trivet.graph.mentions import Triple
from trivet.memory.background.triples.names import DIFFERENT, SAME, could_be_one, spelled_out, words_of
from trivet.models.embed.background import background_of
from trivet.models.embed.base import Embedder

if TYPE_CHECKING:
    from trivet.store.relational.graph import GraphIndex

# Names compared with one name: those that share most of its words.
CANDIDATES = 8
# Pairs that a language model is asked about in one request.
MOST_ASKED = 20
CONTEXT_CHARACTERS = 200

# Gets doubtful pairs (name, other name, text around it) and returns the places of those that mean the same.
Ask = Callable[[Sequence[tuple[str, str, str]]], frozenset[int]]


class NearestName(msgspec.Struct, frozen=True):
    """A name, the nearest name of a known concept, and how near it is."""

    label: str
    other: str
    concept: str
    nearness: float


def resolve(
    graph: GraphIndex, embedder: Embedder, found: Sequence[tuple[str, Sequence[Triple]]], ask: Ask
) -> list[tuple[Triple, ...]]:
    """The triples of each text with the concepts that their ends mean. `ask` is called at most once."""
    texts = {label: text for text, triples in found for one in triples for label in (one.subject, one.object)}
    known = graph.means(list(texts))
    near = _neighbours(graph, embedder, [label for label in texts if label not in known])
    decided = _decided(near, texts, ask)
    plurals = {label: canonical(singular(label)) for label in texts}  # as the rules do
    return [
        tuple(_resolved(triple, {**plurals, **decided, **known, **_spelled_out(text)}) for triple in triples)
        for text, triples in found
    ]


def _resolved(triple: Triple, means: Mapping[str, str]) -> Triple:
    subject, object_ = _meant(triple.subject, means), _meant(triple.object, means)
    if (subject or canonical(triple.subject)) == (object_ or canonical(triple.object)):
        return triple  # "WHO is short for World Health Organization": here they must stay two
    return msgspec.structs.replace(triple, subject_means=subject, object_means=object_)


def _meant(label: str, means: Mapping[str, str]) -> str | None:
    name = means.get(label)
    return name if name and name != canonical(label) else None


def _spelled_out(text: str) -> dict[str, str]:
    return {short: canonical(long) for short, long in spelled_out(text) if canonical(long)}


def _neighbours(graph: GraphIndex, embedder: Embedder, labels: Sequence[str]) -> list[NearestName]:
    terms = sorted({term for label in labels for term in analyse(label)})
    names = graph.names_with(terms) if terms else ()
    compared = {label: _candidates(label, names) for label in labels}
    compared = {label: candidates for label, candidates in compared.items() if candidates}
    if not compared:
        return []
    written = sorted({*compared, *(other for candidates in compared.values() for other, _ in candidates)})
    try:
        vectors = dict(zip(written, embedder.embed_documents(written), strict=True))
    except EmbedderError:  # without vectors no name is near another
        return []
    nearness = background_of(embedder).nearness
    return [
        max(
            (
                NearestName(label, other, concept, nearness(float(np.dot(vectors[label], vectors[other]))))
                for other, concept in candidates
            ),
            key=lambda one: (one.nearness, one.concept),
        )
        for label, candidates in compared.items()
    ]


def _candidates(label: str, names: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    words, own = words_of(label), canonical(label)
    fitting = [
        (other, concept)
        for other, concept in names
        if concept != own and canonical(other) != own and words & words_of(other) and could_be_one(label, other)
    ]
    fitting.sort(key=lambda pair: (-_overlap(words, words_of(pair[0])), form(pair[0]), pair))
    return fitting[:CANDIDATES]


def _overlap(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / len(one | other)


def _decided(near: Sequence[NearestName], texts: Mapping[str, str], ask: Ask) -> dict[str, str]:
    """Concepts by name. A name that another one was found to mean stays itself, so that no two swap."""
    nearest_first = sorted(near, key=lambda one: (-one.nearness, one.label))
    doubtful = [one for one in nearest_first if DIFFERENT <= one.nearness < SAME][:MOST_ASKED]
    yes = ask([(one.label, one.other, _around(texts[one.label], one.label)) for one in doubtful]) if doubtful else ()
    same = [one for one in nearest_first if one.nearness >= SAME] + [doubtful[place] for place in sorted(yes)]
    decided: dict[str, str] = {}
    for one in same:
        if canonical(one.label) not in decided.values():
            decided[one.label] = decided.get(one.other, one.concept)
    return decided


def _around(text: str, label: str) -> str:
    at = max(0, text.lower().find(label.lower()) - CONTEXT_CHARACTERS // 2)
    return text[at : at + CONTEXT_CHARACTERS]
