"""What `doctor` shows an admin of a server, and `mend` repairs."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from support.store_fixtures import Opened
from support.word_embedder import WordEmbedder
from trivet import Conflict, Trivet
from trivet.memory.admin.accounts import RIGHTS
from trivet.memory.admin.doctor import REPAIRS
from trivet.types import Caller, Finding


def as_admin(trivet: Trivet) -> Trivet:
    return trivet.acting_as(
        Caller(
            tenant="default", user="ada", role="admin", key="k", rights=frozenset(RIGHTS["admin"])
        )
    )


def checks(trivet: Trivet) -> Mapping[str, Finding]:
    return {finding.check: finding for finding in trivet.doctor()}


def damage(trivet: Trivet, *statements: str) -> None:
    with trivet.engine.store.memories._database.write() as connection:
        for statement in statements:
            connection.execute(statement)


def repair(trivet: Trivet, check: str) -> Finding:
    """Return the finding after the repair that it names."""
    admin = as_admin(trivet)
    found = checks(admin)[check]
    assert found.mends is not None
    assert admin.mend(found.mends).status == "started"
    trivet.engine.worker.errand.wait()
    assert trivet.stats().mending is None
    assert [(entry.actor, entry.detail) for entry in trivet.audit(limit=1)] == [
        ("ada", found.mends)
    ]
    return checks(admin)[check]


@pytest.mark.parametrize(
    ("check", "statement"),
    [
        ("memories missing from the lexical index", "DELETE FROM lexical"),
        ("memories neither in the graph nor waiting for it", "DELETE FROM was_read"),
        ("concepts that nothing mentions", "DELETE FROM mention"),
    ],
)
def test_mend_repairs_reported_damage(trivet: Trivet, check: str, statement: str) -> None:
    id = trivet.remember("Clara keeps the northern lighthouse").id
    damage(trivet, statement)
    assert not checks(trivet)[check].ok
    assert repair(trivet, check).ok
    assert [hit.id for hit in trivet.recall("lighthouse").hits] == [id]


def test_mend_recreates_missing_vectors(hybrid: Trivet) -> None:
    hybrid.remember("Clara keeps the northern lighthouse")
    hybrid.drain()
    damage(hybrid, "DELETE FROM passage")
    check = "memories with neither vector nor job"
    assert not checks(as_admin(hybrid))[check].ok
    assert repair(hybrid, check).ok


def test_mend_retries_failed_jobs(open_trivet: Opened, embedder: WordEmbedder) -> None:
    trivet = open_trivet(embedder=embedder.spec())
    trivet.remember("Clara keeps the northern lighthouse")
    trivet.drain()
    trivet.remember("Bo mends the boats")
    embedder.stop()
    trivet.drain()
    assert not checks(as_admin(trivet))["jobs"].ok
    embedder.start()
    assert repair(trivet, "jobs").ok


def test_healthy_store_is_not_mended(trivet: Trivet) -> None:
    """A needless rebuild would load a machine that other tenants share."""
    admin = as_admin(trivet)
    for act in sorted(set(REPAIRS.values())):
        with pytest.raises(Conflict, match="No check finds a problem"):
            admin.mend(act)
    assert trivet.audit() == ()


def test_admin_findings_disclose_nothing_about_the_machine(open_trivet: Opened) -> None:
    trivet = open_trivet(
        embedder="openai:some-model@http://127.0.0.1:9/v1",
        federation={"secretplace": {"http": "http://127.0.0.1:9/?q={query}"}},
    )
    findings = {finding.check: finding for finding in as_admin(trivet).doctor(quick=False)}
    assert not findings["embedder"].ok
    assert not findings["legs"].ok or "dense" not in findings["legs"].detail
    whole = str(findings.values())
    for machine in (
        trivet.settings.path,
        "127.0.0.1",
        "some-model",
        "secretplace",
        "chmod",
        "MB free",
    ):
        assert str(machine) not in whole
    assert {"rights of the file", "room on disk"} <= set(checks(trivet)), (
        "the owner sees these checks"
    )
    assert [budget.name for budget in as_admin(trivet).budgets()] == [
        one.name for one in trivet.budgets()[1:]
    ]


def test_server_doctor_is_quick_by_default(trivet: Trivet) -> None:
    admin, rows = as_admin(trivet), "rows that can be read"
    assert rows in checks(trivet)
    assert rows not in checks(admin)
    assert rows in {finding.check for finding in admin.doctor(quick=False)}
