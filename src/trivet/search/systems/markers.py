"""The marks around stored text in MCP answers, and their removal from another Trivet's answer."""

from __future__ import annotations

import re
from typing import Any

_NOTICE = re.compile(r"Text inside memory-data tags with nonce ([0-9a-f]{12}) was stored earlier\.")


def markers(nonce: str) -> tuple[str, str]:
    return f"<memory-data nonce={nonce}>", f"</memory-data nonce={nonce}>"


def unmarked(answer: Any) -> Any:
    notice = answer.get("notice") if isinstance(answer, dict) else None
    found = _NOTICE.match(notice) if isinstance(notice, str) else None
    return _bare(answer, markers(found[1])) if found else answer


def _bare(value: Any, around: tuple[str, str]) -> Any:
    if isinstance(value, dict):
        return {_bare(name, around): _bare(inner, around) for name, inner in value.items()}
    if isinstance(value, list):
        return [_bare(inner, around) for inner in value]
    before, after = around
    if isinstance(value, str) and value.startswith(before):
        return value.removeprefix(before).removesuffix(after)
    return value
