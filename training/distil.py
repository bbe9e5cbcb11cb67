"""A small embedder taught by larger ones: their vectors, their order of a batch, and the answers themselves.

The teacher's vectors of all texts are made once. The student has every second of its layers to begin with. A second
teacher with a vocabulary of its own may teach the order in kinds that it knows better (granite: code); its vectors lie
in another space, so only their products count.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from data import Kind
from encoder import Encoder, State, Texts, embedded, ready, shape_of
from optimiser import ClockedAdamW
from train import SPOKEN_EVERY, Plan, Sampler, contrast, drawn_ahead

# How much each part of the loss weighs: nearness to the teacher's vectors, its order of the batch, the answers.
VECTORS, ORDER, ANSWERS = 4.0, 1.0, 0.25
EVERY_SECOND = (1, 3, 5, 7, 9, 11)


@dataclass(frozen=True, slots=True)
class Teacher:
    """Vectors of all texts, and the temperature at which their products mean shares."""

    vectors: Tensor
    temperature: float


@torch.no_grad()
def teacher_vectors(state: State, texts: Texts, which: np.ndarray | None = None, part: int = 200_000) -> Tensor:
    """Unit vectors of all texts, or of some, in half precision."""
    encoder = ready(Encoder(shape_of(state)), state, texts.device)
    rows = np.arange(len(texts.lengths)) if which is None else which
    return torch.cat([embedded(encoder, texts, rows[at : at + part]).half() for at in range(0, len(rows), part)])


def fewer_layers(state: State, kept: Sequence[int] = EVERY_SECOND) -> State:
    """The layers named, renumbered."""
    chosen = {name: value for name, value in state.items() if not name.startswith("layers.")}
    for place, number in enumerate(kept):
        head = f"layers.{number}."
        chosen |= {
            f"layers.{place}.{name.removeprefix(head)}": value for name, value in state.items() if name.startswith(head)
        }
    return chosen


def train_student(
    kinds: Sequence[Kind], texts: Texts, start: State, plan: Plan, teacher: Teacher, others: Mapping[str, Teacher]
) -> State:
    """`others`: who teaches the order in kinds of that name, together with the first teacher."""
    encoder = ready(Encoder(shape_of(start)), start, texts.device, training=True, compiled=plan.compiled)
    optimiser = ClockedAdamW(encoder, plan.rate, plan.seconds)
    sampler = Sampler(kinds, plan)
    began, steps, seen = time.monotonic(), 0, 0
    for batch in drawn_ahead(sampler.embedder_batch, optimiser):
        for layer in encoder.layers:
            layer.rounded = optimiser.spent >= plan.rounded_from
        which = np.concatenate([batch.queries, batch.answers, batch.negatives.reshape(-1)])
        vectors, count = embedded(encoder, texts, which), len(batch.queries)
        numbers = torch.as_tensor(which, device=texts.device)
        near = 1 - (vectors * teacher.vectors[numbers].float()).sum(1).mean()
        shares = _shares(teacher, numbers, count)
        names = [kinds[at].name for at, _, _ in batch.places]
        for kind in set(names) & others.keys():
            rows = torch.as_tensor([name == kind for name in names], device=texts.device)
            shares[rows] = (shares[rows] + _shares(others[kind], numbers, count)[rows]) / 2
        own = (vectors[:count] @ vectors[count:].T / teacher.temperature).log_softmax(1)
        order = functional.kl_div(own, shares, reduction="batchmean")
        answers = contrast(vectors[:count], vectors[count:], batch, plan.temperature)
        loss = VECTORS * near + ORDER * order + ANSWERS * answers
        loss.backward()
        optimiser.step()
        steps, seen = steps + 1, seen + int(texts.lengths[which].sum())
        if steps % SPOKEN_EVERY == 0 or steps == 3:
            took = time.monotonic() - began
            print(
                f"student step {steps} near {near.item():.4f} order {order.item():.4f} answers {answers.item():.4f} "
                f"{seen / took / 1e3:.0f}k tokens/s {optimiser.spent:.0%}",
                flush=True,
            )
    return optimiser.state()


@torch.no_grad()
def _shares(teacher: Teacher, numbers: Tensor, count: int) -> Tensor:
    """What share of each query every passage of the batch has, as the teacher sees it."""
    own = teacher.vectors[numbers].float()
    return (own[:count] @ own[count:].T / teacher.temperature).softmax(1)
