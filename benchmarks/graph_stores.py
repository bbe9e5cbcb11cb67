"""Stores whose graph comes from given triples, beside or instead of the rules.

The triples were made by a language model over the very passages of the corpora; they stand in for one here and enter by
the store's own door, as those of a language model would.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from trivet.graph.canonical import canonical
from trivet.graph.mentions import ROLES, Triple
from trivet.lab.bench import Bench, open_bench
from trivet.lab.dataset_types import Dataset
from trivet.lab.read_files import content, existing
from trivet.settings import Settings
from trivet.trivet import Trivet

Source = Literal["rules", "triples", "both"]

FILES: Mapping[str, str] = {
    "hotpotqa": "openie_hotpotqa_results_ner_gpt-3.5-turbo-1106_9221.json",
    "musique": "openie_musique_results_ner_gpt-3.5-turbo-1106_11656.json",
}
LEASED = 500
LEASE_SECONDS = 600.0


def given_triples(name: str, data_folder: Path) -> dict[str, list[Any]]:
    """What the model said of each passage, by the passage's text without its spaces."""
    path = existing(data_folder / "multihop", FILES[name])
    entries = json.loads(content(path))["docs"]  # the file has figures that are NaN, which strict readers refuse
    return {squeezed(entry["passage"]): entry["extracted_triples"] for entry in entries}


def squeezed(text: str) -> str:
    return "".join(text.split())


def usable(given: Sequence[Any]) -> tuple[list[Triple], Counter[str]]:
    """The triples a graph can take, and how many were left out for which reason."""
    kept: list[Triple] = []
    counts: Counter[str] = Counter()
    for one in given:
        if not (isinstance(one, list) and len(one) == 3 and all(isinstance(part, str) for part in one)):
            counts["not three texts"] += 1
        elif not (canonical(one[0]) and canonical(one[2])):
            counts["a name of nothing, or too long"] += 1
        else:
            counts["kept"] += 1
            kept.append(Triple(subject=one[0], relation=one[1], object=one[2]))
    return kept, counts


def open_with(source: Source, dataset: Dataset, cache: Path, folder: Path, data: Path) -> tuple[Bench, dict[str, int]]:
    """A bench over a copy of the dataset's store with another graph, and what became of the triples."""
    path = _copy(dataset, cache, folder)
    if source == "triples":
        keep_titles_only(path)
    with open_bench(dataset, folder, "stock") as bench:
        counts = _add_triples(bench, given_triples(dataset.name, data))
    # Opened anew, so that the network in memory is that of the file.
    return open_bench(dataset, folder, "stock"), counts


def open_without_links(dataset: Dataset, cache: Path, folder: Path) -> Trivet:
    """A copy of the dataset's store from which the links are gone. A bench would make them again, so it is none."""
    path = _copy(dataset, cache, folder)
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("DELETE FROM link")
    connection.close()
    return Trivet.open(settings=Settings(path=str(path), embedder="stock", background=False))


def keep_titles_only(path: Path) -> None:
    """Of what the rules found, only what a memory is about stays: in these corpora, its title."""
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("DELETE FROM mention WHERE reader = 'rules' AND role < ?", (ROLES.index("about"),))
        connection.execute("DELETE FROM concept WHERE concept NOT IN (SELECT concept FROM mention)")
    connection.close()


def size_of_graph(bench: Bench) -> dict[str, int]:
    """Mentions, concepts, and concepts that lead anywhere, which are those that two memories mention."""
    connection = sqlite3.connect(bench.trivet.settings.path)
    counted = "SELECT count(DISTINCT memory) AS held FROM mention GROUP BY concept"
    mentions = connection.execute("SELECT count(*) FROM (SELECT 1 FROM mention GROUP BY memory, concept)").fetchone()[0]
    concepts, shared = connection.execute(f"SELECT count(*), sum(held > 1) FROM ({counted})").fetchone()
    connection.close()
    return {"mentions": mentions, "concepts": concepts, "shared concepts": int(shared or 0)}


def _copy(dataset: Dataset, cache: Path, folder: Path) -> Path:
    with open_bench(dataset, cache, "stock") as bench:
        path = folder / Path(bench.trivet.settings.path).name
        bench.trivet.engine.store.upkeep.backup(path)
    return path


def _add_triples(bench: Bench, given: Mapping[str, list[Any]]) -> dict[str, int]:
    graph = bench.trivet.engine.store.graph
    counts: Counter[str] = Counter()
    graph.ask_for_triples()
    while readings := graph.lease("triples", LEASED, LEASE_SECONDS):
        done = []
        for reading in readings:
            said = given.get(squeezed(f"{reading.title or ''}{reading.content}"))
            kept, counted = usable(said or [])
            counts += counted + Counter({"passages without an entry": int(said is None)})
            done.append((reading, kept))
        graph.finish_triples(done)
    return dict(counts)
