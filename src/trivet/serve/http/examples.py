"""Examples for the OpenAPI document and the page: what a first request may look like."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

ID = "0199c2f4-7d1e-7a3b-9c55-2f6f0f6c1a2b"
OTHER = "0199c2f5-11aa-7c3d-8f00-5d2b1c0e9a77"

IN_PATH: Mapping[str, Any] = {"id": ID, "source": ID, "kind": "supersedes", "target": OTHER}
IN_QUERY: Mapping[str, Any] = {
    "query": "which port is staging on?",
    "start": "staging",
    "user": "ines",
    "older": 1,
    "newer": 2,
}
BODIES: Mapping[str, Any] = {
    "remember": {"content": "The staging database listens on port 6543.", "tags": ["postgres", "staging"]},
    "remember_many": {"memories": [{"content": "Deploys happen on Thursdays."}, {"content": "Ines leads the team."}]},
    "edit": {"content": "The staging database listens on port 6544."},
    "restore": {"revision": 1},
    "recall": {"query": "which port is staging on?", "limit": 3},
    "why_not": {"query": "which port is staging on?", "id": ID},
    "share": {"user": "ines", "id": ID, "permission": "read"},
}
