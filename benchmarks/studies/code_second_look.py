"""Measure second looks at the files code search found: call graph, cross-encoder, embedder.

python benchmarks/studies/code_second_look.py SETS --kept KEPT prepare
python benchmarks/studies/code_second_look.py SETS --kept KEPT score
python benchmarks/studies/code_second_look.py SETS --kept KEPT report

SETS is as for `trivet lab code`; the default recipe searches whole trees. `prepare` stores what was
found and what models must read, `score` runs the models (two hours on two cores; KEPT can move to
another machine), and `report` writes docs/results/code-second-look.json. Each arm adds its standard
score to that of the file's sum, over a query's first files.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manifest import manifest
from trivet.code.code_index import MAX_QUERY_CHARACTERS, CodeIndex
from trivet.code.encoder import bundled as code_encoder
from trivet.code.encoder import hashes_of
from trivet.code.file_kind import Role
from trivet.code.index.database import IndexFile
from trivet.code.index.segment import Segment
from trivet.code.parse.file import decode, lines_of
from trivet.code.recipe import DEFAULT
from trivet.code.search.query import read_query
from trivet.code.search.rank import rank, vector_of
from trivet.code.tree import Root, read_file
from trivet.lab.code import figures
from trivet.lab.code.search_runs import strictly_decreasing
from trivet.lab.code.sets import CodeSet, read_sets
from trivet.models import WEIGHTS
from trivet.models.onnx import SharedEmbeddings, input_types, open_session, open_tokenizer

RESULT = Path("docs/results/code-second-look.json")
FILES, CHUNKS = 20, 250  # Read by a model, per query.
QUERY_TOKENS, PAIR_TOKENS, TEXT_TOKENS = 160, 320, 256
READERS = ("reranker-fast", "reranker")
# A name with more definitions, or in more chunks, does not identify a call.
MOST_DEFINED, MOST_HELD = 5, 100
WEIGHTS_TRIED = (0.1, 0.2, 0.4, 0.8)
GROUPS = ("headline", "semble's own", "issue", "change", "nl", "arch", "symbol")

Floats = NDArray[np.float32]


@dataclass
class Found:
    """One set: each query's chunks with scores, and files in order with sums."""

    name: str
    paths: list[str]
    file_of: NDArray[np.int32]
    calls: NDArray[np.float64]  # Of files: who uses a name against who defines it.
    texts: dict[int, str] = field(default_factory=dict)
    asked: dict[str, str] = field(default_factory=dict)
    chunks: dict[str, list[int]] = field(default_factory=dict)
    files: dict[str, list[tuple[int, float, int]]] = field(
        default_factory=dict
    )  # File, sum, best chunk.


def prepare(sets: Sequence[CodeSet], kept: Path) -> None:
    for one in sets:
        with tempfile.TemporaryDirectory() as place:
            folder = Path(os.path.realpath(one.folder("whole")))
            root = Root(folder=folder, prefix="", identity=str(folder), git=False)
            with CodeIndex(root, IndexFile(Path(place) / "index.db"), code_encoder()) as index:
                index.refresh()
                found = _found(index, root, one)
        (kept / f"{one.name}.found").write_bytes(pickle.dumps(found))
        print(end=".", flush=True)


def _found(index: CodeIndex, root: Root, one: CodeSet) -> Found:
    view = index._viewed()
    (segment,) = view.segments
    paths = [segment.path.at(number) for number in range(len(segment.path))]
    found = Found(one.name, paths, np.array(segment.file), _calls(segment, view.roles))
    for query in one.queries:
        if query.stratum in figures.GENERATED_STRATA:
            continue
        text = query.text[:MAX_QUERY_CHARACTERS]
        ranked = rank(view, read_query(text), DEFAULT, vector_of(code_encoder(), text))
        first: dict[int, tuple[int, float, int]] = {}
        for hit in ranked:
            number = int(segment.file[hit.chunk])
            first.setdefault(number, (number, hit.file, hit.chunk))
        found.asked[query.id], found.files[query.id] = text, list(first.values())
        found.chunks[query.id] = [hit.chunk for hit in ranked[:CHUNKS]]
    read = {chunk for hits in found.chunks.values() for chunk in hits}
    read |= {chunk for files in found.files.values() for _, _, chunk in files[:FILES]}
    for chunk in sorted(read):
        path = paths[int(segment.file[chunk])]
        lines = lines_of(decode(read_file(root, path)))[
            int(segment.start[chunk]) - 1 : int(segment.end[chunk])
        ]
        found.texts[chunk] = "\n".join(lines)
    return found


def _calls(segment: Segment, roles: NDArray[np.uint8]) -> NDArray[np.float64]:
    weights = np.zeros((len(segment.path), len(segment.path)))
    terms, where = np.unique(segment.symbols.term, return_inverse=True)
    for number, term in enumerate(terms.tolist()):
        rows = np.flatnonzero(where == number)
        defining = np.unique(segment.symbols.chunk[rows])
        holding = segment.words.holders[segment.words.span(int(term))]
        if len(defining) > MOST_DEFINED or not 0 < len(holding) <= MOST_HELD:
            continue
        sure = 1.0 if len(hashes_of(segment.symbols.name.at(int(rows[0])))) > 1 else 0.3
        holding, defining = (part[roles[part] == Role.CODE] for part in (holding, defining))
        for chunk in defining:
            np.add.at(
                weights,
                (segment.file[holding], segment.file[chunk]),
                sure / np.sqrt(max(len(holding) * len(defining), 1)),
            )
    np.fill_diagonal(weights, 0)
    return weights


def found_of(sets: Sequence[CodeSet], kept: Path) -> dict[str, Found]:
    return {one.name: pickle.loads((kept / f"{one.name}.found").read_bytes()) for one in sets}


_session: Any = None


def _open(model: str) -> None:
    global _session
    shared = model != "embedder"
    name = json.loads((WEIGHTS / model / "model.json").read_text(encoding="utf-8")).get("words")
    words = SharedEmbeddings(WEIGHTS / "words" / "words.npy", name) if shared else None
    file = WEIGHTS / model / "model.onnx"
    session = open_session(file, 1, ("SkipLayerNormFusion",) if shared else (), words)
    _session = (session, input_types(session, file), words)


def _read(job: tuple[list[int], list[int]]) -> Floats:
    tokens, segments = (np.array([part]) for part in job)
    session, types, _ = _session
    values = {
        "input_ids": tokens,
        "attention_mask": np.ones_like(tokens),
        "token_type_ids": segments,
    }
    said = np.asarray(
        session.run(None, {name: values[name].astype(kind) for name, kind in types.items()})[0]
    )
    return (said[0].mean(axis=0) if said.ndim == 3 else said.ravel()).astype(np.float32)


def score(sets: Sequence[CodeSet], kept: Path) -> None:
    founds = found_of(sets, kept)
    pairs, texts = _pairs(founds), _texts(founds)
    for model, jobs in (*((reader, pairs) for reader in READERS), ("embedder", texts)):
        with ProcessPoolExecutor(os.cpu_count(), initializer=_open, initargs=(model,)) as pool:
            np.save(kept / f"{model}.npy", np.stack(list(pool.map(_read, jobs, chunksize=50))))


def _pairs(founds: dict[str, Found]) -> list[tuple[list[int], list[int]]]:
    tokenizer = open_tokenizer(WEIGHTS / "words" / "tokenizer.json")
    jobs = []
    for found in founds.values():
        for query, files in found.files.items():
            asked = tokenizer.encode(found.asked[query][:6000], add_special_tokens=False)
            asked.truncate(QUERY_TOKENS)
            read = [_shown(found, chunk, 1600) for _, _, chunk in files[:FILES]]
            for text in tokenizer.encode_batch(read, add_special_tokens=False):
                text.truncate(PAIR_TOKENS - 3 - len(asked.ids))
                pair = tokenizer.post_process(asked, text)
                jobs.append((pair.ids, pair.type_ids))
    return jobs


def _texts(founds: dict[str, Found]) -> list[tuple[list[int], list[int]]]:
    tokenizer = open_tokenizer(WEIGHTS / "embedder" / "tokenizer.json")
    read = [_shown(found, chunk, 1400) for found in founds.values() for chunk in _embedded(found)]
    read += [text[:3000] for found in founds.values() for text in found.asked.values()]
    encoded = [one.ids for one in tokenizer.encode_batch(read)]
    cut = [
        ids if len(ids) <= TEXT_TOKENS else [*ids[: TEXT_TOKENS - 1], ids[-1]] for ids in encoded
    ]
    return [(ids, [0] * len(ids)) for ids in cut]


def _shown(found: Found, chunk: int, characters: int) -> str:
    return found.paths[int(found.file_of[chunk])] + "\n" + found.texts[chunk][:characters]


def _embedded(found: Found) -> list[int]:
    return sorted({chunk for hits in found.chunks.values() for chunk in hits})


# An arm's scores for a query's first files.
Says = Callable[[Found, str, Sequence[int]], Floats]


def by_calls(way: str, found: Found, query: str, files: Sequence[int]) -> Floats:
    """Score by calls from or to the first five files."""
    weights = found.calls if way == "called" else found.calls.T
    shares = weights / np.maximum(weights.sum(axis=1, keepdims=True), 1e-9)
    given = np.zeros(len(found.paths))
    for number, total, _ in found.files[query][:5]:
        given[number] = total
    said: Floats = (given @ shares)[list(files)].astype(np.float32)
    return said


def by_reader(
    scores: dict[tuple[str, int], float], found: Found, query: str, files: Sequence[int]
) -> Floats:
    return np.array([scores[query, number] for number in files], np.float32)


def by_vectors(vectors: dict[tuple[str, int], Floats], asked: dict[str, Floats], best: int, found: Found, query: str,
               files: Sequence[int]) -> Floats:  # fmt: skip
    """Score by the mean of each file's `best` nearest found chunks."""
    near: dict[int, list[float]] = {}
    for chunk in found.chunks[query]:
        cosine = float(vectors[found.name, chunk] @ asked[query])
        near.setdefault(int(found.file_of[chunk]), []).append(cosine)
    return np.array(
        [np.mean(sorted(near.get(number, [0.0]), reverse=True)[:best]) for number in files],
        dtype=np.float32,
    )


def arms(founds: dict[str, Found], kept: Path) -> dict[str, Says]:
    ways: dict[str, Says] = {
        f"calls, {way}": partial(by_calls, way) for way in ("called", "calling")
    }
    for reader in READERS:
        said, scores, place = np.load(kept / f"{reader}.npy").ravel(), {}, 0
        for found in founds.values():
            for query, files in found.files.items():
                for number, _, _ in files[:FILES]:
                    scores[query, number] = float(said[place])
                    place += 1
        assert place == len(said), "scored for other queries"
        ways[reader] = partial(by_reader, scores)
    whole = np.load(kept / "embedder.npy").astype(np.float32)
    whole /= np.linalg.norm(whole, axis=1, keepdims=True)
    rows = iter(whole)
    vectors = {
        (found.name, chunk): next(rows) for found in founds.values() for chunk in _embedded(found)
    }
    asked = {query: next(rows) for found in founds.values() for query in found.asked}
    ways |= {
        f"embedder, {best} chunks a file": partial(by_vectors, vectors, asked, best)
        for best in (1, 3)
    }
    return ways


def run_of(
    founds: dict[str, Found], says: Says | None, weight: float
) -> dict[str, list[tuple[str, float]]]:
    return {
        query: strictly_decreasing(
            (found.paths[number], -place)
            for place, number in enumerate(_order(found, query, says, weight))
        )
        for found in founds.values()
        for query in found.files
    }


def _order(found: Found, query: str, says: Says | None, weight: float) -> list[int]:
    files = [number for number, _, _ in found.files[query]]
    if says is None or len(files) < 2:
        return files
    sums = np.array([total for _, total, _ in found.files[query][:FILES]])
    new = _standard(sums) + weight * _standard(says(found, query, files[:FILES]))
    return [files[place] for place in np.argsort(-new, kind="stable")] + files[FILES:]


def _standard(values: NDArray[Any]) -> NDArray[Any]:
    shown: NDArray[Any] = (values - values.mean()) / (values.std() + 1e-9)
    return shown


def report(sets: Sequence[CodeSet], kept: Path) -> dict[str, Any]:
    founds = found_of(sets, kept)
    of = figures.sets_of(sets)
    base = figures.measured(sets, run_of(founds, None, 0))
    value: dict[str, Any] = {"default": {name: _means(base, name) for name in GROUPS}}
    for name, says in arms(founds, kept).items():
        for weight in WEIGHTS_TRIED:
            tried = figures.measured(sets, run_of(founds, says, weight))
            against = figures.differences(base, tried, of)
            value[f"{name}, {weight}"] = {
                group: {**_means(tried, group), "difference": _versus(against[group]["nDCG@10"])}
                for group in GROUPS
            }
    return value


def _means(values: Any, group: str) -> dict[str, float]:
    return {name: round(values.by_stratum[group][name], 4) for name in figures.MEASURES}


def _versus(one: figures.Difference) -> list[float]:
    return [round(number, 4) for number in (one.difference, one.low, one.high)]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sets", type=Path)
    parser.add_argument("--kept", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=RESULT)
    parser.add_argument("stage", choices=("prepare", "score", "report"))
    given = parser.parse_args()
    given.kept.mkdir(exist_ok=True)
    sets = _headline(read_sets(given.sets))
    if given.stage == "report":
        made = {**manifest(), "files": FILES, "chunks": CHUNKS}
        value = {"manifest": made, "arms": report(sets, given.kept)}
        given.out.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")
    else:
        {"prepare": prepare, "score": score}[given.stage](sets, given.kept)


def _headline(sets: Sequence[CodeSet]) -> list[CodeSet]:
    kept = []
    for one in sets:
        queries = tuple(
            query for query in one.queries if query.stratum not in figures.GENERATED_STRATA
        )
        grades = {query.id: one.grades[query.id] for query in queries}
        kept.append(
            CodeSet(name=one.name, tree=one.tree, root=one.root, queries=queries, grades=grades)
        )
    return [one for one in kept if one.queries]


if __name__ == "__main__":
    main()
