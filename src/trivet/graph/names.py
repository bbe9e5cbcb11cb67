"""Names in prose, recognized by capitals: "Ada Lovelace", "Bank of America", "Witcher 3"."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import dropwhile

import msgspec

from trivet.analyse import STOP_WORDS

# Words of the sentence, even if they stand capitalized before a name.
SENTENCE_OPENERS = STOP_WORDS | frozenset(
    """
    hey hi hello wow thanks thank yeah yes yep nope ok okay sure oh ah well congrats sorry please
    maybe absolutely definitely exactly actually finally recently lately yesterday today tomorrow
    tonight let see ask tell meet however therefore moreover furthermore meanwhile instead
    otherwise thus hence despite due given following according another many several every either
    neither later eventually originally currently previously usually often sometimes always never
    using running installing loading adding creating building setting getting making writing
    reading press click show save open close screenshot objective objectives background method
    methods result results conclusion conclusions
    """.split()
)
# Never names alone: they begin sentences, lists and docstrings, or denote a time.
NOT_NAMES = SENTENCE_OPENERS | frozenset(
    """
    great good nice cool awesome amazing look get got take make made use used using add added set
    run try keep check note notes todo fixme tip warning one two three four five six seven eight
    nine ten first second third last next new old early late update fix bug decision reminder
    question answer summary context reason problem solution step none true false null nil self args
    kwargs return returns raise raises yield yields parameter parameters param example examples
    default type value values usage deprecated introduction abstract design setting january
    february march april june july august september october november december jan feb mar apr jun
    jul aug sep sept oct nov dec monday tuesday wednesday thursday friday saturday sunday mon tue
    wed thu fri sat sun mondays tuesdays wednesdays thursdays fridays saturdays sundays lot much
    really am pm utc gmt eg ie etc andor vs st dr mr mrs ms prof ii iii iv
    """.split()
)
# Names that are function words in lower case.
ACRONYMS = frozenset({"US", "U.S.", "IT", "WHO", "W.H.O."})
CONNECTORS = frozenset(
    "of de la le les du des do dos das von van der den di da del della al bin ibn".split()
)
# "And" in English, Spanish, Italian, French, German and Nordic languages.
JOINERS = frozenset("and & y e et und og och".split())
LONGEST_IN_WORDS = 7

_piece = re.compile(
    r"(?P<initial>\b(?:[A-Z]\.){2,}|\b(?:[A-Z]|Dr|Mr|Mrs|Ms|St|Mt|Ft|Prof|Gen|Col|Sgt|Rev|Jr|Sr)\.(?=\s?[A-Z]))"
    r"|(?P<word>[^\W_](?:[\w.\-/:@#+'’&\\]*[^\W_])?[+#]*)"
    r"|(?P<end>[.!?…]+|[\n:•|\"“«>*()\[\]{}<=”»]|\s[-–—]\s)"
    r"|(?P<pause>[,;])"
    r"|(?P<ampersand>&)"
)


class Name(msgspec.Struct, frozen=True, gc=False):
    """A run of capitalized words, not `sure` if it may only start a sentence."""

    words: tuple[str, ...]
    sure: bool

    @property
    def text(self) -> str:
        return " ".join(self.words)


def names_in(text: str) -> Iterator[Name]:
    """Yield every name; for "A and B" both parts and the whole."""
    run: list[str] = []  # words of the current name
    pending: list[str] = []  # lower-case words that belong to it if a capital follows
    opens = at_start = True
    for match in _piece.finditer(text):
        kind, piece = match.lastgroup, match.group()
        if kind in ("word", "initial") and (
            piece[0].isupper() or (run and not pending and _is_number(piece))
        ):
            if (
                run and run[-1].endswith(".") and _opens(piece)
            ):  # "... in N.Y. The ...": the sentence ended there
                yield from _names_of_run(run, opens)
                run, pending, at_start = [], [], True
            if not run:
                opens = at_start
            run += [*pending, piece]
            pending = []
            at_start = False
            continue
        if run and kind in ("word", "ampersand") and _may_stand_inside(piece, pending):
            pending.append(piece)
            continue
        if run:
            yield from _names_of_run(run, opens and not _is_speaker_colon(text, match))
            run, pending = [], []
        at_start = kind == "end" or (at_start and kind != "word")
    if run:
        yield from _names_of_run(run, opens)


def _is_speaker_colon(text: str, match: re.Match[str]) -> bool:
    """Match the colon in "Caroline: ..."."""
    return match.group() == ":" and text[match.end() : match.end() + 1] == " "


def _may_stand_inside(piece: str, pending: list[str]) -> bool:
    if piece == "the":  # "Lord of the Rings", but not "Check the Postgres logs"
        return len(pending) == 1 and pending[0] in CONNECTORS
    return not pending and (piece in CONNECTORS or _joins(piece))


def _joins(piece: str) -> bool:
    return piece in JOINERS


def _is_number(piece: str) -> bool:
    return piece.isdigit() and len(piece) <= 3


def _names_of_run(run: list[str], opens: bool) -> Iterator[Name]:
    joints = [place for place, word in enumerate(run) if _joins(word)]
    parts = [
        run[start:stop]
        for start, stop in zip([0, *[j + 1 for j in joints]], [*joints, len(run)], strict=True)
    ]
    trimmed = [_trimmed(part) for part in parts]
    for number, (part, whole) in enumerate(zip(trimmed, parts, strict=True)):
        if part and len(part) <= LONGEST_IN_WORDS:
            first = number == 0 and opens and part[0] == whole[0]
            yield Name(tuple(part), sure=len(part) > 1 or not first)
            tail = _trimmed(list(dropwhile(CONNECTORS.__contains__, part[1:]))) if first else []
            if tail:  # "Restart Redis ...": the first capital may be that of a verb
                yield Name(tuple(tail), sure=False)
    if len(parts) == 2 and all(trimmed) and trimmed[0] == parts[0] and len(run) <= LONGEST_IN_WORDS:
        yield Name(tuple(run), sure=True)


def _trimmed(words: list[str]) -> list[str]:
    start, stop = 0, len(words)
    while start < stop and (_opens(words[start]) or words[start].isdigit()):
        start += 1
    while stop > start and _opens(words[stop - 1]):
        stop -= 1
    return [] if stop - start == 1 and not is_name(words[start]) else words[start:stop]


def is_name(word: str) -> bool:
    return word in ACRONYMS or not (_plain(word) in NOT_NAMES or _contracted.search(word))


def _opens(word: str) -> bool:
    return word not in ACRONYMS and _plain(word) in SENTENCE_OPENERS


def _plain(word: str) -> str:
    return word.lower().replace("'", "").replace("\u2019", "").replace(".", "")


_contracted = re.compile(r"['\u2019](?:t|re|ve|ll|d|m)$", re.IGNORECASE)
