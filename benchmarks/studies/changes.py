r"""Measure changed facts: what a save notices, and how an answer orders new and old.

python benchmarks/studies/changes.py changes.jsonl --others store/corpus.jsonl ... \
    [--output result.json]

A line of changes.jsonl is a pair: {"old", "old_at", "new", "new_at", "update", "kind", "question",
"past_question"}. Each pair is stored among other memories, so that false alarms count; then its
question is asked.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from embedder import add_embedder, identity

from trivet import Trivet
from trivet.lab.measure.run import environment

OTHERS = 60
SHOWN = 10
DELIVERED = 5


class Outcome(msgspec.Struct, frozen=True):
    """One pair: whether the save named the old memory, how many others it named, and the ranks."""

    kind: str
    update: bool
    named: bool
    false_alarms: int
    new_rank: int | None
    old_rank: int | None
    said_older: bool
    past_new_rank: int | None = None
    past_old_rank: int | None = None
    asked_past: bool = False


def outcome_of(memory: Trivet, pair: Mapping[str, Any]) -> Outcome:
    old = memory.remember(pair["old"], created_at=pair["old_at"]).id
    memory.drain()
    new = memory.remember(pair["new"], created_at=pair["new_at"])
    memory.drain()
    named = [one.id for one in new.may_update]
    answer = memory.recall(pair["question"], limit=SHOWN, relevance_at_least=0.0)
    ranks = {hit.id: hit.rank for hit in answer.hits}
    marked = {hit.id: hit.why.older_than for hit in answer.hits}
    past: dict[str, int] = {}
    if pair.get("past_question"):
        answer = memory.recall(pair["past_question"], limit=SHOWN, relevance_at_least=0.0)
        past = {hit.id: hit.rank for hit in answer.hits}
    memory.purge(old)
    memory.purge(new.id)
    return Outcome(
        pair["kind"], pair["update"], old in named, len(set(named) - {old}),
        ranks.get(new.id), ranks.get(old), marked.get(old) == new.id,
        past.get(new.id), past.get(old), bool(pair.get("past_question")),
    )  # fmt: skip


def share(flags: Sequence[bool]) -> str:
    if not flags:
        return "-"
    chance = random.Random(1)
    draws = sorted(sum(chance.choices(flags, k=len(flags))) / len(flags) for _ in range(2_000))
    return f"{sum(flags) / len(flags):.3f} [{draws[50]:.3f}, {draws[1949]:.3f}] of {len(flags)}"


def before(first: int | None, second: int | None) -> bool:
    return first is not None and (second is None or first < second)


def summary(outcomes: Sequence[Outcome]) -> dict[str, str]:
    updates = [one for one in outcomes if one.update]
    others = [one for one in outcomes if not one.update]
    told = [one.update for one in outcomes if one.named] + [False] * sum(
        one.false_alarms for one in outcomes
    )
    past = [one for one in updates if one.asked_past]
    return {
        "updates noticed on save": share([one.named for one in updates]),
        "precision of what is named": share(told),
        "of these, neighbours named": str(sum(one.false_alarms for one in outcomes)),
        "new before old": share([before(one.new_rank, one.old_rank) for one in updates]),
        "old says that it is older": share([one.said_older for one in updates]),
        "old before new when the past is asked for": share(
            [before(one.past_old_rank, one.past_new_rank) for one in past]
        ),
        "look-alikes both in the first five": share(
            [
                max(one.new_rank or SHOWN + 1, one.old_rank or SHOWN + 1) <= DELIVERED
                for one in others
            ]
        ),
        "look-alikes said to be older": share([one.said_older for one in others]),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pairs", type=Path)
    parser.add_argument(
        "--others", nargs="+", type=Path, required=True, help="corpus.jsonl to take neighbours from"
    )
    parser.add_argument("--output", type=Path)
    parser.add_argument("--misses", action="store_true", help="show each pair that went wrong")
    add_embedder(parser)
    options = parser.parse_args()
    pairs = [json.loads(line) for line in options.pairs.read_text(encoding="utf-8").splitlines()]
    lines = [
        line
        for path in sorted(options.others)
        for line in path.read_text(encoding="utf-8").splitlines()
    ]
    others = random.Random(1).sample([json.loads(line) for line in lines], min(OTHERS, len(lines)))
    with tempfile.TemporaryDirectory() as folder, _opened(folder, options.embedder) as memory:
        memory.remember_many(
            {"content": one["text"], "created_at": one.get("created_at")} for one in others
        )
        memory.drain()
        outcomes = [outcome_of(memory, pair) for pair in pairs]
    found = summary(outcomes)
    for name, value in found.items():
        print(f"{name:45}{value}")
    if options.misses:
        for pair, one in zip(pairs, outcomes, strict=True):
            if one.update and not before(one.new_rank, one.old_rank):
                print(
                    "ORDER",
                    one.new_rank,
                    one.old_rank,
                    pair["old"],
                    "|",
                    pair["new"],
                    "|",
                    pair["question"],
                )
            if one.named != one.update:
                print("NAMED" if one.named else "MISSED", pair["old"], "|", pair["new"])
    if options.output:
        about = environment() | {"embedder": identity(options.embedder)}
        options.output.write_text(
            json.dumps(found | {"manifest": about}, indent=1) + "\n", encoding="utf-8"
        )


def _opened(folder: str, embedder: str) -> Trivet:
    return Trivet.open(f"{folder}/store.db", background=False, embedder=embedder)


if __name__ == "__main__":
    main()
