"""Source code inside a memory. What code defines is what it is about; what it calls is its everyday vocabulary."""

from __future__ import annotations

import re

_fenced = re.compile(r"^[ \t]*(```|~~~)[^\n]*\n(.*?)(?:^[ \t]*\1[^\n]*$|\Z)", re.MULTILINE | re.DOTALL)
_code_line = re.compile(
    r"^\s*(?:def|class|import|from \S+ import|return|if|elif|else|for|while|try|except|finally|with|raise|yield|async|await|"
    r"function|const|let|var|public|private|static|void|int|func|fn|package|use|struct|impl|select|insert|update|create)\b"
    r".*[:;{})\]=]|[;{}]\s*$|^\s*[\w.\[\]\"']+\s*[-+*/|&]?=\s*\S|^\s*[\w.]+\(.*\)\s*;?\s*$|^\s*(?:@\w|#include|//|/\*)",
    re.IGNORECASE,
)
_defined = re.compile(
    r"^\s*(?:export\s+|public\s+|private\s+|static\s+|async\s+|default\s+)*"
    r"(?:def|class|function|func|fn|struct|interface|type|trait|module|namespace|CREATE\s+(?:TABLE|VIEW|INDEX))\s+"
    r"([A-Za-z_]\w{2,})",
    re.MULTILINE | re.IGNORECASE,
)
# A text of which so many lines look like code is code, also without a fence around it.
SHARE_OF_CODE_LINES = 0.5
FEWEST_LINES = 3


def without_code(text: str) -> tuple[str, str]:
    """The prose of a text, and its code."""
    fenced = "\n".join(match.group(2) for match in _fenced.finditer(text))
    prose = _fenced.sub("\n", text)
    return ("", f"{fenced}\n{prose}") if _is_code(prose) else (prose, fenced)


def definitions(code: str) -> list[str]:
    return _defined.findall(code)


def _is_code(text: str) -> bool:
    lines = [line for line in text.splitlines() if line.strip()]
    if lines and _defined.match(lines[0]) and lines[0].rstrip().endswith((":", "{", "(", ",")):
        return True
    return len(lines) >= FEWEST_LINES and sum(map(_looks_like_code, lines)) >= SHARE_OF_CODE_LINES * len(lines)


def _looks_like_code(line: str) -> bool:
    return _code_line.search(line) is not None
