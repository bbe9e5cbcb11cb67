"""Source code inside a memory. What code defines is what it is about; what it calls is its everyday vocabulary."""

from __future__ import annotations

import re

_code_line = re.compile(
    r"^\s*(?:def|class|import|from \S+ import|return|if|elif|else|for|while|try|except|finally|with|raise|yield|async|"
    r"await|function|const|let|var|public|private|static|void|int|func|fn|package|use|struct|impl|select|insert|update|create)\b"
    r".*[:;{})\]=]|[;{}]\s*+$|^\s*[\w.\[\]\"']++\s*+[-+*/|&]?=\s*\S|^\s*[\w.]++\(.*\)\s*+(?:;\s*+)?$|^\s*(?:@\w|#include|//|/\*)",
    re.IGNORECASE,
)
_defined = re.compile(
    r"[ \t]*(?:(?:export|public|private|static|async|default)[ \t]+){0,4}"
    r"(?:def|class|function|func|fn|struct|interface|type|trait|module|namespace|CREATE[ \t]+(?:TABLE|VIEW|INDEX))"
    r"[ \t]+"
    r"([A-Za-z_]\w{2,})",
    re.IGNORECASE,
)
# A text of which this share of lines looks like code is code, also without a fence around it.
SHARE_OF_CODE_LINES = 0.5
FEWEST_LINES = 3
# Characters looked at of a line: readable code has shorter lines.
LONGEST_LINE = 300
FENCES = ("```", "~~~")


def split_code(text: str) -> tuple[str, str]:
    """The prose of a text, and its code: what stands in fences, or all of it if it looks like code."""
    prose: list[str] = []
    code: list[str] = []
    fence = ""
    for line in text.splitlines():
        mark, after = line.strip()[:3], line.strip()[3:]
        if mark in FENCES and mark == (fence or mark) and mark not in after:
            fence = "" if fence else mark
        else:
            (code if fence else prose).append(line)
    if _is_code(prose):
        return "", "\n".join([*code, *prose])
    return "\n".join(prose), "\n".join(code)


def definitions(code: str) -> list[str]:
    return [match.group(1) for line in code.splitlines() if (match := _defined.match(line[:LONGEST_LINE]))]


def _is_code(written: list[str]) -> bool:
    lines = [line[:LONGEST_LINE] for line in written if line.strip()]
    if lines and _defined.match(lines[0]) and lines[0].rstrip().endswith((":", "{", "(", ",")):
        return True
    return len(lines) >= FEWEST_LINES and sum(map(_looks_like_code, lines)) >= SHARE_OF_CODE_LINES * len(lines)


def _looks_like_code(line: str) -> bool:
    return _code_line.search(line) is not None
