"""Memory ETags save resending known content and prevent overwriting changed content."""

from __future__ import annotations

import pytest

from support.http_server import Client


@pytest.fixture
def path(ana: Client) -> str:
    return f"/v1/memories/{ana.done('POST', '/v1/memories', json={'content': 'The kiosk opens at eight.'})['id']}"


def test_known_memory_is_not_sent_again(ana: Client, path: str) -> None:
    tag = ana("GET", path).headers["etag"]
    for known in (tag, f'"x", {tag}', f"W/{tag}", "*"):
        answer = ana("GET", path, headers={"If-None-Match": known})
        assert (answer.status_code, answer.content, answer.headers["etag"]) == (304, b"", tag)
    assert ana("GET", path, headers={"If-None-Match": '"9-0"'}).status_code == 200


def test_edit_returns_the_next_tag(ana: Client, path: str) -> None:
    before = ana("GET", path).headers["etag"]
    edited = ana(
        "PATCH", path, json={"content": "The kiosk opens at nine."}, headers={"If-Match": before}
    )
    assert edited.status_code == 200
    assert edited.headers["etag"] == ana("GET", path).headers["etag"] != before
    assert ana("GET", path, headers={"If-None-Match": before}).status_code == 200


def test_change_without_an_edit_changes_the_tag(ana: Client, path: str) -> None:
    before = ana("GET", path).headers["etag"]
    newer = ana.done("POST", "/v1/memories", json={"content": "The kiosk is closed."})["id"]
    ana.done("PUT", f"/v1/memories/{newer}/links/supersedes/{path.rpartition('/')[2]}")
    answer = ana("GET", path, headers={"If-None-Match": before})
    assert (answer.status_code, answer.json()["state"]) == (200, "superseded")


@pytest.mark.parametrize(
    ("method", "suffix"), [("PATCH", ""), ("DELETE", ""), ("POST", "/restore")]
)
def test_changed_memory_is_not_overwritten(
    ana: Client, path: str, method: str, suffix: str
) -> None:
    before = ana("GET", path).headers["etag"]
    ana.done("PATCH", path, json={"content": "The kiosk opens at ten."})
    given = {"json": {"content": "mine"}} if method == "PATCH" else {}
    message = ana.refused(412, method, f"{path}{suffix}", headers={"If-Match": before}, **given)
    assert "now at revision 2" in message
    assert ana.done("GET", path)["content"] == "The kiosk opens at ten."


@pytest.mark.parametrize("tags", ["*", '"1"', '"7-0", "1-abc"'])
def test_other_forms_of_the_headers(ana: Client, path: str, tags: str) -> None:
    assert ana("DELETE", path, headers={"If-Match": tags}).status_code == 200


def test_invalid_tag_is_refused(ana: Client, path: str) -> None:
    assert "If-Match" in ana.refused(422, "DELETE", path, headers={"If-Match": "first"})
    assert ana.done("GET", path)["state"] == "active"


def test_restore_of_an_unchanged_memory(ana: Client, path: str) -> None:
    tag = ana("DELETE", path).headers["etag"]
    assert ana("POST", f"{path}/restore", headers={"If-Match": tag}).json()["state"] == "active"


def test_revealed_answers_are_not_cacheable(ana: Client) -> None:
    id = ana.done("POST", "/v1/memories", json={"content": "for my eyes", "sensitive": True})["id"]
    answer = ana("GET", f"/v1/memories/{id}", params={"reveal": "true"})
    assert answer.json()["content"] == "for my eyes"
    assert answer.headers["cache-control"] == "no-store"
    assert "etag" not in answer.headers
