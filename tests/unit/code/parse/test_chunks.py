"""Chunks cover every line once, are bounded in size and name their definitions."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trivet.code.parse import parse
from trivet.code.parse.chunks import HARD, SOFT
from trivet.code.parse.file import decode, lines_of
from trivet.code.types import Chunk, ParsedFile

SAMPLES = sorted((Path(__file__).parent / "samples").iterdir())
NAMES = [
    "a.py",
    "a.js",
    "a.c",
    "a.rs",
    "a.hs",
    "a.md",
    "a.rst",
    "a.yaml",
    "a.json",
    "a.vue",
    "a.txt",
    "a.ipynb",
]
WORDS = ["def f(a):", "class A:", "    ", "  x = 1", "}", "{", "# Words", "====", "fn f() {", "/**", " */",
         "function g() {", "y" * 700, "z" * 3000, "", "", "<script>", "</script>", 'key: "', "(((",
         "é", "\r"]  # fmt: skip
sources = st.lists(st.sampled_from(WORDS), max_size=80).map("\n".join)


def parsed(path: str, source: str) -> ParsedFile:
    result = parse(path, source.encode())
    assert isinstance(result, ParsedFile), result
    return result


def check(source: str, result: ParsedFile) -> None:
    chunks, lines = result.chunks, lines_of(decode(source.encode()))
    if not any(line.strip() for line in lines):
        assert chunks == ()
        return
    covered = [line for chunk in chunks for line in range(chunk.start, chunk.end + 1)]
    assert covered == list(range(1, len(lines) + 1))
    assert all(len(chunk.text) <= HARD for chunk in chunks)
    assert [place for chunk in chunks for place in chunk.defines] == list(
        range(len(result.definitions))
    )
    for chunk in chunks:
        assert all(
            chunk.start <= result.definitions[place].start <= chunk.end for place in chunk.defines
        )


@given(st.sampled_from(NAMES[:-1]), sources)
def test_chunks_cover_file_and_are_bounded(path: str, source: str) -> None:
    result = parse(path, source.encode())
    if isinstance(result, ParsedFile):
        check(source, result)
        for chunk in result.chunks:
            shown = "\n".join(lines_of(decode(source.encode()))[chunk.start - 1 : chunk.end])
            assert chunk.text == shown[:HARD]


@given(st.sampled_from(NAMES), st.binary(max_size=300))
def test_any_bytes_can_be_parsed(path: str, source: bytes) -> None:
    parse(path, source)


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
def test_chunks_cover_samples(sample: Path) -> None:
    source = sample.read_text(encoding="utf-8").split("======\n")[0]
    check(source, parsed(sample.stem, source))


def method(name: str, statements: int) -> str:
    return f"    def {name}(self):\n" + "        self.step(1, 2, 3)\n" * statements


def of(chunks: tuple[Chunk, ...], symbol: str) -> list[Chunk]:
    return [chunk for chunk in chunks if chunk.symbol == symbol]


def test_small_neighbors_merge_with_their_comments() -> None:
    source = (
        "import os\n\n\n# First.\ndef first():\n    pass\n\n\n# Second.\ndef second():\n    pass\n"
    )
    (chunk,) = parsed("a.py", source).chunks
    assert (chunk.kind, chunk.symbol, chunk.defines) == ("function", "first", (0, 1))


def test_definition_starts_chunk_with_its_comment() -> None:
    source = (
        "def first():\n"
        + "    step()\n" * 100
        + "\n# About the second.\n@cached\ndef second():\n"
        + "    step()\n" * 100
    )
    second = of(parsed("a.py", source).chunks, "second")[0]
    assert second.text.startswith("# About the second.\n@cached\ndef second():")


def test_method_chunks_carry_class_signature() -> None:
    source = "class Store(Base):\n" + "".join(method(f"method_{number}", 25) for number in range(6))
    chunks = parsed("a.py", source).chunks
    assert chunks[0].heading == ""
    assert "class Store(Base):" in chunks[0].text
    assert [chunk.symbol for chunk in chunks[1:]] == [
        f"Store.method_{number}" for number in range(1, 6)
    ]
    assert {chunk.heading for chunk in chunks[1:]} == {"class Store(Base):"}
    assert {chunk.kind for chunk in chunks[1:]} == {"method"}


def test_long_function_parts_carry_heading() -> None:
    source = "class Store:\n" + method("run", 200)
    chunks = parsed("a.py", source).chunks
    assert len(chunks) > 3
    assert all(SOFT / 2 < len(chunk.text) < HARD for chunk in chunks)
    assert {chunk.symbol for chunk in chunks[1:]} == {"Store.run"}
    assert {chunk.heading for chunk in chunks[1:]} == {"class Store:\ndef run(self):"}


def test_long_function_splits_between_statements() -> None:
    statement = "    if ready:\n" + "        step()\n" * 20
    chunks = parsed("a.py", "def run():\n" + statement * 12).chunks
    assert len(chunks) > 2
    assert all(chunk.text.startswith("    if ready:") for chunk in chunks[1:])


def test_impl_block_names_its_functions() -> None:
    functions = "".join(
        f"    fn f{number}(&self) {{\n" + "        step();\n" * 50 + "    }\n\n"
        for number in range(4)
    )
    chunks = parsed("a.rs", f"impl Shape for Point {{\n{functions}}}\n").chunks
    assert [chunk.symbol for chunk in chunks] == ["Point", "Point.f1", "Point.f2", "Point.f3"]
    assert chunks[2].heading == "impl Shape for Point"


def test_long_line_is_truncated() -> None:
    source = "x = 1\n" + "y = '" + "a" * 5000 + "'\nz = 2\n"
    chunks = parsed("a.py", source).chunks
    assert len(chunks) == 3
    assert len(chunks[1].text) == HARD
