"""Reading memories for the graph with a language model, and mapping names to concepts."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from trivet.analyse import analyse
from trivet.common.clock import now
from trivet.errors import EmbedderError
from trivet.graph.concepts import Triple, canonical, form, singular
from trivet.memory.worker import triple_prompt as prompt
from trivet.memory.worker.embed_pending import batches, retry_after
from trivet.memory.worker.triple_prompt import (
    DIFFERENT_NAME_NEARNESS,
    SAME_NAME_NEARNESS,
    TokenBudget,
    abbreviations,
    may_be_same_name,
    parse,
    words_of,
)
from trivet.models.chat import BadAnswer, Chat
from trivet.models.embed.base import Embedder, similarity_baseline_of
from trivet.models.http import Limits
from trivet.store.records import ExtractionJob

if TYPE_CHECKING:
    from trivet.store import Store
    from trivet.store.relational.index.graph_index import GraphIndex


# A local model's whole answer may take minutes without a GPU. The queue tries again.
LIMITS = Limits(seconds=180.0, deadline=180.0, attempts=1, most_bytes=2**20)
# `doctor`'s user waits; loading a local model takes a few seconds.
PROBE_LIMITS = Limits(seconds=20.0, deadline=20.0, attempts=1, most_bytes=2**20)
# A batch makes at most two requests.
LEASE_SECONDS = 2 * LIMITS.deadline + 60.0
FIRST_RETRY_SECONDS = 30.0
MAX_RETRY_SECONDS = 1_800.0
# After this many useless answers, only the rules read a memory.
MAX_ATTEMPTS = 4


class Triples:
    """A reader that pauses after a failure, then tries a single memory."""

    def __init__(self, store: Store, chat: Chat, tokens_a_day: int, embedder: Embedder) -> None:
        self.chat = chat
        self.budget = TokenBudget(store.graph, tokens_a_day)
        self.last_error: str | None = None
        self.skipped: Counter[str] = Counter()
        self._graph = store.graph
        self._embedder = embedder
        self._reading = threading.Lock()
        self._leased: tuple[ExtractionJob, ...] = ()
        self._failures = 0
        self._paused_until = 0.0
        self._used_up_on: str | None = None

    def drain(self, stop: threading.Event) -> int:
        done = 0
        with self._reading:
            self._graph.ask_for_triples()
            while not stop.is_set() and not self.resting:
                readings = self._graph.lease(
                    "triples", 1 if self._failures else prompt.MEMORIES_AT_ONCE, LEASE_SECONDS
                )
                if not readings:
                    break
                done += self._read_leased(readings, stop)
        return done

    @property
    def resting(self) -> bool:
        return self._used_up_on == now()[:10] or time.monotonic() < self._paused_until

    def wake(self) -> None:
        self._paused_until = 0.0
        self._graph.retry_now("triples")

    def probe(self) -> str | None:
        """Ask the model a tiny question, and return its error."""
        try:
            self.chat.ask('Answer with the JSON {"ready": true} alone.', {}, limits=PROBE_LIMITS)
        except (EmbedderError, BadAnswer) as error:
            return str(error)
        return None

    def let_go(self) -> None:
        """Release the leases for other processes; late answers are dropped."""
        leased, self._leased = self._leased, ()
        if leased:
            self._graph.release("triples", leased)

    def _read_leased(self, readings: tuple[ExtractionJob, ...], stop: threading.Event) -> int:
        self._leased = readings
        done = 0
        try:
            for batch in _batches(readings):
                if stop.is_set() or self.resting:
                    break
                done += self._read(batch)
        finally:
            self.let_go()
        return done

    def _read(self, batch: Sequence[ExtractionJob]) -> int:
        question = prompt.question(batch)
        if not self.budget.take(
            prompt.INSTRUCTION, question, len(batch) * prompt.ANSWER_TOKENS_OF_ONE
        ):
            self._pause_until_tomorrow()
            return 0
        try:
            answer = self.chat.ask(prompt.INSTRUCTION, question, prompt.ANSWER_TOKENS)
            self._failures, self.last_error = 0, None
            return self._store(batch, answer)
        except EmbedderError as error:
            self._failed(batch, str(error))
        except BadAnswer as error:
            self._failures = 0
            self._record_bad_answer(batch, str(error))
        return 0

    def _store(self, batch: Sequence[ExtractionJob], answer: Any) -> int:
        texts = [prompt.text_of(reading) for reading in batch]
        parsed = parse(answer, texts)
        self.skipped.update(parsed.skipped)
        places = sorted(parsed.triples)
        found = [(texts[place], parsed.triples[place]) for place in places]
        resolved = resolve(self._graph, self._embedder, found, self._same)
        self._graph.finish_triples(
            [(batch[place], triples) for place, triples in zip(places, resolved, strict=True)]
        )
        self._forget_leases([batch[place] for place in places])
        silent = [reading for place, reading in enumerate(batch) if place not in parsed.triples]
        if silent:
            self._record_bad_answer(silent, "the answer says nothing about this memory")
        return len(places)

    def _same(self, pairs: Sequence[tuple[str, str, str]]) -> frozenset[int]:
        question = prompt.same_question(pairs)
        if not self.budget.take(prompt.SAME_INSTRUCTION, question, len(pairs)):
            return frozenset()
        try:
            answer = self.chat.ask(prompt.SAME_INSTRUCTION, question)
        except (EmbedderError, BadAnswer):
            self.skipped["a question about names without answer"] += 1
            return frozenset()
        numbers = answer.get("same") if isinstance(answer, dict) else None
        given = {one for one in numbers if type(one) is int} if isinstance(numbers, list) else set()
        return frozenset(place for place in range(len(pairs)) if place + 1 in given)

    def _failed(self, batch: Sequence[ExtractionJob], error: str) -> None:
        self.last_error = error
        pause = _retry_after(self._failures)
        self._failures += 1
        self._paused_until = time.monotonic() + pause
        self._graph.fail("triples", batch, error, pause)
        self._forget_leases(batch)

    def _record_bad_answer(self, readings: Sequence[ExtractionJob], error: str) -> None:
        self.skipped["memories without a useful answer"] += len(readings)
        self.last_error = f"{self.chat.model}: {error}"
        given_up = [reading for reading in readings if reading.attempts + 1 >= MAX_ATTEMPTS]
        self._graph.finish_triples([(reading, ()) for reading in given_up])
        for reading in readings:
            if reading not in given_up:
                self._graph.fail(
                    "triples", [reading], self.last_error, _retry_after(reading.attempts)
                )
        self._forget_leases(readings)

    def _forget_leases(self, readings: Sequence[ExtractionJob]) -> None:
        self._leased = tuple(one for one in self._leased if one not in readings)

    def _pause_until_tomorrow(self) -> None:
        self._used_up_on = now()[:10]
        self.last_error = (
            f"the language model's budget of {self.budget.tokens_a_day} tokens a day is used "
            "up; the rest is read "
            "tomorrow (UTC). For more, raise TRIVET_GRAPH_LLM_TOKENS_A_DAY"
        )


def _batches(readings: Sequence[ExtractionJob]) -> Iterator[Sequence[ExtractionJob]]:
    return batches(
        readings,
        lambda one: one.attempts,
        lambda one: len(prompt.text_of(one)),
        prompt.CHARACTERS_AT_ONCE,
    )


def _retry_after(attempts: int) -> float:
    return retry_after(attempts, FIRST_RETRY_SECONDS, MAX_RETRY_SECONDS)


# Bounds the names compared with one name: those that share most of its words.
CANDIDATES = 8
MAX_PAIRS_ASKED = 20
CONTEXT_CHARACTERS = 200

# From pairs (name, other name, text around it) to the positions of those that mean the same.
Ask = Callable[[Sequence[tuple[str, str, str]]], frozenset[int]]


class NearestName(msgspec.Struct, frozen=True):
    label: str
    other: str
    concept: str
    nearness: float


def resolve(
    graph: GraphIndex, embedder: Embedder, found: Sequence[tuple[str, Sequence[Triple]]], ask: Ask
) -> list[tuple[Triple, ...]]:
    """Return the triples with concepts; calls `ask` at most once."""
    texts = {
        label: text
        for text, triples in found
        for one in triples
        for label in (one.subject, one.object)
    }
    known = graph.means(list(texts))
    near = _neighbours(graph, embedder, [label for label in texts if label not in known])
    decided = _decided(near, texts, ask)
    plurals = {label: canonical(singular(label)) for label in texts}  # as in the rules
    return [
        tuple(
            _resolved(triple, {**plurals, **decided, **known, **_spelled_out(text)})
            for triple in triples
        )
        for text, triples in found
    ]


def _resolved(triple: Triple, means: Mapping[str, str]) -> Triple:
    subject, object_ = _canonical_for(triple.subject, means), _canonical_for(triple.object, means)
    if (subject or canonical(triple.subject)) == (object_ or canonical(triple.object)):
        return triple  # "WHO is short for World Health Organization" needs two separate ends
    return msgspec.structs.replace(triple, subject_means=subject, object_means=object_)


def _canonical_for(label: str, means: Mapping[str, str]) -> str | None:
    name = means.get(label)
    return name if name and name != canonical(label) else None


def _spelled_out(text: str) -> dict[str, str]:
    return {short: canonical(long) for short, long in abbreviations(text) if canonical(long)}


def _neighbours(graph: GraphIndex, embedder: Embedder, labels: Sequence[str]) -> list[NearestName]:
    terms = sorted({term for label in labels for term in analyse(label)})
    names = graph.names_with(terms) if terms else ()
    compared = {label: _candidates(label, names) for label in labels}
    compared = {label: candidates for label, candidates in compared.items() if candidates}
    if not compared:
        return []
    written = sorted(
        {*compared, *(other for candidates in compared.values() for other, _ in candidates)}
    )
    try:
        vectors = dict(zip(written, embedder.embed_documents(written), strict=True))
    except EmbedderError:  # without vectors no name is near another
        return []
    nearness = similarity_baseline_of(embedder).nearness
    return [
        max(
            (
                NearestName(
                    label, other, concept, nearness(float(np.dot(vectors[label], vectors[other])))
                )
                for other, concept in candidates
            ),
            key=lambda one: (one.nearness, one.concept),
        )
        for label, candidates in compared.items()
    ]


def _candidates(label: str, names: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    words, own = words_of(label), canonical(label)
    fitting = [
        (other, concept)
        for other, concept in names
        if concept != own
        and canonical(other) != own
        and words & words_of(other)
        and may_be_same_name(label, other)
    ]
    fitting.sort(key=lambda pair: (-_overlap(words, words_of(pair[0])), form(pair[0]), pair))
    return fitting[:CANDIDATES]


def _overlap(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / len(one | other)


def _decided(near: Sequence[NearestName], texts: Mapping[str, str], ask: Ask) -> dict[str, str]:
    """Map names to concepts; a target stays itself, so that none swap."""
    nearest_first = sorted(near, key=lambda one: (-one.nearness, one.label))
    doubtful = [
        one for one in nearest_first if DIFFERENT_NAME_NEARNESS <= one.nearness < SAME_NAME_NEARNESS
    ][:MAX_PAIRS_ASKED]
    yes = (
        ask([(one.label, one.other, _around(texts[one.label], one.label)) for one in doubtful])
        if doubtful
        else ()
    )
    same = [one for one in nearest_first if one.nearness >= SAME_NAME_NEARNESS] + [
        doubtful[place] for place in sorted(yes)
    ]
    decided: dict[str, str] = {}
    for one in same:
        if canonical(one.label) not in decided.values():
            decided[one.label] = decided.get(one.other, one.concept)
    return decided


def _around(text: str, label: str) -> str:
    at = max(0, text.lower().find(label.lower()) - CONTEXT_CHARACTERS // 2)
    return text[at : at + CONTEXT_CHARACTERS]
