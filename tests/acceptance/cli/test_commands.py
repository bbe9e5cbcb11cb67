"""Every command works for people and for programs."""

from __future__ import annotations

import pytest

from support.command_line import CommandLine
from trivet import __version__

OTHER = "01997e00-0000-7000-8000-000000000001"


def test_version(trivet: CommandLine) -> None:
    assert trivet("--version").out == f"trivet {__version__}\n"


def test_no_command_shows_the_help(trivet: CommandLine) -> None:
    result = trivet()
    assert result.status == 0
    assert "trivet remember" in result.out
    assert "why-not" in result.out
    assert "..." not in result.out.partition("Commands:")[2], "a summary is cut off"


def test_remember_shows_the_id(trivet: CommandLine) -> None:
    result = trivet("remember", "Lunch is at noon.", "--id", OTHER)
    assert result.out == f"Remembered: {OTHER}\n"
    assert result.err == ""
    again = trivet("remember", "Lunch is at noon.", "--id", OTHER)
    assert "unchanged" in again.out


def test_remember_reports_near_duplicates(trivet: CommandLine, staging: str) -> None:
    text = "The staging database listens on port 6543!"
    assert [
        entry["id"] for entry in trivet.json("remember", text, "-s", "acme/shop")["near_duplicates"]
    ] == [staging]
    shown = trivet("remember", text, "-s", "acme/shop").out
    assert "Nearly the same" in shown
    assert staging in shown


def test_remember_shows_possible_updates_and_how_to_link_them(
    trivet: CommandLine, staging: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRIVET_CHANGES", "words")
    shown = trivet(
        "remember", "Since March the staging database listens on port 7001.", "-s", "acme/shop"
    ).out
    new = shown.split()[1]
    assert f"May update {staging}" in shown
    assert f"trivet link {new} supersedes {staging}" in shown
    answer = trivet("recall", "staging database port").out
    assert answer.index(new) < answer.index(f"older; see {new}")
    latest = trivet.json(
        "remember",
        "Staging is gone.",
        "-s",
        "acme/shop",
        "--supersedes",
        new,
        "--supersedes",
        staging,
    )
    assert {link["target"] for link in trivet.json("links", latest["id"])} == {new, staging}


def test_remember_reads_standard_input(trivet: CommandLine) -> None:
    id = trivet.json("remember", "-", stdin="Zwölf Brücken\nund ein Fluss\n".encode())["id"]
    assert trivet.json("get", id)["content"] == "Zwölf Brücken\nund ein Fluss"


def test_recall_json_has_the_documented_shape(trivet: CommandLine, staging: str) -> None:
    answer = trivet.json("recall", "port of staging")
    assert list(answer)[:4] == ["query", "hits", "health", "took_ms"]
    (hit,) = answer["hits"]
    assert list(hit)[:2] == ["id", "content"]
    assert hit["id"] == staging
    assert {
        "score",
        "rank",
        "why",
        "title",
        "category",
        "tags",
        "scope",
        "created_at",
        "state",
        "resolved_by",
    } <= set(hit)
    assert "memory" not in hit
    assert hit["tags"] == ["staging", "ports"]
    assert hit["why"]["legs"]["lexical"]["rank"] == 1


def test_hits_and_lists_show_the_source_position(trivet: CommandLine) -> None:
    trivet(
        "remember",
        "Lunch is at noon.",
        "--source",
        "notes/day.md",
        "--start-line",
        "3",
        "--end-line",
        "5",
    )
    assert "notes/day.md:3-5" in trivet("recall", "lunch").out
    assert "notes/day.md:3-5" in trivet("list").out


def test_recall_text_explains_hits(trivet: CommandLine, staging: str) -> None:
    out = trivet("recall", "port of staging").out
    assert "Staging port" in out
    assert staging in out
    assert "lexical #1 (matched: port, staging)" in out
    assert "#staging #ports" in out


@pytest.mark.usefixtures("empty")
def test_empty_recall_is_no_error(trivet: CommandLine) -> None:
    assert trivet.json("recall", "anything")["hits"] == []
    result = trivet("recall", "anything")
    assert result.status == 0
    assert result.out == "Nothing was found. The store is empty.\n"


def test_recall_reads_its_query_and_filters(trivet: CommandLine, staging: str) -> None:
    assert trivet.json("recall", "-", stdin=b"staging port\n")["query"] == "staging port"
    assert trivet.json("recall", "port", "--scope", "other")["hits"] == []
    assert trivet.json(
        "recall", "port", "-t", "staging", "--state", "active", "--state", "archived"
    )["hits"]


def test_recall_shows_redirect_and_resolution(trivet: CommandLine, staging: str) -> None:
    newer = trivet.json("remember", "The staging database moved to port 7000.", "-s", "acme/shop")[
        "id"
    ]
    cure = trivet.json("remember", "Cure: restart the pool.", "-s", "acme/shop")["id"]
    linked = trivet("link", newer, "supersedes", staging)
    assert linked.out == f"{newer} supersedes {staging}\n"
    assert trivet.json("link", newer, "resolved-by", cure)["kind"] == "resolved-by"
    out = trivet("recall", "database listens on port 6543").out
    assert f"moved here from superseded {staging}" in out
    assert f"resolved by {cure}" in out
    assert trivet("unlink", newer, "supersedes", staging).status == 0
    assert trivet.json("get", staging)["state"] == "active"


def test_get(trivet: CommandLine, staging: str) -> None:
    assert trivet.json("get", staging)["title"] == "Staging port"
    shown = trivet("get", staging).out
    assert "The staging database listens on port 6543." in shown
    assert "acme/shop" in shown


def test_list_pages(trivet: CommandLine) -> None:
    for number in range(3):
        trivet("remember", f"Fact number {number} about the harbour.")
    page = trivet.json("list", "--limit", "2")
    assert (page["total"], len(page["memories"])) == (3, 2)
    assert "--offset 2 shows the next" in trivet("list", "--limit", "2").out
    assert "No memory matches" in trivet("list", "--category", "code").out


def test_edit_changes_named_fields_and_clears_empty_ones(trivet: CommandLine, staging: str) -> None:
    assert "revision 2" in trivet("edit", staging, "--importance", "0.9").out
    memory = trivet.json(
        "edit", staging, "--title", "", "--tags", "", "--content", "-", stdin=b"Port 7000."
    )
    assert memory["title"] is None
    assert memory["tags"] == []
    assert (memory["content"], memory["importance"]) == ("Port 7000.", 0.9)


def test_edit_can_unset_a_flag(trivet: CommandLine, staging: str) -> None:
    assert trivet.json("edit", staging, "--sensitive")["sensitive"] is True
    assert trivet.json("edit", staging, "--no-sensitive")["sensitive"] is False


def test_forget_restore_and_history(trivet: CommandLine, staging: str) -> None:
    assert f"trivet restore {staging}" in trivet("forget", staging).out
    assert trivet.json("recall", "staging port")["hits"] == []
    assert "revision 3" in trivet("restore", staging).out
    assert [entry["action"] for entry in trivet.json("history", staging)][1:] == [
        "forget",
        "restore",
    ]
    assert trivet("history", staging).out.count("Staging port") == 3


def test_diff(trivet: CommandLine, staging: str) -> None:
    assert trivet("diff", staging).status == 3
    trivet("edit", staging, "--content", "The staging database listens on port 7000.")
    shown = trivet("diff", staging).out
    assert "-The staging database listens on port 6543." in shown
    assert "+The staging database listens on port 7000." in shown
    assert trivet.json("diff", staging, "1", "2")["diff"] == shown.rstrip("\n")
    assert "identical" in trivet("diff", staging, "2", "2").out


def test_purge_needs_confirmation(trivet: CommandLine, staging: str) -> None:
    refused = trivet("purge", staging)
    assert refused.status == 2
    assert "--yes" in refused.err
    assert trivet.json("purge", staging, "--yes") == {
        "id": staging,
        "status": "purged",
        "pending": None,
    }
    assert trivet("get", staging).status == 3


def test_why_not(trivet: CommandLine, staging: str) -> None:
    assert (
        "A filter excludes it" in trivet("why-not", "staging port", staging, "--scope", "other").out
    )
    assert trivet.json("why-not", "staging port", staging)["returned"] is True


def test_stats_doctor_reindex(trivet: CommandLine, staging: str) -> None:
    assert trivet.json("stats")["memories"] == {"active": 1}
    assert "acme/shop 1" in trivet("stats").out
    assert all(finding["ok"] for finding in trivet.json("doctor"))
    assert "problem" not in trivet("doctor").out
    assert trivet.json("reindex") == {
        "lexical": True,
        "vectors": True,
        "graph": True,
        "embedded": 0,
    }
    assert trivet("reindex", "--lexical").out == "Rebuilt the lexical index.\n"
    assert trivet.json("recall", "staging port")["hits"]


def test_options_before_the_command(trivet: CommandLine, staging: str, tmp_path: object) -> None:
    assert trivet("--json", "stats").json()["memories"] == {"active": 1}
    assert trivet("--path", f"{tmp_path}/other.db", "remember", "Elsewhere.").status == 0
    assert trivet("--path", f"{tmp_path}/other.db", "stats", "--json").json()["memories"] == {
        "active": 1
    }
    assert trivet.json("stats")["memories"] == {"active": 1}


@pytest.mark.parametrize("command", ["recall", "get", "list"])
def test_sensitive_content_is_masked_until_revealed(trivet: CommandLine, command: str) -> None:
    id = trivet.json("remember", "The diagnosis is 4711.", "--sensitive")["id"]
    arguments = {"recall": ["diagnosis"], "get": [id], "list": []}[command]
    for extra in ([], ["--json"]):
        assert "4711" not in trivet(command, *arguments, *extra).out
        assert "4711" in trivet(command, *arguments, "--reveal", *extra).out
