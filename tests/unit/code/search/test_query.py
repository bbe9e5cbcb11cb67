"""Queries are analyzed for roles, names, files and modules."""

import pytest

from trivet.code.file_kind import Role
from trivet.code.search.query import read_query


def test_query_may_ask_for_tests() -> None:
    assert read_query("where are the tests of the parser").wanted == {Role.TEST}
    assert read_query("where is the parser").wanted == frozenset()
    assert read_query("the latest parser").wanted == frozenset()


def test_pasted_issue_asks_for_tests_only_in_title() -> None:
    body = (
        "\n\nI ran the tests as the documentation says, with this example. "
        + "It fails with a long traceback. " * 10
    )
    assert read_query("Parser drops rows" + body).wanted == frozenset()
    assert read_query("Tests of the parser drop rows" + body).wanted == {Role.TEST}


def test_identifier_is_surer_than_word() -> None:
    names = {
        name.spoken: name.sure for name in read_query("where does parse_config read `limit`").names
    }

    assert names["parseconfig"] == names["limit"] == 1
    assert names["read"] < 1
    assert 0 < names["doesparseconfig"] < 1


def test_traceback_gives_paths_and_modules() -> None:
    query = read_query(
        'File "/venv/django/db/models/query.py", line 7\n  see django.db.models.fields.CharField'
    )

    assert query.files[0].endswith("/django/db/models/query.py")
    assert {"django/db/models/fields/charfield", "django/db/models/fields"} <= set(query.modules)


@pytest.mark.parametrize(
    "text", ["((((" * 5_000, "a." * 10_000, "`" * 20_000, "x" * 20_000, "a b " * 5_000]
)
def test_hostile_text_is_bounded(text: str) -> None:
    query = read_query(text)

    assert len(query.names) <= 400
