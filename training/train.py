"""Training of both models. Runs end by the clock; the seed determines every random choice."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from data import Kind, Rows, weights_of
from encoder import (
    STOCK_SHAPE,
    Encoder,
    Reranker,
    Shape,
    State,
    Texts,
    embedded,
    ready,
    scored,
    shape_of,
)
from optimiser import ClockedAdamW

# all-MiniLM's training scale: it keeps the range of cosines the fusion was tuned for.
TEMPERATURE = 0.05
GROUPS, GROUP = 4, 128
SPOKEN_EVERY = 25
# Keeps scores comparable between queries, which thresholds need and ranking does not.
POINTWISE_SHARE = 0.2

Batch = TypeVar("Batch")


@dataclass(frozen=True, slots=True)
class Plan:
    """How to train one model: `hard` negatives per query, and for rerankers `easy` random ones."""

    seconds: float
    rate: float
    seed: int
    hard: int
    easy: int = 0
    lists: int = 128
    distilled: float = 0.0
    shape: Shape = STOCK_SHAPE
    compiled: bool = False
    words_frozen: bool = False
    depth_decay: float = 1.0
    # Share of lists without their answer, which only say that nothing answers.
    unanswered: float = 0.0
    temperature: float = TEMPERATURE
    groups: int = GROUPS
    # Share of the time after which products are rounded like the int8 file; 1 means never.
    rounded_from: float = 1.0


def train_embedder(kinds: Sequence[Kind], texts: Texts, start: State, plan: Plan) -> State:
    """Train with InfoNCE on batches of several kinds; negatives are answers of the same kind."""
    device = texts.device
    encoder = ready(Encoder(shape_of(start)), start, device, training=True, compiled=plan.compiled)
    optimiser = ClockedAdamW(encoder, plan.rate, plan.seconds)
    sampler = Sampler(kinds, plan)
    began, steps, seen = time.monotonic(), 0, 0
    for batch in drawn_ahead(sampler.embedder_batch, optimiser):
        which = np.concatenate([batch.queries, batch.answers, batch.negatives.reshape(-1)])
        vectors = embedded(encoder, texts, which)
        count = len(batch.queries)
        loss = contrast(vectors[:count], vectors[count:], batch, plan.temperature)
        loss.backward()
        optimiser.step()
        steps, seen = steps + 1, seen + int(texts.lengths[which].sum())
        if steps % SPOKEN_EVERY == 0 or steps == 3:
            _tell("embedder", steps, loss, seen, began, optimiser.spent)
    return optimiser.state()


def drawn_ahead(draw: Callable[[], Batch], optimiser: ClockedAdamW) -> Iterator[Batch]:
    """Yield batches until time is over, drawing the next while the device works."""
    with ThreadPoolExecutor(1) as ahead:
        coming = ahead.submit(draw)
        while optimiser.spent < 1:
            batch = coming.result()
            coming = ahead.submit(draw)
            yield batch


def train_reranker(
    kinds: Sequence[Kind],
    texts: Texts,
    start: State,
    plan: Plan,
    soft: Sequence[Tensor] | None = None,
) -> State:
    """Use a softmax over an answer and its negatives, plus divergence from soft labels."""
    device = texts.device
    shape = shape_of(start, plan.shape.relu)
    reranker = ready(Reranker(shape), start, device, training=True, compiled=plan.compiled)
    reranker.encoder.words.weight.requires_grad_(not plan.words_frozen)
    optimiser = ClockedAdamW(reranker, plan.rate, plan.seconds, plan.depth_decay)
    sampler = Sampler(kinds, plan)
    began, steps, seen = time.monotonic(), 0, 0
    for batch in drawn_ahead(lambda: sampler.reranker_batch(soft), optimiser):
        columns = batch.passages.shape[1]
        queries, passages = np.repeat(batch.queries, columns), batch.passages.reshape(-1)
        scores = scored(reranker, texts, queries, passages).view(-1, columns)
        loss = _listwise(scores, batch, plan, device)
        loss.backward()
        optimiser.step()
        steps, seen = (
            steps + 1,
            seen + int(texts.lengths[queries].sum() + texts.lengths[passages].sum()),
        )
        if steps % SPOKEN_EVERY == 0 or steps == 3:
            _tell("reranker", steps, loss, seen, began, optimiser.spent)
    return {**start, **optimiser.state()}


@dataclass(slots=True)
class EmbedderBatch:
    queries: np.ndarray
    answers: np.ndarray
    negatives: np.ndarray
    known: list[set[int]]
    places: list[tuple[int, int, np.ndarray]]


@dataclass(slots=True)
class RerankerBatch:
    queries: np.ndarray
    passages: np.ndarray
    taught: np.ndarray | None
    answered: np.ndarray


class Sampler:
    """Draws kinds by weight, and rows of a kind without repetition."""

    def __init__(self, kinds: Sequence[Kind], plan: Plan) -> None:
        self._kinds, self._plan = kinds, plan
        self._weights = weights_of(kinds)
        self._chance = np.random.default_rng(plan.seed)
        self._rows = [Rows(kind, plan.seed + at) for at, kind in enumerate(kinds)]

    def embedder_batch(self) -> EmbedderBatch:
        batch = EmbedderBatch(
            np.empty(0, np.int64),
            np.empty(0, np.int64),
            np.empty((0, self._plan.hard), np.int64),
            [],
            [],
        )
        queries, answers, negatives = [], [], []
        for at in self._chance.choice(len(self._kinds), self._plan.groups, p=self._weights):
            kind = self._kinds[at]
            for row in self._rows[at].draw(GROUP):
                queries.append(kind.queries[row])
                answers.append(self._chance.choice(kind.answers[row]))
                columns = self._hard(kind, row)
                negatives.append([self._number(kind, row, column) for column in columns])
                batch.known.append(set(kind.positives[row]))
                batch.places.append((int(at), row, columns))
        batch.queries, batch.answers, batch.negatives = (
            np.array(queries),
            np.array(answers),
            np.array(negatives),
        )
        return batch

    def reranker_batch(self, soft: Sequence[Tensor] | None) -> RerankerBatch:
        queries, passages, taught, answered = [], [], [], []
        for at in self._chance.choice(len(self._kinds), self._plan.lists, p=self._weights):
            kind = self._kinds[at]
            row = self._rows[at].draw(1)[0]
            columns = self._hard(kind, row)
            answer = 0 if soft is not None else self._chance.integers(len(kind.answers[row]))
            easy = [self._other(kind, row) for _ in range(self._plan.easy)]
            queries.append(kind.queries[row])
            answered.append(
                self._plan.unanswered == 0 or self._chance.random() >= self._plan.unanswered
            )
            first = kind.answers[row][answer] if answered[-1] else self._other(kind, row)
            passages.append(
                [first, *(self._number(kind, row, column) for column in columns), *easy]
            )
            if soft is not None:
                # Teachers never scored easy negatives: they get the worst candidate's value.
                own = soft[at][row].numpy()
                low = np.nanmin(own)
                values = [
                    own[0],
                    *(own[1 + column] if column >= 0 else low for column in columns),
                    *([low] * len(easy)),
                ]
                taught.append(np.nan_to_num(np.array(values, dtype=np.float32), nan=float(low)))
        return RerankerBatch(
            np.array(queries),
            np.array(passages),
            np.array(taught) if soft is not None else None,
            np.array(answered, dtype=np.float32),
        )

    def _hard(self, kind: Kind, row: int) -> np.ndarray:
        available = int((kind.candidates[row] >= 0).sum())
        wanted = self._plan.hard
        if available <= wanted:
            return np.concatenate([np.arange(available), np.full(wanted - available, -1)]).astype(
                int
            )
        return self._chance.choice(available, wanted, replace=False)

    def _number(self, kind: Kind, row: int, column: int) -> int:
        return int(kind.candidates[row, column]) if column >= 0 else self._other(kind, row)

    def _other(self, kind: Kind, row: int) -> int:
        answers = kind.positives[row]
        number = int(self._chance.choice(kind.passages))
        return number if number not in answers else self._other(kind, row)


def contrast(queries: Tensor, passages: Tensor, batch: EmbedderBatch, temperature: float) -> Tensor:
    device = queries.device
    numbers = np.concatenate([batch.answers, batch.negatives.reshape(-1)])
    logits = queries @ passages.T / temperature
    # Another row's answer may be the same passage; then it is not a negative.
    places: dict[int, list[int]] = {}
    for column, number in enumerate(numbers):
        places.setdefault(int(number), []).append(column)
    rows, columns = [], []
    for row, known in enumerate(batch.known):
        for number in known:
            for column in places.get(number, ()):
                if column != row:
                    rows.append(row)
                    columns.append(column)
    mask = torch.zeros(logits.shape, dtype=torch.bool, device=device)
    if rows:
        mask[torch.as_tensor(rows, device=device), torch.as_tensor(columns, device=device)] = True
    targets = torch.arange(len(batch.queries), device=device)
    return functional.cross_entropy(logits.masked_fill(mask, -1e4), targets)


def _listwise(scores: Tensor, batch: RerankerBatch, plan: Plan, device: str) -> Tensor:
    targets = torch.zeros(len(scores), dtype=torch.int64, device=device)
    answered = torch.as_tensor(batch.answered, device=device)
    hard = (
        functional.cross_entropy(scores, targets, reduction="none") * answered
    ).sum() / answered.sum().clamp(min=1)
    if batch.taught is None:
        wanted = torch.zeros_like(scores)
        wanted[:, 0] = answered
        return hard + POINTWISE_SHARE * functional.binary_cross_entropy_with_logits(scores, wanted)
    teacher = torch.as_tensor(batch.taught, device=device)
    soft = functional.kl_div(scores.log_softmax(1), teacher.softmax(1), reduction="batchmean")
    pointwise = functional.binary_cross_entropy_with_logits(scores, teacher.sigmoid())
    return plan.distilled * soft + (1 - plan.distilled) * hard + POINTWISE_SHARE * pointwise


@torch.no_grad()
def teach(kinds: Sequence[Kind], texts: Texts, teachers: Sequence[State]) -> list[Tensor]:
    """Return teachers' mean scores of each row's first answer and candidates, padded with NaN."""
    models = [ready(Reranker(shape_of(state)), state, texts.device) for state in teachers]
    taught = []
    for kind in kinds:
        passages = np.concatenate(
            [np.array([row[0] for row in kind.answers])[:, None], kind.candidates], axis=1
        )
        rows, columns = np.nonzero(passages >= 0)
        scores = torch.full(passages.shape, float("nan"))
        for start in range(0, len(rows), 400_000):
            part = slice(start, start + 400_000)
            queries, own = kind.queries[rows[part]], passages[rows[part], columns[part]]
            total = sum(scored(model, texts, queries, own) for model in models) / len(models)
            scores[rows[part], columns[part]] = total.cpu()
        taught.append(scores)
    return taught


@torch.no_grad()
def held_out_accuracy(
    kinds: Sequence[Kind], texts: Texts, state: State, shape: Shape = STOCK_SHAPE
) -> dict[str, float]:
    """Return how often the answer ranks first among its candidates, on held-out rows."""
    model = ready(Reranker(shape), state, texts.device)
    shares = {}
    for kind in kinds:
        rows = np.flatnonzero(kind.held_out)
        if not len(rows):
            continue
        lists = [
            np.array([kind.answers[row][0], *kind.candidates[row][kind.candidates[row] >= 0]])
            for row in rows
        ]
        sizes = [len(one) for one in lists]
        scores = (
            scored(model, texts, np.repeat(kind.queries[rows], sizes), np.concatenate(lists))
            .cpu()
            .numpy()
        )
        parts = np.split(scores, np.cumsum(sizes)[:-1])
        shares[kind.name] = round(float(np.mean([part[0] >= part.max() for part in parts])), 4)
    return shares


def _tell(what: str, steps: int, loss: Tensor, seen: int, began: float, spent: float) -> None:
    took = time.monotonic() - began
    print(
        f"{what} step {steps} loss {loss.item():.4f} {seen / took / 1e3:.0f}k tokens/s {spent:.0%}",
        flush=True,
    )
