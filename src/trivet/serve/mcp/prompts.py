"""Prompts that a person can call by name in a client: one to write a good memory, one to bring memories in."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from trivet.errors import InvalidInput
from trivet.serve.mcp.tools import AgentTool, call
from trivet.trivet import Trivet


class AgentPrompt(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    description: str
    argument: str
    argument_description: str
    required: bool


REMEMBER = AgentPrompt(
    name="remember",
    description="Write down what is worth keeping, as good memories.",
    argument="text",
    argument_description="What to remember; what this conversation taught, if none.",
    required=False,
)
RECALL = AgentPrompt(
    name="recall",
    description="Bring the memories that matter for a question into this conversation.",
    argument="query",
    argument_description="What to look for.",
    required=True,
)
PROMPTS: Mapping[str, AgentPrompt] = {prompt.name: prompt for prompt in (REMEMBER, RECALL)}

_HOW_TO_REMEMBER = """\
Store {what} with memory_store.
- One fact, decision, preference or solution for each memory; leave out what the code or its documents already say.
- Full sentences that make sense alone, a year from now: names of people, projects and files, dates instead of "today".
- For a decision add the reason; for a problem what caused it and what solved it.
- Choose a category; add tags and expanded_keywords that someone may search by.
- Mark passwords, keys and private matters sensitive.
- Recall first. Where a memory says the same, update it; where yours replaces one, link yours to it with supersedes.
Then tell in one line each what you stored."""


def write_prompt(name: str, arguments: Mapping[str, str], memory: Trivet, recall: AgentTool) -> str:
    """The text of a prompt. `recall` looks the memories up itself, so that it also works in clients without tools."""
    prompt = PROMPTS.get(name)
    if prompt is None:
        raise InvalidInput(f"There is no prompt {name!r}. There are: {', '.join(PROMPTS)}.")
    unknown = sorted(set(arguments) - {prompt.argument})
    if unknown:
        raise InvalidInput(f"{name} does not take {', '.join(unknown)}. It takes: {prompt.argument}.")
    given = arguments.get(prompt.argument, "").strip()
    if prompt is REMEMBER:
        return _HOW_TO_REMEMBER.format(what=given or "what this conversation taught that a later one will need")
    if not given:
        raise InvalidInput("query: the text is empty. Say in a few words what to look for.")
    return f"What is stored about: {given}\n\n{call(memory, recall, {'query': given}).text}"
