"""The key to a member, out of the environment: settings are shown and backed up, keys are not."""

from __future__ import annotations

import os

from trivet.search.systems.reported_hits import MemberFailed
from trivet.settings.systems import Member


def key_of(member: Member) -> dict[str, str]:
    if not member.key_env:
        return {}
    key = os.environ.get(member.key_env, "")
    if not key:
        raise MemberFailed(f"the variable {member.key_env}, which should hold its key, is not set")
    return {"Authorization": f"Bearer {key}"}
