"""Any JSON object is either a valid request or raises an InvalidInput that names the problem."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from trivet import contract
from trivet.common.clock import parse_time, parse_time_expression
from trivet.common.ids import check_id, new_id
from trivet.contract import VERBS, Request, Verb
from trivet.errors import InvalidInput

any_text = st.text(alphabet=st.characters(exclude_categories=()), max_size=40)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | any_text,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(any_text, inner, max_size=4),
    max_leaves=8,
)
NAMES = sorted({field for verb in VERBS.values() for field in verb.request.__struct_fields__})
likely = st.one_of(
    st.sampled_from(
        ["relevance", "active", "supersedes", "facts", "2024-01-01", "a/b", "", new_id(), "\ud800"]
    ),
    st.sampled_from([0, 1, 50, 2**63, 2**64, 10**400, -1, 0.5, float("nan"), float("inf")]),
    st.lists(st.sampled_from(["active", "facts", "", "x" * 65, "\x00", "\ud800"]), max_size=3),
)
requests = st.dictionaries(st.sampled_from(NAMES) | any_text, json_values | likely, max_size=6)


# One verb of each form; the validation code is the same for all verbs.
@pytest.mark.parametrize(
    "name", ["remember", "recall", "edit", "list", "link", "share", "inbox_accept", "stats"]
)
@settings(max_examples=30)  # per verb; all share the same code
@given(given=requests)
@example(given={"\ud800": 1})
@example(given={"content": "x", "importance": 10**400})
def test_check_accepts_or_names_the_problem(name: str, given: dict[str, Any]) -> None:
    verb = VERBS[name]
    required = {
        "content": "text",
        "query": "text",
        "id": new_id(),
        "source": new_id(),
        "target": new_id(),
        "kind": "part-of",
    }
    fields = verb.request.__struct_fields__
    for arguments in (
        given,
        {key: value for key, value in required.items() if key in fields} | given,
    ):
        request, complaint = outcome(verb, arguments)
        if request is None:
            assert len(complaint) > 10
            complaint.encode()  # it can be printed
        else:
            assert set(arguments) <= set(fields)
            assert isinstance(request, verb.request)


def outcome(verb: Verb, arguments: dict[str, Any]) -> tuple[Request[Any] | None, str]:
    try:
        return contract.check(verb.request, arguments), ""
    except InvalidInput as error:
        return None, str(error)


@given(any_text)
def test_times_are_fixed_width_or_refused(text: str) -> None:
    try:
        moment = parse_time(text, "created_at")
    except InvalidInput:
        return
    assert len(moment) == 27
    assert parse_time(moment, "created_at") == parse_time_expression(text, "created_at") == moment


@given(st.datetimes(), st.datetimes())
def test_text_order_is_time_order(one: Any, other: Any) -> None:
    first, second = (parse_time(moment.isoformat(), "created_at") for moment in (one, other))
    assert (first < second) == (one < other)


@given(st.uuids() | any_text)
@example("")
@example(" ")
def test_ids_are_canonical_or_refused(value: Any) -> None:
    try:
        canonical = check_id(str(value))
    except InvalidInput:
        assert not isinstance(value, uuid.UUID)
    else:
        assert str(uuid.UUID(canonical)) == canonical == str(value).strip().lower()


def test_new_ids_are_valid_and_unique() -> None:
    ids = {new_id() for _ in range(1_000)}
    assert len(ids) == 1_000
    assert all(check_id(id) == id for id in ids)
