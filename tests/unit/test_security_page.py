"""Every test named in docs/security.md exists."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")


def test_every_row_names_a_test() -> None:
    rows = [line for line in PAGE.partition("\n\n## ")[0].splitlines() if line.startswith("| ")][1:]
    assert len(rows) > 20
    assert [row for row in rows if not NAMED.search(row.rpartition(" | ")[2])] == []


def test_every_named_test_exists() -> None:
    named = set(NAMED.findall(PAGE))
    assert len(named) == len(set(re.findall(r"tests/[\w/]+\.py::\w+", PAGE)))
    tests = {file: _functions(ROOT / file) for file, _ in named}
    assert [f"{file}::{test}" for file, test in sorted(named) if test not in tests[file]] == []


def _functions(file: Path) -> set[str]:
    return {
        node.name
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.FunctionDef)
    }
