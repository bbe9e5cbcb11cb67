"""Requests that must act once, however often they are sent: a client that sends one again gets the first answer."""

from __future__ import annotations

import time
from collections.abc import Callable

from trivet.store.records import Kept
from trivet.store.relational.database import Part

KEPT_SECONDS = 24 * 3600.0
# Between an insert that finds a row and the look at that row, the process that had it may have given it up.
LOOKS = 3


class Idempotency(Part):
    """Names, requests and answers come as digests or sealed, so the file tells nothing of them."""

    file = "idempotency"

    def begin(self, name: bytes, request: bytes, lease_seconds: float) -> Kept | None:
        """None: it is the caller's to act. A request whose actor died is handed to the next when its lease is over."""
        moment = time.time()
        row = {"name": name, "request": request, "taken_at": moment}
        with self._database.take() as connection:
            connection.execute(self._sql["forget"], _beyond(moment, KEPT_SECONDS))
            for _ in range(LOOKS):
                if connection.execute(self._sql["begin"], row).rowcount:
                    return None
                if connection.execute(self._sql["take_over"], {**row, **_beyond(moment, lease_seconds)}).rowcount:
                    return None
                found = connection.execute(self._sql["kept"], {"name": name}).fetchone()
                if found is not None:
                    return Kept(request=bytes(found[0]), answer=None if found[1] is None else bytes(found[1]))
        return Kept(request=request)

    def act(self, name: bytes, request: bytes, act: Callable[[], bytes], lease_seconds: float = 0.0) -> Kept:
        """Acts and keeps the answer in one transaction, so that whoever asks again finds both done or neither.

        Two that ask at once act one after the other, and the second finds the answer of the first.
        """
        moment = time.time()
        row = {"name": name, "request": request, "taken_at": moment}
        with self._database.write() as connection:
            connection.execute(self._sql["forget"], _beyond(moment, KEPT_SECONDS))
            begun = connection.execute(self._sql["begin"], row).rowcount
            stale = {**row, **_beyond(moment, lease_seconds)}
            if begun or connection.execute(self._sql["take_over"], stale).rowcount:
                answer = act()
                connection.execute(self._sql["finish"], {"name": name, "answer": answer})
                return Kept(request=request, answer=answer, acted=True)
            kept, answered = connection.execute(self._sql["kept"], {"name": name}).fetchone()
            return Kept(request=bytes(kept), answer=None if answered is None else bytes(answered))

    def finish(self, name: bytes, answer: bytes) -> None:
        with self._database.take() as connection:
            connection.execute(self._sql["finish"], {"name": name, "answer": answer})

    def give_up(self, name: bytes) -> None:
        """Nothing was done, so the same request may be tried again."""
        with self._database.take() as connection:
            connection.execute(self._sql["give_up"], {"name": name})


def _beyond(moment: float, seconds: float) -> dict[str, float]:
    return {"before": moment - seconds, "after": moment + seconds}
