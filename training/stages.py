"""Train everything in one go: two embedders, three rerankers, their averages, and a small reranker taught by them.

    python stages.py --model stock.npz --tokenizer tokenizer.json --data KINDS --output OUT --seconds 1300 --compile

Every stage writes its weights when it ends, so that a stopped run leaves what was finished; `judge.py` may watch the
same folder. Stages are timed; the small reranker takes what is left of the seconds given.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from data import Kind, mine, read_kinds, some_of
from encoder import (
    STOCK_SHAPE,
    WIDTH,
    Encoder,
    Reranker,
    Shape,
    State,
    Texts,
    averaged,
    load_half,
    neuron_worth,
    ready,
    save_half,
    smaller,
)  # fmt: skip
from train import Plan, held_out_accuracy, teach, train_embedder, train_reranker

# The share of the tuned weights in what is mined and reranked with; fixed before anything was measured.
ALPHA = 0.7
EMBEDDERS = ((1, 110.0), (2, 95.0))  # seed, seconds; the first one compiles
TEACHERS = ((21, 1e-4), (22, 1e-4), (23, 8e-5))  # seed, rate
TEACHER_SECONDS = 230.0
# The teacher scores so many rows a kind and candidates a row: more would cost time that the student needs.
TAUGHT_ROWS, TAUGHT_CANDIDATES = 10_000, 12
# Four layers with half of the feed-forward neurons: 20 memories in less than 30 query embeddings (speed.py).
SMALL, KEPT = Shape(layers=4, inner=768, relu=True), (0, 2, 3, 5)
SMALL_PLAN: Mapping[str, Any] = {
    "rate": 2.5e-4, "seed": 54, "hard": 11, "easy": 1, "lists": 128, "distilled": 0.8, "shape": SMALL,
    "words_frozen": True,
}  # fmt: skip
WORTH_PAIRS = 4_000
HEAD_SEED = 5
MARGIN_OF_STOCK, MARGIN_OF_TUNED = 0.0, 0.02
LEAST_STUDENT_SECONDS = 60.0


class Work:
    """What the stages share, and the clock."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.began = time.monotonic()
        self.output: Path = arguments.output
        self.output.mkdir(parents=True, exist_ok=True)
        self.seconds: float = arguments.seconds
        self.scale: float = arguments.scale
        self.compiled: bool = arguments.compile
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.stock = load_half(arguments.model)
        self.kinds, self.texts = read_kinds(arguments.data, arguments.tokenizer, self.device, arguments.most)
        rows = sum(len(kind.queries) for kind in self.kinds)
        self.tell(f"{len(self.kinds)} kinds, {rows} rows, {self.texts.lengths.sum()} tokens")
        self.held_out: dict[str, Any] = {}

    def tell(self, text: str) -> None:
        print(f"[{time.monotonic() - self.began:6.1f}] {text}", flush=True)

    def left(self) -> float:
        return self.seconds - (time.monotonic() - self.began)

    def plan(self, *, seconds: float, **rest: Any) -> Plan:
        return Plan(seconds=seconds * self.scale, compiled=self.compiled, **rest)

    def save(self, name: str, state: State) -> None:
        """Under its final name only when it is whole, since another process may be waiting for it."""
        save_half(state, self.output / f"{name}.new.npz")
        (self.output / f"{name}.new.npz").rename(self.output / f"{name}.npz")
        self.tell(f"saved {name}")

    def mine(self, encoder: State, margin: float) -> None:
        mine(self.kinds, self.texts, ready(Encoder(), encoder, self.device), self.device, margin)
        self.tell("mined")

    def judge_held_out(self, name: str, state: State, shape: Shape = STOCK_SHAPE) -> None:
        self.held_out[name] = held_out_accuracy(self.kinds, self.texts, state, shape)
        (self.output / "held-out.json").write_text(json.dumps(self.held_out, indent=1))
        self.tell(f"held out {name} {self.held_out[name]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("model", "tokenizer", "data", "output"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--seconds", type=float, required=True, help="wall-clock limit of the whole run")
    parser.add_argument("--scale", type=float, default=1.0, help="factor on the length of every training stage")
    parser.add_argument("--compile", action="store_true", help="compile the layers for training")
    parser.add_argument("--most", type=int, help="rows a kind, for a trial run")
    arguments = parser.parse_args()
    # Its plans are made anew for every shape, and shapes vary here.
    torch.backends.cuda.enable_cudnn_sdp(False)
    # Models of two shapes are compiled, each for training with several kinds of batches.
    torch._dynamo.config.recompile_limit = 64
    torch.manual_seed(0)
    work = Work(arguments)
    tuned = tune(work)
    work.mine(averaged([tuned, work.stock], [ALPHA, 1 - ALPHA]), MARGIN_OF_TUNED)
    teacher = train_teachers(work)
    train_small(work, teacher)
    (work.output / "DONE").write_text("done\n")
    work.tell("done")


def tune(work: Work) -> State:
    """The average of embedders trained with other seeds on the stock model's negatives."""
    work.mine(work.stock, MARGIN_OF_STOCK)
    states = []
    for seed, seconds in EMBEDDERS:
        plan = work.plan(seconds=seconds, rate=4e-5, seed=seed, hard=3)
        states.append(train_embedder(work.kinds, work.texts, work.stock, plan))
        work.save(f"embedder-{seed}", states[-1])
    tuned = averaged(states, [1 / len(states)] * len(states))
    work.save("embedder", tuned)
    return tuned


def train_teachers(work: Work) -> State:
    """The average of rerankers that start from one head, so that their weights can be averaged."""
    states: list[State] = []
    for seed, rate in TEACHERS:
        plan = work.plan(seconds=TEACHER_SECONDS, rate=rate, seed=seed, hard=11, easy=2, lists=96)
        if states and work.left() < plan.seconds + LEAST_STUDENT_SECONDS + 60:
            work.tell("no time for another teacher")
            break
        states.append(train_reranker(work.kinds, work.texts, started(work.stock), plan))
        work.save(f"teacher-{seed}", states[-1])
    mean = averaged(states, [1 / len(states)] * len(states))
    work.save("reranker-6", mean)
    work.judge_held_out("reranker-6", mean)
    return mean


def train_small(work: Work, teacher: State) -> None:
    work.kinds = [some_of(kind, TAUGHT_ROWS, TAUGHT_CANDIDATES) for kind in work.kinds]
    soft = teach(work.kinds, work.texts, [teacher])
    work.tell("the teacher has scored the candidates")
    if work.left() < LEAST_STUDENT_SECONDS * work.scale:
        work.tell("no time for a student")
        return
    start = smaller(teacher, KEPT, worth_of(work.kinds, work.texts, teacher), SMALL.inner)
    plan = Plan(seconds=work.left(), compiled=work.compiled, **SMALL_PLAN)
    state = train_reranker(work.kinds, work.texts, start, plan, soft)
    # The word table is the teacher's: only the rest has to travel.
    work.save("reranker-4", {name: value for name, value in state.items() if name != "encoder.words.weight"})
    work.judge_held_out("reranker-4", state, SMALL)


def worth_of(kinds: Sequence[Kind], texts: Texts, teacher: State) -> list[torch.Tensor]:
    """Which neurons matter, over some pairs of every kind."""
    chance = np.random.default_rng(0)
    queries, passages = [], []
    for kind in kinds:
        for row in chance.integers(0, len(kind.queries), WORTH_PAIRS // len(kinds)):
            queries.append(kind.queries[row])
            passages.append(kind.positives[row][0] if chance.random() < 0.5 else chance.choice(kind.passages))
    return neuron_worth(ready(Reranker(), teacher, texts.device), texts, np.array(queries), np.array(passages))


def started(stock: State) -> State:
    """The stock encoder with a fresh head; all teachers share it, so that their weights can be averaged."""
    chance = torch.Generator().manual_seed(HEAD_SEED)
    head = {
        "hidden.weight": torch.eye(WIDTH) + 0.02 * torch.randn(WIDTH, WIDTH, generator=chance),
        "hidden.bias": torch.zeros(WIDTH),
        "score.weight": 0.02 * torch.randn(1, WIDTH, generator=chance),
        "score.bias": torch.zeros(1),
    }
    return {f"encoder.{name}": value for name, value in stock.items()} | head


if __name__ == "__main__":
    main()
