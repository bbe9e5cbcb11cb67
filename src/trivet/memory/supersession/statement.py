"""Statements parsed from texts, and the features by which a newer one may update an older one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher

import msgspec

from trivet.analyse import STOP_WORDS, analyse, fold, tokens_of
from trivet.common.bounded_cache import MIB, cached
from trivet.memory.supersession import words
from trivet.memory.supersession.words import GROUP_OF, OPPOSITE_OF

# The statement is at the beginning, and reading more slows comparisons.
CHARACTERS_READ = 600
WORDS_READ = 60
# Holds a few thousand recent statements: answers compare the same few repeatedly.
STATEMENTS_BYTES = 16 * MIB
SENSES_BYTES = 4 * MIB
# Precedes the user's words in captured memories.
SPEAKER = "User: "
# Words that form the subject if no verb follows.
DEFAULT_SUBJECT_WORDS = 2

Values = frozenset[tuple[str, str]]

_digit = re.compile(r"\d")
_head = re.compile(r"[^:,;=]*")
_sentence_start = re.compile(r"(?:^|[.!?:;\n]\s{1,3}|[\"“(]\s{0,3})[^\W_]")
_name = re.compile(r"[^\W_](?:[\w.\-/@']*[^\W_])?")


class Statement(msgspec.Struct, frozen=True, gc=False):
    """The compared parts of a text; function words have no stems."""

    stems: tuple[str, ...]
    held: frozenset[str]
    order: tuple[str, ...]  # every word in reading order: its stem, or the function word itself
    written: frozenset[str]  # every word, folded
    subject: frozenset[str]  # stems before the first verb
    names: frozenset[str]
    values: Values  # numbers, times, days, addresses, each with its kind
    head_values: Values  # values in the subject: "room 4.12", "harvest 2025"
    turned: frozenset[str]  # words that announce a change
    fresh: frozenset[str]
    rejected: frozenset[str]  # stems of what is said to be no longer true
    added: bool
    confirmed: bool
    planned: bool
    negated: bool
    dated: bool
    event: bool
    many: bool  # its verb can be true of several objects

    @property
    def predicate(self) -> frozenset[str]:
        return self.held - self.subject


def statement(text: str) -> Statement:
    return _statement(text.removeprefix(SPEAKER)[:CHARACTERS_READ])


def states_explicit_change(text: str) -> bool:
    return bool(
        words.EXPLICIT_CHANGE.search(
            fold(text.removeprefix(SPEAKER)[:CHARACTERS_READ]).replace("'", "")
        )
    )


@cached(STATEMENTS_BYTES)
def _statement(text: str) -> Statement:
    tokens = tokens_of(text)[:WORDS_READ]
    folded = fold(text).replace("'", "")
    written = [fold(token).replace("'", "") for token in tokens]
    stems = tuple(stem for token in tokens for stem in _stem(token))
    verb = next((place for place, word in enumerate(written) if place and word in words.VERBS), 0)
    senses = _meanings(written)
    digits = bool(_digit.search(folded))
    head = _head.match(" ".join(folded.split()[:verb]) if verb else folded)
    return Statement(
        stems=stems,
        held=frozenset(stems),
        order=tuple((*_stem(token), word)[0] for token, word in zip(tokens, written, strict=True)),
        written=frozenset(written),
        subject=frozenset(
            stem for token in tokens[: verb or DEFAULT_SUBJECT_WORDS] for stem in _stem(token)
        ),
        names=_names(text),
        values=_values(folded),
        head_values=_values(head.group()) if head else frozenset(),
        turned=frozenset(senses.get("turned", ())),
        fresh=frozenset(senses.get("fresh", ()))
        | frozenset(words.START_DATE_CUES.findall(folded) if digits else ()),
        rejected=_rejected(folded)
        if not words.REJECTION_WORDS.isdisjoint(written)
        else frozenset(),
        added="added" in senses,
        confirmed="confirmed" in senses,
        planned="planned" in senses,
        negated="negated" in senses,
        dated=bool(words.DATE_CUES.search(folded)),
        event="event" in senses and "state" not in senses,
        many=any(word in words.MULTI_VALUED_VERBS for word in written[1:4]),
    )


def _meanings(written: Sequence[str]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for place, word in enumerate(written):
        phrases = [word]
        if word in words.PHRASE_STARTS:
            phrases += [" ".join(written[place : place + length]) for length in (2, 3)]
        for phrase in phrases:
            for sense in _senses_of(phrase):
                found.setdefault(sense, set()).add(phrase)
    return found


@cached(SENSES_BYTES)
def _senses_of(phrase: str) -> tuple[str, ...]:
    return tuple(sense for sense, pattern in words.SENSES.items() if pattern.fullmatch(phrase))


def _stem(token: str) -> tuple[str, ...]:
    return analyse(token)[:1]


def _values(folded: str) -> Values:
    found: list[tuple[str, str]] = []
    for kind, pattern in (
        words.VALUE_PATTERNS if _digit.search(folded) else words.VALUE_PATTERNS_WITHOUT_DIGITS
    ):
        taken = pattern.findall(folded)
        if taken:
            found += [(kind, value.strip(" .,").replace(",", "")) for value in taken]
            folded = pattern.sub(" | ", folded)
    return frozenset(found)


def _rejected(folded: str) -> frozenset[str]:
    matches = (
        pattern.findall(folded) for pattern in (words.REJECTED_AFTER_CUE, words.REJECTED_BEFORE_CUE)
    )
    return frozenset(
        stem for found in matches for pair in found for word in pair if word for stem in _stem(word)
    )


def _names(text: str) -> frozenset[str]:
    """Ignore capitals that only start a sentence."""
    starts = {match.end() - 1 for match in _sentence_start.finditer(text)}
    found = set()
    for match in _name.finditer(text):
        word = match.group()
        if word.islower() or word.isdigit() or word == "I":
            continue
        opens = match.start() in starts and word[1:].islower() and not word.endswith("'s")
        name = fold(word).removesuffix("'s")
        if not opens and word[:1].isupper() | (word != word.lower()) and name not in STOP_WORDS:
            found.add(name)
    return frozenset(found)


# Share of equal words in order from which two statements have the same structure.
ALIGNED_FROM = 0.5
UNALIGNED_BELOW = 0.35
MUCH_LONGER = 1.7


class PairFeatures(msgspec.Struct, frozen=True):
    features: dict[str, float]
    said: frozenset[str]
    turned_over: bool
    new_values: tuple[str, ...]
    old_values: tuple[str, ...]


class Alignment(msgspec.Struct, frozen=True):
    ratio: float
    slots: int
    first: bool  # they differ before the first content word in common

    @property
    def alike(self) -> bool:
        return self.ratio >= ALIGNED_FROM


def contrast(new: Statement, old: Statement) -> PairFeatures:
    common = new.held & old.held
    aligned = align(new, old) if common else Alignment(0.0, 0, False)
    turned, fresh = new.turned - old.turned, new.fresh - old.fresh
    quiet = not turned and not fresh
    side = _coexisting_groups(new, old)
    over = new.negated != old.negated or _are_opposites(new, old)
    ours, theirs = _by_kind(new.values), _by_kind(old.values)
    both = ours.keys() & theirs.keys()
    differing = sorted(kind for kind in both if not ours[kind] & theirs[kind])
    kept = bool(old.values) and old.values <= new.values
    many_slots = aligned.alike and aligned.slots > 1
    features = {
        "old_held": len(common) / max(1, len(old.held)),
        "subject_held": len(old.subject & new.held) / len(old.subject) if old.subject else 1.0,
        "predicate_kept": 0.0
        if over or not old.predicate
        else len(old.predicate & new.held) / len(old.predicate),
        "ratio": aligned.ratio,
        "one_slot": float(aligned.alike and aligned.slots == 1),
        "more_slots": float(min(3, aligned.slots - 1)) if many_slots else 0.0,
        "first_slot": float(aligned.alike and aligned.first),
        "built_freely": float(aligned.ratio < UNALIGNED_BELOW),
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
        "heads_valued": float(
            bool(new.head_values and old.head_values) and not new.head_values & old.head_values
        ),
        "names_differ": float(bool(new.names - old.names) and bool(old.names - new.names)),
        "names_shared": float(bool(new.names & old.names)),
        "only_adds": float(not old.held - common and not over),
        "longer": float(len(new.stems) > MUCH_LONGER * len(old.stems)),
    }
    return PairFeatures(
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
        elif (
            tag == "replace"
            and _has_content(old.order[start:stop])
            and _has_content(new.order[new_start:new_stop])
        ):
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


def _coexisting_groups(new: Statement, old: Statement) -> int:
    ours = {GROUP_OF[word] for word in new.written - old.written if word in GROUP_OF}
    theirs = {GROUP_OF[word] for word in old.written - new.written if word in GROUP_OF}
    return len(ours & theirs)


def _are_opposites(new: Statement, old: Statement) -> bool:
    theirs = old.written - new.written
    return any(OPPOSITE_OF.get(word) in theirs for word in new.written - old.written)
