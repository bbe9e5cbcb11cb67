"""Every verb accepts an id prefix, resolved among memories the caller may see."""

from __future__ import annotations

import pytest

from trivet import InvalidInput, NotFound, Trivet
from trivet.serve.mcp.tools import agent_tools, call
from trivet.types import Caller, Right

RABBIT = "aaaa1111-0000-7000-8000-000000000001"
RABBITS = "aaaa1111-0000-7000-8000-000000000002"
FERRET = "bbbb2222-0000-7000-8000-000000000003"

BOTH: frozenset[Right] = frozenset(("read", "write"))


@pytest.fixture
def animals(trivet: Trivet) -> Trivet:
    for id, text in (
        (RABBIT, "The rabbit is grey."),
        (RABBITS, "The rabbits are white."),
        (FERRET, "No ferret."),
    ):
        trivet.remember(text, id=id)
    return trivet


def test_every_verb_accepts_an_id_prefix(animals: Trivet) -> None:
    assert animals.get("bbbb").id == FERRET
    assert animals.get("BBBB22").id == FERRET
    animals.edit("bbbb2222", title="Ferrets")
    assert [revision.revision for revision in animals.history("bbbb")] == [1, 2]
    assert "Ferrets" in animals.diff("bbbb", 1, 2)
    assert animals.link("bbbb", "see-also", RABBIT[:-1] + "2").source == FERRET
    assert animals.links("bbbb")[0].target == RABBITS
    assert animals.why_not("rabbit", "bbbb").id == FERRET
    assert animals.feedback("bbbb", "useful").id == FERRET
    assert animals.graph("bbbb").nodes[0].id == FERRET
    assert animals.forget("bbbb").state == "deleted"
    assert animals.restore("bbbb").id == FERRET


def test_ambiguous_prefix_is_refused_with_candidates(animals: Trivet) -> None:
    with pytest.raises(InvalidInput, match=f"several ids.*{RABBIT}, {RABBITS}"):
        animals.forget("aaaa")
    assert animals.list().total == 3


def test_unknown_or_invalid_prefix_is_refused(animals: Trivet) -> None:
    with pytest.raises(NotFound, match="starts with cccc"):
        animals.get("cccc")
    with pytest.raises(InvalidInput, match="first 4 characters"):
        animals.get("aaa")
    with pytest.raises(InvalidInput, match="is not an id or the start of one"):
        animals.get("rabbit%")


def test_hexadecimal_word_is_a_concept_before_an_id(trivet: Trivet) -> None:
    trivet.remember('We met at "cafe" again.', id="cafe1111-0000-7000-8000-000000000001")
    trivet.embed()
    assert trivet.graph("cafe").nodes[0].kind == "concept"
    assert trivet.graph("cafe11").nodes[0].kind == "memory"


def test_proposals_accept_id_prefixes(trivet: Trivet) -> None:
    ids = [
        trivet.inbox_propose(text).id or ""
        for text in ("We never deploy on Fridays.", "Ana likes green tea.")
    ]
    assert trivet.inbox_show(ids[0][:34]).id == ids[0] or ids[0][:34] == ids[1][:34]
    accepted = trivet.inbox_accept([ids[0][:35], ids[1]])
    assert [proposal.id for proposal in accepted] == ids


def test_ids_of_other_users_are_not_disclosed(trivet: Trivet) -> None:
    for user in ("ana", "bo"):
        trivet.engine.store.accounts.add_user(user, "writer")
    ana, bo = (
        trivet.acting_as(Caller(tenant="default", user=user, role="writer", key="k", rights=BOTH))
        for user in ("ana", "bo")
    )
    ana.remember("Ana's rabbit is grey.", id=RABBIT)
    bo.remember("Bo's rabbit is white.", id=RABBITS)
    assert bo.get("aaaa").id == RABBITS  # Unique among the memories bo may see.
    bo.purge("aaaa")
    with pytest.raises(NotFound, match="no memory here whose id starts with aaaa"):
        bo.get("aaaa")


def test_agent_tools_accept_prefixes_and_return_full_ids(animals: Trivet) -> None:
    tools = agent_tools()
    assert call(animals, tools["memory_get"], {"id": "bbbb"}).structured["id"] == FERRET
    linked = call(
        animals, tools["memory_link"], {"source": "bbbb", "kind": "see-also", "target": RABBIT}
    )
    assert linked.structured["source"] == FERRET
