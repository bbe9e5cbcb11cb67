"""Links between two memories."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from trivet.contract.fields import Id, Kind
from trivet.contract.verb import Parameters, Request, Route, Tool, verb
from trivet.types import Link


class LinkEnds(Parameters, frozen=True, kw_only=True):
    source: Annotated[Id, Meta(description="The memory the sentence starts with: SOURCE supersedes TARGET.")]
    kind: Kind
    target: Annotated[Id, Meta(description="The memory the sentence ends with.")]


@verb(
    "link",
    "trivet.memory.lifecycle:link",
    atomic=True,
    routes=(Route("PUT", "/v1/memories/{source}/links/{kind}/{target}"),),
    tool=Tool(
        "memory_link",
        "Link memories",
        "NEW supersedes OLD: recall then serves the new one. PROBLEM resolved-by SOLUTION: recall shows the "
        "solution with it. With remove=true the link is taken away.",
    ),
)
class LinkRequest(LinkEnds, Request[Link], frozen=True, kw_only=True):
    """Link two memories: SOURCE supersedes, is resolved by, is part of, or see also TARGET."""


@verb(
    "unlink",
    "trivet.memory.lifecycle:unlink",
    atomic=True,
    routes=(Route("DELETE", "/v1/memories/{source}/links/{kind}/{target}", 204),),
)
class UnlinkRequest(LinkEnds, Request[None], frozen=True, kw_only=True):
    """Remove a link between two memories."""


@verb("links", "trivet.memory.lifecycle:links", needs="read", routes=(Route("GET", "/v1/memories/{id}/links"),))
class LinksRequest(Request[tuple[Link, ...]], frozen=True, kw_only=True):
    """Show every link that starts or ends at a memory."""

    id: Id
