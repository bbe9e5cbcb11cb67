r"""Gather lists that teach a reranker whether a memory answers: a question, memories, and labels.

python training/answer_lists.py --lives training/lives --pairs FOLDERS --written FOLDER \
    --train SETS --output answers.json.xz

Sources: small stores with questions; memories with questions they answer or almost answer; long
memories with a nearby question they do not answer; and question and passage sets, which keep the
reranker's old skills. Some lists hold no answer.
"""

from __future__ import annotations

import argparse
import json
import lzma
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from written_memories import held_out, passages, read_written

HELPS = 2
LONGEST = 12
OTHERS = 7
GENERAL = {
    "squad_v1.1": 5_000, "quac": 3_500, "policyqa": 1_500, "medquad": 1_500, "boolq": 2_000, "hotpotqa_dev": 2_000,
    "selqa": 1_500,
}  # fmt: skip
# Share of question and passage lists that lose their answer.
UNANSWERED = 0.15
# Share of questions that are also asked without the answering memory. Most commands and keywords
# are answered here, and their form must not signal an answer.
FORGOTTEN = 0.5

List = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--lives", type=Path, required=True)
    parser.add_argument("--pairs", type=Path, nargs="+", required=True)
    parser.add_argument(
        "--written", type=Path, required=True, help="folder of long-*.jsonl and short-*.jsonl"
    )
    parser.add_argument("--train", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args()
    chance = random.Random(3)
    lists = [*life_lists(options.lives, chance)]
    lists += [one for folder in options.pairs for one in pair_lists(folder, chance)]
    lists += written_lists(options.written, chance)
    lists += general_lists(options.train, chance)
    numbers: dict[str, int] = {}
    for one in lists:
        one["texts"] = [numbers.setdefault(text, len(numbers)) for text in one["texts"]]
    packed = json.dumps({"texts": list(numbers), "lists": lists}, ensure_ascii=False)
    options.output.write_bytes(lzma.compress(packed.encode(), preset=6))
    print(len(lists), "lists,", options.output.stat().st_size, "bytes")


def life_lists(folder: Path, chance: random.Random) -> Iterator[List]:
    """Return for each question as many memories of its store as fit, judged ones first."""
    for store in sorted(path for path in folder.iterdir() if (path / "queries.jsonl").exists()):
        memories = {one["id"]: one["text"] for one in _lines(store / "corpus.jsonl")}
        grades: dict[str, dict[str, int]] = {}
        for row in (store / "qrels.tsv").read_text(encoding="utf-8").splitlines():
            query, memory, grade = row.split("\t")
            grades.setdefault(query, {})[memory] = int(grade)
        for query in _lines(store / "queries.jsonl"):
            judged = grades.get(query["id"], {})
            rest = [id for id in memories if id not in judged]
            chosen = [*judged, *chance.sample(rest, max(0, min(len(rest), LONGEST - len(judged))))]
            labels = [int(judged.get(id, 0) >= HELPS) for id in chosen]
            yield {
                "group": store.name,
                "query": query["text"],
                "texts": [memories[id] for id in chosen],
                "labels": labels,
            }


def pair_lists(folder: Path, chance: random.Random) -> Iterator[List]:
    """Put a memory among others, with questions it answers and questions it almost answers.

    The others are its siblings, on the same matter but not answering, and some of its file.
    """
    for file in sorted(folder.glob("*.jsonl")):
        lines = list(_lines(file))
        for number, line in enumerate(lines):
            siblings, rest = (
                line.get("siblings", []),
                [one["memory"] for one in lines if one is not line],
            )
            group = f"{file.stem}{number % 2}"
            for label, questions in ((1, line["answered"]), (0, line["near"])):
                for question in questions:
                    texts = [
                        line["memory"],
                        *siblings,
                        *chance.sample(rest, OTHERS - len(siblings)),
                    ]
                    labels = [label] + [0] * OTHERS
                    yield {"group": group, "query": question, "texts": texts, "labels": labels}
                    if label and siblings and chance.random() < FORGOTTEN:
                        yield {
                            "group": group,
                            "query": question,
                            "texts": texts[1:],
                            "labels": labels[1:],
                        }


def written_lists(folder: Path, chance: random.Random) -> Iterator[List]:
    """Treat short memories like `pair_lists`; of a long one, only its near miss is known."""
    from trivet.models.embed.onnx import bundled

    embedder = bundled()
    written = [one for one in read_written(folder) if not held_out(one.text)]
    short = [one.text for one in written if not one.long]
    for number, one in enumerate(written):
        own = passages(one.text, embedder) if one.long else [one.text]
        asked = (
            []
            if one.long
            else [question for questions in one.asked.values() for question in questions]
        )
        for label, questions in ((1, asked), (0, one.near)):
            for question in questions:
                others = chance.sample([text for text in short if text != one.text], OTHERS)
                texts = [*chance.sample(own, min(len(own), LONGEST - 4)), *others][: OTHERS + 1]
                labels = [label if text in own else 0 for text in texts]
                yield {
                    "group": f"written{number % 8}",
                    "query": question,
                    "texts": texts,
                    "labels": labels,
                }


def general_lists(folder: Path, chance: random.Random) -> Iterator[List]:
    for name, most in GENERAL.items():
        with lzma.open(folder / f"{name}.json.xz") as file:
            found = json.load(file)
        texts, rows = found["texts"], found["rows"]
        for query, positive, negative in chance.sample(rows, min(most, len(rows))):
            negatives = negative[:OTHERS] + [
                chance.randrange(len(texts)) for _ in range(OTHERS - len(negative[:OTHERS]))
            ]
            negatives = [place for place in negatives if place not in positive]
            kept = [] if chance.random() < UNANSWERED else [chance.choice(positive)]
            chosen = [*kept, *negatives][: OTHERS + 1]
            yield {
                "group": "general",
                "query": query[:600],
                "texts": [texts[place][:700] for place in chosen],
                "labels": [int(place in positive) for place in chosen],
            }


def _lines(path: Path) -> Iterator[Any]:
    return (
        json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()
    )


if __name__ == "__main__":
    main()
