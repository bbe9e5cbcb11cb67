"""The mark for stored text in a structured result.

Several agents' programs (Claude Code, Codex) hand their model the structured result and not the text. So stored words
are marked there as they are in the text: between tags with a number that their author cannot have known.
"""

from __future__ import annotations

import re
from typing import Any

from trivet.search.systems.unmarked import marks
from trivet.serve.mcp.text import Wrapper, defused

# What Trivet itself writes; of `why` the words are those of the query.
OURS = frozenset(("notice", "why", "health", "undo"))
# Sentences by nature, and marked even where they are one word.
SENTENCES = frozenset(("content", "text", "title", "path", "verdict", "reasons"))
# One word of ASCII is an id, a time, a scope, a tag or an address, and tells a model nothing to do.
_ONE_WORD = re.compile(r"[\w.:/#@+~%=&?-]{0,200}", re.ASCII)
NOTICE = "notice"


def marked(result: dict[str, Any], wrapper: Wrapper) -> dict[str, Any]:
    """The result with every stored text between tags, under the sentence that says what they mean."""
    found = {name: _value(name, value, wrapper) for name, value in result.items()}
    if found == result:
        return result
    return {NOTICE: wrapper.notice, **{name: value for name, value in found.items() if name != NOTICE}}


def _value(name: str, value: Any, wrapper: Wrapper) -> Any:
    if isinstance(value, str):
        return (
            value if name in OURS or (name not in SENTENCES and _ONE_WORD.fullmatch(value)) else _tagged(value, wrapper)
        )
    if isinstance(value, dict):  # of counts, by tag or scope, the names are stored words too
        return {_name(key, wrapper): _value(key, inner, wrapper) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_value(name, inner, wrapper) for inner in value]
    return value


def _name(key: str, wrapper: Wrapper) -> str:
    return key if _ONE_WORD.fullmatch(key) else _tagged(key, wrapper)


def _tagged(text: str, wrapper: Wrapper) -> str:
    """As short as it can be: it is paid for with every hit. JSON would write each quotation mark as two characters."""
    before, after = marks(wrapper.nonce)
    return f"{before}{defused(text)}{after}"
