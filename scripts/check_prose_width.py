"""Fail if a line of prose in a Markdown file is longer than 100 characters.

Tables, code, headings, HTML and lines that hold nothing but a link may be longer.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

MAX_COLUMNS = 100
# Model cards, data of the lab, and texts that agents read.
EXEMPT = (
    "src/trivet/models/weights/",
    "src/trivet/lab/",
    "src/trivet/agents/install/",
    "tests/models/",
)
FREE = re.compile(r"\s*(?:\||#|<|!\[|\s{3}|(?:[-*] )?\[[^\]]*\]\([^)]*\)\S?$|\[[^\]]+\]: )")


def long_lines(text: str) -> Iterator[int]:
    """Yield the numbers of lines that should be wrapped."""
    in_code = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            in_code = not in_code
        elif len(line) > MAX_COLUMNS and not in_code and not FREE.match(line):
            yield number


def main() -> int:
    """Print each line that is too long and return the exit status."""
    listed = subprocess.run(["git", "ls-files", "*.md"], capture_output=True, text=True, check=True)
    files = sys.argv[1:] or listed.stdout.splitlines()
    wrong = [
        f"{file}:{number}: longer than {MAX_COLUMNS} columns"
        for file in files
        if not file.startswith(EXEMPT) and Path(file).is_file()
        for number in long_lines(Path(file).read_text(encoding="utf-8"))
    ]
    print("\n".join(wrong) or f"Prose of {len(files)} files is wrapped.")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
