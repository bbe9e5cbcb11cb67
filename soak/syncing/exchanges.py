"""Messages of a history: lost, repeated, reordered, and cut off by crashes on either side.

Every message goes through its JSON.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from contextlib import contextmanager, nullcontext
from typing import Any

import msgspec

from soak.syncing.check import check_message, check_rights, check_taken, known_words, writable_ids
from soak.syncing.machines import LaptopMachine, caller
from soak.syncing.team import Reply, Request, Team
from trivet.sync import apply_ops as applying
from trivet.sync import server as server_side
from trivet.sync.messages import Acks, Answer, Gone, Op, OtherEpoch, Page

# Acts per operation within the transaction now committed; counted by `watch_acts`.
ACTED: dict[str, int] = {}


class Crash(Exception):
    """The process ends here."""


class Exchanges(Team):
    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        ACTED.clear()  # From an earlier failed history: seeded ids may repeat.

    def ask(self, laptop: LaptopMachine) -> None:
        self.ask_for(
            laptop, self.random.randint(1, 4) if self.random.random() > self.pulls_first else 0
        )

    def ask_for(self, laptop: LaptopMachine, most: int) -> None:
        with laptop.on_its_clock():
            place, ops = laptop.laptop.ask(most)
        check_message(self, laptop.user, ops)
        self.network.append(
            Request(laptop, place, through_json(ops, list[Op]), self.random.randint(1, 5))
        )

    def deliver_some(self) -> None:
        if not self.network:
            return
        random = self.random
        place = random.randrange(len(self.network))
        message, chance = self.network[place], random.random()
        if chance < self.loss:
            self.counts["message lost"] += 1
            self.network.pop(place)
            return
        if chance >= self.loss + self.twice:
            self.network.pop(
                place
            )  # Otherwise it is delivered and stays in the network, to arrive again.
        else:
            self.counts["message repeated"] += 1
        self.counts["message delivered"] += 1
        if isinstance(message, Request):
            self.serve(message)
        else:
            self.receive(message)

    def serve(self, request: Request) -> None:
        chance = self.random.random()
        try:
            answer = self.answer(request, dies=chance < self.crashes)
        except Crash:
            self.counts["server crashed before its commit"] += 1
            self.server.reopen()
            return
        if chance < 2 * self.crashes:
            self.counts["server crashed after its commit"] += 1
        else:
            self.network.append(Reply(request, answer, self.life))

    def answer(self, request: Request, dies: bool = False) -> Answer:
        """Answer within a transaction that a crash rolls back."""
        engine = self.server.trivet.engine.acting_as(caller(request.laptop.user))
        self.settled.update(rev for op in request.ops for rev in op.revs)
        writable = writable_ids(self.server, request.laptop.user) if request.ops else set()
        with self.server.on_its_clock():
            if request.ops:
                answer: Answer = self.pushed(engine, request, dies)
            else:
                answer = server_side.pull(engine, request.place, request.limit)
        if isinstance(answer, Acks):
            # A cloned disk may send the same edit with another base; then it no longer acts.
            for op, ack in zip(request.ops, answer.acks, strict=True):
                if op.kind == "edit" and op.rev and op.op in ACTED and ack.result != "already":
                    self.edits[op.rev] = (op.fields, op.was)
            check_rights(self, request, answer, writable, set(ACTED))
        self.count_acts(request)
        check_message(self, request.laptop.user, answer)
        travelled: Answer = through_json(answer, Acks | Page | OtherEpoch)
        return travelled

    def pushed(self, engine: Any, request: Request, dies: bool) -> Answer:
        with engine.store.feed.transaction():
            answer = server_side.push(engine, request.place, request.ops)
            if dies:
                ACTED.clear()
                raise Crash
        return answer

    def count_acts(self, request: Request) -> None:
        for op in request.ops:
            acted = ACTED.pop(op.op, 0)
            self.acted[op.op, self.life] = self.acted.get((op.op, self.life), 0) + acted

    def receive(self, reply: Reply) -> None:
        laptop: LaptopMachine = reply.request.laptop
        if laptop not in self.laptops:
            return
        # The server was put back since. A laptop drops what this one claims to have; nothing could
        # tell it in time. Whoever put the server back loses those words.
        late = reply.life != self.life
        with (
            self.forgiven(None if laptop.scopes else taken_away(reply.answer))
            if late
            else nullcontext()
        ):
            self.take(laptop, reply)
        self.check_forward(laptop)

    def take(self, laptop: LaptopMachine, reply: Reply) -> None:
        try:
            with laptop.on_its_clock(), laptop.trivet.engine.store.feed.transaction():
                counted = laptop.laptop.receive(reply.request.place, reply.answer)
                if self.random.random() < self.crashes:
                    raise Crash
        except Crash:
            self.counts["laptop crashed before its commit"] += 1
            laptop.reopen()
            return
        if counted:
            check_taken(laptop, reply.answer)

    @contextmanager
    def forgiven(self, ids: Set[str] | None = None) -> Iterator[None]:
        before = known_words(self)
        yield
        lost = before - known_words(self)
        self.forgivable |= {word for word in lost if ids is None or self.words[word][1] in ids}

    def check_forward(self, laptop: LaptopMachine) -> None:
        """Check that a laptop never goes back to an earlier state of a memory.

        Epoch numbers do not compare across the moment (`top` is 0 then) when it learned that the
        server was put back: put back once more, to before that epoch, the server counts the same
        numbers again.
        """
        place = laptop.place
        if not place.top:
            self.seqs = {key: seq for key, seq in self.seqs.items() if key[0] != laptop.name}
        for id, epoch, seq in laptop.rows("SELECT id, epoch, seq FROM replica"):
            before = self.seqs.get((laptop.name, id))
            assert before is None or before[0] != epoch or before[1] <= seq, (
                f"{laptop.name} went back at {id}"
            )
            if epoch == place.epoch:  # None while everything is read again.
                self.seqs[laptop.name, id] = (epoch, seq)

    def come_to_rest(self) -> None:
        self.network = []
        for _ in range(400):
            moved = [self.exchange(laptop) for laptop in self.laptops]
            if not any(moved):
                return
        raise AssertionError("it does not come to rest")

    def exchange(self, laptop: LaptopMachine, most: int = 50) -> bool:
        """Return whether anything moved."""
        with laptop.on_its_clock():
            place, ops = laptop.laptop.ask(most)
        request = Request(laptop, place, through_json(ops, list[Op]), self.page)
        answer = self.answer(request)
        with laptop.on_its_clock():
            laptop.laptop.receive(place, answer)
        check_taken(laptop, answer)
        self.check_forward(laptop)
        if isinstance(answer, Page):
            return bool(answer.items) or answer.more or answer.place.seq != place.seq
        return True


def taken_away(answer: Answer) -> set[str]:
    items = (
        [ack.item for ack in answer.acks]
        if isinstance(answer, Acks)
        else getattr(answer, "items", ())
    )
    return {item.id for item in items if isinstance(item, Gone)}


def watch_acts() -> None:
    """Count each act of the server, so a doubled operation shows."""
    push = applying.OpApplier
    if getattr(push, "watched", False):
        return
    act = push._act

    def counted(self: Any, op: Op) -> Any:
        ACTED[op.op] = ACTED.get(op.op, 0) + 1
        return act(self, op)

    push._act = counted  # type: ignore[method-assign]
    push.watched = True  # type: ignore[attr-defined]


watch_acts()


def through_json(value: Any, kind: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(value), type=kind)
