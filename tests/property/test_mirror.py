"""Memories mirrored to Markdown are read back unchanged."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from trivet import Trivet
from trivet.sources.files import ingest
from trivet.types import Memory
from unit.sources.files.test_mirror import to_files

TEXT = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1, max_size=60
)


AWKWARD = st.sampled_from(
    [
        "---\nnot: front matter\n---\n",
        "\n---\n",
        "a\r\nb\r",
        " led\n",
        "tail\n\n",
        "# H\n\n## I\n",
        "- [ ] x",
        "\x85",
        "…",
    ]
)


CONTENT = (TEXT | AWKWARD | st.tuples(TEXT, AWKWARD, TEXT).map("".join)).filter(
    lambda text: text.strip()
)


WORDS = st.lists(TEXT.filter(lambda text: text.strip()), max_size=3, unique=True).map(tuple)


MEMORIES = st.fixed_dictionaries(
    {"content": CONTENT},
    optional={
        "title": TEXT,
        "category": st.sampled_from(["facts", "people"]),
        "tags": WORDS,
        "expanded_keywords": WORDS,
        "importance": st.floats(0, 1),
        "confidence": st.floats(0, 1),
        "scope": st.sampled_from(["a/b", "..", ".git/node_modules", "x"]),
        "source": TEXT.filter(lambda text: text.strip()),
        "created_at": st.sampled_from(["2020-02-29T12:00:00.123456Z", "1999-01-01"]),
        "valid_from": st.just("2001-01-01"),
        "valid_to": st.just("2031-01-01"),
        "sensitive": st.booleans(),
    },
)


def held(memory: Trivet) -> dict[str, Memory]:
    page = memory.list(limit=1000, reveal=True, state=["active", "archived", "superseded"])
    blank: dict[str, Any] = {"updated_at": "", "revision": 0}
    return {one.id: msgspec.structs.replace(one, **blank) for one in page.memories}


@settings(max_examples=25)
@given(st.lists(MEMORIES, min_size=1, max_size=5))
def test_mirrored_memories_read_back_equal(memories: list[dict[str, Any]]) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with Trivet.open(
            folder / "one.db", embedder="none", background=False, secrets="off"
        ) as one:
            ids = [one.remember(**memory).id for memory in memories]
            one.edit(ids[0], state="archived")
            if len(ids) > 2:
                one.link(ids[1], "supersedes", ids[2])
                one.link(ids[1], "see-also", ids[0])
            to_files(one, folder / "files")
            again = to_files(one, folder / "files")
            assert (again.written, again.removed, again.left) == (0, 0, ())
            assert not [
                file for file in folder.rglob("*.md") if (folder / "files") not in file.parents
            ]
            with Trivet.open(
                folder / "two.db", embedder="none", background=False, secrets="off"
            ) as two:
                done = ingest(two, folder / "files")
                assert done.problems == ()
                assert held(two) == held(one)
                links = [
                    {
                        (link.kind, link.source, link.target)
                        for link in store.links(ids[1 % len(ids)])
                    }
                    for store in (one, two)
                ]
                assert links[0] == links[1]
                assert not ingest(
                    one, folder / "files"
                ).changed  # nothing new for the original store
