"""Distill larger embedders into a small one: their vectors, batch order, and the answers.

Teachers' vectors are concatenated, scaled to equal spread of products, reduced to the student's
width by main directions, and rotated toward the space of the student's initial weights. So teachers
may have their own vocabularies. All vectors are made once.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from data import Kind
from encoder import (
    WIDTH,
    Encoder,
    State,
    Texts,
    embedded,
    encoder_alone,
    neuron_worth,
    ready,
    shape_of,
    smaller,
)
from optimiser import ClockedAdamW
from train import SPOKEN_EVERY, Plan, Sampler, contrast, drawn_ahead

# Weights of the loss: distance to the teacher's vectors, batch order, answers.
VECTORS, ORDER, ANSWERS = 4.0, 1.0, 0.25
SAMPLED = 100_000
WORTH_TEXTS = 4_000
FIRST_HITS = 10


@dataclass(frozen=True, slots=True)
class Joined:
    scales: tuple[float, ...]
    turned: Tensor

    def __call__(self, vectors: Sequence[Tensor], part: int = 50_000) -> Tensor:
        rows = len(vectors[0])
        return torch.cat(
            [self._part([own[at : at + part] for own in vectors]) for at in range(0, rows, part)]
        )

    def _part(self, vectors: Sequence[Tensor]) -> Tensor:
        return functional.normalize(side_by_side(vectors, self.scales) @ self.turned, dim=1).half()


def side_by_side(vectors: Sequence[Tensor], scales: Sequence[float]) -> Tensor:
    return torch.cat(
        [scale * own.float() for scale, own in zip(scales, vectors, strict=True)], dim=1
    )


@torch.no_grad()
def join(vectors: Sequence[Tensor], shares: Sequence[float], towards: Tensor) -> Joined:
    """Fit on a sample of texts; `shares` weigh the teachers, `towards` are vectors to rotate to."""
    chance = torch.Generator().manual_seed(0)
    sample = torch.randperm(len(vectors[0]), generator=chance)[:SAMPLED].to(vectors[0].device)
    own = [one[sample].float() for one in vectors]
    scales = [(share / _spread(one)) ** 0.5 for share, one in zip(shares, own, strict=True)]
    beside = side_by_side(own, scales)
    _, directions = torch.linalg.eigh(beside.T @ beside)
    main = directions[:, -WIDTH:]
    left, _, right = torch.linalg.svd((beside @ main).T @ towards[sample].float())
    return Joined(tuple(float(scale) for scale in scales), main @ left @ right)


def _spread(vectors: Tensor) -> float:
    return float((vectors * vectors.roll(1, 0)).sum(1).std())


@torch.no_grad()
def held_out_reciprocal(kinds: Sequence[Kind], vectors: Tensor) -> float:
    """Return the mean reciprocal rank of answers among a kind's passages, for held-out rows."""
    means = []
    for kind in kinds:
        rows = np.flatnonzero(kind.held_out)
        if not kind.mine or not len(rows):
            continue
        passages, queries = (
            vectors[torch.as_tensor(which, device=vectors.device)].float()
            for which in (kind.passages, kind.queries[rows])
        )
        found = (
            (queries @ passages.T).topk(min(FIRST_HITS, len(passages)), dim=1).indices.cpu().numpy()
        )
        first = int(kind.passages[0])
        ranks = [
            next(
                (
                    1 / (at + 1)
                    for at, place in enumerate(own)
                    if int(place) + first in kind.positives[row]
                ),
                0.0,
            )
            for row, own in zip(rows, found, strict=True)
        ]
        means.append(np.mean(ranks))
    return float(np.mean(means))


@torch.no_grad()
def vectors_of(state: State, texts: Texts, part: int = 200_000) -> Tensor:
    encoder = ready(Encoder(shape_of(state)), state, texts.device)
    rows = np.arange(len(texts.lengths))
    return torch.cat(
        [embedded(encoder, texts, rows[at : at + part]).half() for at in range(0, len(rows), part)]
    )


def fewer(state: State, texts: Texts, kept: Sequence[int], inner: int) -> State:
    """Keep and renumber these layers, each with its most useful neurons."""
    encoder = ready(Encoder(shape_of(state)), state, texts.device)
    some = np.random.default_rng(0).permutation(len(texts.lengths))[:WORTH_TEXTS]
    worth = neuron_worth(encoder, lambda: embedded(encoder, texts, some))
    return encoder_alone(
        smaller({f"encoder.{name}": value for name, value in state.items()}, kept, worth, inner)
    )


def train_student(
    kinds: Sequence[Kind], texts: Texts, start: State, plan: Plan, teacher: Tensor
) -> State:
    """`teacher` holds its vectors of all texts."""
    encoder = ready(
        Encoder(shape_of(start)), start, texts.device, training=True, compiled=plan.compiled
    )
    optimiser = ClockedAdamW(encoder, plan.rate, plan.seconds)
    sampler = Sampler(kinds, plan)
    began, steps, seen = time.monotonic(), 0, 0
    for batch in drawn_ahead(sampler.embedder_batch, optimiser):
        for layer in encoder.layers:
            layer.rounded = optimiser.spent >= plan.rounded_from
        which = np.concatenate([batch.queries, batch.answers, batch.negatives.reshape(-1)])
        vectors, count = embedded(encoder, texts, which), len(batch.queries)
        theirs = teacher[torch.as_tensor(which, device=texts.device)].float()
        near = 1 - (vectors * theirs).sum(1).mean()
        shares = (theirs[:count] @ theirs[count:].T / plan.temperature).softmax(1)
        own = (vectors[:count] @ vectors[count:].T / plan.temperature).log_softmax(1)
        order = functional.kl_div(own, shares, reduction="batchmean")
        answers = contrast(vectors[:count], vectors[count:], batch, plan.temperature)
        (VECTORS * near + ORDER * order + ANSWERS * answers).backward()
        optimiser.step()
        steps, seen = steps + 1, seen + int(texts.lengths[which].sum())
        if steps % SPOKEN_EVERY == 0 or steps == 3:
            took = time.monotonic() - began
            print(
                f"student step {steps} near {near.item():.4f} order {order.item():.4f} answers "
                f"{answers.item():.4f} "
                f"{seen / took / 1e3:.0f}k tokens/s {optimiser.spent:.0%}",
                flush=True,
            )
    return optimiser.state()
