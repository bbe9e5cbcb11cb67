r"""Measure how each stage of a recall grows with the store, up to ten million memories.

python benchmarks/growth.py --work /tmp/trivet-growth \
    --output benchmarks/results/growth.json --plot docs/growth.svg

The indexes are synthetic: vectors have a spectrum like a model's, words are Zipfian, and each
memory mentions seven concepts, also Zipfian. The code that searches them is the product's.
Everything is in memory or in the page cache; ten million take 8 GB of disk and five minutes.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from manifest import manifest
from trivet.graph.network import Hubs, Network
from trivet.graph.walk import NodeMasses, walk
from trivet.models.embed import load
from trivet.search.recipe import DEFAULT
from trivet.store.relational.index.postings import Postings, VisibleMemories, score
from trivet.store.relational.index.vector_matrix import Matrix, MatrixArrays, sign_codes

DIMENSION, LATENT = 384, 48
PORTION = 100_000
QUERIES = 15
WORDS_ASKED = 6
MENTIONS = 7
DEPTH = 100

_NOTHING = NodeMasses(np.zeros(0, np.int32), np.zeros(0))


def main() -> None:
    options = _options()
    options.work.mkdir(parents=True, exist_ok=True)
    figures: dict[str, dict[str, float]] = {}
    for size in options.sizes:
        figures[str(size)] = _measure(size, options.work)
        print(f"{size:,}", figures[str(size)], flush=True)
    result = {"manifest": manifest(), "milliseconds": figures, "one query embedding": _embedding()}
    options.output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    _plot(figures, options.plot)


def _measure(size: int, work: Path) -> dict[str, float]:
    chance = np.random.default_rng(7)
    lengths, importances = np.full(size + 1, 40, np.float32), np.full(size + 1, 0.5, np.float64)
    visible = VisibleMemories(
        np.append(np.ones(size, bool), False), lengths, importances, size, 40.0
    )
    stages: dict[str, Iterator[float]] = {
        "dense: codes, then 1,000 vectors": _dense(size, visible.mask, work, chance),
        "lexical: six words": _lexical(size, visible, chance),
        "graph: from ten memories": _graph(size, visible.mask, chance),
    }
    return {name: round(statistics.median(times), 2) for name, times in stages.items()}


def _dense(
    size: int, mask: NDArray[np.bool_], work: Path, chance: np.random.Generator
) -> Iterator[float]:
    spectrum = (np.arange(1, LATENT + 1) ** -0.5).astype(np.float32)
    turned = chance.standard_normal((LATENT, DIMENSION)).astype(np.float32)
    file = work / f"vectors-{size}"
    vectors = np.memmap(file, np.float16, "w+", shape=(size, DIMENSION))
    codes = np.zeros((DIMENSION // 64, size), np.uint64)
    for start in range(0, size, PORTION):
        drawn = (
            chance.standard_normal((min(PORTION, size - start), LATENT)).astype(np.float32)
            * spectrum
            @ turned
        )
        drawn /= np.linalg.norm(drawn, axis=1, keepdims=True)
        vectors[start : start + len(drawn)] = drawn
        codes[:, start : start + len(drawn)] = sign_codes(drawn).T
    keys = np.arange(size, dtype=np.int64)
    arrays = MatrixArrays(
        keys, np.zeros(size, np.int64), vectors, codes, np.zeros(size, np.float32)
    )
    matrix = Matrix.mapped(arrays, np.arange(size + 1, dtype=np.int32))
    for _ in range(QUERIES):
        query = np.asarray(vectors[chance.integers(size)], np.float32)
        yield _milliseconds(lambda query=query: matrix.search(query, mask, DEPTH))  # type: ignore[misc]
    file.unlink()


def _lexical(size: int, visible: VisibleMemories, chance: np.random.Generator) -> Iterator[float]:
    """Draw words by rank, so that ranks 30 and 30,000 are queried equally often."""
    for _ in range(QUERIES):
        ranks = np.exp(chance.uniform(np.log(20), np.log(50_000), WORDS_ASKED))
        lists = {str(rank): _holders(size, min(0.5, 2.0 / rank), chance) for rank in ranks}

        def best(lists: dict[str, Postings] = lists) -> None:
            scores = score(lists, visible, DEFAULT.bm25)
            found = np.flatnonzero(scores > 0)
            if len(found) > DEPTH:
                np.partition(scores[found], len(found) - DEPTH)

        yield _milliseconds(best)


def _holders(size: int, share: float, chance: np.random.Generator) -> Postings:
    keys = np.cumsum(chance.geometric(share, int(size * share * 1.2) + 10)) - 1
    keys = keys[keys < size].astype(np.int64)
    return Postings(keys, np.ones(len(keys)))


def _graph(size: int, mask: NDArray[np.bool_], chance: np.random.Generator) -> Iterator[float]:
    memories = np.repeat(np.arange(size, dtype=np.int32), MENTIONS)
    ranks = np.exp(chance.uniform(0, np.log(max(10, size // 10)), len(memories)))
    concepts = ranks.astype(np.int32)
    network = Network.of(memories, concepts, np.zeros(len(memories), np.uint8), {})
    hubs = Hubs()
    walk(network, mask, NodeMasses(memories[:70:7], np.ones(10)), _NOTHING, DEFAULT.walk, hubs)
    for _ in range(QUERIES):
        seeds = np.unique(chance.integers(0, size, 10)).astype(np.int32)
        hits = NodeMasses(seeds, np.ones(len(seeds)))
        yield _milliseconds(
            lambda hits=hits: walk(network, mask, hits, _NOTHING, DEFAULT.walk, hubs)  # type: ignore[misc]
        )


def _embedding() -> float:
    embedder = load("bundled")
    assert embedder is not None
    embedder.embed_query("load the model")
    asked = (
        f"which port does the staging database of the harbour listen on {number}"
        for number in range(60)
    )
    return round(
        statistics.median(
            _milliseconds(lambda: embedder.embed_query(next(asked))) for _ in range(60)
        ),
        2,
    )


def _milliseconds(action: Callable[[], object]) -> float:
    started = time.perf_counter()
    action()
    return (time.perf_counter() - started) * 1000


def _plot(figures: dict[str, dict[str, float]], file: Path) -> None:
    import matplotlib as mpl

    mpl.use("svg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6.4, 3.8), layout="constrained")
    sizes = [int(size) for size in figures]
    for name in next(iter(figures.values())):
        axes.plot(sizes, [figures[str(size)][name] for size in sizes], marker="o", label=name)
    axes.set(xscale="log", yscale="log", xlabel="memories", ylabel="milliseconds, median")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    figure.savefig(file, metadata={"Date": None})


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--sizes", type=int, nargs="+", default=[10_000, 100_000, 1_000_000, 10_000_000]
    )
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "trivet-growth")
    parser.add_argument(
        "--output", type=Path, default=Path(__file__).parent / "results" / "growth.json"
    )
    parser.add_argument(
        "--plot", type=Path, default=Path(__file__).parent.parent / "docs" / "growth.svg"
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
