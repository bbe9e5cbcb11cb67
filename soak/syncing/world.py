"""One history: laptops and people act, messages are lost, repeated and reordered, machines crash and are put back.

Every message goes through its JSON. At the end all messages are let through, and `check.py` says what must hold then.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from soak.syncing.check import check_at_rest, check_message, check_rights, check_taken, known_words, writable_ids
from soak.syncing.machines import USERS, LaptopMachine, Machine, caller, copy_store, make_templates, seeded
from trivet import Trivet, TrivetError
from trivet.memory.redact import redact_one
from trivet.secrets.protect import Guard
from trivet.sync import applying
from trivet.sync import server as server_side
from trivet.sync.join import join
from trivet.sync.messages import Acks, Answer, Op, OtherEpoch, Page, Place
from trivet.sync.verbs import conflicts, resolve
from trivet.types import LinkKind, Usefulness

SENSITIVE = "sensitivecanary"
# How often a laptop pulls though something waits, as it does while the server cannot take what it sends.
PULLS_FIRST = (0.2, 0.6)
# How often the server is put back right after a laptop has sent something: what it then knew, only that laptop knows.
TURMOIL = (0.0, 0.0, 0.1)
SECRET = "secretcanary"
# An invented token of a form that the guard knows.
TOKEN = "ghp_" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"
# Another one, which is stored raw: on a server whose guard was off, until its owner redacts it.
RAW = "xoxb-" + "123456789012-1234567890123-A1b2C3d4E5f6G7h8I9j0K1l2"
# How often a link of a memory that has some is taken away, where else another is made.
UNLINKED = 0.4
# How often the server is put back from the same backup again, after a laptop could only pull: it has all that the
# laptop has seen since, and counts the same numbers once more.
AGAIN = 0.5
# So many exchanges without fault bring a laptop level, or nearly.
LEVEL = 3
RAW_EVERY = 7  # of so many histories one begins with it
YEARS = (2016, 2026, 2036)
SCOPES = ("default", "work", "work/plans")
# Ids that several machines make of the same name, as with a vault's files.
SHARED_IDS = tuple(str(uuid.uuid5(uuid.NAMESPACE_URL, f"shared{number}")) for number in range(4))


TEAM = (("a1", "ana"), ("a2", "ana"), ("b1", "bo"))


class Crash(Exception):
    """The process ended here."""


class Request(msgspec.Struct):
    laptop: Any
    place: Place
    ops: list[Op]
    limit: int


class Reply(msgspec.Struct):
    request: Request
    answer: Answer
    life: int  # of the server that said it


class World:
    def __init__(
        self,
        seed: int,
        folder: Path,
        templates: dict[str, Path],
        steps: int | Sequence[int],
        server: Machine | None = None,
    ) -> None:
        """`steps` is how many, or which ones of them: each draws from a seed of its own."""
        self.seed = seed
        self.random = random = Random(seed)
        self.steps = range(steps) if isinstance(steps, int) else steps
        self.begins = server is not None  # one that is not copied from a team that has worked together
        self.server = server or Machine(folder, "server", templates["server"], 2026)
        self.laptops = [
            LaptopMachine(folder, name, user, templates[user if self.begins else name], random.choice(YEARS))
            for name, user in TEAM
        ]
        self.network: list[Request | Reply] = []
        self.edits: dict[str, tuple[Any, Any]] = {}  # what each edit that was sent changes, and what its writer saw
        self.settled: set[str] = set()  # branches that somebody resolved
        self.counts: Counter[str] = Counter()
        self.count = 0
        self.life = 0  # of the server: it was put back so often
        self.acted: dict[tuple[str, int], int] = {}
        self.words: dict[str, tuple[str, str]] = {}  # each word ever written, by whom and into which memory
        for row in self.server.rows("SELECT m.id, m.owner, m.content FROM memory AS m ORDER BY m.id"):
            self.words[row[2].split()[0]] = (row[1], row[0])
        self.count = len(self.words)
        self.purged: set[str] = set()
        self.forgivable: set[str] = set()  # words that no machine could bring any more after a backup was put back
        self.seqs: dict[tuple[str, str], tuple[str, int]] = {}
        self.loss = random.choice((0.0, 0.1, 0.3))
        self.twice = random.choice((0.02, 0.12, 0.5))
        self.acting = random.choice((0.1, 0.3))
        self.crashes = random.choice((0.0, 0.04, 0.1))
        self.mix = random.choice((MIXED, EDITS, SHARES, LINKS))
        self.pulls_first = random.choice(PULLS_FIRST)
        self.turmoil = random.choice(TURMOIL)
        self.asked: dict[str, str] = {}  # each word of a query that feedback named, and of which memory
        self.redacted: set[str] = set()  # memories whose raw secret was taken out
        self.looks_closely = 0.2  # how often recall and doctor are compared, which takes longest

    def run(self) -> None:
        with seeded(self.random):
            try:
                if self.begins:
                    self.begin()
                if self.seed % RAW_EVERY == RAW_EVERY - 1:
                    self.leave_raw()
                for number in self.steps:
                    self.random.seed(f"{self.seed} {number}")
                    self.step()
                self.random.seed(f"{self.seed} at rest")
                self.come_to_rest()
                check_at_rest(self)
            finally:
                for machine in (self.server, *self.laptops):
                    machine.trivet.close()

    def begin(self) -> None:
        """The team has worked together before every history: some memories are shared, one is linked."""
        for laptop in self.laptops[::2]:
            other = next(name for name in USERS if name != laptop.user)
            with laptop.on_its_clock():
                ids = [trivet_id() for _ in range(3)]
                for id in ids:
                    laptop.trivet.remember(f"{self.word(laptop.user, id)} was said.", id=id)
                laptop.trivet.share(id=ids[0], user=other, permission="write")
                laptop.trivet.share(id=ids[1], user=other, permission="read")
                laptop.trivet.link(ids[0], "see-also", ids[1])
        self.come_to_rest()

    def leave_raw(self) -> None:
        """On a server without a guard somebody wrote a secret down; laptops have it until its owner redacts it."""
        for user in USERS:
            id, trivet = trivet_id(), self.server.trivet.acting_as(caller(user))
            unguarded(trivet).remember(f"{self.word(user, id)} the token is {RAW}", id=id)
        self.come_to_rest()

    def step(self) -> None:
        random, chance = self.random, self.random.random()
        laptop = random.choice(self.laptops)
        if chance < self.acting:
            self.act(laptop)
        elif chance < self.acting + 0.3:
            self.ask(laptop)
        elif chance < 0.93 - self.turmoil:
            self.deliver_some()
        elif chance < 0.93:
            self.upset(laptop)
        elif chance < 0.945:
            self.server.back_up()
        elif chance < 0.955 and self.server.backups:
            self.put_server_back()
        elif chance < 0.965:
            laptop.back_up()
        elif chance < 0.972 and laptop.backups:
            self.counts["laptop put back"] += 1
            self.put_back(laptop)
            self.seqs = {place: seq for place, seq in self.seqs.items() if place[0] != laptop.name}
        elif chance < 0.98 and len(self.laptops) < 5:
            self.counts["laptop cloned"] += 1
            self.laptops.append(laptop.cloned(f"{laptop.name}c{len(self.laptops)}"))
        elif chance < 0.985:
            self.counts["laptop holds other scopes"] += 1
            with laptop.on_its_clock():
                scopes = random.choice(((), ("work",), ("default", "work/plans")))
                join(laptop.trivet.engine, "http://server", laptop.user, scopes=scopes)
        elif chance < 0.99:
            self.counts["a mark that never was"] += 1
            self.lie(laptop.user)

    def put_server_back(self, number: int | None = None) -> None:
        self.counts["server put back"] += 1
        self.put_back(self.server, number)
        self.life += 1

    def upset(self, laptop: LaptopMachine) -> None:
        """Someone writes and the server takes it, and then has never heard of it. The laptop may well pull first."""
        self.server.back_up()
        self.act(laptop)
        for _ in range(LEVEL):
            self.exchange(laptop)
        number = self.random.randrange(len(self.server.backups)) if self.server.backups else None
        if number is not None:
            self.put_server_back(number)
        if self.random.random() < self.pulls_first:
            for _ in range(LEVEL):
                self.exchange(laptop, most=0)
            if number is not None and self.random.random() < AGAIN:
                self.put_server_back(number)

    def lie(self, user: str) -> None:
        """A laptop that claims to have seen what the server never said."""
        state = self.server.trivet.engine.store.feed.state()
        if state is not None:
            place = Place(epoch=state.epoch, seq=1, top=state.top + self.random.randint(0, 1), mark="never")
            server_side.pull(self.server.trivet.engine.acting_as(caller(user)), place, 1)

    def put_back(self, machine: Machine, number: int | None = None) -> None:
        """To one of its backups, or to any. What some machine could bring before and none after is lost by that."""
        with self.forgiven():
            machine.put_back(self.random.randrange(len(machine.backups)) if number is None else number)

    @contextmanager
    def forgiven(self) -> Iterator[None]:
        before = known_words(self)
        yield
        self.forgivable |= before - known_words(self)

    # ---- people

    def act(self, laptop: LaptopMachine) -> None:
        """Someone writes, on a laptop or straight on the server."""
        random = self.random
        [kind] = random.choices(list(self.mix), list(self.mix.values()))
        at_server = random.random() < 0.15
        machine: Machine = self.server if at_server else laptop
        trivet = self.server.trivet.acting_as(caller(laptop.user)) if at_server else laptop.trivet
        self.counts[f"people: {kind}"] += 1
        with machine.on_its_clock():
            memories = list(trivet.engine.store.memories.everything())
            if kind == "create" or not memories:
                self.create(trivet, laptop.user)
                return
            memory = random.choice(sorted(memories, key=lambda one: one.id))
            try:
                self.change(kind, trivet, laptop.user, memory, memories)
            except TrivetError as error:
                if type(error).__name__ not in ("Forbidden", "Conflict", "NotFound", "InvalidInput"):
                    raise

    def word(self, user: str, id: str) -> str:
        self.count += 1
        word = f"canary{self.count}q"
        self.words[word] = (user, id)
        return word

    def create(self, trivet: Any, user: str) -> None:
        random = self.random
        chance = random.random()
        id = random.choice(SHARED_IDS) if chance < 0.3 else trivet_id()
        word = self.word(user, id)
        scope = random.choice(SCOPES)
        try:
            if chance > 0.95:
                self.words.pop(word)
                trivet.remember(f"{word} {SENSITIVE}", id=id, sensitive=True)
            elif chance > 0.9:
                trivet.remember(f"{word} the token is {TOKEN}", id=id)
            else:
                trivet.remember(f"{word} was said.", id=id, scope=scope)
        except TrivetError:
            self.words.pop(word, None)

    def change(self, kind: str, trivet: Any, user: str, memory: Any, memories: Any) -> None:
        random, other = self.random, next(name for name in USERS if name != user)
        if kind == "edit":
            self.edit(trivet, user, memory)
        elif kind == "forget":
            (trivet.restore if memory.state == "deleted" else trivet.forget)(memory.id)
        elif kind == "purge":
            trivet.purge(memory.id)
            self.purged.add(memory.id)
        elif kind == "share":
            trivet.share(id=memory.id, user=other, permission=random.choice(("read", "write")))
        elif kind == "unshare":
            trivet.unshare(id=memory.id, user=other)
        elif kind == "tag":
            tag = f"team{random.randrange(2)}"
            (trivet.share if random.random() < 0.6 else trivet.unshare)(tag=tag, user=other)
        elif kind == "feedback":
            self.count += 1  # a word of this memory's alone
            query = f"asked{self.count}q" if random.random() < 0.5 else "the same"
            verdict: Usefulness = random.choice(("useful", "not-useful"))
            trivet.feedback(memory.id, verdict=verdict, query=query)
            self.asked[query] = memory.id
        elif kind == "redact":
            self.redact(trivet, user, memories)
        elif kind == "resolve" and trivet.engine.follows:
            branches = [one.rev for one in conflicts(trivet.engine) if one.id == memory.id]
            resolve(trivet.engine, memory.id, random.choice(["head", *branches]))
        elif kind == "link":
            self.link(trivet, memory, memories)

    def redact(self, trivet: Any, user: str, memories: Any) -> None:
        for one in memories:
            if RAW in one.content and one.owner in ("local", user):
                redact_one(trivet.engine, one)
                self.redacted.add(one.id)

    def link(self, trivet: Any, memory: Any, memories: Any) -> None:
        """Made, or one that is there taken away."""
        held = sorted(
            trivet.engine.store.links.touching([memory.id]), key=lambda one: (one.source, one.kind, one.target)
        )
        if held and self.random.random() < UNLINKED:
            link = self.random.choice(held)
            trivet.unlink(link.source, link.kind, link.target)
            return
        target = self.random.choice(sorted(memories, key=lambda one: one.id))
        kind: LinkKind = self.random.choice(("see-also", "supersedes"))
        trivet.link(memory.id, kind, target.id)

    def edit(self, trivet: Any, user: str, memory: Any) -> None:
        random = self.random
        word = self.word(user, memory.id)
        try:
            if random.random() < 0.7:
                trivet.edit(memory.id, content=f"{word} is said now.")
            elif random.random() < 0.5:
                trivet.edit(memory.id, title=f"{word} title")
            elif random.random() < 0.3:
                self.words.pop(word)
                trivet.edit(memory.id, scope=random.choice(SCOPES))
            else:
                trivet.edit(memory.id, tags=[word, f"team{random.randrange(2)}"])
        except TrivetError:
            self.words.pop(word, None)
            raise
        if memory.sensitive:
            self.words.pop(word, None)

    # ---- messages

    def ask(self, laptop: LaptopMachine) -> None:
        self.ask_for(laptop, self.random.randint(1, 4) if self.random.random() > self.pulls_first else 0)

    def ask_for(self, laptop: LaptopMachine, most: int) -> None:
        with laptop.on_its_clock():
            place, ops = laptop.laptop.ask(most)
        check_message(self, laptop.user, ops)
        self.network.append(Request(laptop, place, through_json(ops, list[Op]), self.random.randint(1, 5)))

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
            self.network.pop(place)  # else it is delivered and stays: it comes again
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
        """Asked within a transaction that a crash rolls back."""
        engine = self.server.trivet.engine.acting_as(caller(request.laptop.user))
        self.edits.update({op.rev: (op.fields, op.was) for op in request.ops if op.kind == "edit" and op.rev})
        self.settled.update(rev for op in request.ops for rev in op.revs)
        writable = writable_ids(self.server, request.laptop.user) if request.ops else set()
        with self.server.on_its_clock():
            if request.ops:
                answer: Answer = self.pushed(engine, request, dies)
            else:
                answer = server_side.pull(engine, request.place, request.limit)
        if isinstance(answer, Acks):
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
        # Of a server that was put back since. A laptop of some scopes lets go what that one said it has; nothing
        # could tell it otherwise in time, and those words are lost by whoever put the server back.
        late = reply.life != self.life and bool(laptop.scopes)
        with self.forgiven() if late else nullcontext():
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

    def check_forward(self, laptop: LaptopMachine) -> None:
        """A laptop never goes back to an earlier state of a memory than it had.

        Numbers of an epoch do not compare over the moment (`top` is 0 then) in which it was told that the server was
        put back: put back once more, to before the epoch that it began then, it counts the old one's numbers again.
        """
        place = laptop.place
        if not place.top:
            self.seqs = {key: seq for key, seq in self.seqs.items() if key[0] != laptop.name}
        for id, epoch, seq in laptop.rows("SELECT id, epoch, seq FROM replica"):
            before = self.seqs.get((laptop.name, id))
            assert before is None or before[0] != epoch or before[1] <= seq, f"{laptop.name} went back at {id}"
            if epoch == place.epoch:  # none while everything is read anew
                self.seqs[laptop.name, id] = (epoch, seq)

    def come_to_rest(self) -> None:
        self.network = []
        for _ in range(400):
            moved = [self.exchange(laptop) for laptop in self.laptops]
            if not any(moved):
                return
        raise AssertionError("it does not come to rest")

    def exchange(self, laptop: LaptopMachine, most: int = 50) -> bool:
        """Whether anything moved."""
        with laptop.on_its_clock():
            place, ops = laptop.laptop.ask(most)
        request = Request(laptop, place, through_json(ops, list[Op]), 100)
        answer = self.answer(request)
        with laptop.on_its_clock():
            laptop.laptop.receive(place, answer)
        check_taken(laptop, answer)
        self.check_forward(laptop)
        if isinstance(answer, Page):
            return bool(answer.items) or answer.more or answer.place.seq != place.seq
        return True


# What people do, and how often: all sorts, or mostly edits, changes of who may see what, or links.
_ACTS = ("create", "edit", "forget", "purge", "share", "unshare", "tag", "link", "resolve", "feedback", "redact")
MIXED = dict(zip(_ACTS, (30, 30, 6, 6, 12, 6, 5, 10, 8, 8, 4), strict=True))
EDITS = dict(zip(_ACTS, (15, 50, 8, 5, 12, 4, 3, 4, 25, 3, 3), strict=True))
SHARES = dict(zip(_ACTS, (12, 20, 5, 6, 25, 18, 12, 5, 8, 3, 3), strict=True))
LINKS = dict(zip(_ACTS, (12, 4, 4, 4, 6, 4, 2, 50, 3, 2, 2), strict=True))

# How often each operation acted within the transaction that is now committed; counted by `watched_acts`.
ACTED: dict[str, int] = {}


def watch_acts() -> None:
    """Counts each act of the server, so that an operation that acts twice shows."""
    push = applying.Applying
    if getattr(push, "watched", False):
        return
    act = push._act

    def counted(self: Any, op: Op) -> Any:
        ACTED[op.op] = ACTED.get(op.op, 0) + 1
        return act(self, op)

    push._act = counted  # type: ignore[method-assign]
    push.watched = True  # type: ignore[attr-defined]


watch_acts()


def unguarded(trivet: Any) -> Trivet:
    """The same store as it was before there was a guard of secrets."""
    engine = trivet.engine
    return Trivet(msgspec.structs.replace(engine, guard=Guard("off", engine.guard.keys)))


def trivet_id() -> str:
    from trivet.ids import new_id

    return new_id()


def through_json(value: Any, kind: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(value), type=kind)


def make_team(folder: Path) -> dict[str, Path]:
    """The stores of a team that has worked together, to be copied for each history."""
    templates = make_templates(folder)
    world = World(0, folder, templates, 0, Machine(folder, "server", templates["server"], 2026))
    with seeded(world.random):
        world.begin()
    for machine in (world.server, *world.laptops):
        machine.trivet.close()
        templates[machine.name] = folder / f"team-{machine.name}.db"
        copy_store(machine.path, templates[machine.name])
    return templates
