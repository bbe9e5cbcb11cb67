"""Definitions are found in every language, with signatures, documentation and exports."""

from __future__ import annotations

from pathlib import Path

import pytest

from trivet.code.parse import parse
from trivet.code.parse.parsers import GRAMMARS
from trivet.code.types import Definition, ParsedFile

# Each sample holds source, a line of `======`, and its definitions: lines, kind and qualified name.
SAMPLES = sorted((Path(__file__).parent / "samples").iterdir())


def defined(path: str, source: str) -> tuple[Definition, ...]:
    parsed = parse(path, source.encode())
    assert isinstance(parsed, ParsedFile)
    return parsed.definitions


def one(path: str, source: str, name: str) -> Definition:
    return next(definition for definition in defined(path, source) if definition.name == name)


def listed(definitions: tuple[Definition, ...]) -> list[str]:
    return [f"{one.start}-{one.end} {one.kind} {_qualified(one)}" for one in definitions]


def _qualified(definition: Definition) -> str:
    return f"{definition.container}.{definition.name}" if definition.container else definition.name


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
def test_definitions_of_every_language(sample: Path) -> None:
    source, expected = sample.read_text(encoding="utf-8").split("======\n")
    assert listed(defined(sample.stem, source)) == expected.splitlines()


def test_every_grammar_has_a_sample() -> None:
    parsed = [parse(sample.stem, sample.read_bytes()) for sample in SAMPLES]
    languages = {one.language for one in parsed if isinstance(one, ParsedFile)}
    assert set(GRAMMARS) - languages == set()


@pytest.mark.parametrize(
    ("path", "source", "name", "signature", "doc"),
    [
        ("a.py", '@x\ndef f(a,\n      b=1) -> int:\n    """Adds.\n\n    More."""\n', "f",
         "def f(a, b=1) -> int:", "Adds. More."),
        ("a.py", "# Above.\n# Second.\nclass A(B):\n    x = 1\n", "A", "class A(B):", "Above. Second."),
        ("a.js", "/**\n * Runs.\n * @param x one\n */\n\nexports.run = function (x) {\n}", "run",
         "exports.run = function (x)", "Runs. @param x one"),
        ("a.ts", "// Adds.\nexport const add = (a: number) => {\n}", "add",
         "export const add = (a: number) =>", "Adds."),
        ("a.rs", "/// A point.\n#[derive(Debug)]\npub struct P<T> {\n}", "P", "pub struct P<T>", "A point."),
        ("a.go", "// Run runs.\nfunc (s *Server) Run(a int) error {\n}", "Run", "func (s *Server) Run(a int) error",
         "Run runs."),
        ("a.c", "/* Adds. */\nint add(int a,\n        int b);\n", "add", "int add(int a, int b);", "Adds."),
        ("a.ex", 'defmodule A do\n  @doc "Finds."\n  @spec f(a) :: b\n  def f(a), do: a\nend', "f",
         "def f(a)", "Finds."),
        ("a.hs", "-- | Finds.\nfind :: Int -> Int\nfind x = x\n", "find", "find :: Int -> Int", "Finds."),
        ("a.lua", "--- Finds.\n-- More.\nlocal function f(a) end", "f", "local function f(a)", "Finds. More."),
        ("a.clj", '(defn f\n  "Finds."\n  [a]\n  a)', "f", '(defn f "Finds." [a]', "Finds."),
    ],
)  # fmt: skip
def test_signature_and_documentation(
    path: str, source: str, name: str, signature: str, doc: str
) -> None:
    found = one(path, source, name)
    assert (found.signature, found.doc) == (signature, doc)


def test_signature_and_documentation_are_limited() -> None:
    arguments = ", ".join(f"argument_{number}" for number in range(100))
    found = one("a.py", f'def f({arguments}):\n    """{"word " * 500}"""\n', "f")
    assert len(found.signature) <= 200
    assert 400 < len(found.doc) <= 500


def test_trailing_comment_is_not_documentation() -> None:
    assert one("a.py", "x = 1  # of x\ndef f():\n    pass\n", "f").doc == ""


def test_long_function_is_searched_for_inner_functions() -> None:
    filling = "  step();\n" * 300
    short = "function outer() {\n  function inner() {}\n}\n"
    long = f"function outer() {{\n  const local = 1;\n  function inner() {{}}\n{filling}}}\n"
    assert [found.name for found in defined("a.js", short)] == ["outer"]
    assert listed(defined("a.js", long))[1:] == ["3-3 function outer.inner"]


def test_functions_inside_bundle_are_found() -> None:
    source = "(function (root, factory) {\n  root.x = factory();\n})(this, function () {\n  function inside() {}\n"
    assert "inside" in {found.name for found in defined("a.js", source + "  " * 400 + "\n});\n")}


def test_function_after_unbalanced_braces_is_found() -> None:
    """Braces in both branches of a preprocessor condition do not balance for the grammar."""
    body = "  step();\n" * 250
    condition = "#ifdef A\n  if (x) {\n#else\n  if (y) {\n#endif\n  }\n"
    source = f"void first(void) {{\n{condition}{body}}}\n\nint second(int a) {{\n}}\n"
    first, second = (one("a.c", source, name) for name in ("first", "second"))
    assert first.end < second.start
    assert second.container == ""


def test_errors_do_not_hide_other_definitions() -> None:
    source = "def first():\n    pass\n\n??? !!! (((\n\ndef second():\n    pass\n"
    assert {"first", "second"} <= {found.name for found in defined("a.py", source)}


@pytest.mark.parametrize(
    ("path", "source", "exported"),
    [
        ("mod.rs", "pub use inner::{Body, list as Many, deep::{Far}};\npub use other::*;\nuse quiet::Hidden;\n",
         ["Body", "Many", "Far"]),
        ("index.ts", "export { make, Kind as Sort } from './inner'\nexport * from './rest'\nexport { own }\n",
         ["make", "Sort"]),
        ("__init__.py", "from .inner import Body as Body, other as known\nfrom .more import quiet\n", ["Body"]),
        ("__init__.py", "from .inner import Body\n__all__ = ['Body', \"Own\", 'a b']\nclass Own: pass\n", ["Body"]),
    ],
)  # fmt: skip
def test_reexported_names(path: str, source: str, exported: list[str]) -> None:
    assert [one.name for one in defined(path, source) if one.kind == "export"] == exported


def test_use_inside_function_is_not_an_export() -> None:
    inner = "fn long() {\n    pub use a::Inner;\n" + "    work();\n" * 200 + "}\n"
    assert [one.name for one in defined("a.rs", inner)] == ["long"]
