"""The reason for a hit in plain words, for people and for agents."""

from __future__ import annotations

from trivet.code.types import CodeHit

# What a leg of the search, or of `related`, says in words.
_LEGS = {"dense": "by meaning", "meaning": "by meaning", "paths": "path", "uses it": "uses it", "used by it": "is used"}
_NAMED = {"exact": "named so", "spoken": "named so but for case and joiners"}
_ROLES = {
    "test": "a test",
    "example": "an example",
    "documentation": "documentation",
    "vendored": "other people's code",
    "configuration": "configuration",
    "declaration": "a declaration",
}


def reason(hit: CodeHit) -> str:
    """The strongest kind of evidence first: `defines parse_retry_after; words: retry, after; path`."""
    why = hit.why
    parts = [f"defines {why['defines']}"] if "defines" in why else []
    parts += [_NAMED[str(why["name"])]] if why.get("name") in _NAMED else []
    parts += [f"words: {', '.join(str(why['words']).split())}"] if "words" in why else []
    parts += [told for leg, told in _LEGS.items() if leg in why]
    if (role := why.get("role")) in _ROLES:
        parts.append(_ROLES[str(role)] + (", so it comes later" if "demoted" in why else ""))
    return "; ".join(dict.fromkeys(parts))
