r"""Write the texts that embedders are judged on: passages, queries and grades, without stores.

TRIVET_DATA=/path/to/originals python training/eval_texts.py --output eval.json.xz \
    [--written FOLDER]

One file for all corpora, small enough to transfer. Passages are cut like the worker's: to the
bundled embedder's window, under the memory's title. Additional stores of mixed length:
`locomo_sessions` (one memory per session), `locomo_mixed` (half of the sessions whole, the rest by
turns), `written` (held-out part of `--written`), `mixed` (the stores of `--stores`), `lives` (the
dev half of the made-up stores) and `til`, notes without questions that `judge_dense.py` mixes with
all others.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import random
import tarfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trivet.lab.datasets.catalog import import_original
from trivet.lab.datasets.dataset import Dataset, Document
from trivet.lab.datasets.plain_layout import collection, house, lives
from trivet.memory.passages import cut
from trivet.models.embed.base import Embedder
from trivet.models.embed.onnx import bundled
from written_memories import Written, held_out, read_written

CORPORA = ("locomo", "lihua", "scifact", "cranfield", "cosqa", "hotpotqa", "musique", "house")
LONGEST_TITLE = 300
SEED = 11


@dataclass(frozen=True, slots=True)
class Memory:
    text: str
    title: str | None = None
    scope: str | None = None


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--output", type=Path, required=True, help="corpora that it has already are kept"
    )
    parser.add_argument("--written", type=Path, help="folder of long-*.jsonl and short-*.jsonl")
    parser.add_argument("--stores", type=Path, help="folder of small stores of mixed lengths")
    parser.add_argument("--again", nargs="*", default=[], help="make these corpora again")
    arguments = parser.parse_args()
    path: Path = arguments.output
    known = json.loads(lzma.decompress(path.read_bytes())) if path.exists() else []
    packed = {
        one["name"]: one for one in known if one["name"] not in arguments.again and one["scopes"]
    }
    for name, make in _makers(bundled(), arguments).items():
        if name not in packed:
            packed[name] = make()
    for name, one in packed.items():
        print(
            name,
            len(one["scopes"]),
            "memories",
            len(one["passages"]),
            "passages",
            len(one["queries"]),
            "queries",
        )
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 9, "dict_size": 64 * 2**20}]
    data = json.dumps(list(packed.values()), ensure_ascii=False).encode()
    path.write_bytes(lzma.compress(data, format=lzma.FORMAT_XZ, filters=filters))
    print(path, path.stat().st_size)


def _makers(
    embedder: Embedder, arguments: argparse.Namespace
) -> dict[str, Callable[[], dict[str, Any]]]:
    def original(name: str) -> Callable[[], dict[str, Any]]:
        return lambda: _of_dataset(
            embedder, name, house() if name == "house" else import_original(name)
        )

    makers = {name: original(name) for name in CORPORA}
    makers["lives"] = lambda: _stores(embedder, "lives", lives("dev"))
    makers["locomo_sessions"] = lambda: _joined(
        embedder, "locomo_sessions", import_original("locomo"), share=1.0
    )
    makers["locomo_mixed"] = lambda: _joined(
        embedder, "locomo_mixed", import_original("locomo"), share=0.5
    )
    makers["til"] = lambda: corpus(
        embedder, "til", [Memory(text, title) for title, text in _notes()], []
    )
    if arguments.stores:
        makers["mixed"] = lambda: _stores(embedder, "mixed", collection(arguments.stores))
    if arguments.written:
        makers["written"] = lambda: _written(embedder, read_written(arguments.written))
    return makers


def corpus(
    embedder: Embedder, name: str, memories: Sequence[Memory], queries: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    passages = [
        (place, text)
        for place, memory in enumerate(memories)
        for text in passages_of(embedder, memory)
    ]
    return {
        "name": name,
        "scopes": [memory.scope for memory in memories],
        "words": [len(memory.text.split()) for memory in memories],
        "passages": [text for _, text in passages],
        "document_of": [place for place, _ in passages],
        "queries": list(queries),
    }


def passages_of(embedder: Embedder, memory: Memory) -> list[str]:
    """Return passages as the worker cuts them, each under its memory's title."""
    title = memory.title[:LONGEST_TITLE] if memory.title else None
    room = embedder.window
    if title:
        room = max(room // 2, room - embedder.count_tokens([title])[0])
    texts = (
        memory.text[one.start : one.stop] for one in cut(memory.text, embedder.count_tokens, room)
    )
    return [f"{title}\n{text}" if title else text for text in texts]


def _of_dataset(embedder: Embedder, name: str, dataset: Dataset) -> dict[str, Any]:
    kept = [document for document in dataset.documents if not document.sensitive]
    return corpus(embedder, name, [_memory(document) for document in kept], _queries(dataset, kept))


def _memory(document: Document) -> Memory:
    return Memory(document.text, document.title, document.scope)


def _queries(
    dataset: Dataset, kept: Sequence[Document], places: Mapping[str, int] | None = None
) -> list[dict[str, Any]]:
    found = places or {document.id: place for place, document in enumerate(kept)}
    asked = []
    for query in dataset.queries:
        grades: dict[str, int] = {}
        for document, grade in dataset.grades.get(query.id, {}).items():
            if document in found and grade > 0:
                place = str(found[document])
                grades[place] = max(grade, grades.get(place, 0))
        if grades:
            asked.append(
                {
                    "text": query.text,
                    "scope": query.scope,
                    "stratum": query.stratum,
                    "grades": grades,
                }
            )
    return asked


def _stores(embedder: Embedder, name: str, datasets: Iterable[Dataset]) -> dict[str, Any]:
    memories: list[Memory] = []
    queries: list[dict[str, Any]] = []
    for dataset in datasets:
        kept = [document for document in dataset.documents if not document.sensitive]
        places = {document.id: len(memories) + place for place, document in enumerate(kept)}
        memories += [Memory(document.text, document.title, dataset.name) for document in kept]
        queries += [query | {"scope": dataset.name} for query in _queries(dataset, kept, places)]
    return corpus(embedder, name, memories, queries)


def _joined(embedder: Embedder, name: str, dataset: Dataset, share: float) -> dict[str, Any]:
    chance = random.Random(SEED)
    sessions: dict[tuple[str | None, str | None], list[Document]] = {}
    for document in dataset.documents:
        sessions.setdefault((document.scope, document.created_at), []).append(document)
    memories: list[Memory] = []
    places: dict[str, int] = {}
    for (scope, _), turns in sessions.items():
        if chance.random() < share:
            places |= {turn.id: len(memories) for turn in turns}
            memories.append(Memory("\n".join(turn.text for turn in turns), None, scope))
        else:
            for turn in turns:
                places[turn.id] = len(memories)
                memories.append(_memory(turn))
    return corpus(embedder, name, memories, _queries(dataset, [], places))


def _written(embedder: Embedder, everything: Sequence[Written]) -> dict[str, Any]:
    written = [one for one in everything if held_out(one.text)]
    queries = [
        {
            "text": text,
            "scope": None,
            "stratum": f"{'long' if one.long else 'short'} {form}",
            "grades": {str(place): 1},
        }
        for place, one in enumerate(written)
        for form, texts in one.asked.items()
        for text in texts
    ]
    return corpus(embedder, "written", [Memory(one.text) for one in written], queries)


def _notes() -> Iterator[tuple[str, str]]:
    with tarfile.open(Path(os.environ["TRIVET_DATA"]) / "til" / "til.tar.gz") as archive:
        for member in archive:
            file = archive.extractfile(member) if member.name.endswith(".md") else None
            text = file.read().decode("utf-8", errors="ignore").strip() if file else ""
            if text:
                yield Path(member.name).stem.replace("-", " "), text


if __name__ == "__main__":
    main()
