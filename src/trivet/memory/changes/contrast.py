"""What speaks for and against a newer statement being an update of an older one: named features of the two."""

from __future__ import annotations

from difflib import SequenceMatcher

import msgspec

from trivet.analyse import STOP_WORDS
from trivet.memory.changes.statement import Statement, Values
from trivet.memory.changes.words import GROUP_OF, OPPOSITE_OF

# From this share of equal words in the same order on, two statements are built alike.
BUILT_ALIKE = 0.5
BUILT_FREELY = 0.35
MUCH_LONGER = 1.7


class Contrast(msgspec.Struct, frozen=True):
    """The features, and what a reason can name."""

    features: dict[str, float]
    said: frozenset[str]
    turned_over: bool
    new_values: tuple[str, ...]
    old_values: tuple[str, ...]


class Alignment(msgspec.Struct, frozen=True):
    """Two statements laid side by side: the share of equal words, and the places where their words differ."""

    ratio: float
    slots: int
    first: bool  # they differ before the first word of content that they share

    @property
    def alike(self) -> bool:
        return self.ratio >= BUILT_ALIKE


def contrast(new: Statement, old: Statement) -> Contrast:
    common = new.held & old.held
    aligned = align(new, old) if common else Alignment(0.0, 0, False)
    turned, fresh = new.turned - old.turned, new.fresh - old.fresh
    quiet = not turned and not fresh
    side = _side_by_side(new, old)
    over = new.negated != old.negated or _opposed(new, old)
    ours, theirs = _by_kind(new.values), _by_kind(old.values)
    both = ours.keys() & theirs.keys()
    differing = sorted(kind for kind in both if not ours[kind] & theirs[kind])
    kept = bool(old.values) and old.values <= new.values
    many_slots = aligned.alike and aligned.slots > 1
    features = {
        "old_held": len(common) / max(1, len(old.held)),
        "subject_held": len(old.subject & new.held) / len(old.subject) if old.subject else 1.0,
        "predicate_kept": 0.0 if over or not old.predicate else len(old.predicate & new.held) / len(old.predicate),
        "ratio": aligned.ratio,
        "one_slot": float(aligned.alike and aligned.slots == 1),
        "more_slots": float(min(3, aligned.slots - 1)) if many_slots else 0.0,
        "first_slot": float(aligned.alike and aligned.first),
        "built_freely": float(aligned.ratio < BUILT_FREELY),
        "turned": float(min(2, len(turned))),
        "fresh": float(min(2, len(fresh))),
        "said_alike": float(aligned.alike and not quiet),
        "old_turned": float(bool(old.turned or old.fresh)),
        "added": float(new.added),
        "turned_over": float(over and not side and not many_slots),
        "side_by_side": float(min(2, side)),
        "many_at_once": float(old.many and new.many and quiet and not over),
        "old_event": float(old.event),
        "both_events": float(old.event and new.event),
        "carried_out": float(old.planned and new.event),
        "one_off": float(new.event and new.dated and not old.dated),
        "both_dated": float(new.dated and old.dated),
        "value_differs": 0.0 if kept else float(min(2, len(differing))),
        "kinds_differ": float(bool(ours) and bool(theirs) and not both),
        "kind_lost": float(bool(theirs) and not ours),
        "kind_found": float(bool(ours) and not theirs),
        "values_kept": float(kept and not over),
        "same_value": float(bool(both) and not differing),
        "confirmed": float(new.confirmed and not differing),
        "rejected": float(bool(new.rejected & (old.predicate | (old.names & old.held)))),
        "heads_valued": float(bool(new.head_values and old.head_values) and not new.head_values & old.head_values),
        "names_differ": float(bool(new.names - old.names) and bool(old.names - new.names)),
        "names_shared": float(bool(new.names & old.names)),
        "only_adds": float(not old.held - common and not over),
        "longer": float(len(new.stems) > MUCH_LONGER * len(old.stems)),
    }
    return Contrast(
        features=features,
        said=turned,
        turned_over=over,
        new_values=tuple(value for kind in differing for value in sorted(ours[kind])),
        old_values=tuple(value for kind in differing for value in sorted(theirs[kind])),
    )


def align(new: Statement, old: Statement) -> Alignment:
    matcher = SequenceMatcher(None, old.order, new.order, autojunk=False)
    slots = equal = 0
    first = shared = False
    for tag, start, stop, new_start, new_stop in matcher.get_opcodes():
        if tag == "equal":
            equal += stop - start
            shared = shared or _has_content(old.order[start:stop])
        elif tag == "replace" and _has_content(old.order[start:stop]) and _has_content(new.order[new_start:new_stop]):
            slots += 1
            first = first or not shared
    return Alignment(2 * equal / (len(old.order) + len(new.order)), slots, first)


def _has_content(order: tuple[str, ...]) -> bool:
    return any(word not in STOP_WORDS for word in order)


def _by_kind(values: Values) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for kind, value in values:
        found.setdefault(kind, set()).add(value)
    return found


def _side_by_side(new: Statement, old: Statement) -> int:
    """How often one names another of things that exist side by side: staging here, production there."""
    ours = {GROUP_OF[word] for word in new.written - old.written if word in GROUP_OF}
    theirs = {GROUP_OF[word] for word in old.written - new.written if word in GROUP_OF}
    return len(ours & theirs)


def _opposed(new: Statement, old: Statement) -> bool:
    theirs = old.written - new.written
    return any(OPPOSITE_OF.get(word) in theirs for word in new.written - old.written)
