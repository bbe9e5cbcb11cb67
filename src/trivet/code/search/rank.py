"""Ranks chunks for a query, by legs, fusion, role and file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trivet.code.encoder import Encoder, hashes_of
from trivet.code.file_kind import Role
from trivet.code.index.segment import Segment
from trivet.code.recipe import Balance, CodeRecipe, Demote
from trivet.code.search.legs import NOWHERE, definitions, dense, lexical, paths
from trivet.code.search.query import Query
from trivet.code.search.view import Mask, Scores, View
from trivet.search.fuse import fuse
from trivet.types import Candidate, Contribution, Ranking

Chunks = NDArray[np.intp]

# Fixed-width ids, so that ties keep the order of the tree.
ID = "{:09d}"
# Share of the depth used for short queries. A pasted issue uses all: many chunks of a file answer
# it.
MIN_RESULTS = 0.25


@dataclass(frozen=True, slots=True)
class RankedChunk:
    chunk: int
    score: float
    file: float
    demoted: float
    contributions: tuple[Contribution, ...]


@dataclass(frozen=True, slots=True)
class Vector:
    """An encoded query; unrelated chunks have a cosine of about `floor`, rarely `near`.

    A chunk that no other leg found must reach `near`.
    """

    numbers: NDArray[np.float32]
    floor: float
    near: float


def vector_of(encoder: Encoder, text: str) -> Vector:
    return Vector(encoder.query(text), encoder.floor, encoder.near)


def rank(
    view: View, query: Query, recipe: CodeRecipe, vector: Vector | None, allowed: Mask | None = None
) -> list[RankedChunk]:
    """Return ranked chunks, ordered by file as `balance` says."""
    rankings = _legs(view, query, recipe, vector, allowed)
    fused = fuse(recipe.fusion, [ranking for ranking in rankings if ranking.candidates])
    factors = _factors(recipe.demote, query)
    named = query.alone and any(
        ranking.leg == "definitions" and ranking.candidates for ranking in rankings
    )
    chunks = []
    for one in fused:
        if vector is not None and not _is_evidence(one.contributions, vector.near):
            continue
        number = int(one.id)
        factor = float(factors[view.roles[number]])
        if named and not _defines(one.contributions):
            factor *= recipe.demote.undefined
        chunks.append(RankedChunk(number, one.score * factor, 0.0, factor, one.contributions))
    return balanced(chunks, view.files, recipe.balance, query)


def _is_evidence(contributions: Sequence[Contribution], near: float) -> bool:
    return any(
        part.rank is not None and (part.leg != "dense" or part.score >= near)
        for part in contributions
    )


def _defines(contributions: Sequence[Contribution]) -> bool:
    return any(part.leg == "definitions" and part.rank is not None for part in contributions)


def _legs(
    view: View, query: Query, recipe: CodeRecipe, vector: Vector | None, allowed: Mask | None
) -> list[Ranking]:
    legs: list[tuple[str, Scores, float]] = [
        ("lexical", lexical(view, query, recipe.bm25), 0.0),
        ("definitions", definitions(view, query, recipe.definitions), 0.0),
        ("paths", paths(view, query, recipe.paths), 0.0),
    ]
    if vector is not None:
        legs.append(("dense", dense(view, vector.numbers), vector.floor))
    if allowed is not None:
        legs = [(leg, np.where(allowed, scores, NOWHERE), floor) for leg, scores, floor in legs]
    depth = round(recipe.depth * (MIN_RESULTS + (1 - MIN_RESULTS) * query.length))
    own = [_best(scores, floor, depth) for _, scores, floor in legs]
    # Every leg scores what any leg found: if hundreds of chunks hold a word, the right one may miss
    # the top hundred of each leg. For a pasted issue the legs find enough; more would only inflate
    # file sums.
    brought = own if query.length == 1 else [np.unique(np.concatenate(own))] * len(own)
    return [
        _ranking(leg, scores, floor, these)
        for (leg, scores, floor), these in zip(legs, brought, strict=True)
    ]


def _ranking(leg: str, scores: Scores, floor: float, brought: Chunks) -> Ranking:
    found = np.sort(brought[scores[brought] > floor])
    order = found[np.argsort(-scores[found], kind="stable")]
    pairs = zip(order.tolist(), scores[order].tolist(), strict=True)
    candidates = tuple(Candidate(id=ID.format(at), score=score) for at, score in pairs)
    return Ranking(leg=leg, floor=floor, candidates=candidates)


def _best(scores: Scores, floor: float, depth: int) -> Chunks:
    found: Chunks = np.flatnonzero(scores > floor)
    if len(found) > depth:
        threshold = np.partition(scores[found], -depth)[-depth]
        found = found[scores[found] >= threshold]
        found = found[np.argsort(-scores[found], kind="stable")[:depth]]
    return found


def _factors(demote: Demote, query: Query) -> NDArray[np.float32]:
    factors = np.ones(len(Role), np.float32)
    for role in Role:
        if role is not Role.CODE and role not in query.wanted:
            factors[role] = getattr(demote, role.name.lower())
    return factors


def balanced(
    chunks: Sequence[RankedChunk], files: NDArray[np.int32], balance: Balance, query: Query
) -> list[RankedChunk]:
    more = balance.more + (balance.broad - balance.more) * query.length
    by_file: dict[int, list[RankedChunk]] = {}
    for one in sorted(chunks, key=lambda one: -one.score):
        by_file.setdefault(int(files[one.chunk]), []).append(one)
    ranked = []
    for found in by_file.values():
        total = sum(
            one.score * more**place for place, one in enumerate(found[: int(balance.chunks)])
        )
        ranked += [
            RankedChunk(
                one.chunk, one.score, total * balance.again**place, one.demoted, one.contributions
            )
            for place, one in enumerate(found)
        ]
    return sorted(ranked, key=lambda one: (-one.file, one.chunk))


MAX_RELATED = 100
# A name with more uses or definitions than this says little about any of them.
MAX_USES = 30
ONE_WORD = 0.3
# Chunks of one project share many words; below this cosine they share nothing else.
MIN_COSINE = 0.5
# Tests, examples and the like use nearly everything.
NOT_CODE = 0.3
WEIGHTS = {"meaning": 1.0, "uses it": 1.0, "used by it": 1.0}


def related(view: View, chunk: int) -> list[RankedChunk]:
    legs = {
        "meaning": _similar(view, chunk),
        "uses it": _users(view, chunk),
        "used by it": _used(view, chunk),
    }
    total: Scores = sum(
        (WEIGHTS[leg] * scores for leg, scores in legs.items()), np.zeros(view.chunks, np.float32)
    )
    total *= np.where(view.roles == Role.CODE, 1, NOT_CODE).astype(np.float32)
    total[chunk] = 0
    total[~view.alive] = 0
    best = [int(at) for at in np.argsort(-total, kind="stable")[:MAX_RELATED] if total[at] > 0]
    return [
        RankedChunk(
            at,
            float(total[at]),
            float(total[at]),
            1.0,
            tuple(
                Contribution(
                    leg=leg,
                    rank=1,
                    score=float(scores[at]),
                    normalised=float(scores[at]),
                    weight=WEIGHTS[leg],
                )
                for leg, scores in legs.items()
                if scores[at] > 0
            ),
        )
        for at in best
    ]


def _similar(view: View, chunk: int) -> Scores:
    segment, number = view.segment_of(chunk)
    if len(segment.vectors) != segment.chunks:
        return np.zeros(view.chunks, np.float32)
    own = segment.vectors[number].astype(np.float32)
    cosines = dense(view, own / max(float(np.linalg.norm(own)), 1e-9))
    near: Scores = np.where(cosines >= MIN_COSINE, cosines, 0).astype(np.float32)
    return near


def _users(view: View, chunk: int) -> Scores:
    """Score chunks that contain a name this one defines; rarer names score higher."""
    scores: Scores = np.zeros(view.chunks, np.float32)
    segment, number = view.segment_of(chunk)
    for row in np.flatnonzero(segment.symbols.chunk == number):
        spans = [
            (one, first, one.words.span(int(segment.symbols.term[row])))
            for one, first in view.placed()
        ]
        holders = sum(span.stop - span.start for _, _, span in spans)
        if not 0 < holders <= MAX_USES:
            continue
        for one, first, span in spans:
            scores[one.words.holders[span] + first] += _sure(segment, int(row)) / np.sqrt(holders)
    return scores


def _used(view: View, chunk: int) -> Scores:
    scores: Scores = np.zeros(view.chunks, np.float32)
    segment, number = view.segment_of(chunk)
    held = np.flatnonzero(segment.words.holders == number)
    terms = segment.words.terms[np.searchsorted(segment.words.offsets, held, "right") - 1]
    for one, first in view.placed():
        rows = np.flatnonzero(np.isin(one.symbols.term, terms))
        _, place, count = np.unique(one.symbols.term[rows], return_inverse=True, return_counts=True)
        for row, defined in zip(rows.tolist(), count[place].tolist(), strict=True):
            if defined <= MAX_USES:
                scores[int(one.symbols.chunk[row]) + first] += _sure(one, row) / np.sqrt(defined)
    return scores


def _sure(segment: Segment, row: int) -> float:
    """Trust a one-word name less: `parse` may be part of `parse_config`."""
    return 1.0 if len(hashes_of(segment.symbols.name.at(row))) > 1 else ONE_WORD
