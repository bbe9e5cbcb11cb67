"""A member that is a program: run for each query, it prints its hits."""

from __future__ import annotations

from collections.abc import Iterable

from trivet.search.systems.formats import hits_in
from trivet.search.systems.reported_hits import Asked, Raw
from trivet.search.systems.subprocess import Child
from trivet.search.systems.template import asks, filled_arguments
from trivet.settings.systems import WORDS, Member

# `grep` and `rg` say by this that nothing matched.
NOTHING_MATCHED = 1


def ask_command(member: Member, asked: Asked, end: float) -> Iterable[Raw]:
    """Where no argument has the query, it stands on standard input."""
    if not asked.words and any(WORDS in part for part in member.command):
        return ()  # an empty regular expression would find everything
    command = filled_arguments(member.command, member, asked)
    said = b"" if asks(member.command) else asked.query.encode() + b"\n"
    with Child(command, member.environment, end, member.most_bytes) as child:
        child.say(said)
        output = child.rest()
        complaint = child.complaint()
        searches_lines = member.format in ("rg", "lines")
        if complaint and not (searches_lines and (output or child.status == NOTHING_MATCHED)):
            raise complaint
    return hits_in(output, member, asked.words)
