"""Any method fuses systems as legs within one limit, and no filter or mask is bypassed."""

from __future__ import annotations

import pytest

from trivet import Trivet
from trivet.common.clock import clock_fixed_at
from trivet.errors import InvalidInput
from trivet.types import Answer, ForeignHit, Hit

from .conftest import Opened
from .systems import health_of, printing

CANARY = "quokka-47"


def filled(memory: Trivet) -> list[str]:
    texts = ["The key is under the mat.", "The key of the barn is blue.", "A mat is a rug."]
    stored = memory.remember_many(
        {"content": text, "source": f"notes/{at}.md"} for at, text in enumerate(texts)
    )
    return [one.id for one in stored]


def in_order(answer: Answer) -> list[Hit | ForeignHit]:
    together: list[Hit | ForeignHit] = [*answer.hits, *answer.foreign]
    return sorted(together, key=lambda hit: hit.rank)


METHODS = [
    "rrf(k=60)",
    "rrf(k=10, k.files=5, files=3)",
    "convex(norm=minmax)",
    "convex(norm=zscore, norm.files=tmm, files=2)",
    "convex(norm=dbsf)",
    "rsf",
    "dbsf(files=1)",
    "tm2c2",
    "default",
]


def test_every_method_fuses_members_with_local_legs(federation: Opened) -> None:
    memory = federation(
        files=printing([{"id": "notes/0.md"}, {"id": "wiki/key"}, {"id": "notes/2.md"}])
    )
    ids = filled(memory)
    for method in METHODS:
        answer = memory.recall("key mat", recipe=method, federated=True)
        together = in_order(answer)
        assert together[0].id == ids[0], method
        assert {hit.id for hit in answer.hits} == set(ids), method
        assert [hit.id for hit in answer.foreign] == ["wiki/key"], method
        assert [hit.rank for hit in together] == [1, 2, 3, 4], method
        scores = [hit.score for hit in together]
        assert scores == sorted(scores, reverse=True), method


def test_weights_decide(federation: Opened) -> None:
    memory = federation(files=printing([{"id": "notes/2.md"}], weight=1000))
    ids = filled(memory)
    assert memory.recall("key barn", federated=True).hits[0].id == ids[2]
    light = federation(files=printing([{"id": "notes/2.md"}], weight=0.001))
    assert light.recall("key barn", federated=True).hits[0].id == ids[1]
    assert (
        memory.recall("key barn", recipe="convex(norm=minmax, files=0)", federated=True).hits[0].id
        == ids[1]
    )


def test_memory_of_the_asked_date_precedes_undated_hits(federation: Opened) -> None:
    memory = federation(files=printing([{"id": "wiki/key"}], weight=1000))
    id = memory.remember("The key is under the mat.", created_at="2026-11-05").id
    with clock_fixed_at("2026-11-15"):
        assert in_order(memory.recall("key last week", federated=True))[0].id == id
        assert in_order(memory.recall("key last month", federated=True))[0].id == "wiki/key"


def test_recipe_cannot_name_an_undeclared_system(federation: Opened) -> None:
    with pytest.raises(
        InvalidInput, match="unknown leg 'wiki'; the legs are lexical, dense, graph, files"
    ):
        federation(files=printing([])).recall("x", recipe="rrf(wiki=2)", federated=True)


def test_plain_recall_asks_no_system(federation: Opened) -> None:
    memory = federation(files=printing([{"id": "notes/0.md"}]))
    filled(memory)
    answer = memory.recall("key")
    assert {leg.leg for leg in answer.health.legs}.isdisjoint({"files"})
    assert answer.foreign == ()


def test_federation_needs_a_system(federation: Opened) -> None:
    with pytest.raises(InvalidInput, match=r"\[federation.NAME\]"):
        federation().recall("x", federated=True)
    with pytest.raises(InvalidInput, match="no other system that is enabled"):
        federation(off=printing([], enabled=False)).recall("x", federated=True)


def test_limits_hold_for_all_hits_together(federation: Opened) -> None:
    foreign = [{"id": f"wiki/{number}", "text": "word " * 60} for number in range(20)]
    memory = federation(wiki=printing(foreign))
    filled(memory)
    answer = memory.recall("key mat", limit=5, federated=True)
    assert len(answer.hits) + len(answer.foreign) == 5
    assert answer.foreign
    short = memory.recall("key mat", limit=10, token_budget=100, federated=True)
    assert short.truncated
    assert len(short.foreign) == 1
    high = memory.recall("key mat", limit=20, minimum_score=0.4, federated=True)
    assert all(hit.score >= 0.4 for hit in in_order(high))


def test_oversized_foreign_hit_drops_only_itself(
    federation: Opened,
) -> None:
    memory = federation(wiki=printing([{"id": "wiki/key", "text": "word " * 400}], weight=1000))
    filled(memory)
    assert memory.recall("key mat", federated=True).foreign[0].rank == 1
    short = memory.recall("key mat", token_budget=50, federated=True)
    assert short.truncated
    assert not short.foreign
    assert short.hits
    assert short.hits[0].rank == 1


def test_sort_puts_foreign_hits_after_memories(federation: Opened) -> None:
    memory = federation(wiki=printing([{"id": "wiki/key"}], weight=1000))
    filled(memory)
    answer = memory.recall("key mat", sort="recency", federated=True)
    assert [hit.rank for hit in answer.foreign] == [len(answer.hits) + 1]


def test_filters_drop_unknown_foreign_hits(federation: Opened) -> None:
    memory = federation(
        wiki=printing([{"id": "wiki/key"}, {"id": "notes/0.md"}], scope="team/wiki")
    )
    first = memory.remember(
        "The key is under the mat.", source="notes/0.md", scope="team/notes", tags=["keys"]
    ).id

    def found(**filters: object) -> tuple[list[str], list[str]]:
        answer = memory.recall("wardrobe", federated=True, **filters)  # type: ignore[arg-type]
        return [hit.id for hit in answer.hits], [hit.id for hit in answer.foreign]

    assert found() == ([first], ["wiki/key"])
    assert found(scope="team") == ([first], ["wiki/key"])
    assert found(scope="team/notes") == ([first], [])
    assert found(scope="team/wiki") == ([], ["wiki/key"])
    assert found(tags=["keys"]) == ([first], [])
    assert found(category=["code"]) == ([], [])
    assert found(source="wiki/") == ([], ["wiki/key"])
    assert found(created_before="2001-01-01") == ([], [])
    notes = memory.recall("wardrobe", federated=True, scope="team/wiki").health.notes
    assert "wiki: 1 of its hits left out, since this recall may not show their memories" in notes


def test_other_systems_cannot_show_what_is_sensitive_here(federation: Opened) -> None:
    """A search over the files would print the text that the file's memory masks."""
    hits = [{"id": "notes/safe.md", "text": f"the code is {CANARY}", "title": CANARY}]
    memory = federation(grep=printing(hits))
    id = memory.remember(f"The code is {CANARY}.", source="notes/safe.md", sensitive=True).id
    answer = memory.recall("code", federated=True)
    assert [hit.id for hit in answer.hits] == [id]
    assert CANARY not in repr(answer)
    assert CANARY not in repr(memory.recall("code", federated=True, category=["code"]))
    memory.forget(id)
    after = memory.recall("code", federated=True)
    assert CANARY not in repr(after)
    assert (after.hits, after.foreign) == ((), ())


def test_file_of_a_forgotten_memory_is_foreign_again(federation: Opened) -> None:
    memory = federation(grep=printing([{"id": "notes/0.md", "text": "The key is under the mat."}]))
    ids = filled(memory)
    memory.forget(ids[0])
    answer = memory.recall("rug", federated=True)
    assert [hit.id for hit in answer.foreign] == ["notes/0.md"]


def test_superseded_document_leads_to_its_successor(federation: Opened) -> None:
    memory = federation(files=printing([{"id": "notes/0.md"}]))
    ids = filled(memory)
    memory.link(ids[1], "supersedes", ids[0])
    (hit,) = memory.recall("wardrobe", federated=True).hits
    assert (hit.id, hit.why.redirected_from) == (ids[1], (ids[0],))


def test_quoted_query_stays_exact(federation: Opened) -> None:
    memory = federation(
        files=printing([{"id": "notes/2.md"}, {"id": "notes/0.md"}, {"id": "wiki/key"}])
    )
    ids = filled(memory)
    answer = memory.recall('"under the mat"', federated=True)
    assert [hit.id for hit in answer.hits] == [ids[0]]
    assert [hit.id for hit in answer.foreign] == ["wiki/key"]


def test_secrets_in_a_query_are_not_sent_to_members(federation: Opened) -> None:
    code = "import sys, json; print(json.dumps([{'id': 'told', 'text': ' '.join(sys.argv[1:])}]))"
    echo = {**printing([]), "command": [*printing([])["command"][:-1], code, "{query}", "{words}"]}
    memory = federation(echo=echo)
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    answer = memory.recall(f"who owns {token} today", federated=True)
    assert health_of(answer, "echo").answered
    assert "owns" in answer.foreign[0].text
    assert token not in repr(answer)


@pytest.mark.parametrize("name", ["lexical", "k", "Notes", "my notes", "9", "words"])
def test_reserved_system_name_is_refused(federation: Opened, name: str) -> None:
    with pytest.raises(InvalidInput, match="is not allowed"):
        federation(**{name: printing([])})


def test_system_needs_exactly_one_transport(federation: Opened) -> None:
    with pytest.raises(InvalidInput, match="command, http, trivet and mcp"):
        federation(empty={"fetch_k": 3})
    with pytest.raises(InvalidInput, match="command and http"):
        federation(both={"command": ["x"], "http": "http://127.0.0.1/"})
    with pytest.raises(InvalidInput, match="needs the tool"):
        federation(server={"mcp": "http://127.0.0.1/mcp"})
    with pytest.raises(InvalidInput, match="fetchk"):
        federation(misspelt={"command": ["x"], "fetchk": 3})
