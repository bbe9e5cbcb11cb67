"""Seeds of a walk: the concepts that the query names, and the best hits of the other legs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from trivet.analyse import analyse, tokens_of
from trivet.graph.concepts import canonical, form, singular
from trivet.graph.extract import dates_in, find_patterns
from trivet.graph.names import is_name
from trivet.graph.walk import WalkParameters
from trivet.search.fuse.methods import spread
from trivet.search.legs.leg import LegQuery, legs
from trivet.store.records import Bm25, NamedConcept, WalkSeeds
from trivet.types import Filter, Ranking

if TYPE_CHECKING:
    from trivet.store import Store

# Limits in words; a query may be a pasted page.
MAX_NAME_WORDS = 7
MAX_QUERY_WORDS = 48
# Hits are measured by their height above this rank; deeper ranks differ by noise.
BASELINE_RANK = 50
# Total concept weight that halves the concepts' own share of the start.
HALF_SHARE_WEIGHT = 0.1

Span = tuple[int, int]


def graph_seeds(query: LegQuery, concepts: Mapping[int, float]) -> WalkSeeds | None:
    """Return the walk's seeds, or None without named concepts or hits.

    Their strength is how far the best hit stands out, times how specific the names are.
    """
    how, total = query.recipe.walk, sum(concepts.values())
    if not total:
        return None
    hits, prominence = _hits(query.rankings, how)
    strength = prominence * total / (total + how.named)
    if not strength:
        return None
    return WalkSeeds(
        memories={id: strength * how.hits * share for id, share in hits.items()},
        concepts={
            concept: strength * (1 - how.hits) * weight / (total + HALF_SHARE_WEIGHT)
            for concept, weight in concepts.items()
        },
    )


def named_concepts(query: LegQuery) -> dict[int, float]:
    """Return the named concepts, weighted by rarity and certainty."""
    store, filter, recipe = query.store, query.filter, query.recipe
    dates, rest = dates_in(query.question.text)
    marks = [
        canonical(text)
        for text in (*dates, *(mark for mark, kind in find_patterns(rest) if kind != "quoted"))
    ]
    words = tokens_of(rest)[:MAX_QUERY_WORDS]
    spans = [
        (start, start + length)
        for length in range(MAX_NAME_WORDS, 0, -1)
        for start in range(len(words) - length + 1)
    ]
    forms = {span: _forms(words[span[0] : span[1]]) for span in spans}
    wanted = {text for texts in forms.values() for text in texts} | set(marks[:MAX_QUERY_WORDS])
    known = {one.form: one for one in store.graph.named(sorted(wanted - {""}), filter, recipe.walk)}
    meant = {
        span: known[text]
        for span, texts in forms.items()
        for text in reversed(texts)
        if text in known
    }
    chosen = _not_overlapping([span for span in spans if span in meant], len(words))
    alone = {words[start]: meant[start, stop] for start, stop in chosen if stop - start == 1}
    certainty = _certainty(store, alone, filter, recipe.bm25)
    names = [meant[span] for span in chosen] + [known[mark] for mark in marks if mark in known]
    return {one.concept: one.weight * certainty.get(one.form, 1.0) for one in names}


def _forms(words: Sequence[str]) -> tuple[str, ...]:
    """Match several words exactly, a single one also in another spelling."""
    if len(words) > 1:
        return (form(" ".join(words)),)
    word = words[0]
    return (
        tuple(dict.fromkeys((canonical(word), canonical(singular(word))))) if is_name(word) else ()
    )


def _not_overlapping(spans: Sequence[Span], length: int) -> list[Span]:
    taken = [False] * length
    chosen = []
    for start, stop in spans:
        if not all(taken[start:stop]):
            chosen.append((start, stop))
            taken[start:stop] = [True] * (stop - start)
    return chosen


def _certainty(
    store: Store, alone: Mapping[str, NamedConcept], filter: Filter, bm25: Bm25
) -> dict[str, float]:
    """Return the share of a word's holders that use it as a concept."""
    terms = {word: analyse(word) for word in alone}
    holders = store.lexical.holders(
        sorted({term for found in terms.values() for term in found}), filter, bm25
    )
    return {
        named.form: min(
            1.0,
            named.held / max(1, min((holders[term] for term in terms[word]), default=named.held)),
        )
        for word, named in alone.items()
    }


def _hits(rankings: Sequence[Ranking], how: WalkParameters) -> tuple[dict[str, float], float]:
    scores: dict[str, float] = {}
    trust = {leg.name: leg.trust for leg in legs() if leg.trust}
    normalised = [
        (ranking, spread(ranking))
        for ranking in rankings
        if ranking.candidates and ranking.leg in trust
    ]
    missing = sum(trust[ranking.leg] * part.missing for ranking, part in normalised)
    for ranking, part in normalised:
        for candidate, score in zip(ranking.candidates, part.scores, strict=True):
            gain = trust[ranking.leg] * (score - part.missing)
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
