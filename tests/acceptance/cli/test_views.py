"""Views show stored text without its control characters."""

from __future__ import annotations

from support.command_line import CommandLine
from unit.cli.test_output import NASTY


def test_stored_text_is_safe_in_every_view(trivet: CommandLine) -> None:
    id = trivet.json(
        "remember", NASTY, "--title", NASTY, "--tag", "\x1b[31mred", "--keyword", "\x1b[5m"
    )["id"]
    trivet("edit", id, "--content", f"{NASTY} again")
    for arguments in (
        ["recall", "click here"],
        ["get", id],
        ["list"],
        ["history", id],
        ["diff", id],
        ["stats"],
    ):
        result = trivet(*arguments)
        assert result.status == 0, arguments
        assert "\x1b" not in result.out
        assert "\x9b" not in result.out
    assert "[bold]now[/bold]" in trivet("get", id).out
    assert trivet.json("get", id)["content"] == f"{NASTY} again"
