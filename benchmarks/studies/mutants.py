"""Mutation testing: put a fault into one line of a copied tree; some test must fail.

python benchmarks/studies/mutants.py --mutants 40 --out docs/results/mutants.json

Modules are drawn at random, one mutant each, except those proved by acceptance or PostgreSQL tests.
A mutant faces its unit tests, then all unit, property and contract tests without PostgreSQL, then
its acceptance tests, until one fails. A run that hangs counts as noticed.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import SimpleQueue

ROOT = Path(__file__).resolve().parents[2]
NEEDED = (
    "src",
    "tests",
    "scripts",
    "docs",
    "benchmarks",
    "training",
    "soak",
    "examples",
    "deploy",
    "pyproject.toml",
    "constraints.txt",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "README.md",
    "Makefile",
)
# Proved by acceptance tests, or by tests that need a server.
LEFT_OUT = ("cli/", "serve/", "store/postgres/")
WIDER = (
    "tests/unit",
    "tests/property",
    "tests/contract",
    "--ignore",
    "tests/contract/postgres",
    "-k",
    "not postgres",
)
LONGEST_SECONDS = 600
SWAPPED: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
}


@dataclass(frozen=True)
class Mutant:
    module: str
    line: int
    kind: str
    before: str
    after: str


@dataclass(frozen=True)
class Change:
    node: ast.expr
    kind: str
    instead: str


def changes(tree: ast.Module) -> Iterator[Change]:
    functions = [
        node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    for function in functions:
        for statement in function.body:
            for node in ast.walk(statement):
                yield from _changes_of(node)


def _changes_of(node: ast.AST) -> Iterator[Change]:
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in SWAPPED:
        yield _with(node, "comparison", ops=[SWAPPED[type(node.ops[0])]()])
    elif isinstance(node, ast.BoolOp):
        yield _with(node, "and/or", op=SWAPPED[type(node.op)]())
    elif isinstance(node, ast.BinOp) and type(node.op) in SWAPPED:
        yield _with(node, "arithmetic", op=SWAPPED[type(node.op)]())
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool | int | float):
        yield Change(
            node, "value", repr(not node.value if isinstance(node.value, bool) else node.value + 1)
        )
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield Change(node, "not", f"({ast.unparse(node.operand)})")
    elif isinstance(node, ast.If):
        yield Change(node.test, "condition", f"not ({ast.unparse(node.test)})")
    elif (
        isinstance(node, ast.Return)
        and node.value is not None
        and ast.unparse(node.value) != "None"
    ):
        yield Change(node.value, "result", "None")


def _with(node: ast.expr, kind: str, **fields: object) -> Change:
    changed = deepcopy(node)
    for name, value in fields.items():
        setattr(changed, name, value)
    return Change(node, kind, f"({ast.unparse(changed)})")


def drawn(number: int, seed: int) -> list[tuple[Mutant, str]]:
    chance = random.Random(seed)
    package = ROOT / "src" / "trivet"
    files = {str(file.relative_to(package)): file for file in sorted(package.rglob("*.py"))}
    modules = [name for name in files if not name.startswith(LEFT_OUT)]
    chance.shuffle(modules)
    found: list[tuple[Mutant, str]] = []
    for name in modules:
        source = files[name].read_text(encoding="utf-8")
        possible = list(changes(ast.parse(source)))
        if possible and len(found) < number:
            change = chance.choice(possible)
            before = ast.get_source_segment(source, change.node) or ""
            mutant = Mutant(
                name, change.node.lineno, change.kind, before[:100], change.instead[:100]
            )
            found.append((mutant, _replaced(source, change)))
    return found


def _replaced(source: str, change: Change) -> str:
    lines = source.encode().splitlines(keepends=True)  # Columns count bytes.
    node = change.node
    assert node.end_lineno is not None
    starts = [sum(map(len, lines[: number - 1])) for number in (node.lineno, node.end_lineno)]
    whole = b"".join(lines)
    end = starts[1] + (node.end_col_offset or 0)
    return (whole[: starts[0] + node.col_offset] + change.instead.encode() + whole[end:]).decode()


def noticed(tree: Path, mutant: Mutant, source: str) -> str | None:
    """Return the tests that noticed, or None if all passed."""
    file = tree / "src" / "trivet" / mutant.module
    original = file.read_text(encoding="utf-8")
    file.write_text(source, encoding="utf-8")
    try:
        if fails(tree, (str(nearest(tree, mutant)),)):
            return "its room"
        if fails(tree, WIDER):
            return "others"
        acceptance = accepting(tree, mutant)
        return "acceptance" if acceptance and fails(tree, acceptance) else None
    finally:
        file.write_text(original, encoding="utf-8")


def nearest(tree: Path, mutant: Mutant) -> Path:
    """Return the folder of unit tests that mirrors the module's."""
    folder = tree / "tests" / "unit" / Path(mutant.module).parent
    while not folder.is_dir():
        folder = folder.parent
    return folder.relative_to(tree)


def accepting(tree: Path, mutant: Mutant) -> tuple[str, ...]:
    """Return the acceptance folders named like one of the module's own, such as install."""
    return tuple(
        f"tests/acceptance/{name}"
        for name in Path(mutant.module).parent.parts
        if (tree / "tests" / "acceptance" / name).is_dir()
    )


def fails(tree: Path, tests: tuple[str, ...]) -> bool:
    words = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
    environment = os.environ | {"PYTHONPATH": str(tree / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            words, cwd=tree, env=environment, capture_output=True, timeout=LONGEST_SECONDS
        )
    except subprocess.TimeoutExpired:
        return True
    return done.returncode != 0


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mutants", type=int, default=40)
    parser.add_argument("--seed", type=int, default=13)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mutants-") as place:
        trees: SimpleQueue[Path] = SimpleQueue()
        for number in range(given.jobs):
            trees.put(copied(Path(place) / str(number)))
        unchanged = trees.get()
        if fails(unchanged, WIDER):
            sys.exit("The tests fail without any mutant.")
        trees.put(unchanged)

        def tried(pair: tuple[Mutant, str]) -> dict[str, object]:
            tree = trees.get()
            try:
                by = noticed(tree, *pair)
            finally:
                trees.put(tree)
            print(f"{by or 'NOT NOTICED':12} {pair[0]}", flush=True)
            return asdict(pair[0]) | {"noticed_by": by}

        with ThreadPoolExecutor(given.jobs) as pool:
            rows = list(pool.map(tried, drawn(given.mutants, given.seed)))
    print(Counter(str(row["noticed_by"]) for row in rows))
    if given.out:
        given.out.write_text(
            json.dumps({"seed": given.seed, "mutants": rows}, indent=1) + "\n", encoding="utf-8"
        )


def copied(tree: Path) -> Path:
    tree.mkdir(parents=True)
    for name in NEEDED:
        (shutil.copytree if (ROOT / name).is_dir() else shutil.copy)(ROOT / name, tree / name)
    return tree


if __name__ == "__main__":
    main()
