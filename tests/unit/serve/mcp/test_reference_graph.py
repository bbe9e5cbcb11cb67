"""The reference server's graph is stored as memories and read back exactly, in order."""

from __future__ import annotations

from pathlib import Path

import pytest

from trivet import InvalidInput, NotFound, Trivet
from trivet.serve.mcp.reference_graph import (
    SCOPE,
    Added,
    Deleted,
    Entity,
    Graph,
    KnowledgeGraph,
    Relation,
)
from trivet.serve.mcp.reference_server import import_memory_file

ANA = Entity("Ana & Söhne = 100%", "person", ["Likes tea.", "line one\nline two", "  blanks  "])
ACME = Entity("Acme", "company", [])
WORKS = Relation(ANA.name, "Acme", "works_at")
FILE = """{"type":"entity","name":"Ana","entityType":"person","observations":["Likes tea.","Likes tea."]}

{"type":"relation","from":"Ana","to":"Acme","relationType":"works_at"}
{"type":"entity","name":"Acme","entityType":"company","observations":[]}
"""


@pytest.fixture
def graph(trivet: Trivet) -> KnowledgeGraph:
    graph = KnowledgeGraph(trivet)
    graph.create_entities([ANA, ACME])
    graph.create_relations([WORKS])
    return graph


def test_graph_round_trips(graph: KnowledgeGraph) -> None:
    assert graph.read() == Graph([ANA, ACME], [WORKS])


def test_duplicates_are_not_stored(graph: KnowledgeGraph) -> None:
    other = Entity("Acme", "other", ["new"])
    assert graph.create_entities([other, Entity("New", "", []), Entity("New", "", [])]) == [
        Entity("New", "", [])
    ]
    assert graph.create_relations([WORKS, WORKS]) == []
    assert graph.add_observations(
        [Added(ANA.name, ["Likes tea.", "b", "b"]), Added(ANA.name, ["b"])]
    ) == [
        (ANA.name, ["b"]),
        (ANA.name, []),
    ]
    assert graph.read().entities[0].observations == [*ANA.observations, "b"]


def test_unknown_entity_rejects_whole_call(graph: KnowledgeGraph) -> None:
    with pytest.raises(NotFound, match="Entity with name Nobody not found"):
        graph.add_observations([Added("Acme", ["kept?"]), Added("Nobody", ["x"])])
    assert graph.read() == Graph([ANA, ACME], [WORKS])


def test_deleted_parts_can_be_restored(graph: KnowledgeGraph, trivet: Trivet) -> None:
    graph.delete_observations(
        [Deleted(ANA.name, ["  blanks  ", "never said"]), Deleted("Nobody", ["x"])]
    )
    assert graph.open([ANA.name]).entities[0].observations == ANA.observations[:2]
    graph.delete_entities(["Acme", "person"])
    assert graph.read() == Graph([Entity(ANA.name, "person", ANA.observations[:2])], [])
    for memory in trivet.list(scope=SCOPE, state=["deleted"]).memories:
        trivet.restore(memory.id)
    assert graph.read() == Graph([ANA, ACME], [WORKS])


def test_relation_can_be_deleted_alone(graph: KnowledgeGraph) -> None:
    graph.delete_relations([Relation("Acme", ANA.name, "works_at")])
    assert graph.read().relations == [WORKS]
    graph.delete_relations([WORKS])
    assert graph.read() == Graph([ANA, ACME], [])


def test_search_returns_matching_entities_with_relations(graph: KnowledgeGraph) -> None:
    assert graph.search("LINE T") == Graph([ANA], [WORKS])
    assert graph.search("compan") == Graph([ACME], [WORKS])


def test_search_falls_back_to_recall(graph: KnowledgeGraph) -> None:
    graph.add_observations([Added("Acme", ["The staging database listens on port 6543."])])
    assert [entity.name for entity in graph.search("which port has staging").entities] == ["Acme"]
    assert graph.search("zebra crossing") == Graph([], [])


def test_graph_memories_behave_like_other_memories(graph: KnowledgeGraph, trivet: Trivet) -> None:
    [hit] = trivet.recall("line two").hits
    assert (hit.title, hit.tags, hit.content) == (ANA.name, ("person",), "line one\nline two")
    trivet.edit(hit.id, content="line three")
    trivet.remember("A note of somebody else.", scope=SCOPE)
    assert graph.read().entities[0].observations == ["Likes tea.", "line three", "  blanks  "]


def test_concurrent_duplicates_are_read_once(graph: KnowledgeGraph, trivet: Trivet) -> None:
    for memory in trivet.list(scope=SCOPE).memories:
        assert memory.source
        trivet.remember(memory.content, scope=SCOPE, source=memory.source.uri)
    assert graph.read() == Graph([ANA, ACME], [WORKS])


def test_masked_secret_can_be_deleted_by_either_text(graph: KnowledgeGraph) -> None:
    text = "The deploy bot logs in with ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    graph.add_observations([Added("Acme", [text])])
    [stored] = graph.open(["Acme"]).entities[0].observations
    assert stored == "The deploy bot logs in with [secret:github-token:1]"
    graph.delete_observations([Deleted("Acme", [text])])
    assert graph.open(["Acme"]).entities[0].observations == []


@pytest.mark.parametrize(
    "entity",
    [
        Entity("x" * 301, "person", []),
        Entity("Ana", "person", [""]),
        Entity("ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8", "token", []),
    ],
)
def test_unrepresentable_entity_is_rejected(trivet: Trivet, entity: Entity) -> None:
    graph = KnowledgeGraph(trivet)
    with pytest.raises(InvalidInput):
        graph.create_entities([ACME, entity])
    assert graph.read() == Graph([], [])


def test_graph_larger_than_a_page_is_read_whole(
    trivet: Trivet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trivet.serve.mcp.reference_graph.PAGE", 3)
    many = Entity("Many", "x", [f"observation {number}" for number in range(8)])
    graph = KnowledgeGraph(trivet)
    graph.create_entities([many])
    assert graph.read() == Graph([many], [])


def test_memory_file_is_imported_once(
    trivet: Trivet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "memory.jsonl"
    graph = KnowledgeGraph(trivet)
    monkeypatch.setenv("MEMORY_FILE_PATH", str(file))
    import_memory_file(trivet)  # no file exists yet
    file.write_text(FILE)
    import_memory_file(trivet)
    imported = Graph(
        [Entity("Ana", "person", ["Likes tea."]), Entity("Acme", "company", [])],
        [Relation("Ana", "Acme", "works_at")],
    )
    assert graph.read() == imported
    graph.delete_entities(["Ana", "Acme"])
    import_memory_file(trivet)
    assert graph.read() == Graph([], [])
    assert file.read_text() == FILE


def test_invalid_memory_file_is_rejected_whole(
    trivet: Trivet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "memory.jsonl"
    file.write_text(FILE + '{"type":"entity","name":3}\n')
    monkeypatch.setenv("MEMORY_FILE_PATH", str(file))
    with pytest.raises(InvalidInput, match=r"line 5 .* Nothing was imported"):
        import_memory_file(trivet)
    assert KnowledgeGraph(trivet).read() == Graph([], [])
