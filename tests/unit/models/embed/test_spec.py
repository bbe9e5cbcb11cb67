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
def test_a_spec_reads_and_prints_back(text: str, spec: Spec) -> None:
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
def test_every_hosted_spec_round_trips(
    kind: str, name: str, url: str, dimensions: int | None, window: int | None
) -> None:
    spec = Spec(kind, name, url, dimensions, window)
    assert Spec.parse(str(spec)) == spec


@pytest.mark.parametrize(
    "text", ["", "openai", "openai:", "folder:", "bundled:x", "gemini:x", "Bundled"]
)
def test_an_unknown_spec_lists_the_known(text: str) -> None:
    with pytest.raises(InvalidInput, match="bundled, none, folder:"):
        load(text)


def test_whoever_names_the_model_that_is_no_longer_shipped_is_told_what_to_do() -> None:
    with pytest.raises(
        InvalidInput, match=r"no longer shipped\. Leave it out: .* folder:/path/to/model"
    ):
        load("stock")


@pytest.mark.parametrize(
    "options", ["dimension=5", "dimensions=0", "dimensions=x", "window=-1", "window"]
)
def test_an_unknown_option_is_refused(options: str) -> None:
    with pytest.raises(InvalidInput, match="known are dimensions=N and window=N"):
        Spec.parse(f"openai:m#{options}")


@pytest.mark.parametrize(
    "url", ["http://user:hunter2@host/v1", "http://host/v1?key=hunter2", "http://", "http://h:x/"]
)
def test_a_url_with_secrets_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(InvalidInput, match="no password") as refusal:
        Spec.parse(f"openai:m@{url}")
    assert "hunter2" not in str(refusal.value)


def test_none_is_no_embedder() -> None:
    assert load("none") is None


def test_a_kind_that_is_not_in_the_table_is_an_error_that_names_those_that_are() -> None:
    with pytest.raises(
        InvalidInput, match="unknown embedder 'mine'; known are: bundled, none, folder"
    ):
        load(Spec("mine", "model"))


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_names_something_that_opens_it(kind: str) -> None:
    assert kind == "none" or callable(KINDS[kind].opener())
