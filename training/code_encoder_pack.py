r"""Pack the output of `code_encoder_pairs.py` into deduplicated data for the code encoder.

python code_encoder_pack.py --raw RAW --output FOLDER --manifest code-encoder.json \
    --dev owner/name...

Writes FOLDER/pairs.jsonl.xz, dev.jsonl.xz (only pairs of the --dev repositories), chunks.jsonl.xz
(code without a query), and the manifest: repository, commit, license and counts by kind.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import lzma
import random
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from code_history import is_source

SEED = 17
PER_REPOSITORY, PER_LANGUAGE = 4000, 32_000
DEV_PAIRS = 2000
SHORTEST_QUERY = 6  # Characters.
# A commit message may have two answers; any other query has one.
ANSWERS = {"commit": 2, "issue": 2, "doc": 1, "name": 1}
# The rarer kind takes a chunk first.
KINDS = ("issue", "commit", "doc", "name")
FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 2, "dict_size": 1 << 26}]

_LICENCE_TEXT = re.compile(
    r"licensed under the|without warrant|\bas is\b|all rights reserved", re.IGNORECASE
)
_EMPTY_COMMENT = re.compile(r"^([^\n]*\n)??(\s*(\*/?|//+|#|--|/// ?</summary>|\"{3})[ \t]*\n)+")
_TOOL_LINES = re.compile(
    r"^(MOE_MIGRATED|Created by MOE|PiperOrigin|RELNOTES|\*\*\* |-{5,}|git-svn-id|Summary:|fbshipit|Differential).*$",
    re.MULTILINE,
)

Row = dict[str, str]


class Doubles:
    def __init__(self) -> None:
        self.codes: set[bytes] = set()
        self.queries: Counter[bytes] = Counter()

    def is_new(self, row: Row) -> bool:
        code, query = _key(row["code"]), _key(row["query"])
        if code in self.codes or self.queries[query] >= ANSWERS[row["kind"]]:
            return False
        self.codes.add(code)
        self.queries[query] += 1
        return True

    def is_new_code(self, code: str) -> bool:
        key = _key(code)
        new = key not in self.codes
        self.codes.add(key)
        return new


def _key(text: str) -> bytes:
    return hashlib.blake2b(
        " ".join(text.lower().split()).encode(errors="replace"), digest_size=10
    ).digest()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--raw", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--manifest", type=Path, required=True)
    parser.add_argument(
        "--chunks", type=int, default=150_000, help="maximum number of chunks without a query"
    )
    parser.add_argument("--dev", nargs=10, required=True)
    arguments = parser.parse_args()
    chance, doubles = random.Random(SEED), Doubles()
    gathered = [json.loads(path.read_text()) for path in sorted(arguments.raw.glob("*.json"))]
    chance.shuffle(gathered)
    # Development repositories first: what they share is removed from the others.
    dev = [
        row
        for one in gathered
        if one["repository"] in arguments.dev
        for row in taken(one, doubles, DEV_PAIRS // 10, Counter())
    ]
    languages: Counter[str] = Counter()
    trained = [one for one in gathered if one["repository"] not in arguments.dev]
    pairs = [row for one in trained for row in taken(one, doubles, PER_REPOSITORY, languages)]
    chunks = [row for one in trained for row in one["chunks"] if doubles.is_new_code(row["code"])]
    chunks = chance.sample(chunks, min(arguments.chunks, len(chunks)))
    for name, rows in (("dev", dev), ("pairs", pairs), ("chunks", chunks)):
        write(arguments.output / f"{name}.jsonl.xz", rows)
    write_manifest(arguments.manifest, gathered, arguments.dev, pairs, dev, chunks)


def taken(one: dict[str, Any], doubles: Doubles, most: int, languages: Counter[str]) -> list[Row]:
    """Return a repository's unique pairs; above the limit, kinds keep their proportion."""
    chance = random.Random(f"{SEED} {one['repository']}")
    rows = [tidied(row) for row in chance.sample(one["rows"], len(one["rows"]))]
    rows = [
        row
        for kind in KINDS
        for row in rows
        if row["kind"] == kind and is_fit(row) and doubles.is_new(row)
    ]
    kept = []
    for row in chance.sample(rows, min(most, len(rows))):
        if languages[row["lang"]] < PER_LANGUAGE:
            languages[row["lang"]] += 1
            kept.append(row)
    return kept


def is_fit(row: Row) -> bool:
    speaks = len(row["query"]) >= SHORTEST_QUERY and not row["query"].endswith("#")
    return speaks and is_source(row["path"]) and not _LICENCE_TEXT.search(row["code"])


def tidied(row: Row) -> Row:
    """Remove leading comment lines left empty, and text that tools add to messages."""
    code = _EMPTY_COMMENT.sub(lambda found: found[1] or "", row["code"])
    query = re.sub(r"\n{3,}", "\n\n", _TOOL_LINES.sub("", row["query"])).strip()
    return row | {"code": code, "query": query}


def write(path: Path, rows: Iterable[Row]) -> None:
    """Write sorted rows: neighbors are similar and pack smaller. Trainers must shuffle."""
    ordered = sorted(rows, key=lambda row: (row["lang"], row["repo"], row["path"]))
    with lzma.open(path, "wb", format=lzma.FORMAT_XZ, filters=FILTERS) as file:
        for at in range(0, len(ordered), 2000):
            some = ordered[at : at + 2000]
            file.write(
                "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in some).encode(
                    errors="replace"
                )
            )
    print(path.name, len(ordered), path.stat().st_size, "bytes", flush=True)


def write_manifest(
    path: Path,
    gathered: list[dict[str, Any]],
    dev: list[str],
    pairs: list[Row],
    held: list[Row],
    chunks: list[Row],
) -> None:
    by_repository: dict[str, Counter[str]] = {}
    for row in [*pairs, *held]:
        by_repository.setdefault(row["repo"], Counter())[row["kind"]] += 1
    chunked = Counter(row["repo"] for row in chunks)
    repositories = [
        {key: one[key] for key in ("repository", "commit", "licence")}
        | {"split": "dev" if one["repository"] in dev else "train"}
        | {
            "pairs": dict(sorted(by_repository.get(one["repository"], Counter()).items())),
            "chunks": chunked[one["repository"]],
        }
        for one in sorted(gathered, key=lambda one: str(one["repository"]).lower())
    ]
    languages: dict[str, Counter[str]] = {}
    for row in pairs:
        languages.setdefault(row["lang"], Counter())[row["kind"]] += 1
    report = {
        "seed": SEED,
        "pairs": len(pairs),
        "dev": len(held),
        "chunks": len(chunks),
        "kinds": dict(Counter(row["kind"] for row in pairs).most_common()),
        "languages": {
            name: dict(sorted(counts.items())) for name, counts in sorted(languages.items())
        },
        "repositories": repositories,
    }
    path.write_text(json.dumps(report, indent=1) + "\n")
    print(json.dumps(report["languages"]), report["kinds"])


if __name__ == "__main__":
    main()
