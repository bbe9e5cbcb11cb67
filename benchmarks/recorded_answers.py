"""Record some 600 answers over varied stores, to show that a faster version answers alike.

python benchmarks/recorded_answers.py record /tmp/recorded      # version before
python benchmarks/recorded_answers.py compare /tmp/recorded     # version after, on copies

Stores hold short notes, long sessions, several languages, titles, keywords, sensitive, superseded
and equal memories, links, and memories without vectors. Queries are plain or use phrases,
identifiers, times, filters, other recipes, budgets and limits. `--anew` stores everything again
with the version after. `--within 1e-5` allows smaller differences, for changes of rounding.
Durations and storing times are ignored.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

import msgspec

from texts import memories
from trivet import Trivet

ROOT = Path(__file__).parents[1]
LEFT_OUT = {"took_ms", "stages_ms", "updated_at"}
SHOWN = 15
LIMITS: dict[str, Any] = dict.fromkeys(
    ("leg_time_limit_ms", "rerank_time_limit_ms", "expand_time_limit_ms", "busy_time_limit_ms"),
    600_000,
)

Given = dict[str, Any]
Asked = tuple[str, Given]


def main() -> int:
    given = _options()
    if given.act == "record":
        given.folder.mkdir(parents=True, exist_ok=True)
        for name in STORES:
            store = given.folder / f"{name}.db"
            _make(name, store)
            with tempfile.TemporaryDirectory() as place:
                answers = list(_answers(name, _copied(store, Path(place))))
            (given.folder / f"{name}.jsonl").write_text("\n".join(answers) + "\n", encoding="utf-8")
            print(f"{name}: {len(answers)} answers", flush=True)
        return 0
    return (
        1 if sum(_compared(name, given.folder, given.anew, given.within) for name in STORES) else 0
    )


def _compared(name: str, folder: Path, anew: bool, within: float) -> int:
    before = (folder / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    with tempfile.TemporaryDirectory() as place:
        store = Path(place) / f"{name}.db"
        if anew:
            _make(name, store)
        else:
            _copied(folder / store.name, Path(place))
        after = list(_answers(name, store))
    found = {
        str(asked): lines
        for one, other, asked in zip_longest(before, after, _questions(name))
        if (
            lines := list(
                _differences(json.loads(one or "null"), json.loads(other or "null"), within)
            )
        )
    }
    print(f"{name}: {len(after)} answers, {len(found)} of them differ", flush=True)
    for asked, lines in list(found.items())[:SHOWN]:
        print("\n    ".join((f"  {asked}: {len(lines)} differences", *lines[:3])))
    return len(found)


def _answers(name: str, store: Path) -> Iterator[str]:
    with Trivet.open(store, background=False, secrets_keyring=False, **LIMITS) as trivet:
        for query, options in _questions(name):
            answer = _canonical(msgspec.to_builtins(trivet.recall(query, **options)))
            yield json.dumps(answer, sort_keys=True, ensure_ascii=False)


def _make(name: str, path: Path) -> None:
    """Make a store with fixed ids and times, so another version stores the same."""
    with Trivet.open(path, background=False, secrets_keyring=False, **LIMITS) as trivet:
        given = list(STORES[name]())
        ids = [
            str(uuid.uuid5(uuid.NAMESPACE_OID, f"{name} {number}")) for number in range(len(given))
        ]
        late = max(0, len(given) - 12)  # The last ones stay without vectors.
        for start, stop in ((0, late), (late, len(given))):
            batch = [
                {
                    "id": id,
                    "created_at": f"2026-{1 + number % 9:02}-{1 + number % 27:02}T10:00:00Z",
                    **one,
                }
                for number, (id, one) in enumerate(
                    zip(ids[start:stop], given[start:stop], strict=True), start
                )
            ]
            for at in range(0, len(batch), 100):
                trivet.remember_many(batch[at : at + 100])
            if not start:
                trivet.drain()
        for old, new in zip(ids[5:200:23], ids[6:200:23], strict=False):
            trivet.link(new, "supersedes", old)
        for problem, answer in zip(ids[3:200:29], ids[9:200:29], strict=False):
            trivet.link(problem, "resolved-by", answer)


def _notes() -> Iterator[Given]:
    for line in _lines(ROOT / "src" / "trivet" / "lab" / "house" / "memories.jsonl"):
        yield {
            name: value
            for name, value in line.items()
            if name in ("content", "category", "tags", "importance")
        }


def _changes() -> Iterator[Given]:
    for line in _some(_lines(ROOT / "training" / "changes" / "e.jsonl"), 250):
        yield {"content": line["old"], "tags": [line["kind"]]}
        yield {"content": line["new"], "title": line["question"] if line["update"] else None}
    for line in _some(_lines(ROOT / "training" / "pairs" / "f.jsonl"), 150):
        yield {"content": line["memory"], "expanded_keywords": line["near"][0].split()[:4]}


def _sessions() -> Iterator[Given]:
    chance = random.Random(3)
    said = [line["content"] for line in _notes()] + [line["content"] for line in _changes()]
    made = list(memories(3_000, seed=21))
    for number in range(60):
        parts = chance.sample(said, 12) + chance.sample(made, chance.randint(10, 70))
        chance.shuffle(parts)
        text = "\n".join(
            f"{'user' if at % 2 else 'assistant'}: {part}" for at, part in enumerate(parts)
        )
        title = " ".join(parts[0].split()[:5]) if number % 3 else None
        yield {"content": text, "title": title, "source": f"chat/{number // 4}.jsonl"}
        if number % 20 == 0:
            yield {"content": text.upper().replace("\n", "\n\n") if number else text}


def _mixed() -> Iterator[Given]:
    long = list(_sessions())
    short = _some(list(_notes()), 90) + _some(list(_changes()), 160)
    for number, one in enumerate(short):
        extra: Given = {
            "scope": f"team/{number % 3}",
            "importance": (number % 10) / 10,
            "sensitive": number % 9 == 0,
        }
        yield {**one, **extra}
        if number % 10 == 0:
            yield {"content": f"{one['content'].upper()} ", "scope": extra["scope"]}
        if number % 8 == 0:
            yield {**long[number // 8], "scope": extra["scope"], "sensitive": number % 80 == 8}
        if number % 25 == 0:
            names = [other["content"].split(".")[0][:40] for other in short[number : number + 4]]
            yield {
                "content": "\n".join(f"- [{name}](notes/{name}.md)" for name in names),
                "title": "Contents",
            }
            yield {
                "content": f"see https://example.org/{number} and [this](x.md)\n"
                + one["content"] * 6
            }
    for text in (
        "会議は毎週火曜日の午後三時に第二会議室で行われます。",
        "数据库的端口是五四三二，每天晚上备份。",
    ):
        yield {"content": text}
        yield {"content": text * 30, "title": text[:6]}


STORES = {"notes": _notes, "changes": _changes, "sessions": _sessions, "mixed": _mixed}


def _questions(name: str) -> Iterator[Asked]:
    plain = [
        line["text"] for line in _lines(ROOT / "src" / "trivet" / "lab" / "house" / "queries.jsonl")
    ]
    changed = _lines(ROOT / "training" / "changes" / "e.jsonl")
    asked = [line["question"] for line in _some(changed, 250)]
    past = [line["past_question"] for line in _some(changed, 250) if line["past_question"]]
    paired = [
        query
        for line in _some(_lines(ROOT / "training" / "pairs" / "f.jsonl"), 150)
        for query in line["answered"]
    ]
    stored = [one["content"] for one in STORES[name]()]
    chance = random.Random(name)
    phrases = [f'"{_piece(chance, stored)}"' for _ in range(12)]
    literal = [_piece(chance, stored, 6) for _ in range(12)]
    times = [
        "what happened last week",
        "what did we decide in March 2026",
        "notes since 2026-05-01",
        "yesterday",
    ]
    own = {"notes": plain[::3], "changes": [*asked[::3], *past[::6], *paired[::6]]}
    questions = own.get(name) or [*plain[::9], *asked[::8], *past[::14], *paired[::10]]
    variants = _variants()
    for number, query in enumerate(
        [*questions, *phrases, *literal, *times, "E_CONN", "会議室", "端口", "  ", "the of and"]
    ):
        if query.strip():
            yield query, variants[number % len(variants)]


def _variants() -> Sequence[Given]:
    plain: Given = {"rerank": "off", "relevance_at_least": 0}
    return (
        {"rerank": "off"},
        plain,
        {"rerank": "off"},
        {**plain, "limit": 30},
        {**plain, "recipe": "rrf | legs(lexical)"},
        {"rerank": "off", "limit": 3},
        {**plain, "scope": "team/1"},
        {**plain, "tags": ("python",)},
        {**plain, "token_budget": 400},
        {**plain, "recipe": "legs(dense)"},
        {**plain, "collapse": False, "per_source": 1},
        {**plain, "reveal": True, "sort": "recency"},
        {"rerank": "off", "expand": True},
        {"rerank": "fast"},
        {**plain, "limit": 100},
        {},
    )


def _piece(chance: random.Random, texts: Sequence[str], words: int = 3) -> str:
    found = chance.choice(texts).replace('"', "").split()
    at = chance.randrange(max(1, len(found) - words))
    return " ".join(found[at : at + words])


def _lines(path: Path) -> list[Given]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _some(lines: list[Given], count: int) -> list[Given]:
    return lines[:: max(1, len(lines) // count)][:count]


def _copied(store: Path, folder: Path) -> Path:
    shutil.copy(store, folder)
    return folder / store.name


def _canonical(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _canonical(one) for name, one in value.items() if name not in LEFT_OUT}
    return [_canonical(one) for one in value] if isinstance(value, list | tuple) else value


def _differences(before: Any, after: Any, within: float, where: str = "") -> Iterator[str]:
    if isinstance(before, dict) and isinstance(after, dict):
        for name in sorted(before.keys() | after.keys()):
            yield from _differences(before.get(name), after.get(name), within, f"{where}.{name}")
    elif isinstance(before, list) and isinstance(after, list):
        for number, pair in enumerate(zip_longest(before, after)):
            yield from _differences(*pair, within, f"{where}[{number}]")
    elif isinstance(before, float) and isinstance(after, float) and abs(before - after) < within:
        return
    elif (type(before), before) != (type(after), after):
        yield f"{where}: {str(before)[:100]!r} -> {str(after)[:100]!r}"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("act", choices=("record", "compare"))
    parser.add_argument("folder", type=Path)
    parser.add_argument(
        "--anew", action="store_true", help="store everything again with this version"
    )
    parser.add_argument(
        "--within", type=float, default=0.0, help="numbers may differ by less than this"
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
