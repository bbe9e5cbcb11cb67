"""Commands of `trivet inbox`: review the proposals from conversations."""

from __future__ import annotations

from collections.abc import Iterator

from trivet.cli.command import command, verb_command
from trivet.cli.session import Session
from trivet.cli.terminal import EMBEDDER_ERROR, Line, line
from trivet.cli.views.memories import day, next_page, preview
from trivet.contract import (
    InboxAccept,
    InboxEdit,
    InboxList,
    InboxPropose,
    InboxReject,
    InboxReopen,
    InboxShow,
)
from trivet.types import Proposal, ProposalPage, Proposed

ID = "0199c2f4-7d1e-7a3b-9c55-2f6f0f6c1a2b"
OTHER = "0199c2f9-10aa-7d02-8d1f-5b0c7e3a9f44"


@verb_command("inbox list", example="trivet inbox\ntrivet inbox list --state rejected")
def list_proposals(session: Session, request: InboxList) -> None:
    page = session.memory.perform(request)
    state = request.state
    session.show(page, lambda: _page(page, state))


@verb_command("inbox show", example=f"trivet inbox show {ID}")
def show(session: Session, request: InboxShow) -> None:
    proposal = session.memory.perform(request)
    session.show(proposal, lambda: _whole(proposal))


@verb_command(
    "inbox propose",
    more="Secrets in the text are removed, because proposals are not encrypted. To store a "
    "secret, use `trivet remember`.",
    example='trivet inbox propose "We deploy on Tuesdays." --kind decision',
    creates=True,
)
def propose(session: Session, request: InboxPropose) -> None:
    proposed = session.memory.perform(request)
    session.show(proposed, lambda: [_proposed(proposed)])


@verb_command("inbox accept", example=f"trivet inbox accept {ID} {OTHER}")
def accept(session: Session, request: InboxAccept) -> None:
    accepted = session.memory.perform(request)
    session.show(
        accepted, lambda: [line("Accepted, memory ", (str(one.stored), "cyan")) for one in accepted]
    )
    session.embed_pending()


@verb_command(
    "inbox edit",
    more="Only the fields you name change; `--content -` reads standard input.",
    example=f'trivet inbox edit {ID} --content "Staging listens on port 6544."',
)
def edit(session: Session, request: InboxEdit) -> None:
    proposal = session.memory.perform(request)
    session.show(proposal, lambda: _whole(proposal))


@verb_command("inbox reject", example=f"trivet inbox reject {ID} {OTHER}")
def reject(session: Session, request: InboxReject) -> None:
    rejected = session.memory.perform(request)
    session.show(rejected, lambda: [line("Rejected: ", (one.id, "cyan")) for one in rejected])


@verb_command(
    "inbox reopen",
    more="The memory of an accepted proposal is forgotten, or gets back the text that the "
    "proposal replaced.",
    example=f"trivet inbox reopen {ID}",
)
def reopen(session: Session, request: InboxReopen) -> None:
    reopened = session.memory.perform(request)
    session.show(reopened, lambda: [line("Waiting again: ", (one.id, "cyan")) for one in reopened])


@command(
    "inbox curate",
    "Let the language model read new conversations and compare the proposals with what is stored.",
    more="The model in the setting capture_llm proposes to add, update, supersede or do nothing; "
    "it never stores or deletes. Its tokens count against capture_llm_tokens_a_day.",
    example="trivet inbox curate",
)
def curate(session: Session) -> int:
    from trivet.agents.capture import curate as curate_all
    from trivet.agents.capture import read_waiting

    read = read_waiting(session.memory)
    curated = curate_all(session.memory)
    problems = (*read.problems, *curated.problems)
    value = {"proposed": read.proposed, "curated": curated.curated, "problems": problems}
    text = f"{read.proposed} new proposals, {curated.curated} reviewed again."
    session.show(value, lambda: [line(text), *(line((problem, "yellow")) for problem in problems)])
    return EMBEDDER_ERROR if problems else 0


def _page(page: ProposalPage, state: str) -> Iterator[Line]:
    for proposal in page.proposals:
        yield line((f"{proposal.id}  ", "cyan"), (_about(proposal), "dim"))
        yield line(preview(proposal.content), indent=4)
        if proposal.reason:
            yield line((preview(proposal.reason), "dim"), indent=4)
    if more := next_page(page.offset, len(page.proposals), page.total):
        yield more
    elif not page.proposals:
        yield line("No proposals wait." if state == "waiting" else f"No proposals were {state}.")
    elif state == "waiting":
        yield line(("`trivet inbox accept ID`, `edit ID` or `reject ID`.", "dim"))


def _about(proposal: Proposal) -> str:
    what = proposal.action + (f" {proposal.memory}" if proposal.memory else "")
    return " · ".join(
        [day(proposal.created_at), proposal.kind, proposal.category, proposal.scope, what]
    )


def _whole(proposal: Proposal) -> Iterator[Line]:
    yield line(proposal.content)
    yield line("")
    yield line((f"{proposal.id}  ", "cyan"), (_about(proposal), "dim"))
    facts = {
        "reason": proposal.reason,
        "tags": ", ".join(proposal.tags),
        "source": proposal.source,
        "state": proposal.state,
        "memory": proposal.stored,
    }
    for name, value in facts.items():
        if value:
            yield line((f"{name:<8}", "dim"), str(value))


def _proposed(proposed: Proposed) -> Line:
    if proposed.status == "waiting":
        replaces = f", to replace memory {proposed.same_as}" if proposed.same_as else ""
        return line("Waiting for review: ", (str(proposed.id), "cyan"), replaces)
    known = proposed.same_as or proposed.id or ""
    return line(f"Not proposed, {proposed.status}: ", (known, "cyan"))
