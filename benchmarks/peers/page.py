"""docs/results/peers.md, made from peers.json."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from peers.products import OURS
from peers.quality import MEASURES
from trivet.lab.document import Page, Paragraph, Section, Table

Figures = Mapping[str, Any]

MISSING = "–"
MEGABYTE = 2**20
COMMAND = "PYTHONPATH=benchmarks .venv/bin/python -m peers --data FOLDER --work FOLDER"
OPENING = (
    "Trivet and products for the same purpose, on the same texts, in one run by `benchmarks/peers`; all figures are in "
    "[peers.json](peers.json). Every product gets the same vectors, those of all-MiniLM-L6-v2 (the 8-bit one of "
    "`tests/models/minilm`), through its own way of taking vectors or in the place of its model, and is set as its "
    "manual says it does best. Below, *as it comes* is a plain install with its own model."
)
FAIRNESS = (
    "Every scope of a collection has a store of its own (in LoCoMo a conversation, ten of them), and "
    "gets nothing but the texts: no times, titles or tags. Every question asks for ten. The differences are to Trivet "
    "with the same vectors, query by query, with 95 % intervals of the paired bootstrap; one that holds 0 shows no "
    "difference. LoCoMo is counted by turn: a hit is a turn that is named as evidence. Trivet's defaults were chosen "
    "on LoCoMo and Cranfield, among others ([evidence](evidence.md)); those of the others were not, as far as we know."
)
KILLED = (
    "A driver writes one document at a time and says so when the product's call has returned; it is killed (SIGKILL) "
    "within the next write, and the store is opened again and asked at once. Lost are documents that were acknowledged "
    "and are gone; not found are those that a search for their own text does not bring among ten. A kill leaves what "
    "the operating system has been given: this is no test of a power cut. Disk and memory are of one store with all "
    "turns of LoCoMo, memory of the whole process after some hundred searches, with Python and the libraries."
)
TIMED = (
    "One store with all turns of LoCoMo, by the clock of the driver, one request at a time. *With embedding* adds what "
    "the model took for the same question in the same run (as it comes, its own model works inside the recall). "
    "Writes have their vectors already, but for products as they come. They count until all can be found; recalls are "
    "timed when nothing works in the background any more (Trivet as it comes compares memories for minutes after an "
    "import)."
)
NOT_TIMED = "Not measured yet: times need a machine that does nothing else (`--times`)."


def page(result: Figures) -> Page:
    return Page(
        title="Trivet and its peers",
        opening=OPENING,
        sections=[
            Section("Quality", [Paragraph(FAIRNESS), *_quality(result)]),
            Section("Killed in the middle of writes; disk and memory", [Paragraph(KILLED), _robustness(result)]),
            Section("Times", [Paragraph(TIMED if result.get("times") else NOT_TIMED), *_times(result)]),
            Section("Versions and settings", [_settings(result)]),
            Section("Left out", [_pairs(("what", "why"), result.get("left_out", {}))]),
            Section("How it was made", [Paragraph(_how()), _made(result)]),
        ],
    )


def _quality(result: Figures) -> Iterator[Table]:
    for corpus, figures in result.get("quality", {}).items():
        head = f"{corpus}: {figures['documents']:,} documents, {figures['queries']:,} questions"
        columns = [column for name in MEASURES for column in (name, "against Trivet")]
        names = sorted(figures["arms"], key=lambda name: -figures["arms"][name]["means"][MEASURES[-1]])
        yield Table((head, *columns), [quality_row(title(result, name), figures["arms"][name]) for name in names])


def quality_row(name: str, figures: Figures) -> tuple[str, ...]:
    cells = ((f"{figures['means'][one]:.3f}", difference(figures["against"].get(one))) for one in MEASURES)
    return (name, *(cell for pair in cells for cell in pair))


def difference(found: Figures | None) -> str:
    return f"{found['difference']:+.3f} ({found['low']:+.3f} to {found['high']:+.3f})" if found else MISSING


def _robustness(result: Figures) -> Table:
    header = ("", "kills", "acknowledged", "lost", "not found", "disk, MB", "memory, MB")
    kills, loads = result.get("kills", {}), result.get("load", {})
    names = [name for name in result["arms"] if name in kills or name in loads]
    return Table(header, [robust_row(title(result, one), kills.get(one, {}), loads.get(one, {})) for one in names])


def robust_row(name: str, killed: Figures, loaded: Figures) -> tuple[str, ...]:
    counts = (str(killed.get(one, MISSING)) for one in ("rounds", "acknowledged", "lost", "not_found"))
    sizes = (_megabytes(loaded.get(one)) for one in ("disk_bytes", "memory_bytes"))
    return (name, *counts, *sizes)


def _megabytes(value: int | None) -> str:
    return MISSING if value is None else f"{value / MEGABYTE:,.0f}"


def _times(result: Figures) -> Iterator[Table]:
    times = result.get("times", {})
    if times:
        header = ("ms", "recall p50", "p95", "with embedding p50", "p95", "a write p50", "writes a second, in batches")
        names = [name for name in result["arms"] if "recall_with_embedding_ms" in times.get(name, {})]
        yield Table(header, [times_row(title(result, name), times[name]) for name in names])


def times_row(name: str, figures: Figures) -> tuple[str, ...]:
    bare, whole = figures["recall_ms"] or {}, figures["recall_with_embedding_ms"]
    spread = [f"{found[part]:.1f}" if found else MISSING for found in (bare, whole) for part in ("p50", "p95")]
    writes = (f"{figures['single_write_ms']['p50']:.1f}", f"{figures['writes_per_second_in_batches']:,.0f}")
    return (name, *spread, *writes)


def _settings(result: Figures) -> Table:
    rows = [
        (one["title"], ", ".join(f"{name} {version}" for name, version in one["versions"].items()), one["setting"])
        for one in result["products"].values()
    ]
    return Table(("product", "versions", "setting"), rows)


def _how() -> str:
    return (
        f"`{COMMAND} --quality --kills --load`, and on a quiet machine `{COMMAND} --times`. That of `--data` holds the "
        "collections as `trivet lab import` takes them; that of `--work` keeps environments, vectors and answers. "
        "`benchmarks/peers/products.py` is the table of versions, `benchmarks/peers/drivers` has one small file a "
        "product, which shows how it is used. To correct one, change its driver and run "
        "`--products NAME`."
    )


def _made(result: Figures) -> Table:
    rows = [
        (
            part,
            made["commit"][:10],
            made["date"],
            made["python"],
            f"{made['machine']}; load {made['load']}",
            made.get("note", ""),
        )
        for part, made in result.get("manifests", {}).items()
    ]
    return Table(("part", "commit", "date", "Python", "machine", "note"), rows)


def _pairs(header: tuple[str, str], pairs: Mapping[str, str]) -> Table:
    return Table(header, list(pairs.items()))


def title(result: Figures, arm: str) -> str:
    """Ours in bold, so that it is found at a glance in tables that are sorted by quality."""
    name = str(result["arms"][arm]["title"])
    return f"**{name}**" if arm.startswith(OURS) else name
