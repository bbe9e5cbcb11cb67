"""Write the files derived from the contract: the method stub, and the tables and pages of the docs.

python scripts/generate.py           # or `make generate`
python scripts/generate.py --check   # fails if a file differs

In a page, a derived table stands between `<!-- generated: NAME -->` and `<!-- end -->`.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import draw_rooms
import make_stub
from trivet.cli.reference import reference
from trivet.contract import VERBS, Edit, describe, json_schema
from trivet.serve.mcp.result_types import Found, WhyFound
from trivet.types import Hit, Why

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
BLOCK = re.compile(r"(<!-- generated: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def files() -> dict[Path, str]:
    found = {
        make_stub.TARGET: make_stub.stub(),
        draw_rooms.TARGET: draw_rooms.drawing(),
        DOCS / "cli.md": reference(),
    }
    for page in sorted(DOCS.glob("**/*.md")):
        text = page.read_text(encoding="utf-8")
        if BLOCK.search(text):
            found[page] = BLOCK.sub(lambda match: f"{match[1]}{TABLES[match[2]]()}{match[3]}", text)
    return found


def _routes() -> str:
    rows = ["| address | right | what it does |", "|---|---|---|"]
    for verb in VERBS.values():
        rows += [
            f"| `{route.method} {route.path}` | {verb.needs} | {verb.summary} |"
            for route in verb.routes
        ]
    return _lines(rows)


def _tools() -> str:
    rows = ["| tool | verb | what it does |", "|---|---|---|"]
    rows += [
        f"| `{verb.tool.name}` | {verb.name} | {verb.summary} |"
        for verb in VERBS.values()
        if verb.tool
    ]
    return _lines(rows)


def _verbs() -> str:
    rows = ["| verb | right | on the server | what it does |", "|---|---|---|---|"]
    for verb in VERBS.values():
        rows.append(
            f"| `{verb.name}` | {verb.needs} | {'yes' if verb.routes else 'no'} | {verb.summary} |"
        )
    return _lines(rows)


def _hit() -> str:
    rows = ["| field | what it is | agents have it |", "|---|---|---|"]
    for name, schema in json_schema(Hit)["properties"].items():
        text = _described(schema) or _OF_A_MEMORY.get(name) or describe(Edit, name)
        rows.append(f"| `{name}` | {text} | {'yes' if name in Found.__struct_fields__ else ''} |")
    return _lines(rows)


def _countings() -> str:
    arms = json.loads((DOCS / "results" / "countings.json").read_text(encoding="utf-8"))
    measures = list(dict.fromkeys(row["measure"] for arm in arms for row in arm["rows"]))
    rows = [
        f"| dataset | found | questions | {' | '.join(measures)} |",
        f"|---|---|---|{'---|' * len(measures)}",
    ]
    for arm in arms:
        values = {
            (row["found"], row["questions"], row["measure"]): row["value"] for row in arm["rows"]
        }
        for found, questions in dict.fromkeys(
            (row["found"], row["questions"]) for row in arm["rows"]
        ):
            cells = " | ".join(
                f"{values[found, questions, measure]:.3f}".lstrip("0") for measure in measures
            )
            rows.append(f"| {arm['dataset']} | {found} | {questions} | {cells} |")
    return _lines(rows)


# Fields that the parameters of `edit` do not describe, or describe for the writer only.
_OF_A_MEMORY = {
    "id": "Its id, a UUID.",
    "content": "The text, or a mask for a sensitive memory whose text was not requested.",
    "category": "One of the configured categories.",
    "tags": "Its tags.",
    "source": "Where it came from: `uri` (or a path), `start_line`, `end_line`.",
    "state": "active, superseded, archived or deleted.",
    "sensitive": "Whether it is masked, never embedded and never sent anywhere.",
    "created_at": "When it was learned.",
    "updated_at": "When it was last changed.",
    "revision": "How often it was written.",
    "owner": "Owner of the memory on a server with several users.",
}


def _why() -> str:
    rows = ["| field | what it is | agents have it |", "|---|---|---|"]
    for name, schema in json_schema(Why)["properties"].items():
        rows.append(
            f"| `{name}` | {_described(schema)} | "
            f"{'yes' if name in WhyFound.__struct_fields__ else ''} |"
        )
    return _lines(rows)


def _described(schema: Mapping[str, Any]) -> str:
    return str(schema.get("description", ""))


def _lines(rows: list[str]) -> str:
    return "\n".join(["", *rows, "", ""])


TABLES: Mapping[str, Callable[[], str]] = {
    "countings": _countings,
    "routes": _routes,
    "tools": _tools,
    "verbs": _verbs,
    "hit": _hit,
    "why": _why,
}


def stale() -> Iterator[Path]:
    for path, text in files().items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            yield path


def main() -> int:
    if "--check" in sys.argv[1:]:
        found = list(stale())
        for path in found:
            print(
                f"{path.relative_to(ROOT)} is not what the contract says. Run `make generate`.",
                file=sys.stderr,
            )
        return 1 if found else 0
    for path, text in files().items():
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
