"""One analyser for every store: turns a text into the terms by which it is indexed and searched.

Words are folded and stemmed. Identifiers (`camelCase`, `snake_case`, paths, error codes, versions) are kept whole and
split besides. Scripts written without spaces become characters and pairs of characters.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Set
from functools import lru_cache
from itertools import islice

import msgspec
import Stemmer

# A change to what the analyser emits needs a new version: stores notice it and rebuild their lexical index.
ANALYSER_VERSION = 1

# The terms of the latest so many texts of at most this length are cached: some megabytes.
TEXTS_CACHED = 2_048
LONGEST_CACHED = 1_000
# Longer "words" are base64, minified code or the like; their parts are indexed, the whole is not.
LONGEST_TERM = 64

# Thai to Lao, Burmese, Khmer, then Japanese, Chinese and Korean.
UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
    "\u3005\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
_unspaced_run = re.compile(f"[{UNSPACED}]+")
# Starts and ends with a letter or digit; joiners may stand inside (`don't`, `a/b.py`, `E_CONN`); C++ keeps its tail.
_token = re.compile(r"[^\W_](?:[\w.\-/:@#+'\\]*[^\W_])?[+#]*")
_quoted = re.compile(r'"([^"]{2,200})"')
_path_separators = re.compile(r"[/:@#\\.]+")
_letters_or_digits = re.compile(r"[^\W\d_]+|\d+")
_combining_marks = re.compile("[\u0300-\u036f]")

# English function words in the analyser's spelling (folded, without apostrophes). Question words count too: in "when
# did she move" only "move" tells memories apart. On conversations these about 180 words are worth six points of lexical
# recall@5 against a list of 33.
STOP_WORDS: frozenset[str] = frozenset(
    """
    a an the this that these those
    i me my mine myself we us our ours ourselves you your yours yourself yourselves
    he him his himself she her hers herself it its itself they them their theirs themselves
    what which who whom whose when where why how
    am is are was were be been being have has had having do does did doing done
    will would shall should can could may might must ought cannot
    and but or nor if because as until while of at by for with about against between into through during before after
    above below to from up down in out on off over under again further then once here there
    all any both each few more most other some such no not only own same so than too very just also now ever
    s t d ll m re ve o y
    im youre hes shes theyre weve youve ive theyve id youd hed shed wed theyd ill youll hell shell theyll
    dont doesnt didnt isnt arent wasnt werent hasnt havent hadnt wont wouldnt shant shouldnt cant couldnt mustnt
    mightnt neednt aint lets thats whats whos hows wheres heres theres
    whether though although since upon within without via per
    """.split()
)

_stem = Stemmer.Stemmer("english", 50_000).stemWord


class Word(msgspec.Struct, frozen=True):
    """One word of a query and its terms, the most specific first."""

    text: str
    terms: tuple[str, ...]

    def is_held(self, text_terms: Set[str]) -> bool:
        """Whether a text with these terms contains the word: one with only `conn` does not contain `E_CONN_4012`."""
        return 2 * sum(term in text_terms for term in self.terms) > len(self.terms)


class Question(msgspec.Struct, frozen=True):
    """An analysed query: what the legs and the exact-match bonus need of it."""

    text: str
    folded: str
    words: tuple[Word, ...]
    phrases: tuple[str, ...]
    identifiers: tuple[str, ...]
    quoted_only: bool = False  # nothing but quoted phrases was asked for

    @property
    def terms(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(term for word in self.words for term in word.terms))

    def words_held(self, terms: Set[str]) -> list[str]:
        """Those of its words that a text with these terms has."""
        return [word.text for word in self.words if word.is_held(terms)]


def fold(text: str) -> str:
    """Compatibility forms unified, case and Latin diacritics removed, white space squeezed."""
    if text.isascii():
        return " ".join(text.lower().split())
    decomposed = _straight(unicodedata.normalize("NFKD", text).casefold())
    return " ".join(unicodedata.normalize("NFC", _combining_marks.sub("", decomposed)).split())


def analyse(text: str) -> tuple[str, ...]:
    """The terms of a text in reading order, repeated as often as they occur."""
    # One recall analyses the same few texts several times, and the next recall often the same ones.
    return _analysed_and_cached(text) if len(text) <= LONGEST_CACHED else _analysed(text)


def first_terms(text: str, count: int) -> tuple[str, ...]:
    """The first few of `analyse`, without analysing the rest."""
    prepared = text if text.isascii() else _straight(unicodedata.normalize("NFKC", text))
    terms = (term for match in _token.finditer(prepared) for term in _terms(match.group()))
    return tuple(islice(terms, count))


def _analysed(text: str) -> tuple[str, ...]:
    return tuple([term for token in tokens_of(text) for term in _terms(token)])


_analysed_and_cached = lru_cache(maxsize=TEXTS_CACHED)(_analysed)


def analyse_query(text: str) -> Question:
    words: dict[str, Word] = {}
    identifiers: dict[str, None] = {}
    for token in tokens_of(text):
        terms = _query_terms(token)
        if terms:
            words.setdefault(token, Word(token, terms))
        if is_identifier(token):
            identifiers[fold(token)] = None
    phrases = tuple(dict.fromkeys(fold(match) for match in _quoted.findall(text) if fold(match)))
    quoted_only = bool(phrases) and not any(_terms(token) for token in tokens_of(_quoted.sub(" ", text)))
    return Question(text, fold(text), tuple(words.values()), phrases, tuple(identifiers), quoted_only)


def is_identifier(token: str) -> bool:
    """Whether a token is no ordinary word: inner capitals, digits among letters, joiners other than - and '."""
    if token.isalpha():
        return not (token.islower() or token.isupper() or token.istitle()) and token[1:].lower() != token[1:]
    if token.isdigit():
        return False
    letters = [part for part in re.split(r"[-']", token) if part]
    return not all(part.isalpha() for part in letters)


def contains_phrase(folded_text: str, folded_phrase: str) -> bool:
    """Whether the phrase stands in the text as whole words."""
    start = folded_text.find(folded_phrase)
    while start >= 0:
        end = start + len(folded_phrase)
        if _boundary(folded_text, start) and _boundary(folded_text, end):
            return True
        start = folded_text.find(folded_phrase, start + 1)
    return False


def _boundary(text: str, position: int) -> bool:
    if position == 0 or position == len(text):
        return True
    before, after = text[position - 1], text[position]
    if _unspaced_run.match(before) or _unspaced_run.match(after):
        return True
    return not (before.isalnum() and after.isalnum())


def _straight(text: str) -> str:
    """Typographic apostrophes as plain ones; str.translate would take ten times as long."""
    return text.replace("\u2019", "'").replace("\u02bc", "'")


def tokens_of(text: str) -> list[str]:
    """The words and identifiers of a text as they are written, punctuation left out."""
    if not text.isascii():
        text = _straight(unicodedata.normalize("NFKC", text))
    return _token.findall(text)


@lru_cache(maxsize=50_000)
def _terms(token: str) -> tuple[str, ...]:
    if token.isascii() and token.isalpha() and (token.islower() or token[1:].islower() or len(token) == 1):
        return _word(token.lower())
    if _unspaced_run.search(token):
        return _mixed_terms(token)
    return _compound(token)


def _query_terms(token: str) -> tuple[str, ...]:
    """As `_terms`, but of an unspaced script only pairs of characters: single ones would match everywhere."""
    terms = _terms(token)
    if not _unspaced_run.search(token):
        return terms
    runs = [fold(run) for run in _unspaced_run.findall(token) if len(run) > 1]
    singles = {character for run in runs for character in run}
    return tuple(term for term in dict.fromkeys(terms) if term not in singles) or tuple(dict.fromkeys(terms))


def _word(folded: str) -> tuple[str, ...]:
    if folded in STOP_WORDS:
        return ()
    return (_stem(folded)[:LONGEST_TERM],)


def _mixed_terms(token: str) -> tuple[str, ...]:
    terms: list[str] = []
    position = 0
    for run in _unspaced_run.finditer(token):
        terms.extend(term for piece in _token.findall(token[position : run.start()]) for term in _compound(piece))
        terms.extend(_character_terms(fold(run.group())))
        position = run.end()
    terms.extend(term for piece in _token.findall(token[position:]) for term in _compound(piece))
    return tuple(terms)


def _character_terms(run: str) -> list[str]:
    return list(run) + [run[index : index + 2] for index in range(len(run) - 1)]


def _compound(token: str) -> tuple[str, ...]:
    """The whole token, its segments (`fooBar` in `module.fooBar`), and their parts as words."""
    if token.endswith(("'s", "'S")):
        token = token[:-2]
    token = token.replace("'", "")
    segments = [segment for segment in _path_separators.split(token) if segment]
    terms = [term for segment in segments for term in _segment_terms(segment)]
    whole = fold(token)
    if segments != [token] and len(whole) <= LONGEST_TERM:
        return (whole, *terms)
    return tuple(terms)


def _segment_terms(segment: str) -> list[str]:
    parts = _parts(segment)
    words = [term for part in parts for term in _word(fold(part))]
    if parts == [segment] or len(segment) > LONGEST_TERM:
        return words
    whole = fold(segment)
    # Stemmed like a word if it looks like one, so that `getusername` finds `getUserName`.
    return [_stem(whole) if whole.isalpha() else whole, *words]


def _parts(segment: str) -> list[str]:
    """Letters apart from digits, and camel humps apart from each other: `HTTPServer2` gives HTTP, Server, 2."""
    return [part for run in _letters_or_digits.findall(segment) for part in _humps(run)]


def _humps(run: str) -> list[str]:
    if run.islower() or run.isupper() or run[1:].islower():
        return [run]
    cuts = [
        index
        for index in range(1, len(run))
        if run[index].isupper() and (run[index - 1].islower() or run[index + 1 : index + 2].islower())
    ]
    return [run[start:end] for start, end in zip([0, *cuts], [*cuts, len(run)], strict=True)]
