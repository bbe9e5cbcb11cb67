"""Detects whether a question asks about the past."""

from __future__ import annotations

import re
from datetime import datetime

from trivet.dates.spans import may_mention_time

_about_past = re.compile(
    r"\b(?:at first|(?:in|at) the (?:beginning|start|outset)|to begin with|original(?:ly)?"
    r"|initial(?:ly)?|former(?:ly)?"
    r"|previous(?:ly)?|earlier|back then|back when|back in(?! \d{1,2}\b)|in the past|at th(?:e"
    r"|at) time|in those days"
    r"|used? to|once had"
    r"|older|(?:the|my|our|your|his|her|their|\w+'s) old|the first (?:plan|version|idea|choice)"
    r"|any ?more"
    r"|working (?:name|title)|history|first (?:decide|plan|choose|chose|want|say|said|think"
    r"|thought)\w*"
    r"|(?:should|would) have been|had (?:we|i|they|he|she|it|the \w+))\b",
    re.IGNORECASE,
)
# The words for before, formerly, at first and original in German, French, Spanish and Hungarian.
# Hungarian puts "before" after its noun, German in front.
_about_past_elsewhere = re.compile(
    r"\b(?:früher|vorher|zuvor|ursprünglich|zuerst|anfangs|damals|bevor|ehemalige\w*|vorherige\w*"
    r"|vor de[mnr]"
    r"|avant|auparavant|autrefois|à l['’]origine|au début|ancien(?:ne)?s?|précédent\w*|d['’]abord"
    r"|initialement"
    r"|antes|anterior\w*|al principio|originalmente|antigu[oa]s?|previamente|inicialmente"
    r"|korábban|régebben|régen|eredetileg|azelőtt|előtt|előző\w*|eleinte|először)\b"
    r"|以前|之前|原来|起初|最初|当初|原先|かつて|もともと",
    re.IGNORECASE,
)
# "What did it cost before", but not "must I ask before I delete" or "until when is it open".
_bounded = re.compile(r"\b(?:before|until(?! when\b)|prior to|as of)\b", re.IGNORECASE)
# Only together with "was": "who was her first tutor", "where was it supposed to be".
_not_any_more = re.compile(
    r"\bfirst\b(?! name| aid| thing| class| floor)|\bsupposed to\b", re.IGNORECASE
)
_was = re.compile(r"\b(?:was|were|did|had|used)\b", re.IGNORECASE)
_holds = re.compile(r"\b(?:is|are|do|does|can|may|must|shall|should|will)\b", re.IGNORECASE)

# "What was it in spring" asks about the past; "what do we sow in March" does not.
_past_tense = re.compile(r"\b(?:was|were|did|had|been|used|\w{2,}ed)\b", re.IGNORECASE)


def asks_about_past(query: str, now: datetime | None = None) -> bool:
    """Return whether a question asks for an earlier state: "at first", "before", "in October".

    "What did we decide" alone asks for the current state. `now` is local time.
    """
    if says_past(query):
        return True
    if not (may_mention_time(query) and _past_tense.search(query)):
        return False
    # Loading it takes milliseconds, and few queries need it.
    from trivet.dates.parse import find_time_expressions

    seen = now or datetime.now()
    spans = [span for expression in find_time_expressions(query, seen) for span in expression.spans]
    today = seen.replace(hour=0, minute=0, second=0, microsecond=0)
    return any(span.end is not None and span.end <= today for span in spans)


def says_past(query: str) -> bool:
    """Return whether its words say so, without a time: "at first", "my old", "früher"."""
    if _about_past.search(query) or _about_past_elsewhere.search(query):
        return True
    if _not_any_more.search(query) and _was.search(query):
        return True
    return bool(_bounded.search(query) and (_was.search(query) or not _holds.search(query)))
