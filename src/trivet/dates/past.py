"""Whether a question is about how things were."""

from __future__ import annotations

import re
from datetime import datetime

from trivet.dates.cues import may_name_a_time

_about_past = re.compile(
    r"\b(?:at first|(?:in|at) the beginning|to begin with|original(?:ly)?|initial(?:ly)?|former(?:ly)?|previous(?:ly)?"
    r"|earlier|back then|back when|in the past|at th(?:e|at) time|in those days|used? to|once had|until|before|prior to"
    r"|as of|older|the old|the first (?:plan|version|idea|choice)|any ?more|working (?:name|title)|history"
    r"|first (?:decide|plan|choose|chose|want|say|said|think|thought)\w*|had (?:we|i|they|he|she|it|the \w+))\b",
    re.IGNORECASE,
)

# "What was it in spring" asks for the past; "what do we sow in March" does not.
_past_tense = re.compile(r"\b(?:was|were|did|had|been|used|\w{2,}ed)\b", re.IGNORECASE)


def asks_about_past(query: str, now: datetime | None = None) -> bool:
    """Whether a question wants what held at an earlier time, such as "at first", "before", "used to", "in October".

    "What did we decide" alone does not: that wants what holds now. `now` is local time; the real one if none is given.
    """
    if _about_past.search(query):
        return True
    if not (may_name_a_time(query) and _past_tense.search(query)):
        return False
    from trivet.dates.find import expressions_in  # takes milliseconds to load, and few queries need it

    seen = now or datetime.now()
    spans = [span for expression in expressions_in(query, seen) for span in expression.spans]
    today = seen.replace(hour=0, minute=0, second=0, microsecond=0)
    return any(span.end is not None and span.end <= today for span in spans)
