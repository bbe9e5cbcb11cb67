"""Queries for code, made from doc comments, names and commit messages."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass

FEWEST_WORDS, MOST_WORDS = 3, 60
LONGEST_ISSUE, SHORTEST_ISSUE = 1200, 200  # Characters.
TWO_SENTENCES = 0.35
LOWER_CASE = 0.35
WITH_BODY = 0.35

_MARKERS = re.compile(
    r'^\s*(@(module)?doc\s+(~\w)?|/\*\*?|\*/|\*(?!\w)|//[/!]*|#+|--+\s*[|^]?|%+|\(\*\*?|\{-\s*\|?|<#|r?"""|r?\'\'\'|"|\')+\s?'
)
_ENDS = re.compile(r'(\*/|\*\)|-\}|#>|"""|\'\'\'|")\s*$')
_SECTION = re.compile(
    r"\s*([@:\\]\w+|Args?:|Arguments:|Parameters?:?$|Params?:|Returns?:|Raises:|Examples?:?|Usage:|Note:|See Also|#+ |"
    r"```|>>>|\.\. |-\s|- parameter|<(param|returns|remarks|typeparam|exception|example)|={3,}|-{3,}|iex>)",
    re.IGNORECASE,
)
_USELESS = re.compile(
    r"copyright|licen[cs]e|todo\b|fixme|inherit-?doc|eslint|nolint|noinspection|pylint|istanbul|prettier-|rubocop|@internal|region\b|"
    r"clang-format|swiftlint|non-javadoc|shellcheck|auto-?generated|^\W*see\b|"
    r"^\W*(deprecated|private|public|internal)\b.{0,40}$|[;{}#]\s*$|^\W+$|===|---|\*\*\*",
    re.IGNORECASE,
)
_CHORE = re.compile(
    r"\b(bump|bumps|bumped|release|changelog|typos?|merge|revert|reverts|lint|linting|linter|formatting|whitespace|wip|readme|"
    r"copyright|spelling|gofmt|rustfmt|clippy|prettier|rubocop|scalafmt|dependenc\w+|upgrade deps|version|fixup|"
    r"cleanup imports|code style|cosmetic|travis|appveyor|github actions|phpstan|psalm|license|docs?|"
    r"documentation|comments?|javadoc|docstrings?|grammar|tests?|testing|coverage|specs?)\b|^(chore|ci|build|docs?|style|test|tests)\b",
    re.IGNORECASE,
)
_TRAILER = re.compile(
    r"^\s*([A-Z][\w-]+-(by|Id|on|to|link|url)|Signed-off-by|Co-authored-by|Summary|Test Plan|"
    r"Differential Revision|Reviewers?|PiperOrigin\S*|"
    r"(fix(es|ed)?|close[sd]?|resolve[sd]?|refs?|issue|see|related|part of|pr|bug|cc)\b:?\s+"
    r"\S*(#|https?:)\S+)[:\s]?.*$",
    re.IGNORECASE,
)
_PREFIX = re.compile(r"^(\w+(\([^)]*\))?!?:|\[[^\]]*\]:?|[\w./*-]+:)\s+")


@dataclass(frozen=True)
class DocQuery:
    query: str
    sentence: str  # As in the doc, to find it in the code.
    lines_used: int


def doc_query(doc: list[str], name: str, chance: random.Random) -> DocQuery | None:
    """Return a doc comment's first one or two sentences, or None if they say too little."""
    parts: list[str] = []
    used = 0
    for line in doc:
        text = _plain(line)
        if parts and (not text or _SECTION.match(text)):
            break
        if not parts and _SECTION.match(text):
            return None
        used += 1
        parts += [text] if text else []
    sentences = re.split(r"(?<=[.!?])\s+(?=[A-Z`])", " ".join(parts))
    first = sentences[0].strip()
    query = (
        " ".join(sentences[:2]).strip()
        if len(first) < 60 and chance.random() < TWO_SENTENCES
        else first
    )
    if _USELESS.search(query) or not _says_something(query):
        return None
    return DocQuery(_as_asked(query, name, chance), first, used)


def _plain(line: str) -> str:
    text = _ENDS.sub("", _MARKERS.sub("", line))
    text = re.sub(
        r'<see(also)? \w+="([\w.:`]+)[^"]*"\s*/>|\{@\w+ ([^}]*)\}',
        lambda found: found[2] or found[3],
        text,
    )
    text = re.sub(
        r"</?(summary|para|p|c|code|b|i|em|br|tt|pre|li|ul|a)\b[^>]*>|`+|\*\*|:\w+:(?=`)|\[\[|\]\]",
        "",
        text,
    )
    text = re.sub(r"\\\(.*?\\\)\.?|^[\W_]+(?=\s)", "", text)
    return re.sub(r"\s+", " ", text).strip()


def _says_something(query: str) -> bool:
    words = query.split()
    letters = sum(
        character.isascii() and (character.isalpha() or character == " ") for character in query
    )
    return FEWEST_WORDS <= len(words) <= MOST_WORDS and letters > 0.75 * len(query)


def _as_asked(query: str, name: str, chance: random.Random) -> str:
    """Drop a leading name, as Go docs have it, and sometimes capitals: searchers know neither."""
    first, _, rest = query.partition(" ")
    if (
        first.strip("`.():,") == name.rpartition(".")[2]
        and re.match(r"\w+s\b", rest)
        and len(rest.split()) >= FEWEST_WORDS
        and chance.random() < 0.7
    ):
        query = re.sub(r"^(is|are)\s+", "", rest)
    if chance.random() < LOWER_CASE:
        query = query[:1].lower() + query[1:].rstrip(".")
    return query


def spoken(name: str) -> str:
    parts = re.sub(
        r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[_\-.:!?$/]+",
        " ",
        name.rpartition("::")[2],
    )
    return re.sub(r"\s+", " ", parts).strip().lower()


_QUESTIONS = (
    "{}",
    "{}",
    "{}",
    "where is {}",
    "function {}",
    "code for {}",
    "implementation of {}",
    "how does {} work",
)
_THIRD_PERSON = ("where is the code that {}", "function that {}", "which function {}")
_IMPERATIVE = ("where do we {}", "how do we {}", "code to {}")
_VERBS = frozenset(
    "get return set create add make build parse check compute find load read write convert update "
    "remove delete determine initialize register handle send run start stop open close validate "
    "generate extract apply render format encode decode resolve merge split print list fetch save "
    "store copy test process call "
    "execute ensure calculate retrieve insert replace reset clear wrap define".split()
)


def name_query(name: str, doc: str | None, chance: random.Random) -> str | None:
    words = spoken(name)
    if not 2 <= len(words.split()) <= 8 or not words.isascii():
        return None
    if doc and chance.random() < 0.5:
        asked = doc[:1].lower() + doc[1:].rstrip(".")
        if re.match(r"\w+s\b", asked):
            return chance.choice(_THIRD_PERSON).format(asked)
        if asked.split()[0] in _VERBS:
            return chance.choice(_IMPERATIVE).format(asked)
    return chance.choice(_QUESTIONS).format(words)


def _body(message: str) -> str:
    rest = message.partition("\n")[2]
    kept = [line.rstrip() for line in rest.splitlines() if not _TRAILER.match(line)]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip()


def commit_query(message: str, chance: random.Random) -> str | None:
    """Return the subject, sometimes with the body's first line; None for chores and the like."""
    subject = message.partition("\n")[0].strip()
    if _CHORE.search(subject):
        return None
    subject = re.sub(
        r"\s*\(?(\b(fix(es|ed)?|close[sd]?|refs?|resolve[sd]?)\s+)?(#|GH-|gh-)\d+\)?[.,:]?|https?://\S+",
        "",
        subject,
        flags=re.IGNORECASE,
    )
    bare = _PREFIX.sub("", subject)
    if len(bare.split()) < 4 or not _says_something(bare) or len(subject) > 200:
        return None
    query = bare if chance.random() < 0.6 else subject.strip()
    first = re.sub(r"\s+", " ", _body(message).partition("\n\n")[0])[:300]
    if len(first.split()) >= 5 and first.isascii() and chance.random() < WITH_BODY:
        return f"{query.rstrip('. ')}. {first}"
    return query.strip()


def issue_query(message: str, chance: random.Random) -> str | None:
    """Return the explanation of a commit that refers to an issue: closest to the issue's text."""
    body = _body(message)
    if len(body) < SHORTEST_ISSUE or not re.search(
        r"#\d+|\b(fix(es|ed)?|bug|issue|close[sd]?|resolve[sd]?)\b", message, re.IGNORECASE
    ):
        return None
    letters = sum(
        character.isascii() and (character.isalpha() or character.isspace()) for character in body
    )
    if letters < 0.7 * len(body):
        return None
    subject = _PREFIX.sub("", message.partition("\n")[0].strip())
    return (f"{subject}\n{body}" if chance.random() < 0.5 else body)[:LONGEST_ISSUE].strip()
