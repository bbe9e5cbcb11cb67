r"""Tune an embedder from any base, or distill tuned ones into a small one. Stages end by the clock.

python training/embedders.py tune --name e5 --base e5.npz --tokenizer T --data KINDS \
    --eval EVAL --output OUT --seconds 170 --compile
python training/embedders.py vectors --name granite --base OUT/granite.npz \
    --tokenizer granite.tokenizer.json --data KINDS --eval EVAL --output OUT
python training/embedders.py student --name student --base OUT/e5.npz \
    --others granite minilm --tokenizer T --data KINDS --eval EVAL --output OUT \
    --seconds 330 --compile

`tune`: a short round with given negatives and one with mined ones; the result is averaged with the
base. `vectors`: embed all texts with an additional teacher. `student`: eight layers, see distil.py;
held-out rows choose the teachers' shares. Weights are written in half precision and packed for
transfer.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bases import packed
from data import choose_answers, mine, read_kinds, save_mined
from distil import fewer, held_out_reciprocal, join, train_student, vectors_of
from encoder import Encoder, State, averaged, encoder_alone, load_half, ready, save_half, shape_of
from judge_dense import Judge, keep, line
from train import Plan, train_embedder

# Share of the tuned weights in the average.
ALPHA = 0.7
ALPHAS = (0.5, 0.7, 0.85, 1.0)
# Shares of a student in averages with its initial weights.
STUDENT_SHARES = (0.8, 1.0)
ROUNDS = (0.25, 0.75)
MARGIN = 0.02
HARD = 3
# Layers and neurons the student keeps of twelve: eight layers with three quarters of their neurons
# cost 1.15 times as much as six whole layers.
KEPT, INNER_KEPT = (0, 2, 3, 5, 6, 8, 9, 11), 1152
# Shares of the first teacher to try, with 1 for each other; it is also tried alone.
SHARES = (0.5, 1.0, 2.0, 4.0)
RATE_OF_TUNING, RATE_OF_STUDENT = 4e-5, 3e-4


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
        self.texts.prefixed = arguments.prefixed
        rows = sum(len(kind.queries) for kind in self.kinds)
        self.tell(f"{len(self.kinds)} kinds, {rows} rows, {self.texts.lengths.sum()} tokens")
        self.judge = Judge(arguments.eval, arguments.tokenizer, self.device, arguments.most)
        self.judge.texts.prefixed = arguments.prefixed
        self.tell(f"{self.judge.texts.lengths.sum()} tokens to judge on")

    def tell(self, text: str) -> None:
        print(f"[{time.monotonic() - self.began:6.1f}] {text}", flush=True)

    def base(self) -> State:
        return encoder_alone(load_half(self.arguments.base))

    def encoder(self, state: State) -> Encoder:
        return ready(Encoder(shape_of(state)), state, self.device)

    def mine(self, state: State) -> None:
        self.mine_by(vectors_of(state, self.texts), state)

    def mine_by(self, vectors: torch.Tensor, state: State) -> None:
        """Mine negatives with these vectors, and answers with this embedder."""
        choose_answers(self.kinds, self.texts, self.encoder(state))
        mine(self.kinds, self.texts, vectors, MARGIN)
        self.tell("mined")

    def plan(self, seconds: float, **rest: Any) -> Plan:
        own = self.arguments
        return Plan(
            seconds=seconds, seed=own.seed, hard=HARD, groups=own.groups, compiled=own.compile,
            temperature=own.temperature, **rest,
        )  # fmt: skip

    def save(self, name: str, state: State) -> None:
        """Write atomically: another process may be waiting for the file."""
        save_half(state, self.output / f"{name}.new.npz")
        (self.output / f"{name}.new.npz").rename(self.output / f"{name}.npz")
        self.tell(f"saved {name}")

    def vectors(self, kind: str, name: str) -> torch.Tensor:
        return torch.from_numpy(np.load(self.output / f"{kind}-{name}.npy")).to(self.device)

    def judged(self, state: State) -> torch.Tensor:
        return self.judge.vectors(self.encoder(state))

    def figures(self, name: str, vectors: torch.Tensor) -> None:
        """Append one line of JSON per model at once, so a stopped run keeps its results."""
        found = self.judge.figures(vectors)
        with (self.output / "figures.jsonl").open("a") as file:
            file.write(json.dumps({"model": name, **found}) + "\n")
        self.tell(f"{name}: {line(found)}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("tune", "vectors", "student"))
    for name in ("base", "tokenizer", "data", "eval", "output"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--name", help="of what is written; the base's if not given")
    parser.add_argument(
        "--others",
        nargs="*",
        default=[],
        help="additional teachers whose vectors are written",
    )
    parser.add_argument(
        "--start",
        type=Path,
        help="weights that a student begins with, in place of the base's layers",
    )
    parser.add_argument(
        "--wait", type=float, default=0.0, help="how many seconds to wait for their vectors"
    )
    parser.add_argument(
        "--seconds", type=float, default=0.0, help="of tuning; reading and mining come on top"
    )
    parser.add_argument(
        "--rounded-from",
        type=float,
        default=1.0,
        help="share of a student's time before int8 rounding",
    )
    parser.add_argument(
        "--kept", type=int, nargs="*", default=KEPT, help="layers of the base that a student keeps"
    )
    parser.add_argument(
        "--inner", type=int, default=INNER_KEPT, help="neurons that it keeps of each"
    )
    parser.add_argument("--temperature", type=float, default=0.02)
    parser.add_argument("--rate", type=float)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--groups", type=int, default=4, help="blocks of 128 questions a step")
    parser.add_argument(
        "--prefixed", action="store_true", help="prefix texts with query: and passage:"
    )
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--keep", action="store_true", help="also keep rankings and vectors")
    parser.add_argument("--most", type=int, help="rows a kind, for a trial run")
    arguments = parser.parse_args()
    prepare_device()
    work = Work(arguments)
    {"tune": tune, "vectors": write_vectors, "student": teach_student}[arguments.what](work)


def prepare_device() -> None:
    # Its plans are rebuilt for every shape, and shapes vary here.
    torch.backends.cuda.enable_cudnn_sdp(False)
    # Several models are compiled, each for several kinds of batches.
    torch._dynamo.config.recompile_limit = 64
    torch.set_float32_matmul_precision("high")
    torch.manual_seed(0)


def tune(work: Work) -> None:
    base = work.base()
    name = work.arguments.name or work.arguments.base.stem
    work.figures(f"{name} untuned", work.judged(base))
    state = base
    choose_answers(work.kinds, work.texts, work.encoder(base))
    mine(work.kinds, work.texts, None, MARGIN)
    for number, share in enumerate(ROUNDS):
        if number:
            work.mine(averaged([state, base], [ALPHA, 1 - ALPHA]))
        plan = work.plan(work.arguments.seconds * share, rate=work.arguments.rate or RATE_OF_TUNING)
        state = train_embedder(work.kinds, work.texts, state, plan)
    for alpha in ALPHAS:
        work.figures(f"{name} {alpha}", work.judged(averaged([state, base], [alpha, 1 - alpha])))
    kept = averaged([state, base], [ALPHA, 1 - ALPHA])
    work.save(name, kept)
    np.savez(
        work.output / f"{name}.packed.npz",
        **packed({one: value.numpy() for one, value in kept.items()}),
    )
    if work.arguments.keep:
        keep(work.judge, work.judged(kept), work.output, name)


def write_vectors(work: Work) -> None:
    name, state = work.arguments.name or work.arguments.base.stem, work.base()
    np.save(work.output / f"judged-{name}.npy", work.judged(state).half().cpu().numpy())
    path = work.output / f"vectors-{name}.new.npy"
    np.save(path, vectors_of(state, work.texts).cpu().numpy())
    path.rename(work.output / f"vectors-{name}.npy")
    work.tell(f"vectors of {len(work.texts.lengths)} texts")


def teach_student(work: Work) -> None:
    own, state = work.arguments, work.base()
    start = encoder_alone(load_half(own.start)) if own.start else None
    teacher, judged = taught_by(work, state, start)
    work.figures("teachers", judged.float())
    work.mine_by(teacher, state)
    save_mined(work.output / "mined.npz", work.kinds)
    plan = work.plan(own.seconds, rate=own.rate or RATE_OF_STUDENT, rounded_from=own.rounded_from)
    start = start or fewer(state, work.texts, own.kept, own.inner)
    student = train_student(work.kinds, work.texts, start, plan, teacher)
    name = own.name or "student"
    work.save(name, student)
    for share in STUDENT_SHARES:
        vectors = work.judged(averaged([student, start], [share, 1 - share]))
        work.figures(f"{name} {share}", vectors)
    if own.keep:
        keep(work.judge, vectors, work.output, name)


def taught_by(work: Work, state: State, start: State | None) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the teachers' joined vectors with the best shares, rotated to the student's start."""
    names = [
        name
        for name in work.arguments.others
        if waited(work.output / f"vectors-{name}.npy", work.arguments.wait)
    ]
    trained = [vectors_of(state, work.texts), *(work.vectors("vectors", name) for name in names)]
    judged = [work.judged(state).half(), *(work.vectors("judged", name) for name in names)]
    towards = vectors_of(start, work.texts) if start else trained[0]
    best, found = held_out_reciprocal(work.kinds, trained[0]), (trained[0], judged[0])
    work.tell(f"held out: the first teacher alone {best:.4f}")
    for at, name in enumerate(names, 1):
        work.tell(f"held out: {name} alone {held_out_reciprocal(work.kinds, trained[at]):.4f}")
    for share in SHARES if names else ():
        together = join(trained, [share, *[1.0] * len(names)], towards)
        vectors = together(trained)
        reciprocal = held_out_reciprocal(work.kinds, vectors)
        work.tell(
            f"held out: {share:.0f} of the first to 1 of {', '.join(names)}: {reciprocal:.4f}"
        )
        if reciprocal > best:
            best, found = reciprocal, (vectors, together(judged))
    return found


def waited(path: Path, seconds: float) -> bool:
    """Return whether the file appears in time; another process may be writing it."""
    until = time.monotonic() + seconds
    while not path.exists() and time.monotonic() < until:
        time.sleep(0.5)
    return path.exists()


if __name__ == "__main__":
    main()
