"""What a rule is: words that must be there, a pattern, and a check of what the pattern found."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from trivet.secrets.detect.harmless import is_placeholder
from trivet.secrets.detect.lazy_pattern import Late

Check = Callable[[str], bool]


def _any(value: str) -> bool:
    return True


class Rule(msgspec.Struct, frozen=True):
    """`anchors`: lower-case texts of which one must occur for the pattern to be tried, which is most of the speed.

    The secret is the group named `secret`, or the whole match.
    """

    kind: str
    anchors: tuple[str, ...]
    pattern: Late
    check: Check = _any
    may_be_placeholder: bool = True

    def spans(self, text: str) -> list[tuple[int, int]]:
        pattern = self.pattern()
        group = "secret" if "secret" in pattern.groupindex else 0
        return [match.span(group) for match in pattern.finditer(text) if self._holds(match[group])]

    def _holds(self, value: str) -> bool:
        return self.check(value) and not (self.may_be_placeholder and is_placeholder(value))


def rule(
    kind: str, anchors: str, pattern: str, check: Check = _any, *, flags: int = 0, placeholder: bool = True
) -> Rule:
    return Rule(kind, tuple(anchors.split()), Late(pattern, flags), check, placeholder)
