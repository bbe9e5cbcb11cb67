"""What the graph stores: mentions of concepts in memories, and triples, which are statements on two concepts."""

from __future__ import annotations

from typing import Literal

from trivet.types import ConceptKind, Value

# A change to what is extracted needs a new version: stores notice it and rebuild their graph.
EXTRACTION_VERSION = 1
# A concept that a memory is about leads to it more strongly than one it merely mentions. `maybe` is a capital at the
# start of a sentence: it counts only if the word stands capitalised within sentences elsewhere.
Role = Literal["about", "in", "maybe"]
# What read a memory for the graph: the rules, or a language model that writes triples.
Reader = Literal["rules", "triples"]


class Mention(Value, frozen=True, kw_only=True):
    """A concept found in a memory: its canonical name, how it was written there, its kind and role."""

    name: str
    label: str
    kind: ConceptKind
    role: Role


ROLES: tuple[Role, ...] = ("maybe", "in", "about")  # the store keeps a role as its place here


class Triple(Value, frozen=True, kw_only=True):
    """A statement found in a memory, and the time for which it holds.

    `single`: the subject has one such object at a time (where a person lives), so a later statement ends this one.
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
