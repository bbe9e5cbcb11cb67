"""Stored text cannot control the terminal or pass as markup."""

from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from trivet.cli.terminal import _for_pipe as for_pipe
from trivet.cli.terminal import _for_terminal as for_terminal
from trivet.cli.terminal import line, one_line, printable
from trivet.cli.views.answer import bar
from trivet.cli.views.memories import preview

NASTY = "Click [link=http://x]here[/link] [bold]now[/bold] \x1b]0;owned\x07\x1b[2J \u202eabc\u202c \x9b31m [/]"


@given(st.text())
def test_printable_text_has_no_control_characters(text: str) -> None:
    kept = {"\n", "\t"}
    assert all(
        unicodedata.category(character) not in ("Cc", "Cs") or character in kept
        for character in printable(text)
    )


@given(st.text(alphabet=st.characters(exclude_categories=("C", "Z"))))
def test_printable_keeps_harmless_text(text: str) -> None:
    assert printable(text) == text


@given(st.text(), st.integers(2, 50))
def test_preview_is_one_short_line(text: str, longest: int) -> None:
    shown = preview(text, longest)
    assert len(shown) <= longest
    assert "\n" not in shown


@given(st.text())
def test_any_text_can_be_shown(text: str) -> None:
    lines = [line((text, "bold"), text, indent=2)]
    assert "\x1b" not in for_pipe(lines)
    for_terminal(lines)


def test_markup_and_escapes_are_shown_literally() -> None:
    shown = for_terminal([line(NASTY)])
    assert "[bold]now[/bold]" in shown.replace("\n", " ")
    assert "\\x1b]0;owned\\x07" in shown
    assert "\x9b" not in shown
    assert "\u202e" not in shown


def test_errors_are_one_printable_line() -> None:
    assert one_line("a\nb\x1b[0m") == "a b\\x1b[0m"


def test_bar_has_fixed_width() -> None:
    assert {len(bar(score)) for score in (-1.0, 0.0, 0.5, 1.0, 7.0)} == {10}
