"""After a server was put back or has forgotten too much: what is one's own is sent again, all is read anew."""

from __future__ import annotations

from typing import Any

import msgspec

from trivet.store.relational.bundles import read_bundles
from trivet.store.sync_records import Bundle, ShareRecord
from trivet.sync import core
from trivet.sync.messages import OtherEpoch
from trivet.sync.outbox import Detail, enqueue, forget, shares_known
from trivet.sync.preparing import prepare_feedback, prepare_memories
from trivet.sync.renaming import Renaming
from trivet.sync.sending import brought, told
from trivet.sync.state import LaptopState
from trivet.types import LOCAL


class Healing(Renaming):
    """Takes in that the server is in another epoch, and what follows from it until everything is read."""

    def epoch(self, answer: OtherEpoch) -> LaptopState:
        if answer.known:
            place = core.gone_on(self._state.place, answer.epoch, self._state.full)
            return msgspec.structs.replace(self._state, place=place)
        return self.read_again() if answer.again else self.other_epoch(answer.epoch)

    def read_again(self) -> LaptopState:
        """Away for too long: everything is read anew, and what does not come any more was taken meanwhile."""
        self._connection.execute(self._sql["doubt_all"])
        place = msgspec.structs.replace(self._state.place, seq=0)
        return msgspec.structs.replace(self._state, place=place, full=True)

    def other_epoch(self, epoch: str) -> LaptopState:
        """What is one's own is sent again, then everything is pulled. Only an owner's machines re-assert purges."""
        for row in self._connection.execute(self._sql["all"]).fetchall():
            bundle = told(self._connection, self._state, row)
            if not core.must_heal(bundle, self._user):
                continue
            if core.is_withheld(bundle, self._state.place.sensitive):
                self._end_shares_again(row["id"], row["memory"], self._ever_shared_with(row["id"]))
            else:
                self._heal(row)
        self._begin_anew()
        keys = [row[0] for row in self._connection.execute(self._sql["sensitive"]).fetchall()]
        prepare_memories(self._connection, keys, self._user, self._state.place.sensitive)
        for row in self._connection.execute(self._sql["all_links"]).fetchall():
            self._resend_link(row)
        # The server may be put back once more, to before this epoch, and count numbers again that the laptop has seen.
        self._connection.execute(self._sql["doubt_all"])
        self._connection.execute(self._sql["unbury_others"], {"me": LOCAL})
        for row in self._connection.execute(self._sql["tombstones"]).fetchall():
            if not any(one.kind == "purge" for one in self._pending(row["id"])):
                enqueue(self._connection, "purge", row["id"], None, rev=row["first_rev"], first=True)
        self._end_tag_shares_again()
        self._connection.execute(self._sql["untold"])
        judged = [row[0] for row in self._connection.execute(self._sql["judged"]).fetchall()]
        prepare_feedback(self._connection, judged, self._state.place.sensitive)
        place = msgspec.structs.replace(self._state.place, epoch=epoch, seq=0, top=0, mark="")
        return msgspec.structs.replace(self._state, place=place, full=True)

    def _begin_anew(self) -> None:
        """What the server took while it knew the memory as sensitive, it never told, and may have lost.

        All of it is sent as if it were new, but for the words of what is sensitive here.
        """
        rows = self._connection.execute(self._sql["without_beginning"]).fetchall()
        grantees = {row["id"]: self._ever_shared_with(row["id"]) for row in rows}
        for row in rows:
            forget(self._connection, row["id"])
        keys = [row["memory"] for row in rows]
        prepare_memories(self._connection, keys, self._user, self._state.place.sensitive)
        for row in rows:
            self._end_shares_again(row["id"], row["memory"], grantees[row["id"]])

    def _ever_shared_with(self, id: str) -> set[str]:
        rows = [*self._connection.execute(self._sql["shares"], {"id": id}).fetchall()]
        rows += self._connection.execute(self._sql["ended_shares"], {"id": id}).fetchall()
        waiting = (one.detail.share for one in self._pending(id))
        return {row["grantee"] for row in rows} | {share.grantee for share in waiting if share is not None}

    def _end_shares_again(self, id: str, key: int, grantees: set[str]) -> None:
        """With those of them who have it no longer: a server that was put back may share it with them."""
        shared = {grantee for _, grantee in shares_known(self._connection, id)}
        for grantee in sorted(grantees - shared):
            share = ShareRecord(grantee=grantee, permission="read")
            enqueue(self._connection, "unshare", id, key, Detail(share=share))

    def _end_tag_shares_again(self) -> None:
        """Those that their owner ended: a server that was put back may have them in force again."""
        shared = {(row["tag"], row["grantee"]) for row in self._connection.execute(self._sql["own_tag_shares"])}
        queued = [one.detail.share for one in self._pending("")]
        for row in self._connection.execute(self._sql["ended_shares"], {"id": ""}).fetchall():
            share = ShareRecord(tag=row["tag"], grantee=row["grantee"], permission="read")
            if (share.tag, share.grantee) not in shared and share not in queued:
                enqueue(self._connection, "unshare_tag", "", None, Detail(share=share), first=True)

    def _finish_full_pull(self, epoch: str) -> None:
        heard = {"epoch": epoch, "outside": core.outside(epoch)}
        for row in self._connection.execute(self._sql["other_epoch"], heard).fetchall():
            if row["access"] == "own":
                replica = self._replica(row["id"])
                if not core.is_withheld(told(self._connection, self._state, replica), self._state.place.sensitive):
                    self._heal(replica)
            else:
                self._remove(row["id"], "It is not shared with you any longer.")

    def _heal(self, replica: Any) -> None:
        bundle = brought(self._connection, self._state, replica["id"])
        values = {"key": replica["memory"], "bundle": msgspec.json.encode(bundle).decode()}
        self._connection.execute(self._sql["put_carried"], values)
        for one in self._pending(replica["id"]):
            if (
                one.kind == "heal"
            ):  # the server may have done it, with less, before the backup that it was put back from
                self._connection.execute(self._sql["dequeue"], {"op": one.op})
        enqueue(self._connection, "heal", replica["id"], replica["memory"], first=True)

    def _resend_link(self, row: Any) -> None:
        source = self._replica(row["source"])
        if source is None or source["access"] == "read":
            return
        links = read_bundles(self._connection, [source["memory"]])[source["memory"]].links
        link = next((one for one in links if one.ends == tuple(row)), None)
        queued = [one.detail.link.ends for one in self._pending(row["source"]) if one.detail.link is not None]
        if link is not None and link.ends not in queued:
            enqueue(self._connection, "link", link.source, source["memory"], Detail(link=link))

    def _confirm(self, bundle: Bundle) -> None:
        """The server has taken what was brought: all of one's own, and of another's memory what it says it has."""
        replica = self._replica(bundle.id)
        if replica is not None:
            row = self._connection.execute(self._sql["carried"], {"key": replica["memory"]}).fetchone()
            own = bundle.owner == self._user
            if row is not None and (own or core.is_confirmed(msgspec.json.decode(row[0], type=Bundle), bundle)):
                self._connection.execute(self._sql["drop_carried"], {"key": replica["memory"]})
