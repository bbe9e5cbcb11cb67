"""The values of the graph: what a memory mentions, and what is said to hold between concepts."""

from __future__ import annotations

from typing import Literal

from trivet.types import ConceptKind, Value

# What a memory is about leads to it more strongly than what it merely mentions. `maybe` is a capital at the start of a
# sentence: it counts only where the same word stands capitalised within sentences elsewhere.
Role = Literal["about", "in", "maybe"]
# Who read a memory for its concepts: the rules, or a language model that gives triples.
Reader = Literal["rules", "triples"]


class Mention(Value, frozen=True, kw_only=True):
    """A concept found in a memory: its canonical name, how it was written there, its kind and role."""

    name: str
    label: str
    kind: ConceptKind
    role: Role


ROLES: tuple[Role, ...] = ("maybe", "in", "about")  # as stored: by their place here


class Triple(Value, frozen=True, kw_only=True):
    """A statement found in a memory, and the time for which it is said to hold.

    `single`: the subject has one such object at a time (where someone lives), so a later one ends this one.
    """

    subject: str
    relation: str
    object: str
    single: bool = False
    valid_from: str | None = None
    valid_to: str | None = None
    # Canonical names of known concepts that the ends are other names of; None: each is its own.
    subject_means: str | None = None
    object_means: str | None = None

    @property
    def ends(self) -> tuple[tuple[str, str | None], tuple[str, str | None]]:
        """Subject and object, each as written and with what it means."""
        return (self.subject, self.subject_means), (self.object, self.object_means)
