"""The graph around a memory or concept is bounded, filtered, dated, and drawable."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from xml.etree import ElementTree

import pytest

from trivet import InvalidInput, NotFound, Trivet
from trivet.common.clock import moment
from trivet.graph.concepts import Triple
from trivet.graph.draw import dot, svg
from trivet.secrets.masking import MASK
from trivet.types import GraphEdge, Neighbourhood


def _id(number: int) -> str:
    return f"01997e00-0000-7000-8000-{number:012}"


def remember(trivet: Trivet, *contents: str, scope: str = "acme") -> list[str]:
    ids = [trivet.remember(content, scope=scope).id for content in contents]
    trivet.drain()
    return ids


def store_triples(trivet: Trivet, triples_by_id: Mapping[str, Sequence[Triple]]) -> None:
    """Store statements as if a language model had extracted them from these memories."""
    graph = trivet.engine.store.graph
    graph.ask_for_triples()
    contents = {
        trivet.get(id, reveal=True).content: triples for id, triples in triples_by_id.items()
    }
    readings = graph.lease("triples", 1_000, 60)
    graph.finish_triples([(reading, contents.get(reading.content, ())) for reading in readings])


def lives(place: str, since: str) -> Triple:
    return Triple(
        subject="Li Hua", relation="lives in", object=place, single=True, valid_from=since
    )


def labels(found: Neighbourhood, distance: int) -> set[str]:
    return {node.label for node in found.nodes if node.distance == distance}


def edges(found: Neighbourhood, kind: str) -> list[GraphEdge]:
    return [edge for edge in found.edges if edge.kind == kind]


def test_graph_around_a_concept(trivet: Trivet) -> None:
    first, second, _ = remember(
        trivet, "Li Hua met Ada in Berlin.", "Ada moved to Lima.", "Bob was in Oslo."
    )
    found = trivet.graph("ada", depth=1)
    assert (found.start, found.nodes[0].label, found.nodes[0].memories) == ("ada", "Ada", 2)
    assert {node.id for node in found.nodes if node.distance == 1} == {first, second}
    wider = trivet.graph("Ada", depth=2)
    assert labels(wider, 2) == {"Li Hua", "Berlin", "Lima"}
    assert {(edge.source, edge.target) for edge in edges(wider, "mention")} >= {
        (first, "ada"),
        (second, "lima"),
    }
    assert not found.truncated


def test_graph_around_a_memory(trivet: Trivet) -> None:
    first, second = remember(trivet, "We met Ada in Berlin.", "We saw Ada in Lima.")
    found = trivet.graph(first, depth=1)
    assert (found.nodes[0].kind, found.nodes[0].id, found.nodes[0].label) == (
        "memory",
        first,
        "We met Ada in Berlin.",
    )
    assert labels(found, 1) == {"Ada", "Berlin"}
    assert second in {node.id for node in trivet.graph(first, depth=2).nodes}


@pytest.mark.parametrize("spelling", ["Li Hua", "lihua", "LiHua", "LI HUA's", "the Li Hua"])
def test_concept_is_found_in_any_spelling(trivet: Trivet, spelling: str) -> None:
    remember(trivet, "We met Li Hua in Berlin.")
    assert trivet.graph(spelling).start == "lihua"


def test_unknown_concept_suggests_similar_names(trivet: Trivet) -> None:
    remember(trivet, "We met Li Hua at the University of Edinburgh.")
    with pytest.raises(NotFound, match=r"'Lihau'.*Li Hua.*`concepts`"):
        trivet.graph("Lihau")
    with pytest.raises(NotFound, match="Similar names: University of Edinburgh"):
        trivet.graph("Edinburgh Castle")
    with pytest.raises(NotFound, match=_id(7)):
        trivet.graph(_id(7))


def test_suggestions_respect_the_scope(trivet: Trivet) -> None:
    remember(trivet, "We met Li Hua in Berlin.", scope="globex")
    with pytest.raises(NotFound) as refused:
        trivet.graph("Lihau", scope="acme")
    assert "Li Hua" not in str(refused.value)
    with pytest.raises(NotFound):
        trivet.graph("Li Hua", scope="acme")


def test_only_visible_memories_are_shown(trivet: Trivet) -> None:
    (mine,) = remember(trivet, "We met Ada in Berlin.")
    (theirs,) = remember(trivet, "We met Ada in Lima.", scope="globex")
    trivet.link(mine, "see-also", theirs)
    found = trivet.graph(mine, scope="acme", depth=4)
    assert {node.id for node in found.nodes} == {mine, "ada", "berlin"}
    assert found.nodes[1].memories == 1
    with pytest.raises(NotFound, match="filters"):
        trivet.graph(theirs, scope="acme")


def test_linked_sensitive_memory_is_masked(trivet: Trivet) -> None:
    (open_one,) = remember(trivet, "We met Ada in Berlin.")
    secret = trivet.remember(
        "The key of Ada is hunter2canary.", title="hunter2canary", sensitive=True
    ).id
    trivet.link(open_one, "see-also", secret)
    trivet.drain()
    found = trivet.graph(open_one)
    (shown,) = [node for node in found.nodes if node.id == secret]
    assert (shown.label, shown.sensitive) == (MASK, True)
    assert "hunter2canary" not in repr(found) + dot(found) + svg(found)
    assert [edge.relation for edge in edges(found, "link")] == ["see-also"]
    assert [node.id for node in trivet.graph(secret, depth=1).nodes] == [secret, open_one]


def test_cycles_terminate(trivet: Trivet) -> None:
    ids = remember(
        trivet,
        "Ada knows Bob.",
        "We saw Bob with Cleo.",
        "Cleo wrote to Ada.",
        "This stands alone.",
    )
    for one, other in zip(ids, [*ids[1:], ids[0]], strict=True):
        trivet.link(one, "see-also", other)
    found = trivet.graph(ids[0], depth=4)
    assert len({node.id for node in found.nodes}) == len(found.nodes)
    assert set(ids) <= {node.id for node in found.nodes}
    assert len(edges(found, "link")) == 4
    assert not found.truncated


def test_rare_concepts_come_before_hubs(trivet: Trivet) -> None:
    start, near = remember(trivet, "We met Ada at Acme in Oslo.", "We wrote to Ada.")
    remember(trivet, *(f"Note {number} tells of Acme." for number in range(30)))
    found = trivet.graph(start, depth=2, limit=8)
    assert found.truncated
    assert len(found.nodes) == 8
    kept = [node.label for node in found.nodes if node.kind == "concept"]
    assert kept == [
        "Ada",
        "Acme",
        "Oslo",
    ]  # Concepts with further nodes first, rarest first; then dead ends.
    assert next(node.id for node in found.nodes if node.distance == 2) == near


def test_hub_leaves_room_for_nodes_beyond_it(trivet: Trivet) -> None:
    remember(trivet, *(f"We know that Acme wrote to Person{number}Name." for number in range(30)))
    found = trivet.graph("Acme", depth=2, limit=11)
    assert [len(labels(found, distance)) for distance in (1, 2)] == [5, 5]
    assert len(trivet.graph("Acme", depth=1, limit=11).nodes) == 11


def test_everything_is_shown_within_the_limit(trivet: Trivet) -> None:
    remember(trivet, *(f"We know that Acme wrote to Person{number}Name." for number in range(9)))
    found = trivet.graph("Acme", depth=2, limit=19)
    assert (len(found.nodes), found.truncated) == (19, False)
    assert trivet.graph("Acme", depth=2, limit=18).truncated


def test_invalid_bounds_are_refused(trivet: Trivet) -> None:
    for options in ({"depth": 0}, {"depth": 5}, {"limit": 1}, {"limit": 501}, {"as_of": "soon"}):
        with pytest.raises(InvalidInput):
            trivet.graph("Ada", **options)
    with pytest.raises(InvalidInput):
        trivet.graph("")


def test_statements_have_validity_periods(trivet: Trivet) -> None:
    old, new = remember(trivet, "Li Hua lives in Berlin.", "Li Hua has moved to Lima.")
    store_triples(
        trivet, {old: [lives("Berlin", "2024-01-01")], new: [lives("Lima", "2025-06-01")]}
    )
    (now,) = edges(trivet.graph("Li Hua"), "statement")
    assert (now.relation, now.target, now.evidence, now.valid_to) == ("lives in", "lima", new, None)
    then = trivet.graph("Li Hua", as_of="2024-07-01")
    (held,) = edges(then, "statement")
    assert (held.target, held.evidence, held.valid_to, held.ended_by) == (
        "berlin",
        old,
        moment("2025-06-01"),
        new,
    )
    assert held.recorded_at is not None
    assert not edges(trivet.graph("Li Hua", as_of="2023-01-01"), "statement")


def test_other_scopes_do_not_end_statements(trivet: Trivet) -> None:
    (mine,) = remember(trivet, "Li Hua lives in Berlin.")
    (theirs,) = remember(trivet, "Li Hua has moved to Lima.", scope="globex")
    store_triples(
        trivet, {mine: [lives("Berlin", "2024-01-01")], theirs: [lives("Lima", "2025-06-01")]}
    )
    (held,) = edges(trivet.graph("Li Hua", scope="acme"), "statement")
    assert (held.target, held.valid_to, held.ended_by) == ("berlin", None, None)
    assert [edge.target for edge in edges(trivet.graph("Li Hua"), "statement")] == ["lima"]


def test_statements_of_superseded_memories_end(trivet: Trivet) -> None:
    old, new = remember(trivet, "Acme uses Postgres.", "This was dropped.")
    store_triples(
        trivet,
        {
            old: [
                Triple(subject="Acme", relation="uses", object="Postgres", valid_from="2024-01-01")
            ]
        },
    )
    assert edges(trivet.graph("Acme"), "statement")
    trivet.link(new, "supersedes", old)
    assert not edges(trivet.graph("Acme"), "statement")
    (held,) = edges(trivet.graph("Acme", as_of="2024-02-01"), "statement")
    assert held.ended_by == new


def test_statements_connect_concepts(trivet: Trivet) -> None:
    (id,) = remember(trivet, "A long text about people and places.")
    store_triples(trivet, {id: [lives("Berlin", "2024-01-01")]})
    found = trivet.graph("Li Hua", depth=1)
    assert "Berlin" in labels(found, 1)


HOSTILE = 'Ada "</text><script>alert(1)</script> & \\ \x1b[31m\u202e'


def test_drawings_escape_stored_text(trivet: Trivet) -> None:
    id = trivet.remember("We met Ada in Berlin.", title=HOSTILE).id
    other = trivet.remember("We saw Ada again.").id
    trivet.link(id, "see-also", other)
    trivet.drain()
    found = trivet.graph(id)
    drawn = svg(found)
    root = ElementTree.fromstring(drawn)
    tags = {element.tag.rpartition("}")[2] for element in root.iter()}
    assert tags == {"svg", "title", "style", "line", "text", "g", "circle"}
    assert any('Ada "</text><script>' in (element.text or "") for element in root.iter())
    assert "http" not in drawn.replace("http://www.w3.org/2000/svg", "")
    for text in (drawn, dot(found)):
        assert "\x1b" not in text
        assert "\u202e" not in text
    assert '"Ada \\"</text><script>' in dot(found)


def test_drawings_are_deterministic(trivet: Trivet) -> None:
    remember(trivet, "We met Ada in Berlin.", "We saw Ada in Lima.", "Then Bob came to Lima.")
    first, second = trivet.graph("Ada", depth=4), trivet.graph("Ada", depth=4)
    assert svg(first) == svg(second)
    places = [
        (e.get("cx"), e.get("cy"))
        for e in ElementTree.fromstring(svg(first)).iter()
        if e.tag.endswith("circle")
    ]
    assert len(set(places)) == len(first.nodes)
    assert "prefers-color-scheme: dark" in svg(first)


def test_single_node_can_be_drawn(trivet: Trivet) -> None:
    (id,) = remember(trivet, "nothing to see here")
    found = trivet.graph(id)
    assert [node.id for node in found.nodes] == [id]
    assert ElementTree.fromstring(svg(found)) is not None
    assert id in dot(found)
