r"""Train the rerankers: teachers of twelve layers, and small students of their mean score.

python training/rerankers.py teacher --name teacher --base OUT/e5.npz --teach $R --seconds 200
python training/rerankers.py student --name reranker-3 --teachers teacher --kept 3 7 11 \
    --inner 768 --relu $R
# R="--embedder OUT/e5.npz --tokenizer T --data KINDS --eval EVAL --output OUT --compile"

A teacher is a tuned embedder with a fresh head, the same for all. Candidates are mined once by the
embedder and cached in OUT/mined.npz, the teachers' scores in OUT/taught.npz. A student starts from
the first teacher's `--kept` layers, each with its `--inner` most useful neurons, or from `--start`.
Students may run in parallel. `--seconds` is training time only.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from data import Kind, choose_answers, load_mined, mine, read_kinds, save_mined, some_of
from distil import vectors_of
from embedders import prepare_device
from encoder import (
    INNER,
    WIDTH,
    Encoder,
    Reranker,
    Shape,
    State,
    Texts,
    encoder_alone,
    load_half,
    load_reranker,
    neuron_worth,
    ready,
    save_half,
    scored,
    shape_of,
    smaller,
)  # fmt: skip
from judge_dense import Judge, rerank_line, reranked_figures
from train import Plan, held_out_accuracy, teach, train_reranker

MARGIN = 0.02
HEAD_SEED = 5
# A teacher's lists per step, and each layer's rate relative to the next: slower lower layers forget
# less.
LISTS, HARD, EASY, DEPTH_DECAY = 64, 7, 2, 0.9
UNANSWERED = 0.1
RATE_OF_TEACHER, RATE_OF_STUDENT = 6e-5, 2e-4
# Rows per kind and candidates per row the teachers score: more would take the students' time.
TAUGHT_ROWS, TAUGHT_CANDIDATES = 6_000, 8
DISTILLED = 0.8
WORTH_PAIRS = 4_000
JUDGED_QUERIES = 250
WORDS = "encoder.words.weight"


class Work:
    def __init__(self, arguments: argparse.Namespace) -> None:
        self.began = time.monotonic()
        self.arguments = arguments
        self.output: Path = arguments.output
        self.output.mkdir(parents=True, exist_ok=True)
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.kinds, self.texts = read_kinds(
            arguments.data, arguments.tokenizer, self.device, arguments.most
        )
        rows = sum(len(kind.queries) for kind in self.kinds)
        self.tell(f"{len(self.kinds)} kinds, {rows} rows, {self.texts.lengths.sum()} tokens")
        self.mine()

    def tell(self, text: str) -> None:
        print(f"[{time.monotonic() - self.began:6.1f}] {text}", flush=True)

    def embedder(self) -> Encoder:
        state = encoder_alone(load_half(self.arguments.embedder))
        return ready(Encoder(shape_of(state)), state, self.device)

    def mine(self) -> None:
        path = self.output / "mined.npz"
        if not path.exists():
            state = encoder_alone(load_half(self.arguments.embedder))
            choose_answers(self.kinds, self.texts, self.embedder())
            mine(self.kinds, self.texts, vectors_of(state, self.texts), MARGIN)
            save_mined(path, self.kinds)
        load_mined(path, self.kinds)
        self.tell("mined")

    def load(self, name: str) -> State:
        return load_half(self.output / f"{name}.npz")

    def save(self, name: str, state: State) -> None:
        """Write atomically: others may be waiting for the file."""
        save_half(state, self.output / f"{name}.new.npz")
        (self.output / f"{name}.new.npz").rename(self.output / f"{name}.npz")
        self.tell(f"saved {name}")

    def figures(self, name: str, state: State, shape: Shape) -> None:
        """Measure held-out accuracy and reranked first hits; write at once."""
        found: dict[str, Any] = {
            "model": name,
            "held out": held_out_accuracy(self.kinds, self.texts, state, shape),
        }
        self.tell(f"{name} held out {found['held out']}")
        if self.arguments.eval:
            judge = Judge(
                self.arguments.eval, self.arguments.tokenizer, self.device, JUDGED_QUERIES
            )
            vectors = judge.vectors(self.embedder())
            found |= reranked_figures(judge, vectors, ready(Reranker(shape), state, self.device))
            self.tell(f"{name}: {rerank_line(found)}")
        with (self.output / "figures.jsonl").open("a") as file:
            file.write(json.dumps(found) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("teacher", "student"))
    for name in ("embedder", "tokenizer", "data", "output"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--name", required=True)
    parser.add_argument("--seconds", type=float, required=True, help="of training")
    parser.add_argument("--eval", type=Path)
    parser.add_argument("--base", type=Path, help="a teacher's encoder to begin with")
    parser.add_argument("--teachers", nargs="*", default=[])
    parser.add_argument(
        "--kept", type=int, nargs="*", default=[], help="layers of the first teacher"
    )
    parser.add_argument("--inner", type=int, default=INNER)
    parser.add_argument("--relu", action="store_true")
    parser.add_argument("--start", type=Path, help="weights of a reranker to begin with instead")
    parser.add_argument(
        "--teach",
        action="store_true",
        help="score the lists at the end, for students that come after",
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--most", type=int, help="rows a kind, for a trial run")
    arguments = parser.parse_args()
    prepare_device()
    work = Work(arguments)
    (train_teacher if arguments.what == "teacher" else train_student)(work)


def train_teacher(work: Work) -> None:
    own = work.arguments
    start = started(encoder_alone(load_half(own.base)))
    plan = Plan(
        seconds=own.seconds, rate=RATE_OF_TEACHER, seed=own.seed, hard=HARD, easy=EASY, lists=LISTS,
        depth_decay=DEPTH_DECAY, unanswered=UNANSWERED, words_frozen=True, compiled=own.compile,
    )  # fmt: skip
    state = train_reranker(work.kinds, work.texts, start, plan)
    work.save(own.name, state)
    work.figures(own.name, state, shape_of(state))
    if own.teach:
        work.kinds = [some_of(kind, TAUGHT_ROWS, TAUGHT_CANDIDATES) for kind in work.kinds]
        taught(work, [state])


def train_student(work: Work) -> None:
    own = work.arguments
    teachers = [work.load(name) for name in own.teachers]
    work.kinds = [some_of(kind, TAUGHT_ROWS, TAUGHT_CANDIDATES) for kind in work.kinds]
    soft = taught(work, teachers)
    start = load_reranker(own.start, own.embedder) if own.start else _start(work, teachers[0])
    plan = Plan(
        seconds=own.seconds, rate=RATE_OF_STUDENT, seed=own.seed, hard=TAUGHT_CANDIDATES - 1, easy=1, lists=128,
        distilled=DISTILLED, shape=shape_of(start, own.relu), words_frozen=True, compiled=own.compile,
    )  # fmt: skip
    state = train_reranker(work.kinds, work.texts, start, plan, soft)
    # The word table is the embedder's and frozen: only the rest is transferred.
    work.save(own.name, {name: value for name, value in state.items() if name != WORDS})
    work.figures(own.name, state, plan.shape)


def taught(work: Work, teachers: Sequence[State]) -> list[torch.Tensor]:
    """Return the teachers' mean scores, computed by the first caller."""
    path = work.output / "taught.npz"
    if not path.exists():
        soft = teach(work.kinds, work.texts, teachers)
        kept: dict[str, Any] = {
            kind.name: own.numpy() for kind, own in zip(work.kinds, soft, strict=True)
        }
        np.savez(work.output / "taught.new.npz", **kept)
        (work.output / "taught.new.npz").rename(path)
    with np.load(path) as arrays:
        scores = [torch.from_numpy(arrays[kind.name]) for kind in work.kinds]
    work.tell("the teachers have scored the candidates")
    return scores


def _start(work: Work, teacher: State) -> State:
    own = work.arguments
    worth = worth_of(work.kinds, work.texts, teacher) if own.inner < INNER else []
    return smaller(teacher, own.kept, worth, own.inner)


def worth_of(kinds: Sequence[Kind], texts: Texts, teacher: State) -> list[torch.Tensor]:
    """Return each neuron's importance over some pairs of every kind."""
    chance = np.random.default_rng(0)
    queries, passages = [], []
    for kind in kinds:
        for row in chance.integers(0, len(kind.queries), WORTH_PAIRS // len(kinds)):
            queries.append(kind.queries[row])
            passages.append(
                kind.answers[row][0] if chance.random() < 0.5 else chance.choice(kind.passages)
            )
    model = ready(Reranker(shape_of(teacher)), teacher, texts.device)
    return neuron_worth(
        model.encoder, lambda: scored(model, texts, np.array(queries), np.array(passages))
    )


def started(encoder: State) -> State:
    """Add a fresh head, shared by all teachers so their weights can be averaged."""
    chance = torch.Generator().manual_seed(HEAD_SEED)
    head = {
        "hidden.weight": torch.eye(WIDTH) + 0.02 * torch.randn(WIDTH, WIDTH, generator=chance),
        "hidden.bias": torch.zeros(WIDTH),
        "score.weight": 0.02 * torch.randn(1, WIDTH, generator=chance),
        "score.bias": torch.zeros(1),
    }
    return {f"encoder.{name}": value for name, value in encoder.items()} | head


if __name__ == "__main__":
    main()
