r"""Measure language models in expand_llm, graph_llm, capture_llm, and judging in the lab.

python benchmarks/studies/language_model.py expand judge read curate graph \
    --llm openai:MODEL@http://127.0.0.1:8080/v1

Each part uses the product's own path to a real OpenAI-compatible server. The study waits for
answers without limit, and reports how many came within the product's time limit. `--without-format`
omits `response_format`, which some servers do not know.
"""

from __future__ import annotations

import argparse
import json
import math
import sqlite3
import statistics
import sys
import tempfile
import threading
import time
import zlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import msgspec
import psutil
from embedder import add_embedder, identity

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from support.conversations import Case, cases  # noqa: E402
from trivet import Trivet  # noqa: E402
from trivet.agents.capture import proposals as read  # noqa: E402
from trivet.agents.capture.proposals import (  # noqa: E402
    CaptureModel,
    curate,
)
from trivet.agents.capture.rules import statements  # noqa: E402
from trivet.errors import LegFailed  # noqa: E402
from trivet.lab.datasets.dataset import RELEVANT, Dataset, Query  # noqa: E402
from trivet.lab.datasets.judgements import Record  # noqa: E402
from trivet.lab.datasets.judges import judge_by_endpoint  # noqa: E402
from trivet.lab.datasets.plain_layout import house, load  # noqa: E402
from trivet.lab.datasets.pools import Entry, Pool  # noqa: E402
from trivet.lab.measure.bench import Bench, open_bench  # noqa: E402
from trivet.lab.measure.comparison import (  # noqa: E402
    bootstrap_means,
    paired,
)
from trivet.lab.measure.measures import measure  # noqa: E402
from trivet.lab.measure.run import environment  # noqa: E402
from trivet.memory.answer.expand import UNSURE_BELOW  # noqa: E402
from trivet.memory.worker import triples as reader  # noqa: E402
from trivet.memory.worker.triples import Triples  # noqa: E402
from trivet.models import chat as chats  # noqa: E402
from trivet.models.chat import (  # noqa: E402
    BadAnswer,
    Chat,
)
from trivet.models.embed import load as load_embedder  # noqa: E402
from trivet.models.http import Limits, post_json  # noqa: E402
from trivet.settings import Settings  # noqa: E402

LIVES = ROOT / "src" / "trivet" / "lab" / "lives" / "dev"
ENGLISH = ("s1-", "s2-", "s3-", "s4-", "s5-", "s6-", "s7-", "s8-")
# Strata whose answers depend on wording, not on time.
WORDED = ("plain", "paraphrase", "keyword", "typo", "abbreviation", "negation")
LONG_LIMITS = Limits(seconds=3_600.0, deadline=3_600.0, attempts=1, most_bytes=2**20)
TOKENS_A_DAY = 10**9
SHORT_WORDS = 60
LIMITS = {"expand": Settings().expand_time_limit_ms / 1000}
RESAMPLES = 2_000
STATEMENTS = """SELECT memory.content, source.name, statement.relation, target.name FROM statement
                JOIN memory ON memory.key = statement.memory JOIN concept source ON source.concept = statement.source
                JOIN concept target ON target.concept = statement.target ORDER BY statement"""

Figures = dict[str, Any]


class Request(msgspec.Struct, frozen=True):
    seconds: float
    allowed: float
    prompt_tokens: int
    answer_tokens: int
    text: str


class Watched:
    """Requests to the server, without time limit, and with their answers recorded."""

    def __init__(self, with_format: bool, answers: Path | None) -> None:
        self.requests: list[Request] = []
        self._with_format = with_format
        self._answers = answers

    def post(self, url: str, body: Mapping[str, Any], key: str, limits: Limits, *more: Any) -> Any:
        sent = (
            body
            if self._with_format
            else {name: part for name, part in body.items() if name != "response_format"}
        )
        began = time.perf_counter()
        answer = post_json(url, sent, key, LONG_LIMITS, *more)
        usage, choice = answer.get("usage", {}), answer["choices"][0]
        self.requests.append(
            Request(
                round(time.perf_counter() - began, 2),
                limits.deadline,
                usage.get("prompt_tokens", 0),
                usage.get("completion_tokens", 0),
                choice["message"]["content"],
            )
        )
        if self._answers:
            with self._answers.open("ab") as file:
                file.write(msgspec.json.encode(self.requests[-1]) + b"\n")
        return answer

    def summary(self, most: float) -> Figures:
        """`most` is the settings' limit, which the lab has disabled."""
        took = [one.seconds for one in self.requests]
        return {
            "requests": len(took),
            "median seconds": round(statistics.median(took), 1) if took else None,
            "within the product's limit": sum(
                one.seconds <= min(one.allowed, most) for one in self.requests
            ),
            "prompt tokens": sum(one.prompt_tokens for one in self.requests),
            "answer tokens": sum(one.answer_tokens for one in self.requests),
        }


def main() -> None:
    options = _options()
    results: Figures = (
        json.loads(options.output.read_text(encoding="utf-8")) if options.output.exists() else {}
    )
    for part in options.parts:
        watched = Watched(not options.without_format, options.answers)
        used = _processor_seconds(options.server)
        name = f"{part}, without response_format" if options.without_format else part
        with patch.object(chats, "post_json", watched.post):
            figures = PARTS[part](options)
        spent = _processor_seconds(options.server) - used
        results[name] = {
            **figures,
            "server": watched.summary(LIMITS.get(part, math.inf))
            | {"processor seconds": round(spent, 1)},
            "manifest": environment()
            | {"model": options.model, "embedder": identity(options.embedder)},
        }
        options.output.write_text(
            json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
        )
        print(name, json.dumps(results[name], indent=1, ensure_ascii=False), flush=True)


def expand(options: argparse.Namespace) -> Figures:
    """Ask unsure questions about the lives with and without rewrites."""
    before: dict[str, float] = {}
    after: dict[str, float] = {}
    asked: list[Figures] = []
    problems: Counter[str] = Counter()
    seen = 0
    for folder in sorted(LIVES.iterdir()):
        if not folder.name.startswith(ENGLISH) or len(before) >= options.most:
            continue
        lives = load(folder, allow_unanswerable=True)
        with open_bench(lives, options.cache, options.embedder, expand_llm=options.llm) as bench:
            for query in _answerable(bench.dataset):
                first = bench.ask(query, "default", 10)
                seen += 1
                if (first.best_relevance or 0.0) >= UNSURE_BELOW or len(before) >= options.most:
                    continue
                try:
                    again = bench.ask(query, "default", 10, expand=True)
                except (
                    LegFailed
                ) as failed:  # The product then answers without expansion; count it as such.
                    problems[str(failed)] += 1
                    again = first
                before[query.id], after[query.id] = (
                    _ndcg(bench, query, first),
                    _ndcg(bench, query, again),
                )
                asked.append({"question": query.text, "rewrites": list(again.pool.asked)})
    (one,) = paired({"nDCG@10": before}, {"nDCG@10": after}, resamples=RESAMPLES)
    return {
        "questions": seen,
        "unsure": len(before),
        "with a usable rewrite": sum(bool(one["rewrites"]) for one in asked),
        "problems": dict(problems),
        "nDCG@10 without": round(one.base, 4),
        "nDCG@10 with": round(one.candidate, 4),
        "difference": [round(value, 4) for value in (one.difference, one.low, one.high)],
        "wins, losses": [one.wins, one.losses],
        "asked": asked,
    }


def _answerable(dataset: Dataset) -> list[Query]:
    unanswerable = set(dataset.unanswerable)
    return [one for one in dataset.queries if one.stratum in WORDED and one.id not in unanswerable]


def _ndcg(bench: Bench, query: Query, decision: Any) -> float:
    run = {
        query.id: [
            (bench.name_of(hit.memory.id), -float(place)) for place, hit in enumerate(decision.hits)
        ]
    }
    alone = Dataset(
        name="one",
        documents=bench.dataset.documents,
        queries=(query,),
        judgements=tuple(row for row in bench.dataset.judgements if row.query == query.id),
    )
    return measure(alone, run, ("nDCG@10",)).per_query["nDCG@10"][query.id]


def judge(options: argparse.Namespace) -> Figures:
    """Judge the best memories of house-set questions, and as many others by hash."""
    dataset = house()
    pairs = _pairs(dataset, options.most)
    entries = tuple(Entry(query=query, document=document) for query, document, _ in pairs)
    pool = Pool(
        dataset="house",
        dataset_sha256=dataset.fingerprint,
        arms=1,
        depth=1,
        seed=0,
        entries=entries,
    )
    with tempfile.TemporaryDirectory() as folder:
        record = Record(Path(folder) / "judgements.jsonl", pool, options.model)
        left = judge_by_endpoint(Chat(options.llm), pool, dataset, record)
        graded = [
            (pairs[place][2], grade)
            for place, grade in sorted(record.grades.items())
            if grade is not None
        ]
    relevant = [(right >= RELEVANT, given >= RELEVANT) for right, given in graded]
    return {
        "pairs": len(pairs),
        "left open": dict(left),
        "grades given": dict(sorted(Counter(given for _, given in graded).items())),
        "same grade": _share([right == given for right, given in graded]),
        "relevant or not, the same": _share([right == given for right, given in relevant]),
        "of the relevant, called relevant": _share([given for right, given in relevant if right]),
        "of the others, called relevant": _share([given for right, given in relevant if not right]),
        "kappa of relevant or not": _kappa(relevant),
    }


def _pairs(dataset: Dataset, most: int) -> list[tuple[str, str, int]]:
    found: list[tuple[str, str, int]] = []
    ids = [document.id for document in dataset.documents if not document.sensitive]
    for query in sorted(dataset.queries, key=lambda one: zlib.crc32(one.id.encode())):
        grades = dataset.grades[query.id]
        right = sorted(
            (id for id, grade in grades.items() if grade >= RELEVANT), key=lambda id: -grades[id]
        )[:2]
        wrong = sorted(
            (id for id in ids if id not in right),
            key=lambda id: zlib.crc32(f"{query.id} {id}".encode()),
        )
        if len(right) == 2:
            four = [*right, *(id for id in wrong if grades.get(id, 0) == 0)][:4]
            four.sort(key=lambda id: zlib.crc32(f"{id} {query.id}".encode()))
            found += [(query.id, id, grades.get(id, 0)) for id in four]
    return found[:most]


def read_messages(options: argparse.Namespace) -> Figures:
    """Run the model on labeled messages no rule was tuned on, against the rules."""
    messages = _half_and_half(cases("held"), options.most)
    kept: list[bool] = []
    problems: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder, _store(Path(folder), options) as memory:
        model = CaptureModel(memory.engine)
        for case in messages:
            try:
                found, bad = read._items(
                    model.ask(read.READ_INSTRUCTION, {"messages": [case.text]}), [case.text]
                )
            except BadAnswer as error:
                found, bad = [], 0
                problems[str(error)] += 1
            problems["items without a true quote or of another shape"] += bad
            kept.append(bool(found))
    rules = [bool(statements(case.text)) for case in messages]
    worth = [bool(case.kind) for case in messages]
    return {
        "messages": len(messages),
        "model": _found(kept, worth),
        "rules": _found(rules, worth),
        "rules or model": _found(
            [one or other for one, other in zip(rules, kept, strict=True)], worth
        ),
        "problems": dict(problems),
    }


def _half_and_half(messages: Sequence[Case], most: int) -> list[Case]:
    ordered = sorted(messages, key=lambda case: zlib.crc32(case.text.encode()))
    worth, rest = [one for one in ordered if one.kind], [one for one in ordered if not one.kind]
    return [one for pair in zip(worth, rest, strict=False) for one in pair][:most]


def _found(kept: Sequence[bool], worth: Sequence[bool]) -> Figures:
    return {
        "of what is kept, worth keeping": _share(
            [right for right, one in zip(worth, kept, strict=True) if one]
        ),
        "of what is worth keeping, kept": _share(
            [one for right, one in zip(worth, kept, strict=True) if right]
        ),
    }


def curate_proposals(options: argparse.Namespace) -> Figures:
    """An update must replace the old statement, and a look-alike must be added."""
    lines = (LIVES / "changes.jsonl").read_text(encoding="utf-8").splitlines()
    pairs = sorted(
        (json.loads(line) for line in lines), key=lambda one: zlib.crc32(one["new"].encode())
    )
    updates, others = (
        [one for one in pairs if one["update"]],
        [one for one in pairs if not one["update"]],
    )
    chosen = [one for pair in zip(updates, others, strict=False) for one in pair][: options.most]
    outcomes: Counter[str] = Counter()
    problems: Counter[str] = Counter()
    for pair in chosen:
        with tempfile.TemporaryDirectory() as folder, _store(Path(folder), options) as memory:
            old = memory.remember(pair["old"], created_at=pair["old_at"]).id
            memory.drain()
            proposed = memory.inbox_propose(pair["new"])
            assert proposed.id is not None
            done = curate(memory)
            after = memory.inbox_show(proposed.id)
            kind = "update" if pair["update"] else "look-alike"
            replaces = after.action in ("update", "supersede") and after.memory == old
            outcomes[f"{kind}: {after.action}{' of the old one' if replaces else ''}"] += 1
            problems.update(one.partition(": ")[2] for one in done.problems)
    return {
        "proposals": len(chosen),
        "after curation": dict(outcomes),
        "problems": dict(problems),
    }


def graph(options: argparse.Namespace) -> Figures:
    """Read short memories of the lives for statements; count kept and skipped ones."""
    documents = [one for folder in sorted(LIVES.iterdir()) if folder.name.startswith(ENGLISH[1:4]) for one in
                 load(folder, allow_unanswerable=True).documents]  # fmt: skip
    short = [one for one in documents if len(one.text.split()) <= SHORT_WORDS and not one.sensitive]
    chosen = sorted(short, key=lambda one: zlib.crc32(one.text.encode()))[: options.most]
    with tempfile.TemporaryDirectory() as folder, _store(Path(folder), options) as memory:
        memory.remember_many(
            [{"content": one.text, "created_at": one.created_at} for one in chosen]
        )
        memory.drain()
        embedder = load_embedder(options.embedder)
        assert embedder is not None
        triples = Triples(
            memory.engine.store, Chat(options.llm, reader.LIMITS), TOKENS_A_DAY, embedder
        )
        done, rounds = 0, 0
        while rounds < 4:  # The product tries a memory four times.
            done += triples.drain(threading.Event())
            triples.wake()
            rounds += 1
        made = _statements(memory.settings.path)
    return {
        "memories": len(chosen),
        "read": done,
        "skipped": dict(triples.skipped),
        "last error": triples.last_error,
        "statements": made,
    }


def _statements(path: str) -> list[Figures]:
    connection = sqlite3.connect(path)
    rows = connection.execute(STATEMENTS).fetchall()
    connection.close()
    return [
        {"memory": text, "statement": " | ".join(parts), "right": None} for text, *parts in rows
    ]


def _store(folder: Path, options: argparse.Namespace) -> Trivet:
    return Trivet.open(
        folder / "memory.db",
        background=False,
        embedder=options.embedder,
        capture_llm=options.llm,
        capture_llm_tokens_a_day=TOKENS_A_DAY,
    )


def _share(flags: Sequence[bool]) -> Figures:
    if not flags:
        return {"share": None, "of": 0}
    import numpy as np

    drawn = bootstrap_means(np.array([[float(flag)] for flag in flags]), RESAMPLES, 0)[:, 0]
    low, high = np.quantile(drawn, [0.025, 0.975])
    return {
        "share": round(sum(flags) / len(flags), 3),
        "interval": [round(low, 3), round(high, 3)],
        "of": len(flags),
    }


def _kappa(pairs: Sequence[tuple[bool, bool]]) -> float | None:
    if not pairs:
        return None
    same = sum(one == other for one, other in pairs) / len(pairs)
    first, second = (sum(pair[place] for pair in pairs) / len(pairs) for place in (0, 1))
    chance = first * second + (1 - first) * (1 - second)
    return round((same - chance) / (1 - chance), 3) if chance < 1 else None


def _processor_seconds(server: int | None) -> float:
    """Return the server's processor time: clock time says little on a busy machine."""
    if server is None:
        return 0.0
    times = psutil.Process(server).cpu_times()
    return float(times.user + times.system)


PARTS: Mapping[str, Callable[[argparse.Namespace], Figures]] = {
    "expand": expand,
    "judge": judge,
    "read": read_messages,
    "curate": curate_proposals,
    "graph": graph,
}


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="+", choices=list(PARTS))
    parser.add_argument("--llm", required=True, help="the endpoint, as in the settings")
    parser.add_argument("--model", required=True, help="which model that is, for the manifest")
    parser.add_argument(
        "--most", type=int, default=50, help="questions, pairs, messages or memories of a part"
    )
    parser.add_argument(
        "--server", type=int, help="the process of the server, to count its processor's seconds"
    )
    parser.add_argument("--without-format", action="store_true", help="ask without response_format")
    parser.add_argument("--answers", type=Path, help="a file to append every answer to")
    parser.add_argument(
        "--cache", type=Path, help="where the stores are kept; the lab's cache if none"
    )
    parser.add_argument(
        "--output", type=Path, default=ROOT / "docs" / "results" / "language_model.json"
    )
    add_embedder(parser)
    return parser.parse_args()


if __name__ == "__main__":
    main()
