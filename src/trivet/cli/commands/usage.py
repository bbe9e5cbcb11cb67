"""What was useful, and how often it was shown. Neither changes what recall answers."""

from __future__ import annotations

from trivet.cli.command import verb_command
from trivet.cli.output import Line, line
from trivet.cli.session import Session
from trivet.contract import FeedbackRequest, UsageRequest
from trivet.types import Usage

ID = "0199c2f4-7d1e-7a3b-9c55-2f6f0f6c1a2b"


@verb_command(
    "feedback",
    more="With the query it came for, `trivet tune` takes it as a probe.",
    example=f'trivet feedback {ID} useful --query "which port is staging on?"',
)
def feedback(session: Session, request: FeedbackRequest) -> None:
    counts = session.memory.perform(request)
    session.show(counts, lambda: [line("Noted. "), _line(counts)])


@verb_command("usage", example=f"trivet usage {ID}")
def usage(session: Session, request: UsageRequest) -> None:
    counts = session.memory.perform(request)
    session.show(counts, lambda: [_line(counts)])


def _line(counts: Usage) -> Line:
    last = f", last on {counts.last_shown[:10]}" if counts.last_shown else ""
    said = f"useful {_times(counts.useful)}, not useful {_times(counts.not_useful)}"
    return line((counts.id, "cyan"), f"  shown {_times(counts.shown)}{last}; {said}")


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
