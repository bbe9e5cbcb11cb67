"""What reaches an agent: deliveries and refusals of each surface, tokens, and calibration."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec
import numpy as np

from trivet.agents.hooks.context import at_start, before_prompt
from trivet.agents.hooks.event import Event
from trivet.errors import InvalidInput, LegFailed
from trivet.lab.datasets.dataset import Query
from trivet.lab.measure.bench import Bench, with_cached_reranking
from trivet.lab.measure.comparison import bootstrap_means, intervals
from trivet.lab.measure.complete_retrieval import asked
from trivet.lab.measure.hit_analysis import FIRST_HITS, Lengths, compare_lengths
from trivet.memory.passages import estimate_tokens
from trivet.serve.mcp.tools import agent_tools, call
from trivet.serve.resident.protocol import HookCall
from trivet.types import Progress, Value

BINS = 10
# Share of answerable queries that must still be answered.
KEPT = 0.9


@dataclass(frozen=True, slots=True)
class Bin:
    """Hits of similar stated probability."""

    count: int
    stated: float
    true: float


def reliability(stated: Sequence[float], relevant: Sequence[bool], bins: int = BINS) -> list[Bin]:
    """Return bins of equal width, without empty ones."""
    parts: list[list[tuple[float, bool]]] = [[] for _ in range(bins)]
    for probability, truth in zip(stated, relevant, strict=True):
        parts[min(int(probability * bins), bins - 1)].append((probability, truth))
    return [
        Bin(
            len(part),
            math.fsum(probability for probability, _ in part) / len(part),
            sum(truth for _, truth in part) / len(part),
        )
        for part in parts
        if part
    ]


def expected_calibration_error(
    stated: Sequence[float], relevant: Sequence[bool], bins: int = BINS
) -> float:
    if not stated:
        return 0.0
    found = reliability(stated, relevant, bins)
    return math.fsum(part.count * abs(part.stated - part.true) for part in found) / len(stated)


def threshold_keeping(answerable: Sequence[float], kept: float = KEPT) -> float:
    """Return the highest threshold that still answers that share of the queries."""
    if not answerable:
        return 0.0
    ordered = sorted(answerable, reverse=True)
    return ordered[max(0, math.ceil(kept * len(ordered)) - 1)]


def refused(best: Sequence[float], threshold: float) -> float:
    """Return the share of queries whose best probability is below the threshold."""
    return sum(probability < threshold for probability in best) / len(best) if best else 0.0


Surface = Literal["recall", "prompt", "start"]
SURFACES: tuple[Surface, ...] = ("recall", "prompt", "start")
# Lowest grade that answers the question, at least in part; below, only the topic matches.
ANSWERS = 2
# Number of hits an agent reads closely.
READ = 3
ALL = "(all)"
RESAMPLES = 1_000
CONFIDENCE = 0.95
# Smaller stores are also reported separately: every user starts with one.
SMALL_STORE = 50
_measure = re.compile(r"(?P<kind>found|delivered)@(?P<depth>[1-9][0-9]{0,2})")
_shown_id = re.compile(r'<memory-data nonce="[0-9a-f]+" id="([0-9a-f-]+)"')


class SurfaceAnswer(Value, frozen=True, kw_only=True):
    documents: tuple[str, ...]
    relevance: tuple[float, ...] = ()
    tokens: int = 0
    nothing: bool = False


class Outcome(Value, frozen=True, kw_only=True):
    """One query on one surface; places count from 1, and None means absent."""

    surface: Surface
    store: str
    memories: int
    query: str
    stratum: str
    answerable: bool
    # Place of the first answer among all candidates, shown or not.
    found: int | None
    delivered: int | None
    refused: bool
    tokens: int
    # For a changed fact: whether no outdated memory precedes the answer.
    current: bool | None = None
    # Probability of each hit, and whether it answers.
    stated: tuple[tuple[float, bool], ...] = ()
    # Lengths of the first candidates and of the answers.
    hit_words: tuple[int, ...] = ()
    answer_words: tuple[int, ...] = ()


class Share(Value, frozen=True, kw_only=True):
    mean: float
    low: float
    high: float
    queries: int


class Row(Value, frozen=True, kw_only=True):
    surface: Surface
    stratum: str
    values: Mapping[str, Share]


class DeliveryReport(Value, frozen=True, kw_only=True):
    rows: tuple[Row, ...]
    calibration_error: float
    calibration_error_small: float
    lengths: Lengths | None = None
    outcomes: tuple[Outcome, ...] = ()


def deliver(
    bench: Bench, surfaces: Sequence[Surface] = SURFACES, progress: Progress | None = None
) -> list[Outcome]:
    outcomes: list[Outcome] = []
    _compare(bench)
    bench = with_cached_reranking(bench)
    with asked("(at a session's start)"):
        at_session_start = _start(bench) if "start" in surfaces else SurfaceAnswer(documents=())
    for query in bench.dataset.queries:
        found = [
            bench.name_of(hit.memory.id) for hit in bench.ask(query, "default", judge=False).hits
        ]
        with bench.clock_at_query_time(query), asked(query.id):
            for surface in surfaces:
                given = (
                    at_session_start if surface == "start" else SURFACE_CALLS[surface](bench, query)
                )
                outcomes.append(_outcome(bench, query, surface, found, given))
        if progress is not None:
            progress(1)
    return outcomes


def _compare(bench: Bench) -> None:
    """Compare the memories with the model: this corpus has facts that change."""
    trouble = bench.trivet.engine.worker.compare()
    if trouble is not None:
        # Discard what the comparison by words alone has stored.
        bench.trivet.engine.store.likely_updates.compare_all()
        raise LegFailed(
            f"{bench.dataset.name}: the model that compares memories did not answer: {trouble}"
        )


def summarize_delivery(outcomes: Sequence[Outcome], more: Sequence[str] = ()) -> DeliveryReport:
    """Summarize; `more` adds measures such as delivered@5."""
    depths = [_placed(name) for name in more]
    stated = [pair for outcome in outcomes for pair in outcome.stated]
    small = [
        pair for outcome in outcomes if outcome.memories < SMALL_STORE for pair in outcome.stated
    ]
    return DeliveryReport(
        rows=tuple(_rows(outcomes, depths)),
        calibration_error=_calibration(stated),
        calibration_error_small=_calibration(small),
        lengths=_lengths(outcomes),
        outcomes=tuple(outcomes),
    )


def measure_named(text: str) -> str:
    kind, depth = _placed(text)
    return f"{kind}@{depth}"


def _placed(text: str) -> tuple[str, int]:
    match = _measure.fullmatch(text.strip().lower())
    if match is None:
        raise InvalidInput(
            f"There is no delivery measure {text!r}. Use found@K or delivered@K, such as "
            "delivered@5."
        )
    return match["kind"], int(match["depth"])


def _lengths(outcomes: Sequence[Outcome]) -> Lengths | None:
    """Count the candidates once: every surface starts from the same ones."""
    once = [one for one in outcomes if one.answerable and one.surface == outcomes[0].surface]
    return compare_lengths(
        [n for one in once for n in one.hit_words], [n for one in once for n in one.answer_words]
    )


def _recall(bench: Bench, query: Query) -> SurfaceAnswer:
    tool = agent_tools()["memory_recall"]
    scope = {"scope": query.scope} if query.scope else {}
    reply = call(bench.trivet, tool, {"query": query.text, **scope})
    hits = reply.structured["hits"]
    return SurfaceAnswer(
        documents=tuple(bench.name_of(hit["id"]) for hit in hits),
        relevance=tuple(hit["relevance"] for hit in hits),
        tokens=estimate_tokens(reply.text),
        nothing=reply.structured.get("nothing_relevant", False) or not hits,
    )


def _prompt(bench: Bench, query: Query) -> SurfaceAnswer:
    """Name no session, so that no query is answered with "shown before"."""
    return _answer_from_hook(
        bench, before_prompt(bench.trivet, _call(bench), _event(prompt=query.text))
    )


def _start(bench: Bench) -> SurfaceAnswer:
    scopes = bench.trivet.stats().scopes
    project = max(scopes, key=lambda scope: scopes[scope]) if scopes else bench.dataset.name
    return _answer_from_hook(
        bench,
        at_start(bench.trivet, _call(bench), _event(folder=f"/home/{project}", source="startup")),
    )


SURFACE_CALLS: Mapping[str, Callable[[Bench, Query], SurfaceAnswer]] = {
    "recall": _recall,
    "prompt": _prompt,
}


def _call(bench: Bench) -> HookCall:
    return HookCall("", b"", {}, bench.trivet.settings)


def _event(prompt: str = "", folder: str = "", source: str = "") -> Event:
    return Event(name="", session="", folder=folder, prompt=prompt, source=source, raw={})


def _answer_from_hook(bench: Bench, answer: bytes) -> SurfaceAnswer:
    if not answer:
        return SurfaceAnswer(documents=(), nothing=True)
    text = msgspec.json.decode(answer)["hookSpecificOutput"]["additionalContext"]
    documents = tuple(bench.name_of(id) for id in dict.fromkeys(_shown_id.findall(text)))
    return SurfaceAnswer(documents=documents, tokens=estimate_tokens(text), nothing=not documents)


def _outcome(
    bench: Bench, query: Query, surface: Surface, found: Sequence[str], given: SurfaceAnswer
) -> Outcome:
    grades = bench.dataset.grades[query.id]
    answers = {document for document, grade in grades.items() if grade >= ANSWERS}
    delivered = _place(given.documents, answers)
    outdated = _place(given.documents, set(query.outdated))
    return Outcome(
        surface=surface,
        store=bench.dataset.name,
        memories=len(bench.dataset.documents),
        query=query.id,
        stratum=query.stratum or ALL,
        answerable=bool(answers),
        found=_place(found, answers),
        delivered=delivered,
        refused=given.nothing,
        tokens=given.tokens,
        current=delivered is not None and (outdated is None or delivered < outdated)
        if query.outdated
        else None,
        stated=tuple(
            zip(
                given.relevance, (document in answers for document in given.documents), strict=False
            )
        ),
        hit_words=tuple(bench.words[document] for document in found[:FIRST_HITS]),
        answer_words=tuple(bench.words[document] for document in sorted(answers)),
    )


def _place(documents: Sequence[str], wanted: set[str]) -> int | None:
    return next((place for place, document in enumerate(documents, 1) if document in wanted), None)


def _rows(outcomes: Sequence[Outcome], more: Sequence[tuple[str, int]]) -> Iterator[Row]:
    for surface in SURFACES:
        here = [outcome for outcome in outcomes if outcome.surface == surface]
        for stratum in (*sorted({outcome.stratum for outcome in here}), ALL):
            chosen = [outcome for outcome in here if stratum in (ALL, outcome.stratum)]
            if chosen:
                yield Row(surface=surface, stratum=stratum, values=_values(chosen, more))


def _values(outcomes: Sequence[Outcome], more: Sequence[tuple[str, int]]) -> dict[str, Share]:
    answerable = [outcome for outcome in outcomes if outcome.answerable]
    unanswerable = [outcome for outcome in outcomes if not outcome.answerable]
    changed = [outcome.current for outcome in outcomes if outcome.current is not None]
    values: dict[str, list[float]] = {
        f"found@{READ}": [_within(outcome.found, READ) for outcome in answerable],
        "delivered@1": [_within(outcome.delivered, 1) for outcome in answerable],
        f"delivered@{READ}": [_within(outcome.delivered, READ) for outcome in answerable],
        "delivered": [float(outcome.delivered is not None) for outcome in answerable],
        "kept": [float(not outcome.refused) for outcome in answerable],
        "refused": [float(outcome.refused) for outcome in unanswerable],
        "current": [float(one) for one in changed],
        "tokens": [float(outcome.tokens) for outcome in outcomes],
    }
    for kind, depth in more:
        places = [outcome.found if kind == "found" else outcome.delivered for outcome in answerable]
        values[f"{kind}@{depth}"] = [_within(place, depth) for place in places]
    return {name: share(found) for name, found in values.items() if found}


def _within(place: int | None, depth: int) -> float:
    return float(place is not None and place <= depth)


def share(values: Sequence[float]) -> Share:
    means = bootstrap_means(np.array(values, dtype=np.float64)[:, None], RESAMPLES, seed=0)
    ((low, high),) = intervals(means, CONFIDENCE)
    return Share(mean=sum(values) / len(values), low=low, high=high, queries=len(values))


def _calibration(stated: Iterable[tuple[float, bool]]) -> float:
    pairs = list(stated)
    return expected_calibration_error([one for one, _ in pairs], [true for _, true in pairs])
