"""Whom a memory is shared with: by itself, or by a tag of its owner's. Both take effect at once, in every leg."""

from __future__ import annotations

from trivet.clock import moment, now, stamp
from trivet.errors import Forbidden, InvalidInput, NotFound
from trivet.store.relational.audit import note_write
from trivet.store.relational.database import Connection, Part, WriteTransaction
from trivet.types import LOCAL, Permission, Share


class Shares(Part):
    file = "shares"

    def share_memory(self, id: str, user: str, permission: Permission) -> Share:
        with self._database.write() as connection:
            key, owner = self._owned(connection, id)
            if connection.execute(self._sql["is_sensitive"], {"key": key}).fetchone():
                raise InvalidInput(f"Memory {id} is sensitive, so it is for its owner alone. Nothing was shared.")
            share = Share(owner=owner, id=id, user=user, permission=permission, created_at=moment(now()))
            values = {"key": key, "user": user, "permission": permission, "created_at": stamp(share.created_at)}
            connection.execute(self._sql["share_memory"], values)
            connection.note_change(key)
            note_write(connection, self._database.viewer, "share", [id], f"{permission} for {user}")
        return share

    def share_tag(self, tag: str, user: str, permission: Permission) -> Share:
        share = Share(owner=self._me, tag=tag, user=user, permission=permission, created_at=moment(now()))
        with self._database.write() as connection:
            values = {"owner": share.owner, "tag": tag, "user": user, "permission": permission}
            connection.execute(self._sql["share_tag"], {**values, "created_at": stamp(share.created_at)})
            self._changed(connection, tag)
            note_write(connection, self._database.viewer, "share", [f"tag {tag}"], f"{permission} for {user}")
        return share

    def unshare_memory(self, id: str, user: str) -> None:
        with self._database.write() as connection:
            key, _ = self._owned(connection, id)
            if not connection.execute(self._sql["unshare_memory"], {"key": key, "user": user}).rowcount:
                raise NotFound(f"Memory {id} is not shared with {user}. `shares` lists what is.")
            connection.note_change(key)
            note_write(connection, self._database.viewer, "unshare", [id], user)

    def unshare_tag(self, tag: str, user: str) -> None:
        with self._database.write() as connection:
            values = {"owner": self._me, "tag": tag, "user": user}
            if not connection.execute(self._sql["unshare_tag"], values).rowcount:
                raise NotFound(f"The tag {tag} is not shared with {user}. `shares` lists what is.")
            self._changed(connection, tag)
            note_write(connection, self._database.viewer, "unshare", [f"tag {tag}"], user)

    def all(self) -> tuple[Share, ...]:
        """Those that the viewer made or has; without a viewer, those of all users."""
        viewer = {"viewer": self._database.viewer}
        with self._database.errors():
            # PostgreSQL itself shows a user the shares that they have, not those that they made.
            connection = self._database.unseen()
            memories = connection.execute(self._sql["of_memories"], viewer).fetchall()
            tags = connection.execute(self._sql["of_tags"], viewer).fetchall()
        return (
            *(
                Share(owner=row[0], id=row[1], user=row[2], permission=row[3], created_at=moment(row[4]))
                for row in memories
            ),
            *(
                Share(owner=row[0], tag=row[1], user=row[2], permission=row[3], created_at=moment(row[4]))
                for row in tags
            ),
        )

    @property
    def _me(self) -> str:
        return self._database.viewer or LOCAL

    def _owned(self, connection: Connection, id: str) -> tuple[int, str]:
        values = {"id": id, "viewer": self._database.viewer}
        row = connection.execute(connection.sql("memories")["seen_by_id"], values).fetchone()
        if row is None:
            raise NotFound(f"There is no memory {id} in this store, so it cannot be shared.")
        if self._database.viewer not in (None, row["owner"]):
            raise Forbidden(f"Memory {id} belongs to {row['owner']}, who alone can share it.")
        return int(row["key"]), str(row["owner"])

    def _changed(self, connection: WriteTransaction, tag: str) -> None:
        """What any cache knows of these memories is out of date."""
        for row in connection.execute(self._sql["tagged"], {"owner": self._me, "tag": tag}).fetchall():
            connection.note_change(row[0])
