"""The inbox of a server user works on PostgreSQL, transactionally and separate from other users."""

from __future__ import annotations

import pytest

from support.postgres_server import PostgresServer
from trivet import Conflict, NotFound, Trivet
from trivet.types import Caller, Right

RIGHTS: frozenset[Right] = frozenset(("read", "write"))


def test_inbox_usage_and_tidy_work_per_user(postgres: PostgresServer) -> None:
    address = postgres.database()
    with Trivet.open(address, embedder="none", background=False) as memory:
        for user in ("ana", "bo"):
            memory.engine.store.accounts.add_user(user, "writer")
        ana, bo = (
            memory.acting_as(
                Caller(tenant="default", user=user, role="writer", key="k", rights=RIGHTS)
            )
            for user in ("ana", "bo")
        )
        old = ana.remember("The relay listens on port 7001.").id
        proposed = ana.inbox_propose("The relay listens on port 7002.")
        assert (proposed.status, proposed.same_as) == ("waiting", old)
        assert bo.inbox_list().total == 0
        assert bo.inbox_propose("The relay listens on port 7001.").same_as is None, (
            "ana's memories are not bo's"
        )
        with pytest.raises(NotFound):
            bo.inbox_accept([str(proposed.id)])
        (accepted,) = ana.inbox_accept([str(proposed.id)])
        assert (ana.get(old).state, ana.get(str(accepted.stored)).owner) == ("superseded", "ana")
        ana.recall("relay")
        assert ana.usage(str(accepted.stored)).shown == 1
        assert ana.feedback(str(accepted.stored), "useful", query="relay port").useful == 1
        other, gone = (
            ana.inbox_propose("The canteen is closed."),
            ana.inbox_propose("The relay listens on port 7003."),
        )
        ana.forget(str(accepted.stored))
        with pytest.raises(Conflict):
            ana.inbox_accept([str(other.id), str(gone.id)])
        assert ana.inbox_show(str(other.id)).state == "waiting", "all or none"
        assert ana.list().total == 1
        memory.remember("The gate opens at nine.")
        memory.remember("The gate opens at nine.")
        assert memory.tidy(dry_run=False).forgotten == 1
        assert memory.tidy(undo=True).notes == ("1 memories are back.",)
        assert [one.check for one in memory.doctor() if not one.ok] == []
    postgres.drop(address)
