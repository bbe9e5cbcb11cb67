"""Make docs/results/peers.md from peers.json."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from peers.products import OURS
from peers.quality import MEASURES
from trivet.lab.report.page import Page, Paragraph, Section, Table

Figures = Mapping[str, Any]

MISSING = "–"
MEGABYTE = 2**20
REPEATED = """
    PYTHONPATH=benchmarks .venv/bin/python -m peers --data DATA --work WORK --quality --kills --load
    PYTHONPATH=benchmarks .venv/bin/python -m peers --data DATA --work WORK --times  # quiet machine

DATA holds the collections as `trivet lab import` takes them; WORK keeps environments, vectors and
answers. To correct a product, change its driver in `benchmarks/peers/drivers/` or its settings in
`products.py` and run `--products NAME`.
"""
COMMAND = "PYTHONPATH=benchmarks .venv/bin/python -m peers --data FOLDER --work FOLDER"
OPENING = """
**Question.** How does Trivet compare with products for the same purpose, on the same texts with
the same vectors?

**Answer.** By significant differences in nDCG@10:
{verdicts}

**Method.** `benchmarks/peers` runs all products on one shared machine with two cores;
[peers.json](peers.json) has all figures. Every product gets the vectors of all-MiniLM-L6-v2 (the
8-bit one of `tests/models/minilm`) and its best documented setting. *As installed* is a plain
install with its own model.
"""
FAIRNESS = """
Stores get only texts: no times, titles or tags. Each LoCoMo conversation has its own store. Each
question asks for ten hits. Differences are to Trivet with the same vectors, paired by question,
with 95 % bootstrap intervals. Trivet's defaults were chosen on LoCoMo and Cranfield, among others
([evidence](evidence.md)); the others' were not, as far as we know.
"""
KILLED = """
A driver acknowledges a document when the product's call returns. SIGKILL strikes during the next
write. *Lost*: acknowledged and gone. *Not found*: not among ten hits for its own text. Power cuts
were not tested. Disk and memory of the process are for one store with all turns of LoCoMo.
"""
TIMED = """
One store with all turns of LoCoMo, one request at a time. *With embedding* adds the model's time
for the question. Writes come with their vectors, except as installed, and count until all can be
found. Recalls start after background work, which takes Trivet as installed minutes.
"""
NOT_TIMED = "Not measured yet: times need a machine that does nothing else (`--times`)."


def page(result: Figures) -> Page:
    return Page(
        title="Trivet and its peers",
        opening=OPENING.strip().format(verdicts="\n".join(_verdicts(result))),
        sections=[
            Section("Quality", [Paragraph(FAIRNESS.strip()), *_quality(result)]),
            Section("Kills, disk and memory", [Paragraph(KILLED.strip()), _robustness(result)]),
            Section(
                "Times",
                [Paragraph(TIMED.strip() if result.get("times") else NOT_TIMED), *_times(result)],
            ),
            Section("Versions and settings", [_settings(result)]),
            Section("Left out", [_pairs(("what", "why"), result.get("left_out", {}))]),
            Section("How to repeat it", [Paragraph(REPEATED.strip("\n")), _made(result)]),
        ],
    )


def _verdicts(result: Figures) -> Iterator[str]:
    """Count the products significantly worse and better than Trivet on each collection."""
    for corpus, figures in result.get("quality", {}).items():
        others = [one for name, one in figures["arms"].items() if not name.startswith(OURS)]
        against = [one["against"][MEASURES[-1]] for one in others]
        worse, better = (
            sum(one["high"] < 0 for one in against),
            sum(one["low"] > 0 for one in against),
        )
        found = f"better than {worse} and worse than {better} of {len(others)} products"
        yield f"on {corpus}, Trivet is {found}."


def _quality(result: Figures) -> Iterator[Table]:
    for corpus, figures in result.get("quality", {}).items():
        head = f"{corpus}: {figures['documents']:,} documents, {figures['queries']:,} questions"
        columns = [column for name in MEASURES for column in (name, "against Trivet")]
        names = sorted(
            figures["arms"], key=lambda name: -figures["arms"][name]["means"][MEASURES[-1]]
        )
        yield Table(
            (head, *columns),
            [quality_row(title(result, name), figures["arms"][name]) for name in names],
        )


def quality_row(name: str, figures: Figures) -> tuple[str, ...]:
    cells = (
        (f"{figures['means'][one]:.3f}", difference(figures["against"].get(one)))
        for one in MEASURES
    )
    return (name, *(cell for pair in cells for cell in pair))


def difference(found: Figures | None) -> str:
    return (
        f"{found['difference']:+.3f} ({found['low']:+.3f} to {found['high']:+.3f})"
        if found
        else MISSING
    )


def _robustness(result: Figures) -> Table:
    header = ("", "kills", "acknowledged", "lost", "not found", "disk, MB", "memory, MB")
    kills, loads = result.get("kills", {}), result.get("load", {})
    names = [name for name in result["arms"] if name in kills or name in loads]
    return Table(
        header,
        [robust_row(title(result, one), kills.get(one, {}), loads.get(one, {})) for one in names],
    )


def robust_row(name: str, killed: Figures, loaded: Figures) -> tuple[str, ...]:
    counts = (
        str(killed.get(one, MISSING)) for one in ("rounds", "acknowledged", "lost", "not_found")
    )
    sizes = (_megabytes(loaded.get(one)) for one in ("disk_bytes", "memory_bytes"))
    return (name, *counts, *sizes)


def _megabytes(value: int | None) -> str:
    return MISSING if value is None else f"{value / MEGABYTE:,.0f}"


def _times(result: Figures) -> Iterator[Table]:
    times = result.get("times", {})
    if times:
        header = (
            "ms",
            "recall p50",
            "p95",
            "with embedding p50",
            "p95",
            "a write p50",
            "writes a second, in batches",
        )
        names = [
            name for name in result["arms"] if "recall_with_embedding_ms" in times.get(name, {})
        ]
        yield Table(header, [times_row(title(result, name), times[name]) for name in names])


def times_row(name: str, figures: Figures) -> tuple[str, ...]:
    bare, whole = figures["recall_ms"] or {}, figures["recall_with_embedding_ms"]
    spread = [
        f"{found[part]:.1f}" if found else MISSING
        for found in (bare, whole)
        for part in ("p50", "p95")
    ]
    writes = (
        f"{figures['single_write_ms']['p50']:.1f}",
        f"{figures['writes_per_second_in_batches']:,.0f}",
    )
    return (name, *spread, *writes)


def _settings(result: Figures) -> Table:
    rows = [
        (
            one["title"],
            ", ".join(f"{name} {version}" for name, version in one["versions"].items()),
            one["setting"],
        )
        for one in result["products"].values()
    ]
    return Table(("product", "versions", "setting"), rows)


def _made(result: Figures) -> Paragraph:
    """Say when each part was measured, how busy the machine was, and what differed."""
    said = [
        f"- {part}: {made['date'][:10]}, load {made['load']}"
        + (f"; {made['note']}" if "note" in made else "")
        for part, made in result.get("manifests", {}).items()
    ]
    return Paragraph("\n".join(said))


def _pairs(header: tuple[str, str], pairs: Mapping[str, str]) -> Table:
    return Table(header, list(pairs.items()))


def title(result: Figures, arm: str) -> str:
    """Return the arm's title, ours in bold."""
    name = str(result["arms"][arm]["title"])
    return f"**{name}**" if arm.startswith(OURS) else name
