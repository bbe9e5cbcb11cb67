"""A code search from its query to ranked chunks: legs, fusion, demotion by role, balance by file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trivet.code.encoder import Encoder
from trivet.code.recipe import Balance, CodeRecipe, Demote
from trivet.code.roles import Role
from trivet.code.search.definitions import definitions
from trivet.code.search.dense import NOWHERE, dense
from trivet.code.search.lexical import lexical
from trivet.code.search.paths import paths
from trivet.code.search.query import Query
from trivet.code.search.view import Mask, Scores, View
from trivet.search.fuse import fuse
from trivet.types import Candidate, Contribution, Ranking

Chunks = NDArray[np.intp]

# Chunk numbers as ids of a fixed width, so that ties are broken in the order of the tree.
ID = "{:09d}"
# A question of a few words takes this share of the depth; a pasted issue, which many chunks of a file answer, all.
FEWEST = 0.25


@dataclass(frozen=True, slots=True)
class RankedChunk:
    """`score` after all steps; `file` is the sum that its file is ordered by."""

    chunk: int
    score: float
    file: float
    demoted: float
    contributions: tuple[Contribution, ...]


@dataclass(frozen=True, slots=True)
class Vector:
    """The query as the encoder sees it, the cosine that unrelated chunks have to it, and what few of them reach.

    A chunk that nothing else speaks for must be nearer than `near`: every chunk is somewhat near to every query.
    """

    numbers: NDArray[np.float32]
    floor: float
    near: float


def vector_of(encoder: Encoder, text: str) -> Vector:
    return Vector(encoder.query(text), encoder.floor, encoder.near)


def rank(
    view: View, query: Query, recipe: CodeRecipe, vector: Vector | None, allowed: Mask | None = None
) -> list[RankedChunk]:
    """Chunks, those of the best file first where `balance` says so; each with what made its score."""
    rankings = _legs(view, query, recipe, vector, allowed)
    fused = fuse(recipe.fusion, [ranking for ranking in rankings if ranking.candidates])
    factors = _factors(recipe.demote, query)
    named = query.alone and any(ranking.leg == "definitions" and ranking.candidates for ranking in rankings)
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
    return any(part.rank is not None and (part.leg != "dense" or part.score >= near) for part in contributions)


def _defines(contributions: Sequence[Contribution]) -> bool:
    return any(part.leg == "definitions" and part.rank is not None for part in contributions)


def _legs(view: View, query: Query, recipe: CodeRecipe, vector: Vector | None, allowed: Mask | None) -> list[Ranking]:
    legs: list[tuple[str, Scores, float]] = [
        ("lexical", lexical(view, query, recipe.bm25), 0.0),
        ("definitions", definitions(view, query, recipe.definitions), 0.0),
        ("paths", paths(view, query, recipe.paths), 0.0),
    ]
    if vector is not None:
        legs.append(("dense", dense(view, vector.numbers), vector.floor))
    if allowed is not None:
        legs = [(leg, np.where(allowed, scores, NOWHERE), floor) for leg, scores, floor in legs]
    depth = round(recipe.depth * (FEWEST + (1 - FEWEST) * query.length))
    own = [_best(scores, floor, depth) for _, scores, floor in legs]
    # What one leg brings counts with all: where hundreds of chunks hold a word, the right one need not be among the
    # first hundred of each leg. Of a pasted issue the legs bring enough, and more would only add to the sums of files.
    brought = own if query.length == 1 else [np.unique(np.concatenate(own))] * len(own)
    return [_ranking(leg, scores, floor, these) for (leg, scores, floor), these in zip(legs, brought, strict=True)]


def _ranking(leg: str, scores: Scores, floor: float, brought: Chunks) -> Ranking:
    """Highest first, equal ones in the order of the tree."""
    found = np.sort(brought[scores[brought] > floor])
    order = found[np.argsort(-scores[found], kind="stable")]
    told = zip(order.tolist(), scores[order].tolist(), strict=True)
    candidates = tuple(Candidate(id=ID.format(at), score=score) for at, score in told)
    return Ranking(leg=leg, floor=floor, candidates=candidates)


def _best(scores: Scores, floor: float, depth: int) -> Chunks:
    """The highest above the floor; of equal ones those that come first in the tree."""
    found: Chunks = np.flatnonzero(scores > floor)
    if len(found) > depth:
        threshold = np.partition(scores[found], -depth)[-depth]
        found = found[scores[found] >= threshold]
        found = found[np.argsort(-scores[found], kind="stable")[:depth]]
    return found


def _factors(demote: Demote, query: Query) -> NDArray[np.float32]:
    """By role: 1 for code and for what the query asks for."""
    factors = np.ones(len(Role), np.float32)
    for role in Role:
        if role is not Role.CODE and role not in query.wanted:
            factors[role] = getattr(demote, role.name.lower())
    return factors


def balanced(
    chunks: Sequence[RankedChunk], files: NDArray[np.int32], balance: Balance, query: Query
) -> list[RankedChunk]:
    """Best first, by the sum of the file and then within the file; see `Balance`."""
    more = balance.more + (balance.broad - balance.more) * query.length
    by_file: dict[int, list[RankedChunk]] = {}
    for one in sorted(chunks, key=lambda one: -one.score):
        by_file.setdefault(int(files[one.chunk]), []).append(one)
    ranked = []
    for found in by_file.values():
        total = sum(one.score * more**place for place, one in enumerate(found[: int(balance.chunks)]))
        ranked += [
            RankedChunk(one.chunk, one.score, total * balance.again**place, one.demoted, one.contributions)
            for place, one in enumerate(found)
        ]
    return sorted(ranked, key=lambda one: (-one.file, one.chunk))
