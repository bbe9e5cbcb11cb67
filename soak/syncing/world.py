"""One history: laptops and people act, machines crash and are put back.

At the end all messages are delivered, and `check.py` says what must hold.
"""

from __future__ import annotations

from pathlib import Path

from soak.syncing.check import check_at_rest, known_words, words_on, words_on_server
from soak.syncing.exchanges import Exchanges
from soak.syncing.machines import (
    USERS,
    LaptopMachine,
    Machine,
    caller,
    copy_store,
    make_templates,
    seeded,
)
from soak.syncing.people import RAW, People, unguarded
from soak.syncing.team import PRIVATE
from trivet.common.ids import new_id
from trivet.sync import server as server_side
from trivet.sync.laptop import join, leave
from trivet.sync.messages import Place

# How often the server is put back from the same backup again after a laptop could only pull: it
# then counts the same numbers once more.
AGAIN = 0.5
# This many faultless exchanges bring a laptop level, or nearly.
LEVEL = 3
RAW_EVERY = 7  # One in this many histories starts with a raw secret.
RESTLESS = (
    0.1  # Share of steps of private histories with a scope change, a leave, or a forgetful server.
)


class World(People, Exchanges):
    def run(self) -> None:
        with seeded(self.random):
            try:
                if self.begins:
                    self.begin()
                if self.seed % RAW_EVERY == RAW_EVERY - 1 or self.mix is PRIVATE:
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
        """Share some memories and link one, before every history."""
        for laptop in self.laptops[::2]:
            other = next(name for name in USERS if name != laptop.user)
            with laptop.on_its_clock():
                ids = [new_id() for _ in range(3)]
                for id in ids:
                    laptop.trivet.remember(f"{self.word(laptop.user, id)} was said.", id=id)
                laptop.trivet.share(id=ids[0], user=other, permission="write")
                laptop.trivet.share(id=ids[1], user=other, permission="read")
                laptop.trivet.link(ids[0], "see-also", ids[1])
        self.come_to_rest()

    def leave_raw(self) -> None:
        """Store a secret on a server without a guard; laptops have it until redaction."""
        for user in USERS:
            id, trivet = new_id(), self.server.trivet.acting_as(caller(user))
            unguarded(trivet).remember(f"{self.word(user, id)} the token is {RAW}", id=id)
        self.come_to_rest()

    def step(self) -> None:
        random, chance = self.random, self.random.random()
        laptop = random.choice(self.laptops)
        if self.mix is PRIVATE and random.random() < RESTLESS:
            chance = random.uniform(0.98, 0.995)
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
            held = words_on(laptop)
            self.hidden = {
                word: at for word, at in self.hidden.items() if at[0] != laptop.name or word in held
            }
            self.seqs = {place: seq for place, seq in self.seqs.items() if place[0] != laptop.name}
        elif chance < 0.98 and len(self.laptops) < 5:
            self.counts["laptop cloned"] += 1
            self.laptops.append(laptop.cloned(f"{laptop.name}c{len(self.laptops)}"))
        elif chance < 0.985:
            self.counts["laptop holds other scopes"] += 1
            with laptop.on_its_clock():
                scopes = random.choice(((), ("work",), ("default", "work/plans")))
                join(laptop.trivet.engine, "http://server", laptop.user, scopes=scopes)
        elif chance < 0.9875:
            self.leave_and_join(laptop)
        elif chance < 0.99:
            self.forget_notices()
        elif chance < 0.995:
            self.counts["a mark that never was"] += 1
            self.lie(laptop.user)

    def leave_and_join(self, laptop: LaptopMachine) -> None:
        self.counts["laptop left and joined again"] += 1
        # Others' memories go, and with them what a put-back server has lost without anyone knowing.
        others = {row[0] for row in laptop.rows("SELECT id FROM memory WHERE owner != 'local'")}
        before = known_words(self)
        with laptop.on_its_clock():
            leave(laptop.trivet.engine)
            self.forgivable |= {
                word for word in before - known_words(self) if self.words[word][1] in others
            }
            join(laptop.trivet.engine, "http://server", laptop.user)
        self.seqs = {place: seq for place, seq in self.seqs.items() if place[0] != laptop.name}

    def forget_notices(self) -> None:
        """Let two years pass on the server: it forgets purge notices and completed operations."""
        self.counts["server forgot old notices"] += 1
        self.server.year += 2
        self.network, self.acted = [], {}

    def put_server_back(self, number: int | None = None) -> None:
        self.counts["server put back"] += 1
        self.note_published()
        self.put_back(self.server, number)
        self.life += 1

    def note_published(self) -> None:
        """Count title and tags of a memory no longer sensitive as ordinary words."""
        served = words_on_server(self)
        for word in [word for word in self.hidden if word in served]:
            name, id = self.hidden.pop(word)
            self.words[word] = (next(one.user for one in self.laptops if one.name == name), id)

    def upset(self, laptop: LaptopMachine) -> None:
        """Let the server take a write and then lose it. The laptop may pull first."""
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
        """Let a laptop claim to have seen what the server never said."""
        state = self.server.trivet.engine.store.feed.state()
        if state is not None:
            place = Place(
                epoch=state.epoch, seq=1, top=state.top + self.random.randint(0, 1), mark="never"
            )
            server_side.pull(self.server.trivet.engine.acting_as(caller(user)), place, 1)

    def put_back(self, machine: Machine, number: int | None = None) -> None:
        """Restore a backup. Words no machine can bring afterwards count as lost."""
        with self.forgiven():
            machine.put_back(
                self.random.randrange(len(machine.backups)) if number is None else number
            )


def make_team(folder: Path) -> dict[str, Path]:
    """Make stores of a team that has worked together, to copy for each history."""
    templates = make_templates(folder)
    world = World(0, folder, templates, 0, Machine(folder, "server", templates["server"], 2026))
    with seeded(world.random):
        world.begin()
    for machine in (world.server, *world.laptops):
        machine.trivet.close()
        templates[machine.name] = folder / f"team-{machine.name}.db"
        copy_store(machine.path, templates[machine.name])
    return templates
