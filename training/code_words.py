r"""Train the word vectors that encode chunks and questions in code search.

python training/code_words.py --terms terms.npz --surfaces terms.txt \
    --pairs pairs.jsonl.xz --dev dev.jsonl.xz --chunks chunks.jsonl.xz \
    --teacher embedder.npz --tokenizer tokenizer.json --output out \
    --seconds 6 --rate 0.005 --temperature 0.1 --decay 0.5 --dropped 0.2

A text's vector is the sum of its words' vectors. The loss contrasts pairs within a batch and
distills the embedder's similarities between the batch's questions and chunks. Takes minutes on one
GPU, most of it for the embedder.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from code_terms import IN_PATH, all_rows
from data import LONGEST_QUERY, tokenised
from encoder import Encoder, embedded, encoder_alone, load_half, ready, shape_of

BATCH = 4_096
# Rows of a batch from one repository, which are hard to tell apart.
TOGETHER = 512
LONGEST_CODE = 256
SEED = 7
# Word frequency at which a word counts half of a rare one.
RARE = 1e-3


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name in ("terms", "pairs", "dev", "chunks", "surfaces", "teacher", "tokenizer", "output"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--dimension", type=int, default=256)
    parser.add_argument("--seconds", type=float, default=240)
    parser.add_argument("--rate", type=float, default=0.01)
    parser.add_argument(
        "--taught", type=float, default=1.0, help="weight of what the embedder says"
    )
    parser.add_argument(
        "--alone", type=float, default=1.0, help="weight of chunks without a question"
    )
    parser.add_argument("--temperature", type=float, default=0.05, help="of the embedder's cosines")
    parser.add_argument(
        "--dropped", type=float, default=0.3, help="share of words that a text lacks at each step"
    )
    parser.add_argument("--decay", type=float, default=0.01)
    parser.add_argument("--name", default="words")
    options = parser.parse_args()
    torch.manual_seed(SEED)
    data = np.load(options.terms)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    questions, chunks = taught(options, device)
    bags = {side: Bags(data, side, device) for side in ("query", "document")}
    model = Words(len(bytes(data["vocabulary"]).split(b"\n")), options.dimension).to(device)
    model.begin(*first_vectors(options, data, device))
    trained, tested = int(data["trained"]), int(data["tested"])
    trainer = Trainer(
        model, bags, questions, chunks, data["repository"], trained, tested, device, options
    )
    trainer.run(options.seconds)
    options.output.mkdir(parents=True, exist_ok=True)
    np.savez(
        options.output / f"{options.name}.npz",
        table=model.words.weight.detach().half().cpu().numpy(),
        weights=model.weights.weight.detach().float().cpu().numpy()[:, 0],
        dense=model.dense.weight.detach().half().cpu().numpy(),
    )


def taught(options: argparse.Namespace, device: str) -> tuple[Tensor, Tensor]:
    """Return the embedder's half-precision vectors of questions and chunks, cached."""
    kept = options.output / "taught.npy"
    if not kept.exists():
        rows, _, _ = all_rows(options)
        texts = [row.get("query") or " " for row in rows] + [
            f"{row['path']}\n{row['code']}" for row in rows
        ]
        limits = [LONGEST_QUERY] * len(rows) + [LONGEST_CODE] * len(rows)
        table = tokenised(texts, limits, options.tokenizer, device)
        state = encoder_alone(load_half(options.teacher))
        with torch.no_grad():
            vectors = embedded(
                ready(Encoder(shape_of(state)), state, device), table, np.arange(len(texts))
            )
        options.output.mkdir(parents=True, exist_ok=True)
        np.save(kept, vectors.half().cpu().numpy())
    vectors = torch.from_numpy(np.load(kept)).to(device)
    return vectors[: len(vectors) // 2], vectors[len(vectors) // 2 :]


@torch.no_grad()
def first_vectors(
    options: argparse.Namespace, data: dict[str, np.ndarray], device: str
) -> tuple[Tensor, Tensor]:
    """Return the embedder's vector of each word, common ones scaled down, and their main axes."""
    words = options.surfaces.read_text(encoding="utf-8").split("\n")
    state = encoder_alone(load_half(options.teacher))
    table = tokenised(words, [LONGEST_QUERY] * len(words), options.tokenizer, device)
    vectors = embedded(
        ready(Encoder(shape_of(state)), state, device), table, np.arange(len(words))
    ).float()
    counts = np.bincount(data["document_terms"], minlength=len(words)).astype(np.float32)
    share = torch.as_tensor(counts / counts.sum(), device=device)
    centred = vectors - vectors.mean(0)
    _, _, axes = torch.linalg.svd(centred, full_matrices=False)
    axes = axes[: options.dimension]
    return centred @ axes.T * (RARE / (RARE + share))[:, None], axes


class Bags:
    def __init__(self, data: dict[str, np.ndarray], side: str, device: str) -> None:
        self.device = device
        counts = data[f"{side}_counts"].astype(np.int64)
        body, path = counts & (IN_PATH - 1), counts >= IN_PATH
        weights = np.where(body > 0, 1 + np.log(np.maximum(body, 1)), 0) + path
        self.terms = torch.as_tensor(data[f"{side}_terms"].astype(np.int64), device=device)
        self.weights = torch.as_tensor(weights.astype(np.float32), device=device)
        self.lengths = data[f"{side}_lengths"].astype(np.int64)
        self.starts = np.concatenate([[0], np.cumsum(self.lengths)[:-1]])

    def of(self, which: np.ndarray, dropped: float = 0.0) -> tuple[Tensor, Tensor, Tensor]:
        """Return terms, weights and offsets for an embedding bag; some terms may be dropped."""
        lengths = self.lengths[which]
        starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
        places = np.repeat(self.starts[which] - starts, lengths) + np.arange(int(lengths.sum()))
        flat = torch.as_tensor(places, device=self.device)
        weights = self.weights[flat]
        if dropped:
            weights = weights * (torch.rand_like(weights) >= dropped)
        return self.terms[flat], weights, torch.as_tensor(starts, device=self.device)


class Words(nn.Module):
    """One table for both sides; `weights` scale a question's terms.

    `dense` maps the embedder's vector of a question into the same space.
    """

    def __init__(self, terms: int, dimension: int) -> None:
        super().__init__()
        self.words = nn.Embedding(terms, dimension)
        nn.init.normal_(self.words.weight, std=dimension**-0.5)
        self.weights = nn.Embedding(terms, 1)
        nn.init.zeros_(self.weights.weight)
        self.dense = nn.Linear(384, dimension)
        self.chunk = nn.Linear(384, dimension)
        self.scale = nn.Parameter(torch.tensor(20.0).log())

    @torch.no_grad()
    def begin(self, words: Tensor, axes: Tensor) -> None:
        self.words.weight.copy_(words / words.norm(dim=1).mean())
        self.dense.weight.copy_(axes)
        self.chunk.weight.copy_(axes)

    def documents(self, terms: Tensor, weights: Tensor, starts: Tensor) -> Tensor:
        summed = functional.embedding_bag(
            terms, self.words.weight, starts, mode="sum", per_sample_weights=weights
        )
        return functional.normalize(summed, dim=1)

    def questions(self, terms: Tensor, weights: Tensor, starts: Tensor) -> Tensor:
        return self.documents(terms, weights * self.weights(terms)[:, 0].exp(), starts)


@dataclass
class Trainer:
    model: Words
    bags: dict[str, Bags]
    questions: Tensor
    chunks: Tensor
    repository: np.ndarray
    trained: int
    tested: int
    device: str
    options: argparse.Namespace

    def run(self, seconds: float) -> None:
        optimiser = torch.optim.AdamW(
            self.model.parameters(), lr=self.options.rate, weight_decay=self.options.decay
        )
        chance = np.random.default_rng(SEED)
        began, step = time.monotonic(), 0
        print(self.options.name, step, json.dumps(self.measured()), flush=True)
        while (passed := (time.monotonic() - began) / seconds) < 1:
            for group in optimiser.param_groups:
                group["lr"] = self.options.rate * min(1.0, step / 200) * (1 - passed)
            loss = self.loss(self.batch(chance)) + self.options.alone * self.alone(chance)
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            optimiser.step()
            step += 1
            if step % 500 == 0:
                print(step, round(loss.item(), 4), json.dumps(self.measured()), flush=True)
        print(self.options.name, step, json.dumps(self.measured()), flush=True)

    def batch(self, chance: np.random.Generator) -> np.ndarray:
        near = int(chance.integers(self.trained))
        same = np.flatnonzero(self.repository[: self.trained] == self.repository[near])
        some = chance.choice(same, min(TOGETHER, len(same)), replace=False)
        rest = chance.integers(0, self.trained, BATCH - len(some))
        return np.unique(np.concatenate([some, rest]))

    def loss(self, which: np.ndarray) -> Tensor:
        numbers = torch.as_tensor(which, device=self.device)
        documents = self.model.documents(*self.bags["document"].of(which, self.options.dropped))
        own = self.model.questions(*self.bags["query"].of(which, self.options.dropped))
        embedder = self.questions[numbers].float()
        dense = functional.normalize(self.model.dense(embedder), dim=1)
        scale = self.model.scale.exp().clamp(max=100)
        target = torch.arange(len(which), device=self.device)
        said = (embedder @ self.chunks[numbers].float().T) / self.options.temperature
        said = torch.log_softmax(said, 1)
        total = torch.zeros((), device=self.device)
        for vectors in (own, dense):
            scores = scale * vectors @ documents.T
            pairs = functional.cross_entropy(scores, target) + functional.cross_entropy(
                scores.T, target
            )
            apart = functional.kl_div(
                torch.log_softmax(scores, 1), said, log_target=True, reduction="batchmean"
            )
            total = total + pairs / 2 + self.options.taught * apart
        return total

    def alone(self, chance: np.random.Generator) -> Tensor:
        """Contrast chunks by the embedder's view; needs no question."""
        which = np.unique(chance.integers(0, len(self.repository), BATCH))
        which = which[(which < self.trained) | (which >= self.tested)]
        documents = self.model.documents(*self.bags["document"].of(which, self.options.dropped))
        embedder = self.chunks[torch.as_tensor(which, device=self.device)].float()
        scores = (
            self.model.scale.exp().clamp(max=100)
            * functional.normalize(self.model.chunk(embedder), dim=1)
            @ documents.T
        )
        return functional.cross_entropy(scores, torch.arange(len(which), device=self.device))

    @torch.no_grad()
    def measured(self) -> dict[str, float]:
        """Return the mean reciprocal rank of each development question's chunk."""
        which = np.arange(self.trained, self.tested)
        numbers = torch.as_tensor(which, device=self.device)
        documents = self.model.documents(*self.bags["document"].of(which))
        own = self.model.questions(*self.bags["query"].of(which))
        embedder = self.questions[numbers].float()
        dense = functional.normalize(self.model.dense(embedder), dim=1)
        return {
            "words": _rank(own @ documents.T),
            "dense": _rank(dense @ documents.T),
            "both": _rank((own + dense) @ documents.T),
            "embedder": _rank(embedder @ self.chunks[numbers].float().T),
        }


def _rank(scores: Tensor) -> float:
    own = scores.diagonal()[:, None]
    return round(float((1 / ((scores > own).sum(1) + 1)).mean()), 4)


if __name__ == "__main__":
    main()
