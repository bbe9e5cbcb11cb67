"""Everything stored, edited, forgotten and linked survives an export and an import unchanged."""

from __future__ import annotations

import json
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from trivet import Trivet, TrivetError
from trivet.settings import CATEGORIES

plain = st.text(
    alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\x00"),
    min_size=1,
    max_size=60,
)
tags = st.lists(plain.filter(lambda text: len(text) <= 64), max_size=4)
scopes = st.from_regex(r"[\w.-]{1,8}(/[\w.-]{1,8}){0,2}", fullmatch=True)
moments = st.datetimes().map(lambda moment: moment.isoformat())
memories = st.fixed_dictionaries(
    {"content": plain.filter(str.strip)},
    optional={
        "title": plain,
        "category": st.sampled_from(CATEGORIES),
        "tags": tags,
        "importance": st.floats(0, 1),
        "confidence": st.floats(0, 1),
        "expanded_keywords": tags,
        "scope": scopes,
        "source": plain,
        "created_at": moments,
        "valid_from": moments,
        "sensitive": st.booleans(),
    },
)
acts = st.lists(
    st.tuples(
        st.sampled_from(["edit", "forget", "restore", "archive", "link"]),
        st.integers(0, 3),
        memories,
    ),
    max_size=6,
)


def open_store(folder: str, name: str) -> Trivet:
    return Trivet.open(Path(folder) / name, embedder="none", background=False)


def apply_action(
    trivet: Trivet, ids: list[str], name: str, place: int, fields: dict[str, Any]
) -> None:
    """Apply one action to one memory; refused actions are skipped."""
    id = ids[place % len(ids)]
    with suppress(TrivetError):  # a refused action is fine; only the resulting state is compared
        if name == "edit":
            trivet.edit(id, **{key: value for key, value in fields.items() if key != "created_at"})
        elif name == "forget":
            trivet.forget(id)
        elif name == "restore":
            trivet.restore(id)
        elif name == "archive":
            trivet.edit(id, state="archived")
        else:
            trivet.link(
                id, ("supersedes", "see-also", "part-of")[place % 3], ids[(place + 1) % len(ids)]
            )


def all_records(trivet: Trivet) -> list[Any]:
    return sorted(
        (json.loads(line) for line in trivet.export(include_sensitive=True)), key=json.dumps
    )


@settings(max_examples=25)
@given(st.lists(memories, min_size=1, max_size=4), acts)
def test_export_and_import_lose_nothing(stored: list[dict[str, Any]], actions: list[Any]) -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        open_store(folder, "a.db") as one,
        open_store(folder, "b.db") as other,
    ):
        ids = [one.remember(**fields).id for fields in stored]
        for name, place, fields in actions:
            apply_action(one, ids, name, place, fields)
        report = other.import_(one.export(include_sensitive=True))
        assert report.errors == ()
        assert all_records(other) == all_records(one)
        assert all(finding.ok for finding in (*one.doctor(), *other.doctor()))
        again = other.import_(one.export(include_sensitive=True))
        assert again.unchanged == len(set(ids))
        assert all_records(other) == all_records(one)
