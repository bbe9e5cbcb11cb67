"""Secret detection meets its targets on the labeled set and handles known hard cases."""

from __future__ import annotations

import base64
import importlib
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.invented_secrets import github, letters, password
from trivet.secrets.detect import SecretSpan, find
from trivet.secrets.known_formats import is_card, is_iban

from .labelled import load

finding = importlib.import_module(
    "trivet.secrets.detect"
)  # the package exports a function of this name
assigning = importlib.import_module("trivet.secrets.named_values")


def test_labeled_set_is_large_enough() -> None:
    secrets, harmless = load("secrets"), load("harmless")
    assert len(secrets) >= 150
    assert len({row.kind for row in secrets}) >= 25
    assert len(harmless) >= 300
    for rows in (secrets, harmless):
        assert abs(sum(row.split == "tune" for row in rows) - len(rows) / 2) <= len(rows) * 0.02


def test_data_files_contain_no_whole_secret() -> None:
    from pathlib import Path

    for name in ("secrets", "told_secrets"):
        raw = Path(__file__).with_name(f"{name}.jsonl").read_text(encoding="utf-8")
        assert not [row.kind for row in load(name) if row.text[row.start : row.stop] in raw]


@pytest.mark.parametrize("split", ["tune", "test"])
def test_recall_and_false_positives(split: str) -> None:
    secrets, harmless = load("secrets", split), load("harmless", split)
    found = [
        any(one.start <= row.start and row.stop <= one.stop for one in find(row.text))
        for row in secrets
    ]
    alarms = [row.text for row in harmless if find(row.text)]
    assert sum(found) / len(found) >= 0.95
    assert len(alarms) / len(harmless) <= 0.02, alarms


@pytest.mark.parametrize("split", ["tune", "test"])
def test_conversational_secrets(split: str) -> None:
    """Secrets in sentences, command lines and multiline text, and harmless lookalikes."""
    told, harmless = load("told_secrets", split), load("told_harmless", split)
    assert (len(told), len(harmless)) == (50, 65)
    found = [
        any(one.start <= row.start and row.stop <= one.stop for one in find(row.text))
        for row in told
    ]
    alarms = [row.text for row in harmless if find(row.text)]
    assert sum(found) >= 47, [row.text for row, was in zip(told, found, strict=True) if not was]
    assert len(alarms) <= 1, alarms


@pytest.mark.parametrize(
    "text",
    [
        "auth: use-middleware-refactor-plan",
        "token: see-onboarding-document",
        "password: ********",
        "x [secret:jwt:1] y",
    ],
)
def test_harmless_text_is_kept(text: str) -> None:
    assert find(text) == ()


def test_findings_have_exact_spans() -> None:
    token, word = github("a"), password("b")
    text = f"first {token}, then password: {word} and {token} again"
    assert [(one.kind, text[one.start : one.stop]) for one in find(text)] == [
        ("github-token", token),
        ("password", word),
        ("github-token", token),
    ]


def test_trivet_keys_are_secrets() -> None:
    key = "tvt.default.34b2b15c329c.7qNQGxipiL8jbmYXwmLyLDEvh4Iakg2keJQTCvtM" + "DMc"
    text = f"use {key} for the server"
    [found] = find(text)
    assert (found.kind, text[found.start : found.stop]) == ("trivet-key", key)


def test_token_format_wins_over_variable_name() -> None:
    [found] = find(f"API_TOKEN={github('c')}")
    assert found.kind == "github-token"


def test_span_covers_whole_value() -> None:
    text = f"password: x9Kq-{github('d')}-Zz7!"
    [found] = find(text)
    assert (found.kind, text[found.start : found.stop]) == (
        "github-token",
        text.removeprefix("password: "),
    )


def test_check_digits_are_verified() -> None:
    good = "4539 5787 6362 1486"
    assert is_card(good)
    assert not is_card("4539 5787 6362 1487")
    assert not is_card("4111 1111 1111 1111"), "a well-known example number"
    assert is_iban("DE68 2105 0170 0012 3456 78")
    assert not is_iban("DE69 2105 0170 0012 3456 78")


@given(st.text(max_size=300))
def test_any_text_can_be_scanned(text: str) -> None:
    found = find(text)
    assert all(0 <= one.start < one.stop <= len(text) for one in found)
    assert all(before.stop <= after.start for before, after in pairwise(found))


@given(
    st.text(alphabet=" \n.,:;()abcXYZ0189é漢", max_size=60),
    st.text(alphabet=" \n.,;()é漢", max_size=60),
)
def test_token_is_found_in_any_context(before: str, after: str) -> None:
    token = github("anywhere")
    text = f"{before} {token} {after}"
    assert any(
        one.start <= len(before) + 1 and one.stop >= len(before) + 1 + len(token)
        for one in find(text)
    )


def test_clean_text_is_scanned_once(monkeypatch: pytest.MonkeyPatch) -> None:
    scanned: list[str] = []
    scan = finding._scan

    def counting(text: str) -> tuple[SecretSpan, ...]:
        scanned.append(text)
        found: tuple[SecretSpan, ...] = scan(text)
        return found

    monkeypatch.setattr(finding, "_scan", counting)
    clean, with_token = (
        "Scanned once, though it passes several doors.",
        f"the token is {github('twice')}",
    )
    for text in (clean, with_token, clean, with_token):
        assert bool(find(text)) == (text == with_token)
    assert scanned == [clean, with_token, with_token]


def test_long_runs_scan_in_linear_time() -> None:
    """A backtracking pattern would never finish. The token after the run is still found."""
    token = github("behind")
    for unit in (
        "a",
        "A1",
        "pass",
        "token_",
        "key.",
        "-----BEGIN ",
        "://a:",
        "eyJ",
        "password: ",
        "1234 ",
        "x." * 3,
    ):
        run = unit * (32 * 1024 // len(unit))
        assert find(run) == ()
        assert [f"{run}\n{token}"[one.start : one.stop] for one in find(f"{run}\n{token}")] == [
            token
        ]
    assert find(letters("long", 32 * 1024)) == ()


def test_placeholder_is_not_a_secret() -> None:
    """An edit scans existing placeholders again, and they must stay unchanged."""
    token = github("beside a placeholder")
    assert find("password = [secret:password:1]") == ()
    (found,) = find(f"password = [secret:password:1] and the token {token}")
    assert found.kind == "github-token"


def test_deeply_nested_header_is_not_a_token() -> None:
    """JSON nested thousands of levels deep in a token-like header must be treated as text."""
    head = base64.urlsafe_b64encode(b'{"a":' + b"[" * 20_000).decode().rstrip("=")
    assert find(f"{head}.{letters('body', 20)}.{letters('sign', 40)}") == ()


def test_key_with_sequence_is_found_but_typed_text_is_not() -> None:
    key = "gh" + f"p_{letters('typed', 14)}12345678{letters('run', 14)}"
    assert [one.kind for one in find(f"the bot pushes with {key} at night")] == ["github-token"]
    assert find("api_key: abcdefgh12345678abcdefgh") == ()


PIECES = "pass PWD psk contras e kennwort mot de API Acces uth a ccount sec ret".split()
PIECES += "ign ing encr master priv licen client token cred".split()


@given(st.lists(st.sampled_from([*PIECES, " ", "="]), max_size=12).map("".join))
def test_prefilter_skips_only_text_without_secret_names(text: str) -> None:
    held = any(start in text.lower() for start in assigning._STARTS)
    assert held or assigning._NEAR().search(text) is None
