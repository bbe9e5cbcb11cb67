"""`trivet code` answers people and scripts and keeps its index current."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.code_tree import code_tree
from support.command_line import CommandLine
from support.watch_process import Watching


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return code_tree(tmp_path / "project")


def search(trivet: CommandLine, root: Path, *arguments: str) -> list[dict[str, Any]]:
    hits: list[dict[str, Any]] = trivet.json("code", "search", *arguments, "--root", str(root))[
        "hits"
    ]
    return hits


def test_search_json(trivet: CommandLine, project: Path) -> None:
    answer = trivet.json(
        "code", "search", "parse retry after", "--root", str(project), "--limit", "2"
    )
    assert list(answer) == ["query", "hits", "status"]
    assert answer["query"] == "parse retry after"
    first, second = answer["hits"]
    assert {"path", "start", "end", "symbol", "kind", "score", "why"} <= set(first)
    assert (first["path"], first["symbol"], first["kind"]) == (
        "shop/retry.py",
        "parse_retry_after",
        "function",
    )
    assert first["start"] <= 4 < first["end"]
    assert first["why"]["defines"] == "parse_retry_after"
    assert first["score"] >= second["score"]
    status = answer["status"]
    assert (status["root"], status["files"], status["stale"]) == (str(project), 6, [])
    assert status["indexed"] >= 6
    assert trivet.json("code", "search", "retry", "--root", str(project))["status"]["indexed"] == 0


def test_person_sees_place_lines_and_reason(trivet: CommandLine, project: Path) -> None:
    shown = trivet(
        "code", "search", "parse retry after", "--root", str(project), "--limit", "1"
    ).out
    place, *code, why, empty, note = shown.splitlines()
    assert place.startswith("shop/retry.py:")
    assert place.endswith("  function parse_retry_after")
    assert "     4  def parse_retry_after(header: str) -> float:" in code
    assert why.startswith(
        "    why: defines parse_retry_after; words: parse, retry; by meaning; path"
    )
    assert (empty, note) == ("", "Indexed now, since new or changed: 6 files.")
    assert "\x1b" not in shown


def test_code_cannot_control_the_terminal(trivet: CommandLine, project: Path) -> None:
    shown = trivet("code", "search", "red alert", "--root", str(project)).out
    assert "\x1b" not in shown
    assert '     1  RED = "\\x1b[31mred alert\\x1b[0m"'.lstrip() in shown


def test_exit_statuses_match_ripgrep(
    trivet: CommandLine, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def status(*arguments: str) -> tuple[int, bool]:
        result = trivet("code", *arguments)
        return result.status, bool(result.err)

    root = ("--root", str(project))
    assert status("search", "retry", *root) == (0, False)
    assert status("search", "zyzzyva", *root) == (1, False)
    assert status("symbol", "zyzzyva", *root) == (1, False)
    assert status("search", " ", *root) == (2, True)
    assert status("search", "retry", *root, "--recipe", "nonsense(1)") == (2, True)
    assert status("search", "retry", *root, "--kind", "nonsense") == (2, True)
    assert status("search", "retry", *root, "--lang", "nonsense") == (2, True)
    assert status("search", "retry", "--root", str(project / "nowhere")) == (2, True)
    assert status("related", "nowhere.py:1", *root) == (2, True)
    monkeypatch.setenv("TRIVET_CODE_CACHE", str(project / "shop/retry.py/below"))
    assert status("search", "retry", *root) == (2, True)


def test_issue_from_standard_input(trivet: CommandLine, project: Path) -> None:
    issue = "Orders are sent twice\n\nWhen the warehouse is busy, `Client.send` does not wait.\n"
    found = trivet.json(
        "code", "search", "-", "--root", str(project), "--limit", "1", stdin=issue.encode()
    )
    assert [hit["path"] for hit in found["hits"]] == ["shop/client.py"]


def test_filters(trivet: CommandLine, project: Path) -> None:
    def paths(*filters: str) -> set[str]:
        return {hit["path"] for hit in search(trivet, project, "retry order price sum", *filters)}

    assert paths() > paths("--no-tests") > set()
    assert paths("--tests") == {"tests/test_retry.py"}
    assert paths("--lang", "typescript") == paths("-l", "ts") == {"shop/basket.ts"}
    assert paths("--path", "shop") == paths("--no-tests", "--path", "*.py") | {"shop/basket.ts"}
    assert paths("--kind", "method") == {"shop/client.py"}


def test_subfolder_is_searched_alone(trivet: CommandLine, project: Path) -> None:
    (project / ".git").mkdir()  # git does not know this repository; its top is still the root
    found = search(trivet, project / "shop", "retry")
    assert {hit["path"] for hit in found} == {"retry.py", "client.py"}
    related = trivet.json("code", "related", "retry.py:4", "--root", str(project / "shop"))
    assert {hit["path"] for hit in related["hits"]} == {"client.py"}


def test_budget_bounds_the_output(trivet: CommandLine, project: Path) -> None:
    for budget in (20, 2_000):
        found = search(trivet, project, "retry after attempt", "--budget", str(budget))
        lengths = [len(hit["snippet"]) for hit in found]
        assert all(lengths)
        assert sum(lengths) <= budget * 4 or budget == 20
    assert not any(hit["snippet"] for hit in search(trivet, project, "retry", "--budget", "0"))


def test_symbol_definitions_and_uses(trivet: CommandLine, project: Path) -> None:
    root = ("--root", str(project))
    [send] = trivet.json("code", "symbol", "Client.send", *root)["hits"]
    assert (send["path"], send["symbol"], send["kind"]) == (
        "shop/client.py",
        "Client.send",
        "method",
    )
    spoken = trivet.json("code", "symbol", "totalprice", *root)["hits"]
    assert [hit["symbol"] for hit in spoken] == ["totalPrice"]
    shown = trivet("code", "symbol", "parse_retry_after", *root).out
    assert "def parse_retry_after(header: str) -> float" in shown
    assert "why: exact name" in shown
    related = trivet.json("code", "related", "shop/retry.py:4", *root)["hits"]
    assert "shop/client.py" in [hit["path"] for hit in related]


def test_index_stays_current_and_reports_its_state(trivet: CommandLine, project: Path) -> None:
    root = ("--root", str(project))
    before = trivet("code", "status", *root, "--json")
    assert (
        before.status,
        len(before.json()["status"]["stale"]),
        before.json()["status"]["files"],
    ) == (1, 6, 0)
    made = trivet.json("code", "index", "--left-out", *root)
    assert (made["status"]["files"], made["left_out"][0]["path"]) == (6, "shop/logo.png")
    assert made["left_out"][0]["reason"]
    assert Path(made["file"]).is_file()
    assert trivet("code", "status", *root).status == 0
    (project / "shop/retry.py").write_text("def give_up() -> None:\n    pass\n")
    assert trivet.json("code", "symbol", "give_up", *root)["status"]["indexed"] == 1
    assert trivet("code", "symbol", "parse_retry_after", *root).status == 1
    (project / "shop/retry.py").unlink()
    assert trivet("code", "symbol", "give_up", *root).status == 1
    Path(made["file"]).unlink()  # docs/code.md says it may be deleted at any time
    assert trivet("code", "symbol", "totalPrice", *root).status == 0


def test_memories_report_moved_symbols(trivet: CommandLine, project: Path) -> None:
    here = "The wait is read in shop/retry.py:parse_retry_after; orders leave by client.py:Client.send."
    moved = trivet.json("remember", "Waits are read in shop/client.py:parse_retry_after.")["id"]
    lost = trivet.json(
        "remember", "Prices are added in shop/basket.ts:addPrices; ask example.com:port."
    )["id"]
    other = trivet.json("remember", "The engine is lib/engine.rs:Engine::start.")["id"]
    trivet.json("remember", here)
    checked = trivet("code", "check", "--root", str(project), "--json")
    states = {
        (one["memory"], one["state"]): one
        for one in checked.json()["links"]
        if one["state"] != "ok"
    }
    assert set(states) == {(moved, "moved"), (lost, "gone"), (other, "unknown")}
    assert states[moved, "moved"]["places"][0] == "shop/retry.py:4"
    assert (checked.status, len(checked.json()["links"])) == (1, 5)
    shown = trivet("code", "check", "--root", str(project)).out
    assert "defined at shop/retry.py:4" in shown
    assert "5 links in 4 memories: 2 unchanged." in shown


def test_outside_links_and_key_files_are_not_read(
    trivet: CommandLine, project: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "other.py").write_text("def zyzzyva() -> None: ...\n")
    (project / "linked").symlink_to(outside)
    (project / "linked.py").symlink_to(outside / "other.py")
    (project / ".env").write_text("ZYZZYVA_TOKEN=1\n")
    assert trivet("code", "search", "zyzzyva", "--root", str(project)).status == 1
    reasons = trivet.json("code", "index", "--left-out", "--root", str(project))["left_out"]
    assert {one["path"].rstrip("/") for one in reasons} >= {"linked", "linked.py", ".env"}


def test_watched_changes_are_indexed(trivet: CommandLine, project: Path) -> None:
    watching = Watching("code", "index", "--root", str(project))
    try:
        assert watching.report()["status"]["files"] == 6
        (project / "shop" / "tides.py").write_text(
            "def height_of_the_tide() -> float:\n    return 3.1\n"
        )
        status = watching.report()["status"]
        assert (status["files"], status["indexed"]) == (7, 1)
        saved = project / "shop" / "tides.py.new"
        saved.write_text("def depth_of_the_ebb() -> float:\n    return 0.4\n")
        saved.replace(project / "shop" / "tides.py")
        assert watching.report()["status"]["indexed"] == 1
        assert watching.end() == 0
    finally:
        watching.kill()
    answer = trivet.json("code", "search", "depth of the ebb", "--root", str(project))
    assert answer["status"]["indexed"] == 0
    assert (answer["hits"][0]["path"], answer["hits"][0]["symbol"]) == (
        "shop/tides.py",
        "depth_of_the_ebb",
    )
