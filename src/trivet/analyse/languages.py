"""Which language a text is in, by its function words and its letters. In doubt it is English.

A language is known here if Snowball has a stemmer for it and `function_words.py` a list. To take one foreign language
for another costs little, since a query's words are looked up as each language of the store would have indexed them.
What must not happen is that English, with its names and its code, is taken for something else.
"""

from __future__ import annotations

from collections.abc import Sequence

from trivet.analyse.function_words import ENGLISH_TOO, FUNCTION_WORDS, IN_NAMES, STOP_WORDS

ENGLISH = "english"
LANGUAGES: tuple[str, ...] = tuple(FUNCTION_WORDS)
# Terms that no text has, since a term begins with a letter or a digit: they mark a memory in the index as one that is
# not in English, and as one of its language. By them a query knows which languages it is asked of.
NOT_ENGLISH = ":foreign"

# The first so many words show the language of a text; the rest of a page need not be looked at.
MAX_QUERY_WORDS = 200
# What one word weighs for its language. Words that stand in names everywhere weigh half, and so does a word with
# letters that English has not; words that are English too only part one foreign language from another.
DISTINCTIVE_WORD, IN_A_NAME, LETTER, ENGLISH_WORD = 2.0, 1.0, 1.0, 0.5
# So much, beyond what speaks for English: one telling word, or two of the weaker signs. What that costs English texts
# is in docs/decisions/0024-languages.md.
MIN_EVIDENCE = 2.0
# From here on it is surely not English, and of two languages that explain it equally well the first is taken.
SURE_EVIDENCE = 3.0
# Two words with foreign letters; more of them may be a list of names.
MAX_LETTER_EVIDENCE = 2.0

LETTERS: dict[str, frozenset[str]] = {
    "czech": frozenset("áčďéěíňóřšťúůýž"),
    "danish": frozenset("æøå"),
    "dutch": frozenset("ëïé"),
    "finnish": frozenset("äö"),
    "french": frozenset("àâçèéêëîïôùûœ"),
    "german": frozenset("äöüß"),
    "greek": frozenset("αβγδεζηθικλμνξοπρσςτυφχψωάέήίόύώϊϋΐΰ"),
    "hungarian": frozenset("áéíóöőúüű"),
    "italian": frozenset("àèéìòù"),
    "norwegian": frozenset("æøå"),
    "polish": frozenset("ąćęłńóśźż"),
    "portuguese": frozenset("ãõáâàçéêíóôú"),
    "romanian": frozenset("ăâîșțşţ"),
    "russian": frozenset("абвгдеёжзийклмнопрстуфхцчшщъыьэюя"),
    "spanish": frozenset("áéíñóúü"),
    "swedish": frozenset("åäö"),
    "turkish": frozenset("çğıöşü"),
}

_words = {language: frozenset(words.replace("|", " ").split()) for language, words in FUNCTION_WORDS.items()}
_telling = frozenset(word for words in _words.values() for word in words) - ENGLISH_TOO
# As they are written: looked up before anything is lowered, since most texts are English and hold none of them.
_telling_as_written = _telling | frozenset(word.capitalize() for word in _telling)
_languages_of_word: dict[str, tuple[str, ...]] = {}
for _language, _own_words in _words.items():
    for _word in _own_words & _telling:
        _languages_of_word[_word] = (*_languages_of_word.get(_word, ()), _language)
_letters = frozenset(letter for letters in LETTERS.values() for letter in letters)


def language_markers(language: str) -> tuple[str, ...]:
    """By which terms, beside its own, a memory in this language is indexed."""
    return () if language == ENGLISH else (NOT_ENGLISH, mark(language))


def mark(language: str) -> str:
    return f":{language}"


def language_condition(language: str) -> tuple[str, bool]:
    """A mark, and whether the memories in this language hold it or are those that do not."""
    return (NOT_ENGLISH, False) if language == ENGLISH else (mark(language), True)


def language_of(tokens: Sequence[str], ascii: bool) -> str:
    """The language of a text, given its words as they are written and whether the text is plain ASCII."""
    looked_at = tokens if len(tokens) <= MAX_QUERY_WORDS else tokens[:MAX_QUERY_WORDS]
    # A capital may begin a name, and names keep their accents in English.
    strange = set() if ascii else {token for token in looked_at if not token.isascii() and token.islower()}
    if strange:
        strange = {token for token in strange if not _letters.isdisjoint(token)}
    if not strange and _telling_as_written.isdisjoint(looked_at):
        return ENGLISH
    # Capitals throughout are an abbreviation or code.
    return _likeliest({token.lower() for token in looked_at if not token.isupper()}, strange)


def _likeliest(words: set[str], strange: set[str]) -> str:
    weights = _weights(words & _telling, strange)
    likely = [language for language in LANGUAGES if weights[language] >= MIN_EVIDENCE]
    if not likely:
        return ENGLISH
    letters = _letters.intersection("".join(words))
    ranks = {language: _rank(language, weights[language], words, letters) for language in likely}
    best = max(likely, key=ranks.__getitem__)
    english = DISTINCTIVE_WORD * len((words & STOP_WORDS) - _words[best])
    undecided = weights[best] < SURE_EVIDENCE and sum(rank == ranks[best] for rank in ranks.values()) > 1
    return best if weights[best] >= MIN_EVIDENCE + english and not undecided else ENGLISH


def _weights(telling: set[str], strange: set[str]) -> dict[str, float]:
    """What speaks for each language against English; letters that it does not have speak against it."""
    weights = dict.fromkeys(LANGUAGES, 0.0)
    for word in telling:
        for language in _languages_of_word[word]:
            weights[language] += IN_A_NAME if word in IN_NAMES else DISTINCTIVE_WORD
    if strange:
        letters = {letter for word in strange for letter in word if letter > "\x7f"}
        for language, own in LETTERS.items():
            written = LETTER * sum(not own.isdisjoint(word) for word in strange - telling)
            weights[language] += min(MAX_LETTER_EVIDENCE, written) - DISTINCTIVE_WORD * len(letters - own)
    return weights


def _rank(language: str, weight: float, words: set[str], letters: frozenset[str]) -> float:
    """Against other languages its words count that English has too, and the letters of names."""
    shared = words & _words[language] & ENGLISH_TOO
    return weight + ENGLISH_WORD * len(shared) - LETTER * len(letters - LETTERS[language])
