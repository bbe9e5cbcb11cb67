"""The graph leg: a walk from the concepts the query names and from the best hits of the other legs.

Where the query names nothing the graph knows, the leg is silent, and the order is that of the other legs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from trivet.analyse import Question, analyse, tokens_of
from trivet.fuse.normalise import spread
from trivet.graph.canonical import canonical, form
from trivet.graph.names import NOT_NAMES
from trivet.graph.walk import Walk
from trivet.recipe import Recipe
from trivet.store.base import Named, Seeds, Store
from trivet.types import Filter, Ranking

FLOOR = 0.0
# A name has at most so many words; of a pasted page the first words are looked at.
LONGEST_NAME = 7
WORDS_LOOKED_AT = 48
# The last rank that a hit's height is measured from; deeper ones differ by noise.
BASELINE_RANK = 50
# Weight of the query's concepts at which their own share of the start is halved.
HALF = 0.1
# How much the legs' judgement counts when seeds are chosen: as in the default fusion, whatever the recipe's own is.
TRUST: Mapping[str, float] = {"lexical": 1 / 9, "dense": 8 / 9}

Span = tuple[int, int]


def graph(store: Store, question: Question, rankings: Sequence[Ranking], filter: Filter, recipe: Recipe) -> Ranking:
    seeds = seeds_of(store, question, rankings, filter, recipe)
    if seeds is None:
        return Ranking(leg="graph", floor=FLOOR)
    found = store.graph.walk(seeds, filter, recipe.walk, recipe.depth)
    return Ranking(leg="graph", floor=FLOOR, candidates=tuple(found))


def seeds_of(
    store: Store, question: Question, rankings: Sequence[Ranking], filter: Filter, recipe: Recipe
) -> Seeds | None:
    """Where the walk starts. None if the query names no concept or the other legs found nothing.

    The start has the size of what it rests on: how far the best hit stands out, times how specific the names are.
    """
    how = recipe.walk
    concepts = named_concepts(store, question, filter, how)
    hits, standing_out = _hits(rankings, how)
    total = sum(concepts.values())
    strength = standing_out * total / (total + how.named) if total else 0.0
    if not strength:
        return None
    return Seeds(
        memories={id: strength * how.hits * share for id, share in hits.items()},
        concepts={concept: strength * (1 - how.hits) * weight / (total + HALF) for concept, weight in concepts.items()},
    )


def named_concepts(store: Store, question: Question, filter: Filter, how: Walk) -> dict[int, float]:
    """The concepts the query names, the longest names first, each by how rare it is and how surely it is meant."""
    words = tokens_of(question.text)[:WORDS_LOOKED_AT]
    spans = [(start, start + length) for length in range(LONGEST_NAME, 0, -1) for start in range(len(words) - length + 1)]
    forms = {span: _form(words[span[0] : span[1]]) for span in spans}
    known = {one.form: one for one in store.graph.named(list({text for text in forms.values() if text}), filter, how)}
    chosen = _not_overlapping([span for span in spans if forms[span] in known], len(words))
    alone = {words[start]: known[forms[start, stop]] for start, stop in chosen if stop - start == 1}
    sureness = _sureness(store, alone, filter)
    return {
        known[forms[span]].concept: known[forms[span]].weight * sureness.get(forms[span], 1.0) for span in chosen
    }


def _form(words: Sequence[str]) -> str:
    """Several words must stand in a memory as they stand here; a single one may be written another way there."""
    if len(words) > 1:
        return form(" ".join(words))
    return "" if words[0].lower() in NOT_NAMES else canonical(words[0])


def _not_overlapping(spans: Sequence[Span], length: int) -> list[Span]:
    """Longest first; a shorter name is taken only where it is not part of one taken before."""
    taken = [False] * length
    chosen = []
    for start, stop in spans:
        if not all(taken[start:stop]):
            chosen.append((start, stop))
            taken[start:stop] = [True] * (stop - start)
    return chosen


def _sureness(store: Store, alone: Mapping[str, Named], filter: Filter) -> dict[str, float]:
    """Of the memories that hold a word, the share that mentions it as a concept: 1 for `postgres`, little for `list`."""
    terms = {word: analyse(word) for word in alone}
    holders = store.lexical.holders(sorted({term for found in terms.values() for term in found}), filter)
    return {
        named.form: min(1.0, named.held / max(1, min((holders[term] for term in terms[word]), default=named.held)))
        for word, named in alone.items()
    }


def _hits(rankings: Sequence[Ranking], how: Walk) -> tuple[dict[str, float], float]:
    """The best hits of the other legs with their shares, and by how much the best of them stands out."""
    scores: dict[str, float] = {}
    normalised = [(ranking, spread(ranking)) for ranking in rankings if ranking.candidates and ranking.leg in TRUST]
    missing = sum(TRUST[ranking.leg] * part.missing for ranking, part in normalised)
    for ranking, part in normalised:
        for candidate, score in zip(ranking.candidates, part.scores, strict=True):
            gain = TRUST[ranking.leg] * (score - part.missing)
            scores[candidate.id] = scores.get(candidate.id, missing) + gain
    best = sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))
    if len(best) < 2:
        return ({best[0][0]: 1.0}, 0.0) if best else ({}, 0.0)
    last = best[min(len(best) - 1, BASELINE_RANK)][1]
    above = {id: score - last for id, score in best[: int(how.seeds)] if score > last}
    if not above:
        return {}, 0.0
    highest = max(above.values())
    powers = {id: (height / highest) ** how.sharpness for id, height in above.items()}
    total = sum(powers.values())
    return {id: power / total for id, power in powers.items()}, highest
