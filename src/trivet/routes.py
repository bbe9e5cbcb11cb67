"""Where each operation lives over HTTP: the server makes its routes from this table, the client its requests.

What the path does not name travels in the query of a GET or DELETE and in the JSON body of everything else.
"""

from __future__ import annotations

from string import Formatter
from typing import Literal

import msgspec

Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]


class Route(msgspec.Struct, frozen=True):
    operation: str
    method: Method
    path: str
    status: int = 200

    @property
    def in_path(self) -> tuple[str, ...]:
        return tuple(name for _, name, _, _ in Formatter().parse(self.path) if name)

    @property
    def in_query(self) -> bool:
        return self.method in ("GET", "DELETE")


ROUTES: tuple[Route, ...] = (
    Route("remember", "POST", "/v1/memories", 201),
    Route("list", "GET", "/v1/memories"),
    Route("get", "GET", "/v1/memories/{id}"),
    Route("edit", "PATCH", "/v1/memories/{id}"),
    Route("forget", "DELETE", "/v1/memories/{id}"),
    Route("restore", "POST", "/v1/memories/{id}/restore"),
    Route("purge", "POST", "/v1/memories/{id}/purge", 204),
    Route("reveal", "POST", "/v1/memories/{id}/reveal"),
    Route("history", "GET", "/v1/memories/{id}/history"),
    Route("links", "GET", "/v1/memories/{id}/links"),
    Route("link", "PUT", "/v1/memories/{source}/links/{kind}/{target}"),
    Route("unlink", "DELETE", "/v1/memories/{source}/links/{kind}/{target}", 204),
    Route("recall", "POST", "/v1/recall"),
    Route("recall", "GET", "/v1/recall"),
    Route("why_not", "POST", "/v1/why-not"),
    Route("concepts", "GET", "/v1/concepts"),
    Route("graph", "GET", "/v1/graph"),
    Route("share", "POST", "/v1/shares", 201),
    Route("unshare", "DELETE", "/v1/shares", 204),
    Route("shares", "GET", "/v1/shares"),
    Route("tags", "GET", "/v1/tags"),
    Route("categories", "GET", "/v1/categories"),
    Route("inbox_list", "GET", "/v1/inbox"),
    Route("inbox_propose", "POST", "/v1/inbox", 201),
    Route("inbox_show", "GET", "/v1/inbox/{id}"),
    Route("inbox_edit", "PATCH", "/v1/inbox/{id}"),
    Route("inbox_accept", "POST", "/v1/accept"),
    Route("inbox_reject", "POST", "/v1/reject"),
    Route("feedback", "PUT", "/v1/memories/{id}/feedback"),
    Route("usage", "GET", "/v1/memories/{id}/usage"),
    Route("stats", "GET", "/v1/stats"),
    Route("audit", "GET", "/v1/audit"),
)
