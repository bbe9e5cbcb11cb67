"""Make docstring -> function pairs from permissively licensed Python packages.

python code_pairs.py --output code.json.xz WHEEL_OR_FOLDER...

A query is a docstring's first sentence or the function's name in words; the passage is the source
without that sentence. The file's other functions are hard negatives. Tests are left out.
"""

from __future__ import annotations

import argparse
import ast
import json
import lzma
import random
import re
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

SEED = 11
PER_PACKAGE = 450
SHORTEST_QUERY, LONGEST_QUERY = 3, 30  # Words.
SHORTEST_BODY, LONGEST_BODY = 60, 1500  # Characters.
NEGATIVES = 12
# CoSQA-like corpora keep docstrings in functions; most code in memories has none.
DOCSTRING_KEPT = 0.4
NAME_AS_QUERY = 0.2


Function = ast.FunctionDef | ast.AsyncFunctionDef
Maker = Callable[[Function, str, random.Random], tuple[str, str] | None]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument(
        "--prose",
        action="store_true",
        help="pair the summary with the rest of the docstring instead",
    )
    parser.add_argument("sources", nargs="+", type=Path)
    arguments = parser.parse_args()
    chance = random.Random(SEED)
    texts: list[str] = []
    rows: list[tuple[str, list[int], list[int]]] = []
    for source in arguments.sources:
        before = len(rows)
        # Draw whole files, so a function keeps its neighbors as negatives.
        for pairs in _pairs(source, chance, _prose if arguments.prose else _pair):
            if len(rows) - before >= PER_PACKAGE:
                break
            start = len(texts)
            texts.extend(code for _, code in pairs)
            for at, (query, _) in enumerate(pairs):
                others = [start + other for other in range(len(pairs)) if other != at]
                rows.append(
                    (query, [start + at], chance.sample(others, min(NEGATIVES, len(others))))
                )
        print(source.name, len(rows) - before, flush=True)
    data = json.dumps({"texts": texts, "rows": rows}, ensure_ascii=False).encode()
    arguments.output.write_bytes(lzma.compress(data, preset=4))
    print(len(texts), "functions", len(rows), "queries", arguments.output.stat().st_size, "bytes")


def _pairs(source: Path, chance: random.Random, pair_of: Maker) -> Iterator[list[tuple[str, str]]]:
    for text in _files(source, chance):
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError):
            continue
        seen: set[str] = set()
        pairs = []
        for node in ast.walk(tree):
            if isinstance(node, Function):
                pair = pair_of(node, text, chance)
                if pair and pair[0].lower() not in seen:
                    seen.add(pair[0].lower())
                    pairs.append(pair)
        if len(pairs) >= 2:
            yield chance.sample(pairs, min(40, len(pairs)))


def _files(source: Path, chance: random.Random) -> Iterator[str]:
    def wanted(name: str) -> bool:
        return name.endswith(".py") and not re.search(
            r"(^|/)(tests?|testing|_vendor|externals?)(/|_)|/test_", name
        )

    if source.is_dir():
        paths = [
            path
            for path in sorted(source.rglob("*.py"))
            if wanted(str(path.relative_to(source.parent)))
        ]
        for path in chance.sample(paths, len(paths)):
            yield path.read_text(encoding="utf-8", errors="ignore")
        return
    with zipfile.ZipFile(source) as archive:
        names = [name for name in sorted(archive.namelist()) if wanted(name)]
        for name in chance.sample(names, len(names)):
            yield archive.read(name).decode("utf-8", errors="ignore")


def _pair(node: Function, text: str, chance: random.Random) -> tuple[str, str] | None:
    docstring = ast.get_docstring(node)
    if not docstring or len(node.body) < 2:
        return None
    sentence = re.split(r"(?<=[.!?])\s|\n\s*\n|\n\s*[:\-=>]", docstring.strip(), maxsplit=1)[0]
    sentence = re.sub(r"[`*]|:\w+:", "", re.sub(r"\s+", " ", sentence)).strip()
    named = chance.random() < NAME_AS_QUERY
    query = _words(node.name) if named else sentence
    if chance.random() < 0.5:
        query = query.rstrip(".").lower()
        query = f"python {query}" if chance.random() < 0.4 else query
    if not SHORTEST_QUERY <= len(query.split()) <= LONGEST_QUERY or node.name.startswith("__"):
        return None
    code = _without_docstring(
        node, text, keep=named or chance.random() < DOCSTRING_KEPT, name_hidden=named
    )
    return (query, code) if SHORTEST_BODY <= len(code) <= LONGEST_BODY else None


def _prose(node: Function, text: str, chance: random.Random) -> tuple[str, str] | None:
    docstring = ast.get_docstring(node) or ""
    summary, _, rest = docstring.partition("\n\n")
    sections = re.split(r"\n(?=[A-Z][A-Za-z ]+\n[-=]{3,})", "\n" + rest)
    wanted = [
        one
        for one in sections
        if not re.match(
            r"\n?(Parameters|Returns|Examples?|See Also|References|Raises|Attributes)\b", one
        )
    ]
    explained = re.sub(r"\n[A-Z]\w+\n-{3,}|[`*]|:\w+:|>>>.*|\.\. \w+::", " ", "\n".join(wanted))
    explained = re.sub(r"\s+", " ", explained).strip()[:LONGEST_BODY]
    query = re.sub(r"[`*]|:\w+:|\s+", " ", summary).replace("  ", " ").strip()
    if not SHORTEST_QUERY <= len(query.split()) <= LONGEST_QUERY or len(explained) < 150:
        return None
    return query, explained


def _words(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])|_+", " ", name).strip().lower()


def _without_docstring(node: Function, text: str, keep: bool, name_hidden: bool) -> str:
    lines = text.splitlines()
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)]) - 1
    kept = lines[first : node.end_lineno]
    if not keep:
        start, stop = node.body[0].lineno - 1 - first, (node.body[0].end_lineno or 0) - first
        kept = kept[:start] + kept[stop:]
    indent = min((len(line) - len(line.lstrip()) for line in kept if line.strip()), default=0)
    code = "\n".join(line[indent:].rstrip() for line in kept)[:LONGEST_BODY]
    return code.replace(node.name, "func") if name_hidden else code


if __name__ == "__main__":
    main()
