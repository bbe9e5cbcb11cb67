"""Tune an embedder from any base, or teach a small one what tuned ones know. Every stage ends by the clock.

    python training/embedders.py tune --name e5 --base e5.npz --prefixed --tokenizer T --data KINDS --eval EVAL \
        --output OUT --seconds 180 --temperature .02 --compile
    python training/embedders.py vectors --base OUT/granite.npz --tokenizer granite.tokenizer.json --data KINDS \
        --output OUT
    python training/embedders.py both ...   # tune and student one after the other, on what is read and mined once
    python training/embedders.py student --base OUT/e5.npz --prefixed --other OUT/vectors-granite.npy --tokenizer T \
        --data KINDS --eval EVAL --output OUT --seconds 400 --compile

`tune`: two rounds, a short one with the negatives that were given, and one with those that its result has mined. What
is kept is the average of the tuned weights and the base's. `student`: six layers, see distil.py. `vectors`: of code,
for a student with another tokenizer. Weights are written as they are made, in half precision, and packed for the way
back.
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
from distil import Teacher, fewer_layers, teacher_vectors, train_student
from encoder import WIDTH, Encoder, State, averaged, encoder_alone, load_half, ready, save_half, shape_of
from judge_dense import Judge, keep, line
from train import Plan, train_embedder

# The share of the tuned weights in what is kept.
ALPHA = 0.7
ALPHAS = (0.5, 0.7, 0.85, 1.0)
ROUNDS = (0.25, 0.75)
MARGIN = 0.02
HARD = 3
CODE = ("code", "code_search", "code_question")
RATE_OF_TUNING, RATE_OF_STUDENT = 4e-5, 3e-4
# What judging and keeping the student takes at the end.
JUDGING_SECONDS = 15.0


class Work:
    """What the stages share, and the clock."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.began = time.monotonic()
        self.arguments = arguments
        self.output: Path = arguments.output
        self.output.mkdir(parents=True, exist_ok=True)
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.kinds, self.texts = read_kinds(arguments.data, arguments.tokenizer, self.device, arguments.most)
        self.texts.prefixed = arguments.prefixed
        rows = sum(len(kind.queries) for kind in self.kinds)
        self.tell(f"{len(self.kinds)} kinds, {rows} rows, {self.texts.lengths.sum()} tokens")
        self.judge = Judge(arguments.eval, arguments.tokenizer, self.device, arguments.most) if arguments.eval else None
        if self.judge:
            self.judge.texts.prefixed = arguments.prefixed
            self.tell(f"{self.judge.texts.lengths.sum()} tokens to judge on")

    def tell(self, text: str) -> None:
        print(f"[{time.monotonic() - self.began:6.1f}] {text}", flush=True)

    def base(self) -> State:
        return encoder_alone(load_half(self.arguments.base))

    def encoder(self, state: State) -> Encoder:
        return ready(Encoder(shape_of(state)), state, self.device)

    def mine(self, state: State, margin: float) -> torch.Tensor:
        """Negatives and answers as this embedder finds them; returns its vectors of all texts."""
        vectors = teacher_vectors(state, self.texts)
        self.tell(f"vectors of {len(vectors)} texts")
        choose_answers(self.kinds, self.texts, self.encoder(state))
        mine(self.kinds, self.texts, vectors, margin)
        self.tell("mined")
        return vectors

    def plan(self, seconds: float, **rest: Any) -> Plan:
        own = self.arguments
        return Plan(
            seconds=seconds, seed=own.seed, hard=HARD, groups=own.groups, compiled=own.compile,
            temperature=own.temperature, **rest,
        )  # fmt: skip

    def save(self, name: str, state: State) -> None:
        """Under its final name only when it is whole, since another process may be waiting for it."""
        save_half(state, self.output / f"{name}.new.npz")
        (self.output / f"{name}.new.npz").rename(self.output / f"{name}.npz")
        self.tell(f"saved {name}")

    def figures(self, name: str, state: State) -> None:
        """Written at once, one line of JSON a model, so that a stopped run leaves what it has found."""
        if self.judge is None:
            return
        found = self.judge.figures(self.encoder(state))
        with (self.output / "figures.jsonl").open("a") as file:
            file.write(json.dumps({"model": name, **found}) + "\n")
        self.tell(f"{name}: {line(found)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("tune", "vectors", "student", "both"))
    for name in ("base", "tokenizer", "data", "output"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--eval", type=Path)
    parser.add_argument("--name", help="of what is written; the base's if not given")
    parser.add_argument("--student", default="student", help="name of the student that is written")
    parser.add_argument("--other", type=Path, help="vectors of a second teacher, for code")
    parser.add_argument("--other-seconds", type=float, default=0.0, help="how long to wait for them")
    parser.add_argument("--seconds", type=float, default=0.0, help="of tuning; reading and mining come on top")
    parser.add_argument("--student-seconds", type=float, default=0.0)
    parser.add_argument("--until", type=float, help="wall-clock limit: a student gets what is left of it")
    parser.add_argument(
        "--rounded-from", type=float, default=1.0, help="share of a student's time before int8 rounding"
    )
    parser.add_argument("--temperature", type=float, default=0.02)
    parser.add_argument("--rate", type=float)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--groups", type=int, default=4, help="blocks of 128 questions a step")
    parser.add_argument("--prefixed", action="store_true", help="query: and passage: stand before the texts")
    parser.add_argument("--plain-student", action="store_true", help="the student does without its teacher's prefixes")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--keep", action="store_true", help="also keep rankings and vectors of the last model")
    parser.add_argument("--most", type=int, help="rows a kind, for a trial run")
    arguments = parser.parse_args()
    prepare_device()
    work = Work(arguments)
    if arguments.what in ("tune", "both"):
        tune(work)
    if arguments.what in ("student", "both"):
        teach_student(work)
    if arguments.what == "vectors":
        write_vectors(work)


def prepare_device() -> None:
    # Its plans are made anew for every shape, and shapes vary here.
    torch.backends.cuda.enable_cudnn_sdp(False)
    # Several models are compiled, each for training with several kinds of batches.
    torch._dynamo.config.recompile_limit = 64
    torch.set_float32_matmul_precision("high")
    torch.manual_seed(0)


def tune(work: Work) -> None:
    base = work.base()
    name = work.arguments.name or work.arguments.base.stem
    work.figures(f"{name} untuned", base)
    state = base
    choose_answers(work.kinds, work.texts, work.encoder(base))
    mine(work.kinds, work.texts, None, MARGIN)
    for number, share in enumerate(ROUNDS):
        if number:
            work.mine(averaged([state, base], [ALPHA, 1 - ALPHA]), MARGIN)
        plan = work.plan(work.arguments.seconds * share, rate=work.arguments.rate or RATE_OF_TUNING)
        state = train_embedder(work.kinds, work.texts, state, plan)
        work.figures(f"{name} round {number + 1}", averaged([state, base], [ALPHA, 1 - ALPHA]))
    for alpha in ALPHAS:
        if alpha != ALPHA:
            work.figures(f"{name} {alpha}", averaged([state, base], [alpha, 1 - alpha]))
    kept = averaged([state, base], [ALPHA, 1 - ALPHA])
    work.save(name, kept)
    np.savez(work.output / f"{name}.packed.npz", **packed({one: value.numpy() for one, value in kept.items()}))
    if work.arguments.keep and work.judge:
        keep(work.judge, work.encoder(kept), work.output, name)


def write_vectors(work: Work) -> None:
    name = work.arguments.name or work.arguments.base.stem
    path = work.output / f"vectors-{name}.new.npy"
    vectors = np.zeros((len(work.texts.lengths), WIDTH), dtype=np.float16)
    # Only what it teaches: the rest would take its time.
    which = np.concatenate([np.concatenate([one.passages, one.queries]) for one in work.kinds if one.name in CODE])
    vectors[which] = teacher_vectors(work.base(), work.texts, which).cpu().numpy()
    np.save(path, vectors)
    path.rename(work.output / f"vectors-{name}.npy")
    work.tell(f"vectors of {len(which)} texts")


def teach_student(work: Work) -> None:
    own = work.arguments
    path = own.base if own.what == "student" else work.output / f"{own.name or own.base.stem}.npz"
    state = encoder_alone(load_half(path))
    name = own.student
    teacher = Teacher(work.mine(state, MARGIN), own.temperature)
    save_mined(work.output / "mined.npz", work.kinds)
    others = {}
    if own.other and waited(own.other, own.other_seconds):
        other = Teacher(torch.from_numpy(np.load(own.other)).to(work.device), own.temperature)
        others = dict.fromkeys(CODE, other)
    if own.plain_student:
        work.texts.prefixed = False
        if work.judge:
            work.judge.texts.prefixed = False
    seconds = own.student_seconds
    if own.until:
        seconds = min(seconds or own.until, own.until - (time.monotonic() - work.began) - JUDGING_SECONDS)
    plan = work.plan(max(seconds, 1.0), rate=RATE_OF_STUDENT, rounded_from=own.rounded_from)
    student = train_student(work.kinds, work.texts, fewer_layers(state), plan, teacher, others)
    work.save(name, student)
    work.figures(name, student)
    if own.keep and work.judge:
        keep(work.judge, work.encoder(student), work.output, name)


def waited(path: Path, seconds: float) -> bool:
    """Whether the file is there by then; another process may be making it."""
    until = time.monotonic() + seconds
    while not path.exists() and time.monotonic() < until:
        time.sleep(0.5)
    return path.exists()


if __name__ == "__main__":
    main()
