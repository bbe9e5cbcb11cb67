"""The command line shows the concept graph."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from support.command_line import CommandLine, process


@pytest.fixture
def ids(trivet: CommandLine) -> list[str]:
    contents = ["We met Ada in Berlin.", "We saw Ada in Lima.", "The server of Ada is in Lima."]
    return [trivet.json("remember", content, "--scope", "acme")["id"] for content in contents]


def test_concepts_as_text(trivet: CommandLine, ids: list[str]) -> None:
    result = trivet("concepts")
    assert result.status == 0
    assert result.out.splitlines() == ["3  Ada  name", "2  Lima  name", "1  Berlin  name"]


def test_concept_pages(trivet: CommandLine, ids: list[str]) -> None:
    assert (
        trivet("concepts", "-n", "2").out.splitlines()[-1]
        == "1 to 2 of 3; --offset 2 shows the next."
    )
    assert trivet("concepts", "--offset", "9").out == "There are only 3.\n"


def test_concepts_by_text_kind_and_scope(trivet: CommandLine, ids: list[str]) -> None:
    assert [concept["label"] for concept in trivet.json("concepts", "lim")["concepts"]] == ["Lima"]
    assert trivet("concepts", "--kind", "code").out == "No concept matches.\n"
    assert trivet.json("concepts", "--scope", "globex")["total"] == 0
    assert trivet("concepts", "--kind", "planet").status == 2


def test_other_spellings_are_shown(trivet: CommandLine, ids: list[str]) -> None:
    trivet("remember", "We wrote to ADA again.")
    assert trivet("concepts", "ada").out == "4  Ada  name · also ADA\n"


def test_graph_as_text(trivet: CommandLine, ids: list[str]) -> None:
    result = trivet("graph", "berlin")
    assert result.status == 0
    assert result.out.splitlines() == [
        "Berlin  name, 1 memory",
        f"  <- mentions it: {ids[0]}  We met Ada in Berlin.",
        "    mentions Ada  name, 3 memories",
    ]


def test_links_read_as_sentences(trivet: CommandLine, ids: list[str]) -> None:
    trivet("link", ids[1], "supersedes", ids[0])
    assert (
        f"  supersedes {ids[0]}  We met Ada in Berlin." in trivet("graph", ids[1]).out.splitlines()
    )
    assert (
        f"  <- supersedes it: {ids[1]}  We saw Ada in Lima."
        in trivet("graph", ids[0]).out.splitlines()
    )


def test_more_results_are_announced(trivet: CommandLine, ids: list[str]) -> None:
    assert "raise --limit" in trivet("graph", "ada", "--limit", "3").out
    assert "raise --limit" not in trivet("graph", "ada").out


def test_graph_as_json(trivet: CommandLine, ids: list[str]) -> None:
    found = trivet.json("graph", ids[0], "--depth", "1")
    assert found["start"] == ids[0]
    assert [node["id"] for node in found["nodes"]] == [ids[0], "ada", "berlin"]
    assert {edge["target"] for edge in found["edges"]} == {"ada", "berlin"}


def test_drawings_go_to_standard_output(trivet: CommandLine, ids: list[str]) -> None:
    drawn = trivet("graph", "Ada", "--svg")
    root = ElementTree.fromstring(drawn.out)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert "Berlin" in "".join(root.itertext())
    dotted = trivet("graph", "Ada", "--dot").out
    assert dotted.startswith("digraph")
    assert f'"{ids[0]}" -> "ada"' in dotted


def test_one_format_at_a_time(trivet: CommandLine, ids: list[str]) -> None:
    for forms in (("--dot", "--svg"), ("--svg", "--json")):
        result = trivet("graph", "Ada", *forms)
        assert (result.status, result.out) == (2, "")
        assert "Choose one" in result.err


def test_unknown_concept(trivet: CommandLine, ids: list[str]) -> None:
    result = trivet("graph", "Belrin", "--json")
    assert result.status == 3
    assert result.error()["kind"] == "NotFound"
    assert "Berlin" in result.error()["message"]
    assert trivet("graph", "Ada", "--as-of", "soon").status == 2


def test_stored_text_cannot_control_the_terminal(trivet: CommandLine) -> None:
    id = trivet.json("remember", "We met Ada.", "--title", "red \x1b[31m alert")["id"]
    trivet("remember", "We know Ada.")
    out = trivet("graph", id).out + trivet("concepts").out + trivet("graph", id, "--svg").out
    assert "\x1b" not in out


def test_reindex_the_graph_alone_or_all(trivet: CommandLine, ids: list[str]) -> None:
    before = trivet.json("concepts")
    assert trivet("reindex", "--graph").out == "Rebuilt the concept graph (3 concepts).\n"
    assert trivet.json("reindex", "--graph") == {
        "lexical": False,
        "vectors": False,
        "graph": True,
        "embedded": 0,
    }
    assert trivet.json("reindex", "--lexical")["graph"] is False
    assert trivet("reindex").out.count("concept graph") == 1
    assert trivet.json("reindex") == {
        "lexical": True,
        "vectors": True,
        "graph": True,
        "embedded": 0,
    }
    assert trivet.json("concepts") == before


def test_stats_count_the_graph(trivet: CommandLine, ids: list[str]) -> None:
    counts = trivet.json("stats")
    assert (
        counts["concepts"],
        counts["mentions"],
        counts["statements"],
        counts["not_in_graph"],
    ) == (3, 6, 0, 0)
    out = trivet("stats").out
    assert "3 with 6 mentions and 0 statements" in out
    assert "0 waiting to be read" in out


def test_path_to_a_hit_is_shown(trivet: CommandLine) -> None:
    first = trivet.json("remember", "The firm Acme was bought by Globex last spring.")["id"]
    others = [
        "The canteen of Globex is in Rome.",
        "We wrote to Acme.",
        "Many a firm bought spring water.",
    ]
    for content in others:
        trivet("remember", content)
    out = trivet("recall", "who bought the firm Acme").out
    assert "(query -> Acme -> this)" in out
    assert f"-> #{first[:8]}…{first[-4:]} -> Globex -> this)" in out


def test_new_process_sees_the_graph(ids: list[str]) -> None:
    result = process("graph", "Berlin", "--depth", "1")
    assert (result.status, result.err) == (0, "")
    assert ids[0] in result.out


def test_embed_reports_language_model_errors() -> None:
    """Nothing listens on the discard port of this machine."""
    assert process("remember", "We met Clara.").status == 0
    result = process("embed", TRIVET_GRAPH_LLM="openai:tiny@http://127.0.0.1:9/v1")
    assert result.status != 0
    assert "refused" in result.out
