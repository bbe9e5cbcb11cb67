"""An admin manages health, users and keys of their own tenant over HTTP, and of no other."""

from __future__ import annotations

from pathlib import Path

import msgspec

from support.http_server import served, settings_for
from trivet import Trivet


def test_admin_manages_their_own_tenant(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with served(settings_for(path)) as server:
        ana = server.client("ana", "admin")
        found = ana("GET", "/v1/doctor")
        assert {finding["check"]: finding["ok"] for finding in found.json()}["legs"]
        assert next(budget["name"] for budget in ana.done("GET", "/v1/budgets")) == "store on disk"
        assert (
            str(tmp_path)
            not in found.text + ana("GET", "/v1/budgets").text + ana("GET", "/v1/stats").text
        )
        assert "No check finds a problem" in ana.refused(
            409, "POST", "/v1/mend", json={"act": "reindex vectors"}
        )
        assert "act" in ana.refused(422, "POST", "/v1/mend", json={"act": "rm -rf"})

        ana.done("POST", "/v1/users", json={"name": "bo"})
        again = {"Idempotency-Key": "the-same"}
        made = [ana("POST", "/v1/keys", json={"user": "bo"}, headers=again) for _ in range(2)]
        assert [answer.status_code for answer in made] == [201, 403], (
            "a key is shown once and not kept for replay"
        )
        key = made[0].json()
        bo = server.with_key(key["key"])
        assert bo.done("GET", "/v1/keys") == [
            {name: value for name, value in key.items() if name != "key"}
        ]
        assert key["key"].rpartition(".")[2] not in path.read_bytes().decode("latin-1")
        for name in ("*", "a" * 65, "%2e%2e", "ANA"):
            assert ana("DELETE", f"/v1/users/{name}").status_code == 422
        ana.done("DELETE", f"/v1/keys/{key['id']}")
        assert bo("GET", "/v1/keys").status_code == 401
        acts = [(one["actor"], one["act"]) for one in ana.done("GET", "/v1/audit")]
        assert acts[:3] == [("ana", "revoke key"), ("ana", "add key"), ("ana", "add user")]


def test_admin_cannot_reach_another_tenant(tmp_path: Path) -> None:
    settings = settings_for(tmp_path / "memory.db")
    with served(settings) as server:
        ana = server.client("ana", "admin")
        other = msgspec.structs.replace(
            settings, tenant="acme"
        )  # as `TRIVET_TENANT=acme trivet user add` creates it
        with Trivet.open(settings=other, background=False) as acme:
            acme.add_user("zoe", role="admin")
            zoe = server.with_key(acme.add_key("zoe").key)
        assert [user["name"] for user in zoe.done("GET", "/v1/users")] == ["zoe"]
        assert [user["name"] for user in ana.done("GET", "/v1/users")] == ["ana"]
        [zoe_key] = zoe.done("GET", "/v1/keys")
        ana.refused(404, "DELETE", f"/v1/keys/{zoe_key['id']}")
        ana.refused(404, "POST", "/v1/keys", json={"user": "zoe"})
        assert "zoe" not in ana("GET", "/v1/audit").text + ana("GET", "/v1/doctor").text
