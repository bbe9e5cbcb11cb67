r"""Gather the changes reader's training data: written pairs, and neighbors of new statements.

python training/change_pairs.py --pairs training/changes/*.jsonl \
    --others training/lives/*/corpus.jsonl \
    --stores training/lives/*/corpus.jsonl training/written/short-*.jsonl \
    --seen training/changes_seen.jsonl --check src/trivet/lab/lives/dev/changes.jsonl \
    --check-stores src/trivet/lab/lives/dev/*/corpus.jsonl \
        src/trivet/lab/mixed/dev/corpus.jsonl \
    --output changes.json.xz

A save compares a memory with its nearest ones. Three kinds of rows show the reader neighbors that
are not updates:

- from other stores (neither `written` nor `store`): easy, about other people and things;
- from whole stores (`store`): each memory of `--stores` against earlier ones;
- from the written pairs (`store`): a file is in order of matter, so a few dozen pairs in a row
  make a store, in which a new statement meets the statements of other pairs.

A store may hold an unlabeled update. `--seen` lists those found by eye among the likeliest: true
ones become updates, debatable ones (`"update": null`) are dropped. `--check` and `--check-stores`
are scored, never trained on. Rows of one `group` belong in one fold.
"""

from __future__ import annotations

import argparse
import json
import lzma
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trivet.memory.supersession.compare import MAX_COMPARED_CHARACTERS, NEAREST_COMPARED
from trivet.models.embed.registry import load

Vectors = Mapping[str, NDArray[np.float32]]
Seen = Mapping[tuple[str, str], bool | None]
Row = dict[str, Any]

OTHERS, NEAREST_OF_OTHERS = 200, 1
NEAREST_OF_STORE, NEAREST_OF_PAIRS = 3, 2
# Consecutive written pairs that make a store.
PAIRS_A_STORE = 40
# By rule, with a random value: any two on one subject are updates of each other.
MADE_BY_RULE = "plain"
# Texts this similar to a pair's older statement repeat it, so the pair's label holds for them.
SAID_AGAIN = 0.85


@dataclass(frozen=True, slots=True)
class Store:
    name: str
    texts: Sequence[str]
    older: Sequence[Sequence[str]]


def main() -> None:
    options = _options()
    others = sorted({json.loads(line)["text"] for path in options.others for line in _lines(path)})
    seen = {
        (line["new"], line["old"]): line["update"]
        for path in options.seen
        for line in map(json.loads, _lines(path))
    }
    pairs, check = _written(options.pairs), _written(options.check)
    stores, check_stores = _stores(options.stores), _stores(options.check_stores)
    vectors = _vectors(
        [*others, *(row[side] for row in (*pairs, *check) for side in ("new", "old"))],
        [text for store in (*stores, *check_stores) for text in store.texts],
    )
    rows = {
        "train": [
            *pairs,
            *_of_others(pairs, others, vectors),
            *_of_pairs(pairs, vectors, seen, NEAREST_OF_PAIRS),
            *_of_stores(stores, vectors, seen, NEAREST_OF_STORE),
        ],
        "check": [
            *check,
            *_of_others(check, others, vectors),
            *_of_pairs(check, vectors, seen, NEAREST_COMPARED),
            *_of_stores(check_stores, vectors, seen, NEAREST_COMPARED),
        ],
    }
    with lzma.open(options.output, "wt", encoding="utf-8") as file:
        json.dump(rows, file, ensure_ascii=False)
    for name, part in rows.items():
        kinds = {
            kind: [row["update"] for row in part if _kind(row) == kind]
            for kind in ("written", "store", "others")
        }
        print(
            name, {kind: f"{len(each)} rows, {sum(each)} updates" for kind, each in kinds.items()}
        )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", nargs="+", type=Path, required=True)
    parser.add_argument("--others", nargs="+", type=Path, required=True)
    parser.add_argument("--stores", nargs="*", type=Path, default=[])
    parser.add_argument("--check", nargs="*", type=Path, default=[])
    parser.add_argument("--check-stores", nargs="*", type=Path, default=[])
    parser.add_argument("--seen", nargs="*", type=Path, default=[])
    parser.add_argument("--output", type=Path, required=True)
    return parser.parse_args()


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def _kind(row: Row) -> str:
    return "written" if row["written"] else "store" if row["store"] else "others"


def _vectors(*texts: Sequence[str]) -> Vectors:
    model = load("bundled")
    assert model is not None
    different = sorted({text for part in texts for text in part})
    return dict(
        zip(different, np.asarray(model.embed_documents(different), dtype=np.float32), strict=True)
    )


def _written(paths: Sequence[Path]) -> list[Row]:
    found: list[Row] = []
    for path in paths:
        hand = path.stem if path.stem != "changes" else f"{path.parent.name}-changes"
        group_of: dict[str, str] = {}
        for place, line in enumerate(map(json.loads, _lines(path))):
            known = group_of.get(line["old"]) or group_of.get(line["new"])
            group = known or f"{hand}-{place if hand == MADE_BY_RULE else place // PAIRS_A_STORE}"
            group_of[line["old"]] = group_of[line["new"]] = group
            update = bool(line["update"])
            found.append(_row(line["new"], line["old"], update, hand, group, written=True))
    return found


def _row(
    new: str,
    old: str,
    update: bool,
    hand: str,
    group: str,
    written: bool = False,
    store: bool = False,
) -> Row:
    return {
        "new": new, "old": old, "update": update, "hand": hand, "group": group, "written": written, "store": store,
    }  # fmt: skip


def _stores(paths: Sequence[Path]) -> list[Store]:
    found = []
    for path in paths:
        name = path.parent.name if path.stem == "corpus" else path.stem
        by_scope: dict[str, list[Row]] = {}
        for line in map(json.loads, _lines(path)):
            by_scope.setdefault(f"{name} {line.get('scope', '')}".strip(), []).append(line)
        for scope, memories in by_scope.items():
            texts = [
                one["text"]
                for one in sorted(memories, key=lambda one: str(one.get("created_at", "")))
            ]
            found.append(Store(scope, texts, [texts[:place] for place in range(len(texts))]))
    return found


def _of_others(pairs: Sequence[Row], others: Sequence[str], vectors: Vectors) -> Iterator[Row]:
    theirs = np.array([vectors[text] for text in others])
    random = np.random.default_rng(1)
    for pair in pairs:
        store = random.choice(len(others), min(OTHERS, len(others)), replace=False)
        near = store[np.argsort(-(theirs[store] @ vectors[pair["new"]]))[:NEAREST_OF_OTHERS]]
        for place in near.tolist():
            yield _row(pair["new"], others[place], False, pair["hand"], pair["group"])


def _of_pairs(pairs: Sequence[Row], vectors: Vectors, seen: Seen, count: int) -> Iterator[Row]:
    groups: dict[str, list[Row]] = {}
    for pair in pairs:
        if pair["hand"] != MADE_BY_RULE:
            groups.setdefault(pair["group"], []).append(pair)
    for group, members in groups.items():
        linked = _linked(members)
        texts = list(linked)
        for new in dict.fromkeys(pair["new"] for pair in members):
            own = np.array([vectors[pair["old"]] for pair in members if pair["new"] == new])
            free = [
                text
                for text in texts
                if linked[text] != linked[new] and float((own @ vectors[text]).max()) < SAID_AGAIN
            ]
            for old in _nearest(new, free, vectors, count):
                yield from _judged(new, old, members[0]["hand"], group, seen)


def _linked(members: Sequence[Row]) -> dict[str, int]:
    matter: dict[str, int] = {}
    for number, pair in enumerate(members):
        met = {matter[text] for text in (pair["old"], pair["new"]) if text in matter}
        matter |= {pair["old"]: number, pair["new"]: number}
        matter |= {text: number for text, old in matter.items() if old in met}
    return matter


def _of_stores(stores: Sequence[Store], vectors: Vectors, seen: Seen, count: int) -> Iterator[Row]:
    for store in stores:
        for new, older in zip(store.texts, store.older, strict=True):
            if len(new) <= MAX_COMPARED_CHARACTERS:
                for old in _nearest(new, [text for text in older if text != new], vectors, count):
                    yield from _judged(new, old, store.name, store.name, seen)


def _nearest(new: str, olds: Sequence[str], vectors: Vectors, count: int) -> list[str]:
    if not olds:
        return []
    cosines = np.array([vectors[old] for old in olds]) @ vectors[new]
    return [olds[place] for place in np.argsort(-cosines)[:count].tolist()]


def _judged(new: str, old: str, hand: str, group: str, seen: Seen) -> Iterator[Row]:
    update = seen.get((new, old), False)
    if update is not None:
        yield _row(new, old, update, hand, group, store=True)


if __name__ == "__main__":
    main()
