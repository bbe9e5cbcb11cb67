"""What people do in a history, on laptops and directly on the server."""

from __future__ import annotations

import uuid
from typing import Any

import msgspec

from soak.syncing.machines import USERS, LaptopMachine, Machine, caller
from soak.syncing.team import NAMES, Team
from trivet import Trivet, TrivetError
from trivet.common.ids import new_id
from trivet.memory.lifecycle import redact_one
from trivet.secrets.guard import Guard
from trivet.types import LOCAL, LinkKind, Usefulness

SENSITIVE = "sensitivecanary"
# An invented token of a form the guard knows.
TOKEN = "ghp_" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"
# Stored raw: the server's guard was off, until the owner redacts it.
RAW = "xoxb-" + "123456789012-1234567890123-A1b2C3d4E5f6G7h8I9j0K1l2"
# Chance to remove an existing link rather than add one.
UNLINKED = 0.4
SCOPES = ("default", "work", "work/plans")
# Ids that several machines derive from the same name, as with a vault's files.
SHARED_IDS = tuple(str(uuid.uuid5(uuid.NAMESPACE_URL, f"shared{number}")) for number in range(4))


class People(Team):
    def act(self, laptop: LaptopMachine) -> None:
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
                if type(error).__name__ not in (
                    "Forbidden",
                    "Conflict",
                    "NotFound",
                    "InvalidInput",
                ):
                    raise

    def create(self, trivet: Any, user: str) -> None:
        random = self.random
        chance = random.random()
        id = random.choice(SHARED_IDS) if chance < (0.8 if self.mix is NAMES else 0.3) else new_id()
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
            self.count += 1  # A word only this memory has.
            query = f"asked{self.count}q" if random.random() < 0.5 else "the same"
            verdict: Usefulness = random.choice(("useful", "not-useful"))
            trivet.feedback(memory.id, verdict=verdict, query=query)
            self.asked[query] = memory.id
        elif kind == "redact":
            self.redact(trivet, user, memories)
        elif kind == "resolve":
            self.resolve(trivet)
        elif kind == "link":
            self.link(trivet, memory, memories)
        elif kind == "hide" and trivet.engine.follows and memory.owner == LOCAL:
            self.hide(trivet, user, memory)

    def hide(self, trivet: Any, user: str, memory: Any) -> None:
        """Make a memory sensitive, with words that stay on this laptop, or undo that."""
        word = self.word(user, memory.id)
        said = "is said again." if memory.sensitive else SENSITIVE
        try:
            trivet.edit(memory.id, content=f"{word} {said}", sensitive=not memory.sensitive)
        except TrivetError:  # Forgotten; nothing was written.
            self.words.pop(word)
            raise
        if not memory.sensitive:
            self.words.pop(word)
            self.hidden[word] = (self.name_of(trivet), memory.id)

    def resolve(self, trivet: Any) -> None:
        found = sorted(trivet.sync_conflicts(), key=lambda one: (one.id, one.rev))
        if not found:
            return
        chosen = self.random.choice(found)
        trivet.sync_resolve(chosen.id, take=self.random.choice(["head", chosen.rev]))
        self.counts["a clash settled"] += 1
        if not trivet.engine.follows:  # A laptop's decision is in its request.
            self.settled.update(one.rev for one in found if one.id == chosen.id)

    def name_of(self, trivet: Any) -> str:
        return next(one.name for one in self.laptops if one.trivet is trivet)

    def redact(self, trivet: Any, user: str, memories: Any) -> None:
        for one in memories:
            if RAW in one.content and one.owner in ("local", user):
                redact_one(trivet.engine, one)
                self.redacted.add(one.id)

    def link(self, trivet: Any, memory: Any, memories: Any) -> None:
        held = sorted(
            trivet.engine.store.links.touching([memory.id]),
            key=lambda one: (one.source, one.kind, one.target),
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
        if (
            memory.sensitive
            and self.words.pop(word, None)
            and trivet.engine.follows
            and memory.owner == LOCAL
        ):
            self.hidden[word] = (self.name_of(trivet), memory.id)


def unguarded(trivet: Any) -> Trivet:
    """Open the store without the guard of secrets."""
    engine = trivet.engine
    return Trivet(msgspec.structs.replace(engine, guard=Guard("off", engine.guard.keys)))
