"""A language model reads memories for the graph: leases what waits, asks, checks the answer, stores the statements."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from trivet.clock import now
from trivet.errors import EmbedderError
from trivet.memory.background.retry import batches, retry_after
from trivet.memory.background.triples import prompt
from trivet.memory.background.triples.parse import parse
from trivet.memory.background.triples.resolve import resolve
from trivet.memory.token_budget import TokenBudget
from trivet.models.chat import BadAnswer, Chat
from trivet.models.embed.base import Embedder
from trivet.models.http import Limits
from trivet.store.records import Reading

if TYPE_CHECKING:
    from trivet.store import Store

# A local model sends nothing until its whole answer is made, which may take minutes without a GPU.
# One attempt: the queue tries again.
LIMITS = Limits(seconds=180.0, deadline=180.0, attempts=1, most_bytes=2**20)
# For `doctor`, whose user waits; a local model that must be loaded first needs some seconds.
PROBE_LIMITS = Limits(seconds=20.0, deadline=20.0, attempts=1, most_bytes=2**20)
# At most two requests a batch; if the process dies, another continues after the lease.
LEASE_SECONDS = 2 * LIMITS.deadline + 60.0
FIRST_RETRY_SECONDS = 30.0
LONGEST_RETRY_SECONDS = 1_800.0
# After so many useless answers only the rules read a memory.
MOST_ATTEMPTS = 4


class Triples:
    """Reads for triples, one batch at a time. After a failure it pauses, then tries a single memory."""

    def __init__(self, store: Store, chat: Chat, tokens_a_day: int, embedder: Embedder) -> None:
        self.chat = chat
        self.budget = TokenBudget(store.graph, tokens_a_day)
        self.last_error: str | None = None
        self.skipped: Counter[str] = Counter()
        self._graph = store.graph
        self._embedder = embedder
        self._reading = threading.Lock()
        self._leased: tuple[Reading, ...] = ()
        self._failures = 0
        self._paused_until = 0.0
        self._used_up_on: str | None = None

    def drain(self, stop: threading.Event) -> int:
        """Reads until nothing waits, the budget is used up or the endpoint fails; returns how many it read."""
        done = 0
        with self._reading:
            self._graph.ask_for_triples()
            while not stop.is_set() and not self.resting:
                readings = self._graph.lease("triples", 1 if self._failures else prompt.MEMORIES_AT_ONCE, LEASE_SECONDS)
                if not readings:
                    break
                done += self._read_leased(readings, stop)
        return done

    @property
    def resting(self) -> bool:
        """Whether it asks nothing now: after a failure, or because today's budget is used up."""
        return self._used_up_on == now()[:10] or time.monotonic() < self._paused_until

    def wake(self) -> None:
        """Tries again at once, whatever failed before."""
        self._paused_until = 0.0
        self._graph.retry_now("triples")

    def probe(self) -> str | None:
        """Asks the model a tiny question; returns what went wrong, or None if it answered in JSON."""
        try:
            self.chat.ask('Answer with the JSON {"ready": true} alone.', {}, limits=PROBE_LIMITS)
        except (EmbedderError, BadAnswer) as error:
            return str(error)
        return None

    def let_go(self) -> None:
        """Releases its leases, so that the next process need not wait. A late answer is then not stored."""
        leased, self._leased = self._leased, ()
        if leased:
            self._graph.release("triples", leased)

    def _read_leased(self, readings: tuple[Reading, ...], stop: threading.Event) -> int:
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

    def _read(self, batch: Sequence[Reading]) -> int:
        """Asks about a batch, stores the statements, and returns how many memories were read."""
        question = prompt.question(batch)
        if not self.budget.take(prompt.INSTRUCTION, question, len(batch) * prompt.ANSWER_TOKENS_OF_ONE):
            self._rest_for_today()
            return 0
        try:
            answer = self.chat.ask(prompt.INSTRUCTION, question, prompt.ANSWER_TOKENS)
            self._failures, self.last_error = 0, None
            return self._store(batch, answer)
        except EmbedderError as error:
            self._failed(batch, str(error))
        except BadAnswer as error:
            self._failures = 0
            self._answered_badly(batch, str(error))
        return 0

    def _store(self, batch: Sequence[Reading], answer: Any) -> int:
        texts = [prompt.text_of(reading) for reading in batch]
        parsed = parse(answer, texts)
        self.skipped.update(parsed.skipped)
        places = sorted(parsed.triples)
        found = [(texts[place], parsed.triples[place]) for place in places]
        resolved = resolve(self._graph, self._embedder, found, self._same)
        self._graph.finish_triples([(batch[place], triples) for place, triples in zip(places, resolved, strict=True)])
        self._drop_leases([batch[place] for place in places])
        silent = [reading for place, reading in enumerate(batch) if place not in parsed.triples]
        if silent:
            self._answered_badly(silent, "the answer says nothing about this memory")
        return len(places)

    def _same(self, pairs: Sequence[tuple[str, str, str]]) -> frozenset[int]:
        """Which pairs of names mean the same; none if the model fails or the budget is used up."""
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

    def _failed(self, batch: Sequence[Reading], error: str) -> None:
        """The endpoint is down: it is asked nothing for a while, longer each time."""
        self.last_error = error
        pause = _retry_after(self._failures)
        self._failures += 1
        self._paused_until = time.monotonic() + pause
        self._graph.fail("triples", batch, error, pause)
        self._drop_leases(batch)

    def _answered_badly(self, readings: Sequence[Reading], error: str) -> None:
        """The endpoint answers, but not on these memories: each is tried again alone, and in the end given up."""
        self.skipped["memories without a useful answer"] += len(readings)
        self.last_error = f"{self.chat.model}: {error}"
        given_up = [reading for reading in readings if reading.attempts + 1 >= MOST_ATTEMPTS]
        self._graph.finish_triples([(reading, ()) for reading in given_up])
        for reading in readings:
            if reading not in given_up:
                self._graph.fail("triples", [reading], self.last_error, _retry_after(reading.attempts))
        self._drop_leases(readings)

    def _drop_leases(self, readings: Sequence[Reading]) -> None:
        self._leased = tuple(one for one in self._leased if one not in readings)

    def _rest_for_today(self) -> None:
        self._used_up_on = now()[:10]
        self.last_error = (
            f"the language model's budget of {self.budget.tokens_a_day} tokens a day is used up; what waits is read "
            "tomorrow (UTC), or set TRIVET_GRAPH_LLM_TOKENS_A_DAY higher"
        )


def _batches(readings: Sequence[Reading]) -> Iterator[Sequence[Reading]]:
    return batches(readings, lambda one: one.attempts, lambda one: len(prompt.text_of(one)), prompt.CHARACTERS_AT_ONCE)


def _retry_after(attempts: int) -> float:
    return retry_after(attempts, FIRST_RETRY_SECONDS, LONGEST_RETRY_SECONDS)
