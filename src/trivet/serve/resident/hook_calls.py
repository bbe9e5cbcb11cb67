"""A hook as it arrives at the resident process: what the agent said, and the surroundings it said it in."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from trivet.code.questions import Question
from trivet.code.types import CodeAnswer
from trivet.errors import InvalidInput
from trivet.serve.resident.connect import whole_path
from trivet.settings import Settings, load_settings

# Answers a question about the code of a folder; None where its index is not open yet.
AskCode = Callable[[str, Question], CodeAnswer | None]


class HookCall(msgspec.Struct, frozen=True):
    moment: str
    given: bytes
    environment: Mapping[str, str]
    settings: Settings
    code: AskCode | None = None  # in the resident process alone


def hook_call(environment: Mapping[str, str], folder: Path, arguments: Sequence[str], given: bytes) -> HookCall:
    """From the words of the hook's command: a moment, and perhaps --path and a store."""
    moment, path = _words(arguments)
    return HookCall(moment, given, environment, whole_path(load_settings(environment, path=path), folder))


def from_parts(parts: Sequence[bytes]) -> HookCall:
    variables, folder, typed, given = parts
    rows = (row.partition(b"=") for row in variables.split(b"\0"))
    environment = {os.fsdecode(name): os.fsdecode(value) for name, _, value in rows}
    arguments = [os.fsdecode(argument) for argument in typed.split(b"\0")]
    return hook_call(environment, Path(os.fsdecode(folder)), arguments, given)


def _words(arguments: Sequence[str]) -> tuple[str, str | None]:
    words = [word for word in arguments if word != "--json"]  # the answer is JSON by the agent's own rules
    path = None
    for index, word in enumerate(words):
        if word == "--path" and index + 1 < len(words):
            path = words[index + 1]
            del words[index : index + 2]
            break
        if word.startswith("--path="):
            path = words.pop(index).partition("=")[2]
            break
    if len(words) != 1:
        raise InvalidInput(f"A hook names one moment, and perhaps --path FILE; this one says {' '.join(arguments)!r}.")
    return words[0], path
