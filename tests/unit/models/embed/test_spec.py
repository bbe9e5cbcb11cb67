"""Embedder specifications parse, print and reject invalid values."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trivet.errors import InvalidInput
from trivet.models.embed import Spec, load
from trivet.models.embed.registry import KINDS


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("bundled", Spec("bundled")),
        ("none", Spec("none")),
        ("folder:/models/bge#1", Spec("folder", "/models/bge#1")),
        ("openai:text-embedding-3-small", Spec("openai", "text-embedding-3-small")),
        (
            "openai:nomic:latest@http://127.0.0.1:11434/v1",
            Spec("openai", "nomic:latest", "http://127.0.0.1:11434/v1"),
        ),
        ("openai:@cf/bge@https://a.example/v1", Spec("openai", "@cf/bge", "https://a.example/v1")),
        (
            "openai:m@http://[::1]:80/v1#dimensions=512",
            Spec("openai", "m", "http://[::1]:80/v1", 512),
        ),
        (
            "voyage:voyage-3.5#dimensions=256&window=2000",
            Spec("voyage", "voyage-3.5", "", 256, 2000),
        ),
        ("cohere:embed-v4.0", Spec("cohere", "embed-v4.0")),
    ],
)
def test_spec_parses_and_prints(text: str, spec: Spec) -> None:
    assert Spec.parse(text) == spec
    assert str(spec) == text


@given(
    kind=st.sampled_from(["openai", "voyage", "cohere"]),
    name=st.from_regex(r"[A-Za-z0-9@._/:-]{1,30}", fullmatch=True).filter(
        lambda name: "@http" not in name
    ),
    url=st.sampled_from(["", "http://localhost:8080", "https://example.org/v1"]),
    dimensions=st.none() | st.integers(1, 8192),
    window=st.none() | st.integers(1, 32000),
)
def test_hosted_specs_round_trip(
    kind: str, name: str, url: str, dimensions: int | None, window: int | None
) -> None:
    spec = Spec(kind, name, url, dimensions, window)
    assert Spec.parse(str(spec)) == spec


@pytest.mark.parametrize(
    "text", ["", "openai", "openai:", "folder:", "bundled:x", "gemini:x", "Bundled"]
)
def test_unknown_spec_error_lists_known_kinds(text: str) -> None:
    with pytest.raises(InvalidInput, match="bundled, none, folder:"):
        load(text)


def test_removed_model_error_says_what_to_do() -> None:
    with pytest.raises(
        InvalidInput, match=r"no longer shipped\. Remove the setting .* folder:/path/to/model"
    ):
        load("stock")


@pytest.mark.parametrize(
    "options", ["dimension=5", "dimensions=0", "dimensions=x", "window=-1", "window"]
)
def test_unknown_option_is_rejected(options: str) -> None:
    with pytest.raises(InvalidInput, match="known are dimensions=N and window=N"):
        Spec.parse(f"openai:m#{options}")


@pytest.mark.parametrize(
    "url", ["http://user:hunter2@host/v1", "http://host/v1?key=hunter2", "http://", "http://h:x/"]
)
def test_url_with_secret_is_rejected_and_not_shown(url: str) -> None:
    with pytest.raises(InvalidInput, match="no password") as refusal:
        Spec.parse(f"openai:m@{url}")
    assert "hunter2" not in str(refusal.value)


def test_none_loads_no_embedder() -> None:
    assert load("none") is None


def test_unknown_kind_error_lists_known_kinds() -> None:
    with pytest.raises(
        InvalidInput, match="unknown embedder 'mine'; known are: bundled, none, folder"
    ):
        load(Spec("mine", "model"))


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_an_opener(kind: str) -> None:
    assert kind == "none" or callable(KINDS[kind].opener())
