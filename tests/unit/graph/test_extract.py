"""Concept extraction finds each concept once, in its strongest role, within a time budget."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from trivet.graph import concepts as reading_time
from trivet.graph.concepts import Mention, TimeBudget
from trivet.graph.extract import LONGEST_TITLE_IN_WORDS, MAX_CONCEPTS, extract


def found(content: str, title: str | None = None, tags: tuple[str, ...] = ()) -> dict[str, Mention]:
    mentions = extract(title, content, tags)
    by_name = {mention.name: mention for mention in mentions}
    assert len(by_name) == len(mentions), "each concept must appear once"
    return by_name


def roles(content: str, title: str | None = None, tags: tuple[str, ...] = ()) -> dict[str, str]:
    return {name: mention.role for name, mention in found(content, title, tags).items()}


def test_technical_text_concepts() -> None:
    concepts = found(
        "The relay fails with E4012 in src/net/relay.py when get_user() calls Postgres."
    )
    assert {name: one.kind for name, one in concepts.items()} == {
        "e4012": "code",
        "srcnetrelaypy": "path",
        "relaypy": "path",
        "getuser": "identifier",
        "postgres": "name",
    }


def test_chat_mentions_speaker_and_addressee() -> None:
    assert roles("Caroline: Hey Mel! I joined the LGBTQ group on 7 May 2023.") == {
        "caroline": "in",
        "mel": "in",
        "lgbtq": "in",
        "2023dot05dot07": "in",
    }


@pytest.mark.parametrize("text", ["E4012 came back", "we saw E4012 and HB-2231", "ERR_CONN: again"])
def test_error_code_is_found_anywhere(text: str) -> None:
    kinds = {one.label: one.kind for one in extract(None, text)}
    assert all(kinds[code] == "code" for code in ("E4012", "HB-2231", "ERR_CONN") if code in text)


@pytest.mark.parametrize(
    "date", ["2024-03-05", "March 5, 2024", "5 March 2024", "the 5th of March 2024"]
)
def test_date_is_one_concept(date: str) -> None:
    (mention,) = extract(None, f"it was on {date} that we met")
    assert (mention.label, mention.kind) == ("2024-03-05", "date")


def test_spelling_variants_are_one_concept() -> None:
    concepts = found("we met Li Hua, then LiHua again; call get_user or getUser")
    assert set(concepts) == {"lihua", "getuser"}
    assert concepts["lihua"].label in ("Li Hua", "LiHua")


def test_strongest_role_wins() -> None:
    assert roles("Postgres is slow.") == {"postgres": "maybe"}
    assert roles("Postgres is slow. We like Postgres.") == {"postgres": "in"}
    assert roles("We like Postgres.", title="Postgres") == {"postgres": "about"}
    assert roles("We like Postgres.", tags=("postgres",)) == {"postgres": "about"}


def test_word_also_in_lowercase_is_not_a_name() -> None:
    assert roles("Deploys are slow, and deploys fail.") == {}
    assert roles("Deploys are slow.") == {"deploys": "maybe"}
    assert roles("We met Grace. By her grace we stayed.") == {"grace": "in"}


def test_title_gives_about_concepts() -> None:
    concepts = found("it is small", title="Mercury (planet)")
    assert {name: one.role for name, one in concepts.items()} == {"mercury": "about"}
    assert found("x", title="Moving to Berlin (2019)")["berlin"].role == "about"
    assert found("x", title="How we fixed E4012")["e4012"].kind == "code"
    long = " ".join(["words"] * LONGEST_TITLE_IN_WORDS)
    assert [one.kind for one in extract(long, "x")] == ["title"]
    assert extract(f"{long} more", "x") == ()


def test_tags_are_concepts() -> None:
    assert found("x", tags=("release-notes", "1"))["releasenote"].kind == "tag"
    assert set(found("x", tags=("12", "a", "!?"))) == set()
    assert set(found("x", tags=("carriers", "policies", "postgres", "status"))) == {
        "carrier", "policy", "postgres", "status",
    }  # fmt: skip


def test_non_latin_scripts() -> None:
    assert found("他说「三体」很好看")["三体"].kind == "quoted"
    assert found("мы видели Анну в Москве") == found("мы видели Анну  в  Москве")
    assert set(found("we met José Müller and Jose Muller")) >= {"josemuller"}


def test_us_abbreviation_is_a_concept() -> None:
    assert "us" in found("she moved to the U.S. in spring")
    assert "us" in found("she moved to the US in spring")
    assert "us" not in found("she moved with us. Us too.")


def test_numbers_and_small_words_are_not_concepts() -> None:
    assert roles("I've 3 of 12, e.g. 3.5 at 10:30am. On Monday it'll do. Yes!") == {}


def test_concept_count_is_bounded() -> None:
    text = " and ".join(f"Name{number}x went" for number in range(3 * MAX_CONCEPTS))
    assert len(extract(None, f"so {text}")) == MAX_CONCEPTS


def test_label_length_is_bounded() -> None:
    for text in (
        f"we saw A{'-' * 5_000}b there",
        f"see http://a.io{'/' * 5_000}b there",
        f'"a{" " * 50}b"',
    ):
        assert all(len(mention.label) <= 200 for mention in extract(None, text))


def test_extraction_is_deterministic() -> None:
    text = (
        'Caroline: Hey Mel! I read "Hush" by J. K. Rowling; see src/a.py and E4012 of 5 March 2024.'
    )
    assert extract("A title", text, ("one", "two")) == extract("A title", text, ("one", "two"))


def test_extraction_stops_when_budget_is_spent() -> None:
    class ThreePieces(TimeBudget):
        pieces = 3

        def has_time_left(self) -> bool:
            self.pieces -= 1
            self.is_spent = self.pieces < 0
            return not self.is_spent

    text = "The `alpha` and the `beta` and the `gamma` and the `delta` stand by the sea."
    assert [one.label for one in extract(None, text)] == ["alpha", "beta", "gamma", "delta"]
    time = ThreePieces()
    assert [one.label for one in extract(None, text, (), time)] == ["alpha", "beta", "gamma"]
    assert time.is_spent


def test_budget_counts_only_thread_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine, wall-clock time must not shorten extraction."""
    clock = SimpleNamespace(worked=0.0, gone_by=0.0)
    clock.thread_time, clock.perf_counter = lambda: clock.worked, lambda: clock.gone_by
    monkeypatch.setattr(reading_time, "time", clock)
    reading = TimeBudget(1.0)
    clock.gone_by, clock.worked = 500.0, 0.5
    assert reading.has_time_left()
    clock.worked = 1.0
    assert not reading.has_time_left()
    clock.worked = 0.0
    assert not reading.has_time_left(), "a spent budget must stay spent"
