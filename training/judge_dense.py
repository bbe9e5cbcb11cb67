r"""Judge embedders by vectors only: nDCG@10 and recall@5 per corpus, and lengths of hits.

python training/judge_dense.py --eval eval.json.xz --tokenizer tokenizer.json --output OUT \
    [--prefixed] MODEL.npz...

Takes seconds on a GPU. A memory counts by its best passage. `union` is one store of every corpus
plus the notes of `til`, asked some questions of each without scope: memories of all lengths
together. Writes dense.json and, with --keep, rankings and 8-bit vectors, so that fusion can be
chosen without a device.
"""

from __future__ import annotations

import argparse
import json
import lzma
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from data import LONGEST_PASSAGE, LONGEST_QUERY, tokenised
from encoder import (
    Encoder,
    Reranker,
    Texts,
    embedded,
    encoder_alone,
    load_half,
    ready,
    scored,
    shape_of,
)

DEPTH, HEAD = 50, 20
SEVEN = ("locomo", "lihua", "scifact", "cranfield", "cosqa", "hotpotqa", "musique")
# Stores made from other corpora's texts; the union has those already.
MADE = ("locomo_sessions", "locomo_mixed", "lives", "mixed")
UNION, UNION_QUERIES = "union", 100
SEED = 3


@dataclass(frozen=True, slots=True)
class Store:
    """One corpus as text numbers; `owner` is each passage's memory."""

    name: str
    passages: np.ndarray
    owner: np.ndarray
    words: np.ndarray
    scopes: list[str | None]
    queries: np.ndarray
    asked: list[dict[str, Any]]

    def passages_of(self) -> list[list[int]]:
        places: list[list[int]] = [[] for _ in self.words]
        for passage, owner in zip(self.passages, self.owner, strict=True):
            places[int(owner)].append(int(passage))
        return places


class Judge:
    def __init__(self, path: Path, tokenizer: Path, device: str, most: int | None = None) -> None:
        table: list[str] = []
        limits: list[int] = []
        self.stores: list[Store] = []
        for data in json.loads(lzma.decompress(path.read_bytes())):
            start, asked = len(table), data["queries"]
            asked = asked[:: max(1, len(asked) // most)][:most] if most else asked
            table += data["passages"]
            limits += [LONGEST_PASSAGE] * len(data["passages"])
            queries = len(table)
            table += [query["text"] for query in asked]
            limits += [LONGEST_QUERY] * len(asked)
            self.stores.append(
                Store(
                    data["name"],
                    np.arange(start, queries),
                    np.array(data["document_of"], dtype=np.int64),
                    np.array(data["words"]),
                    data["scopes"],
                    np.arange(queries, len(table)),
                    asked,
                )
            )
        self.texts: Texts = tokenised(table, limits, tokenizer, device)
        self.stores.append(_union(self.stores))

    @torch.no_grad()
    def vectors(self, encoder: Encoder) -> torch.Tensor:
        return embedded(encoder, self.texts, np.arange(len(self.texts.lengths)))

    def figures(self, vectors: torch.Tensor) -> dict[str, Any]:
        found = {
            store.name: measured(store, *ranked(store, vectors))
            for store in self.stores
            if len(store.queries)
        }
        seven = [found[name]["ndcg"] for name in SEVEN if name in found]
        return found | ({"mean of seven": round(float(np.mean(seven)), 4)} if seven else {})


def _union(stores: Sequence[Store]) -> Store:
    chance = np.random.default_rng(SEED)
    own = [store for store in stores if store.name not in MADE]
    passages, owners, words, queries, asked = [], [], [], [], []
    first = 0
    for store in own:
        passages.append(store.passages)
        owners.append(store.owner + first)
        words.append(store.words)
        for at in chance.permutation(len(store.queries))[:UNION_QUERIES]:
            queries.append(store.queries[at])
            grades = {
                str(int(place) + first): grade for place, grade in store.asked[at]["grades"].items()
            }
            asked.append({"scope": None, "grades": grades})
        first += len(store.words)
    return Store(
        UNION,
        np.concatenate(passages),
        np.concatenate(owners),
        np.concatenate(words),
        [None] * first,
        np.array(queries, dtype=np.int64),
        asked,
    )


@torch.no_grad()
def ranked(store: Store, vectors: torch.Tensor) -> tuple[np.ndarray, np.ndarray]:
    """Return each query's nearest memories in scope by best passage, padded with -1."""
    device = vectors.device
    passages, queries = (
        vectors[torch.as_tensor(one, device=device)] for one in (store.passages, store.queries)
    )
    owners = torch.as_tensor(store.owner, device=device)
    names: dict[str | None, int] = {}
    scopes = torch.tensor(
        [names.setdefault(scope, len(names)) for scope in store.scopes], device=device
    )
    asked = torch.tensor([names.get(query["scope"], -1) for query in store.asked], device=device)
    anywhere = torch.tensor([query["scope"] is None for query in store.asked], device=device)
    best = torch.full((len(store.words), len(queries)), -2.0, device=device)
    best.index_reduce_(0, owners, passages @ queries.T, "amax")
    best = best.masked_fill((scopes[:, None] != asked[None, :]) & ~anywhere[None, :], -2.0)
    values, places = best.T.topk(min(DEPTH, len(store.words)), dim=1)
    return torch.where(values > -1.5, places, -1).cpu().numpy(), values.float().cpu().numpy()


def measured(store: Store, places: np.ndarray, _: np.ndarray) -> dict[str, float]:
    """Use linear gains; report median words of the first ten hits and of the answers."""
    discounts = 1 / np.log2(np.arange(2, 12))
    gained, recalled, hits, answers = [], [], [], []
    for row, query in zip(places, store.asked, strict=True):
        grades = {int(place): grade for place, grade in query["grades"].items() if grade > 0}
        gains = np.array([grades.get(int(place), 0) for place in row[:10]], dtype=float)
        ideal = np.sort(list(grades.values()))[::-1][:10]
        gained.append(
            (gains * discounts[: len(gains)]).sum() / (ideal * discounts[: len(ideal)]).sum()
        )
        recalled.append(len(set(grades) & {int(place) for place in row[:5]}) / len(grades))
        hits += [store.words[place] for place in row[:10] if place >= 0]
        answers += [store.words[place] for place in grades]
    return {
        "ndcg": round(float(np.mean(gained)), 4),
        "recall": round(float(np.mean(recalled)), 4),
        "words of hits": float(np.median(hits)),
        "words of answers": float(np.median(answers)),
    }


@torch.no_grad()
def reranked_figures(judge: Judge, vectors: torch.Tensor, reranker: Reranker) -> dict[str, Any]:
    """Rerank the first hits, alone and in an even blend; a memory counts by its best passage."""
    found = {}
    for store in judge.stores:
        if not len(store.queries) or store.name == UNION:
            continue
        places, scores = ranked(store, vectors)
        places, scores = places[:, :HEAD], scores[:, :HEAD]
        passages = store.passages_of()
        pairs = [
            (row, column, passage)
            for row, own in enumerate(places)
            for column, place in enumerate(own)
            if place >= 0
            for passage in passages[place]
        ]
        rows, columns, read = (np.array(one) for one in zip(*pairs, strict=True))
        values = scored(reranker, judge.texts, store.queries[rows], read).float().cpu().numpy()
        best = np.full(places.shape, -np.inf)
        np.maximum.at(best, (rows, columns), values)
        blend = _standard(scores, places) + _standard(best, places)
        found[store.name] = {
            name: measured(
                store, np.take_along_axis(places, np.argsort(-own, axis=1, kind="stable"), 1), own
            )["ndcg"]
            for name, own in (
                ("before", np.where(places >= 0, scores, -np.inf)),
                ("after", best),
                ("blend", blend),
            )
        }
    return found


def _standard(scores: np.ndarray, places: np.ndarray) -> np.ndarray:
    own = np.where(places >= 0, scores, np.nan)
    normal = (own - np.nanmean(own, 1, keepdims=True)) / (np.nanstd(own, 1, keepdims=True) + 1e-6)
    return np.nan_to_num(normal, nan=-1e3)


def rerank_line(figures: Mapping[str, Any]) -> str:
    cells = [
        f"{name} {own['before']:.3f} {own['after']:.3f} {own['blend']:.3f}"
        for name, own in figures.items()
        if isinstance(own, dict) and "blend" in own
    ]
    return "before, after, blend: " + " | ".join(cells)


def line(figures: Mapping[str, Any]) -> str:
    cells = [f"{name} {own['ndcg']:.3f}" for name, own in figures.items() if isinstance(own, dict)]
    lengths = [
        f"{name} {own['words of hits']:.0f} for {own['words of answers']:.0f}"
        for name in ("locomo_mixed", "mixed", "written", UNION)
        if (own := figures.get(name))
    ]
    return (
        " ".join(cells)
        + f" | seven {figures.get('mean of seven', 0):.4f} | words of hits: {', '.join(lengths)}"
    )


def keep(judge: Judge, vectors: torch.Tensor, folder: Path, name: str) -> None:
    """Write rankings, and all vectors in 8 bits with a scale each."""
    arrays: dict[str, Any] = {}
    for store in judge.stores:
        if len(store.queries):
            places, values = ranked(store, vectors)
            arrays[f"{store.name}.places"], arrays[f"{store.name}.scores"] = (
                places.astype(np.int32),
                values.astype("f2"),
            )
    np.savez_compressed(folder / f"lists-{name}.npz", **arrays)
    scale = vectors.abs().amax(1, keepdim=True) / 127
    small = (vectors / scale).round().to(torch.int8).cpu().numpy()
    half = len(small) // 2
    for part, rows in (("a", slice(0, half)), ("b", slice(half, None))):
        scales = scale[rows, 0].cpu().numpy().astype(np.float32)
        np.savez(folder / f"vectors-{name}.{part}.npz", vectors=small[rows], scales=scales)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name in ("eval", "tokenizer", "output"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--prefixed", action="store_true")
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--most", type=int, help="queries a corpus, for a trial run")
    parser.add_argument("models", nargs="+", type=Path)
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    began = time.monotonic()
    judge = Judge(arguments.eval, arguments.tokenizer, device, arguments.most)
    judge.texts.prefixed = arguments.prefixed
    found: dict[str, Any] = {}
    for path in arguments.models:
        state = encoder_alone(load_half(path))
        encoder = ready(Encoder(shape_of(state)), state, device)
        vectors = judge.vectors(encoder)
        found[path.stem] = judge.figures(vectors)
        (arguments.output / "dense.json").write_text(json.dumps(found, indent=1))
        print(f"[{time.monotonic() - began:6.1f}] {path.stem} {line(found[path.stem])}", flush=True)
        if arguments.keep:
            keep(judge, vectors, arguments.output, path.stem)


if __name__ == "__main__":
    main()
