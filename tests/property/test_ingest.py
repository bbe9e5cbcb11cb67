"""After any changes to a vault, the store matches the files, and surviving parts keep their ids."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from itertools import count
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from trivet import Trivet
from trivet.sources.files import ingest

NAMES = ("a.md", "b.md", "sub/c.md")
HEADINGS = ("", "One", "Two", "Three")
TEXTS = tuple(f"text number {number}" for number in range(6))
Sections = dict[str, str]
Vault = dict[str, Sections]

EDIT = st.tuples(
    st.just("edit"), st.sampled_from(NAMES), st.sampled_from(HEADINGS), st.sampled_from(TEXTS)
)
CUT = st.tuples(st.just("cut"), st.sampled_from(NAMES), st.sampled_from(HEADINGS), st.just(""))
DELETE = st.tuples(st.just("delete"), st.sampled_from(NAMES), st.just(""), st.just(""))
MOVE = st.tuples(st.just("move"), st.sampled_from(NAMES), st.sampled_from(NAMES), st.just(""))
STEPS = st.lists(
    st.lists(EDIT | CUT | DELETE | MOVE, min_size=1, max_size=4), min_size=2, max_size=5
)


@settings(max_examples=25)
@given(STEPS)
def test_store_follows_the_files(steps: list[list[tuple[str, str, str, str]]]) -> None:
    moments = count(1_700_000_000)
    with tempfile.TemporaryDirectory() as name:
        root = Path(name) / "notes"
        root.mkdir()
        (root / "always.md").write_text("always there")
        vault: Vault = {}
        with Trivet.open(Path(name) / "memory.db", embedder="none", background=False) as memory:
            before: dict[tuple[str, str], tuple[str, str]] = {}
            for step in steps:
                for act in step:
                    _do(vault, *act)
                _write(root, vault, moments)
                assert ingest(memory, root).problems == ()
                held = memory.list(limit=1000).memories
                said = [text for sections in vault.values() for text in sections.values()]
                assert Counter(one.content for one in held) == Counter([*said, "always there"])
                after = _places(memory, vault)
                for place, (text, id) in after.items():
                    if before.get(place, ("", ""))[0] == text:
                        assert before[place][1] == id
                assert not ingest(memory, root).changed
                parts = {part.id for part in memory.engine.store.vaults.parts("notes")}
                assert parts == {one.id for one in held}
                before = after


def _do(vault: Vault, act: str, path: str, other: str, text: str) -> None:
    if act == "edit":
        vault.setdefault(path, {})[other] = text
    elif act == "cut":
        vault.get(path, {}).pop(other, None)
    elif act == "delete":
        vault.pop(path, None)
    elif path in vault and path != other:
        vault[other] = vault.pop(path)


def _write(root: Path, vault: Vault, moments: count[int]) -> None:
    for name in NAMES:
        file = root / name
        if name not in vault:
            file.unlink(missing_ok=True)
            continue
        rows = [
            f"## {heading}\n\n{vault[name][heading]}\n"
            for heading in HEADINGS
            if heading and heading in vault[name]
        ]
        text = "\n".join([vault[name].get("", ""), *rows])
        if not file.exists() or file.read_text() != text:
            file.parent.mkdir(exist_ok=True)
            file.write_text(text)
            moment = next(moments)
            os.utime(file, (moment, moment))


def _places(memory: Trivet, vault: Vault) -> dict[tuple[str, str], tuple[str, str]]:
    known = {(part.path, part.place): part.id for part in memory.engine.store.vaults.parts("notes")}
    return {
        (path, heading): (text, known[path, heading])
        for path, sections in vault.items()
        for heading, text in sections.items()
    }
