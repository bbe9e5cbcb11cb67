"""Reading memories with a language model: takes what waits, asks, checks the answer, stores what it states."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from trivet.clock import now
from trivet.errors import EmbedderError
from trivet.memory.background.triples import prompt
from trivet.memory.background.triples.parse import parse
from trivet.memory.background.triples.resolve import resolve
from trivet.memory.token_budget import Budget
from trivet.models.chat import BadAnswer, Chat
from trivet.models.embed.base import Embedder
from trivet.models.http import Limits
from trivet.store.records import Reading

if TYPE_CHECKING:
    from trivet.store import Store

# A model on this machine says nothing until its whole answer is made, which may take minutes without a GPU.
# One attempt: the queue is what tries again.
LIMITS = Limits(seconds=180.0, deadline=180.0, attempts=1, most_bytes=2**20)
# Somebody waits for it; a local model that has to be loaded first needs some seconds.
PROBE_LIMITS = Limits(seconds=20.0, deadline=20.0, attempts=1, most_bytes=2**20)
# Two requests a batch at most; if the process dies, another takes over then.
LEASE_SECONDS = 2 * LIMITS.deadline + 60.0
FIRST_RETRY_SECONDS = 30.0
LONGEST_RETRY_SECONDS = 1_800.0
# A memory whose answer was useless so often is left to the rules.
MOST_ATTEMPTS = 4


class Triples:
    """Reads for triples, one batch at a time. After a failure it is quiet for a while, then tries a single memory."""

    def __init__(self, store: Store, chat: Chat, tokens_a_day: int, embedder: Embedder) -> None:
        self.chat = chat
        self.budget = Budget(store.graph, tokens_a_day)
        self.last_error: str | None = None
        self.skipped: Counter[str] = Counter()
        self._graph = store.graph
        self._embedder = embedder
        self._reading = threading.Lock()
        self._leased: tuple[Reading, ...] = ()
        self._failures = 0
        self._quiet_until = 0.0
        self._used_up_on: str | None = None

    def drain(self, stop: threading.Event) -> int:
        """Reads what waits until nothing does, the budget is used up or the endpoint fails; says how many it read."""
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
        """Whether nothing is asked for now: after a failure, or because today's budget is used up."""
        return self._used_up_on == now()[:10] or time.monotonic() < self._quiet_until

    def wake(self) -> None:
        """Tries again at once, whatever failed before."""
        self._quiet_until = 0.0
        self._graph.retry_now("triples")

    def probe(self) -> str | None:
        """Asks the model for next to nothing; what went wrong, or None if it answered in JSON."""
        try:
            self.chat.ask('Answer with the JSON {"ready": true} alone.', {}, limits=PROBE_LIMITS)
        except (EmbedderError, BadAnswer) as error:
            return str(error)
        return None

    def let_go(self) -> None:
        """Gives back what is leased, so that the next process need not wait. A late answer finds it taken or closed."""
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
        """Asks about a batch and stores what comes of it: how many were read."""
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
        self._settled([batch[place] for place in places])
        silent = [reading for place, reading in enumerate(batch) if place not in parsed.triples]
        if silent:
            self._answered_badly(silent, "the answer says nothing about this memory")
        return len(places)

    def _same(self, pairs: Sequence[tuple[str, str, str]]) -> frozenset[int]:
        """Which pairs of names are one. A model that fails or may not be asked leaves them apart."""
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
        """The endpoint is down: nothing more is asked for a while, longer each time."""
        self.last_error = error
        pause = _retry_after(self._failures)
        self._failures += 1
        self._quiet_until = time.monotonic() + pause
        self._graph.fail("triples", batch, error, pause)
        self._settled(batch)

    def _answered_badly(self, readings: Sequence[Reading], error: str) -> None:
        """The endpoint is up and these cost it: each is tried again alone, and in the end left to the rules."""
        self.skipped["memories without a useful answer"] += len(readings)
        self.last_error = f"{self.chat.model}: {error}"
        given_up = [reading for reading in readings if reading.attempts + 1 >= MOST_ATTEMPTS]
        self._graph.finish_triples([(reading, ()) for reading in given_up])
        for reading in readings:
            if reading not in given_up:
                self._graph.fail("triples", [reading], self.last_error, _retry_after(reading.attempts))
        self._settled(readings)

    def _settled(self, readings: Sequence[Reading]) -> None:
        self._leased = tuple(one for one in self._leased if one not in readings)

    def _rest_for_today(self) -> None:
        self._used_up_on = now()[:10]
        self.last_error = (
            f"the language model's budget of {self.budget.tokens_a_day} tokens a day is used up; what waits is read "
            "tomorrow (UTC), or set TRIVET_GRAPH_LLM_TOKENS_A_DAY higher"
        )


def _batches(readings: Sequence[Reading]) -> Iterator[list[Reading]]:
    """As much as one request takes; what has failed before alone, so that one bad text costs no other."""
    batch: list[Reading] = []
    size = 0
    for reading in (reading for reading in readings if not reading.attempts):
        length = len(prompt.text_of(reading))
        if batch and size + length > prompt.CHARACTERS_AT_ONCE:
            yield batch
            batch, size = [], 0
        batch.append(reading)
        size += length
    if batch:
        yield batch
    yield from ([reading] for reading in readings if reading.attempts)


def _retry_after(attempts: int) -> float:
    """Doubles from half a minute to half an hour, with jitter so that many clients do not return at once."""
    seconds: float = min(LONGEST_RETRY_SECONDS, FIRST_RETRY_SECONDS * 2.0 ** min(attempts, 20))
    return seconds * random.uniform(0.8, 1.2)
