"""Train the rerankers: teachers from several seeds, their average, and the small one that it teaches.

    python rerankers.py teachers --seeds 31 33 --model embedder.npz --tokenizer T --data KINDS --output OUT --compile
    python rerankers.py teachers --seeds 32 34 ...                      # beside it, on the same GPU
    python rerankers.py small --seeds 54 --model embedder.npz ... --output OUT --seconds 1460 --compile
    python rerankers.py small --seeds 55 ...                            # beside it

All teachers start from the same weights, the tuned embedder's with a fresh head, so that theirs can be averaged.
`small` waits for every teacher named in PLANS; the first writes reranker-6.npz, the teachers' average, and
reranker-4.npz, the small ones' (without the word table, which is reranker-6's). `--seconds` counts from the start of
its own process.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import torch

from data import mine, read_kinds, some_of
from encoder import STOCK_SHAPE, Encoder, Shape, State, averaged, load_half, ready, save_half, smaller
from stages import KEPT, MARGIN_OF_TUNED, SMALL, SMALL_PLAN, TAUGHT_CANDIDATES, TAUGHT_ROWS, started, worth_of
from train import Plan, held_out_accuracy, teach, train_reranker

# Seed: rate, and what each layer's rate is of the next one's. Lower layers that move less forget less; half of the
# teachers have it.
PLANS = {31: (1e-4, 1.0), 32: (1e-4, 0.85), 33: (8e-5, 1.0), 34: (1.2e-4, 0.85)}
LISTS, HARD, EASY = 96, 11, 2
SMALL_SEEDS = (54, 55)
WORDS = "encoder.words.weight"
UNANSWERED = 0.1


class Work:
    def __init__(self, arguments: argparse.Namespace) -> None:
        self.began = time.monotonic()
        self.output: Path = arguments.output
        self.output.mkdir(parents=True, exist_ok=True)
        self.compiled: bool = arguments.compile
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.embedder = load_half(arguments.model)
        self.kinds, self.texts = read_kinds(arguments.data, arguments.tokenizer, self.device, arguments.most)
        rows = sum(len(kind.queries) for kind in self.kinds)
        self.tell(f"{len(self.kinds)} kinds, {rows} rows, {self.texts.lengths.sum()} tokens")
        mine(self.kinds, self.texts, ready(Encoder(), self.embedder, self.device), self.device, MARGIN_OF_TUNED)
        self.tell("mined")

    def tell(self, text: str) -> None:
        print(f"[{time.monotonic() - self.began:6.1f}] {text}", flush=True)

    def save(self, name: str, state: State) -> None:
        """Under its final name only when it is whole, since others may be waiting for it."""
        save_half(state, self.output / f"{name}.new.npz")
        (self.output / f"{name}.new.npz").rename(self.output / f"{name}.npz")
        self.tell(f"saved {name}")

    def wait(self, name: str) -> State:
        path = self.output / f"{name}.npz"
        while not path.exists():
            time.sleep(0.5)
        return load_half(path)

    def judge_held_out(self, name: str, state: State, shape: Shape = STOCK_SHAPE) -> None:
        shares = held_out_accuracy(self.kinds, self.texts, state, shape)
        (self.output / f"held-out-{name}.json").write_text(json.dumps(shares, indent=1))
        self.tell(f"held out {name} {shares}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("teachers", "small"))
    for name in ("model", "tokenizer", "data", "output"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--seeds", type=int, nargs="+", required=True)
    parser.add_argument("--seconds", type=float, required=True, help="a teacher's time; the whole of the small one's")
    parser.add_argument("--compile", action="store_true", help="compile the layers for training")
    parser.add_argument("--most", type=int, help="rows a kind, for a trial run")
    arguments = parser.parse_args()
    # Its plans are made anew for every shape, and shapes vary here.
    torch.backends.cuda.enable_cudnn_sdp(False)
    torch._dynamo.config.recompile_limit = 64
    work = Work(arguments)
    if arguments.what == "teachers":
        train_teachers(work, arguments.seeds, arguments.seconds)
    else:
        train_small(work, arguments.seeds[0], arguments.seconds)


def train_teachers(work: Work, seeds: list[int], seconds: float) -> None:
    start = started(work.embedder)
    for seed in seeds:
        rate, depth_decay = PLANS[seed]
        plan = Plan(
            seconds=seconds, rate=rate, seed=seed, hard=HARD, easy=EASY, lists=LISTS, depth_decay=depth_decay,
            unanswered=UNANSWERED, compiled=work.compiled,
        )  # fmt: skip
        work.save(f"teacher-{seed}", train_reranker(work.kinds, work.texts, start, plan))


def train_small(work: Work, seed: int, seconds: float) -> None:
    teachers = [work.wait(f"teacher-{one}") for one in PLANS]
    mean = averaged(teachers, [1 / len(teachers)] * len(teachers))
    first = seed == SMALL_SEEDS[0]
    if first:
        work.save("reranker-6", mean)
    work.kinds = [some_of(kind, TAUGHT_ROWS, TAUGHT_CANDIDATES) for kind in work.kinds]
    if first:
        # One start for all, or their neurons would not mean the same and could not be averaged.
        work.save("small-start", smaller(mean, KEPT, worth_of(work.kinds, work.texts, mean), SMALL.inner))
    start = work.wait("small-start")
    soft = teach(work.kinds, work.texts, [mean])
    work.tell("the teacher has scored the candidates")
    options: dict[str, Any] = {**SMALL_PLAN, "seed": seed}
    plan = Plan(seconds=max(1.0, seconds - (time.monotonic() - work.began)), compiled=work.compiled, **options)
    state = train_reranker(work.kinds, work.texts, start, plan, soft)
    work.save(f"small-{seed}", without_words(state))
    if first:
        states = [without_words(state), *(work.wait(f"small-{one}") for one in SMALL_SEEDS[1:])]
        small = averaged(states, [1 / len(states)] * len(states))
        work.save("reranker-4", small)
        work.judge_held_out("reranker-6", mean)
        work.judge_held_out("reranker-4", {WORDS: start[WORDS]} | small, SMALL)


def without_words(state: State) -> State:
    """The word table is the teacher's: only the rest has to travel."""
    return {name: value for name, value in state.items() if name != WORDS}


if __name__ == "__main__":
    main()
