"""Fit a fusion that adapts to the query and judge it on corpora it was not fitted on.

    python learned.py --features FOLDER --eval FOLDER --output learned.json [--reranker best|fast] [--weights OUT.npz]

The model is linear over a candidate's features less their mean over the query's candidates, some of them once more
times a trait of the query. It starts from the fixed order's score and is held near it by a penalty, so what the data
does not speak for stays as it was. Fitting needs PyTorch; using it takes one product of matrices.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from evaluate import CHECK, Corpus, compared, measured, read_corpus, stock_reference

# Length and absolute scores were tried too: they tell corpora apart and cost .01 on those left out.
PLAIN = ("lexical_spread", "dense_spread", "graph_raw", "coverage", "pairs", "exact")
RECIPROCAL = ("lexical_rank", "dense_rank", "graph_rank")
GAPS = ("lexical_gap", "dense_gap")
GATED = ("lexical_spread", "dense_spread", "graph_raw", "reranker")
TRAITS = ("known", "legs_agree")
RANK_CONSTANT = 10.0
HEAD, HEAD_RERANKED = 50, 30
# How the fixed score is blended with the reranker's before anything is learned.
BLEND = {"best": 0.5, "fast": 0.3}
PENALTIES = (0.03, 0.3, 1.0)
STEPS = 40


@dataclass(slots=True)
class Table:
    """One corpus: features of the heads of its lists, with the fixed score first; grades; the order they came in."""

    name: str
    features: torch.Tensor
    mask: torch.Tensor
    grades: torch.Tensor
    documents: list[np.ndarray]
    answerable: int


def read_table(path: Path, reranker: str | None) -> tuple[Table, list[str]]:
    with np.load(path) as arrays:
        rows, about, first = (
            arrays["candidates"].astype(np.float64),
            arrays["queries"].astype(np.float64),
            arrays["first"],
        )
        column = {name: at for at, name in enumerate(arrays["candidate_columns"].tolist())}
        trait = {name: at for at, name in enumerate(arrays["query_columns"].tolist())}
        documents, sources = arrays["documents"], arrays["sources"]
    answerable = int((sources == "answerable").sum())
    head = HEAD_RERANKED if reranker else HEAD
    names = feature_names(reranker)
    features = np.zeros((answerable, head, len(names)), dtype=np.float32)
    mask, grades = np.zeros((answerable, head), bool), np.zeros((answerable, head), np.float32)
    lists = []
    for at in range(answerable):
        own = rows[first[at] : first[at + 1]]
        lists.append(documents[first[at] : first[at + 1]].astype(np.int64))
        count = min(head, len(own))
        features[at, :count] = featured(own[:count], about[at], column, trait, reranker)
        mask[at, :count], grades[at, :count] = True, np.maximum(own[:count, column["grade"]], 0)
    name = path.stem.removeprefix("features-")
    return Table(name, torch.tensor(features), torch.tensor(mask), torch.tensor(grades), lists, answerable), names


def feature_names(reranker: str | None) -> list[str]:
    names = ["fixed", *PLAIN, *RECIPROCAL, *GAPS, *(("reranker", "reranker_z") if reranker else ())]
    gated = [name for name in GATED if name != "reranker" or reranker]
    return names + [f"{name}*{trait}" for name in gated for trait in TRAITS]


def featured(
    rows: np.ndarray, about: np.ndarray, column: Mapping[str, int], trait: Mapping[str, int], reranker: str | None
) -> np.ndarray:
    """Features of one query's candidates, each less its mean over them; the fixed order's score first."""
    values = {name: np.nan_to_num(rows[:, column[name]]) for name in (*PLAIN, *GAPS)}
    for name in RECIPROCAL:
        values[name] = np.nan_to_num(RANK_CONSTANT / (RANK_CONSTANT + rows[:, column[name]]))
    fused = rows[:, column["fused"]]
    values["fixed"] = standard(fused)
    if reranker:
        own = filled(rows[:, column[reranker]])
        values["reranker"], values["reranker_z"] = own / 4, standard(own)
        share = BLEND[reranker]
        values["fixed"] = share * standard(own) + (1 - share) * standard(fused)
    # Less what is usual, so that the plain feature has the weight of a usual query.
    traits = {"known": about[trait["known"]] - 0.9, "legs_agree": about[trait["legs_agree"]] - 0.4}
    for name in list(values):
        if name in GATED:
            for other in TRAITS:
                values[f"{name}*{other}"] = values[name] * traits[other]
    table = np.stack([values[name] for name in feature_names(reranker)], axis=1)
    return table - table.mean(0)


def filled(values: np.ndarray) -> np.ndarray:
    """What a leg did not return is worth its least score."""
    known = values[~np.isnan(values)]
    return np.where(np.isnan(values), known.min() if len(known) else 0.0, values)


def standard(values: np.ndarray) -> np.ndarray:
    spread = values.std()
    return (values - values.mean()) / spread if spread > 0 else np.zeros_like(values)


def fitted(tables: Sequence[Table], scales: torch.Tensor, penalty: float) -> torch.Tensor:
    """Weights of the scaled features; every corpus counts the same, whatever its size."""
    parts = []
    for table in tables:
        found = (table.grades.sum(1) > 0).nonzero()[:, 0]
        target = table.grades[found] / table.grades[found].sum(1, keepdim=True)
        parts.append((table.features[found] / scales, target, table.mask[found]))
    start = torch.zeros(len(scales))
    start[0] = 1.0
    weights = start.clone().requires_grad_(True)
    optimiser = torch.optim.LBFGS([weights], max_iter=STEPS, line_search_fn="strong_wolfe", history_size=20)

    def closure() -> torch.Tensor:
        optimiser.zero_grad()
        # The fixed score's own weight is free: it sets how sure the order is, not what it is.
        loss = penalty * (weights[1:] ** 2).sum()
        for features, target, mask in parts:
            scores = (features @ weights).masked_fill(~mask, -1e4)
            loss = loss - (target * scores.log_softmax(1)).sum(1).mean() / len(parts)
        loss.backward()
        return loss

    optimiser.step(closure)
    return weights.detach()


def ordered(table: Table, scales: torch.Tensor, weights: torch.Tensor) -> list[np.ndarray]:
    scores = ((table.features / scales) @ weights).masked_fill(~table.mask, -1e4).numpy()
    answers = []
    for row, documents in zip(scores, table.documents, strict=True):
        head = min(len(row), len(documents))
        order = np.argsort(-row[:head], kind="stable")
        answers.append(np.concatenate([documents[:head][order], documents[head:]]))
    return answers


def scales_of(tables: Sequence[Table]) -> torch.Tensor:
    spread = torch.stack([table.features[table.mask].std(0) for table in tables]).mean(0)
    return torch.where(spread > 1e-6, spread, torch.ones_like(spread))


def left_out(
    tables: Sequence[Table], corpora: Mapping[str, Corpus], penalty: float
) -> dict[str, dict[str, np.ndarray]]:
    values = {}
    for table in tables:
        others = [other for other in tables if other.name not in (table.name, CHECK)]
        scales = scales_of(others)
        values[table.name] = measured(corpora[table.name], ordered(table, scales, fitted(others, scales, penalty)))
    return values


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("features", "eval", "output"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--reranker", choices=("best", "fast"))
    parser.add_argument("--weights", type=Path, help="where the model fitted on all corpora goes")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    tables: list[Table] = []
    names: list[str] = []
    for path in sorted(arguments.features.glob("features-*.npz")):
        table, names = read_table(path, arguments.reranker)
        tables.append(table)
    corpora = {table.name: read_corpus(arguments.eval / f"{table.name}.json.xz", None) for table in tables}
    unit = torch.zeros(len(names))
    unit[0] = 1.0
    plain = {t.name: measured(corpora[t.name], ordered(t, torch.ones(len(names)), unit)) for t in tables}
    figures: dict[str, Any] = {"fixed": told("fixed", plain, plain, corpora)}
    for penalty in PENALTIES:
        values = left_out(tables, corpora, penalty)
        figures[f"learned, penalty {penalty:g}"] = told(f"penalty {penalty:g}", values, plain, corpora)
    arguments.output.write_text(json.dumps(figures, indent=1) + "\n")
    if arguments.weights:
        own = [table for table in tables if table.name != CHECK]
        scales = scales_of(own)
        weights = fitted(own, scales, PENALTIES[1])
        np.savez(arguments.weights, names=np.array(names), weights=(weights / scales).numpy())
        print({name: round(float(value), 3) for name, value in zip(names, weights, strict=True)})


def told(
    name: str,
    values: Mapping[str, Mapping[str, np.ndarray]],
    plain: Mapping[str, Mapping[str, np.ndarray]],
    corpora: Mapping[str, Corpus],
) -> dict[str, Any]:
    """Against the product as it is, and against the fixed order of the same lists."""
    rows = {}
    for corpus, own in values.items():
        rows[corpus] = compared(stock_reference(corpora[corpus]), own)
        rows[corpus]["against_fixed"] = compared(plain[corpus], own)["interval"]
        rows[corpus]["difference_to_fixed"] = compared(plain[corpus], own)["difference"]
    gain = float(np.mean([row["difference"] for corpus, row in rows.items() if corpus != CHECK]))
    cells = " | ".join(
        f"{corpus} {row['ndcg']:.3f}{mark(row['interval'])}{row['recall']:.3f}"
        f"({row['difference_to_fixed']:+.3f}{mark(row['against_fixed'])})"
        for corpus, row in rows.items()
    )
    print(f"{name:14s} {gain:+.4f} | {cells}", flush=True)
    return {"mean gain": round(gain, 4), "corpora": rows}


def mark(interval: Sequence[float]) -> str:
    return "+" if interval[0] > 0 else "-" if interval[1] < 0 else " "


if __name__ == "__main__":
    main()
