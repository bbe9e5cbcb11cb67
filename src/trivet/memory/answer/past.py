"""Whether a question asks how things were, and not how they are."""

from __future__ import annotations

import re

from trivet.analyse import fold

_earlier = re.compile(
    r"\b(?:at first|in the beginning|at the (?:start|beginning|outset)|to begin with|original(?:ly)?|initial(?:ly)?|"
    r"former(?:ly)?|previous(?:ly)?|prior|earlier|before|used? to|back then|back when|in the past|at that time|"
    r"at the time|once was|no longer|first (?:decide|plan|choose|chose|want|say|said|think|thought)\w*|history|"
    r"until (?:then|recently|last)|old(?:er)?|working (?:name|title)|had (?:we|i|they|he|she|it|the \w+)|years? ago|"
    r"months? ago|weeks? ago|days? ago|ago)\b"
)
_season = r"(?:spring|summer|autumn|fall|winter)"
_month = r"(?:january|february|march|april|may|june|july|august|september|october|november|december)"
_when = re.compile(
    rf"\b(?:in|during|since|until|till|by|of|last|on \d{{1,2}}(?:st|nd|rd|th)?(?: of)?) "
    rf"(?:the |early |late |mid |last )?(?:{_month}|{_season}|(?:19|20)\d\d)\b|"
    r"\blast (?:year|month|week|term|season|time)\b|\byesterday\b"
)
# "What was it in spring" asks for the past; "what do we do in summer" does not.
_past_tense = re.compile(r"\b(?:was|were|did|had|been|used|\w{3,}ed)\b")


def asks_about_past(query: str) -> bool:
    folded = fold(query)
    if _earlier.search(folded):
        return True
    return bool(_when.search(folded)) and bool(_past_tense.search(folded))
