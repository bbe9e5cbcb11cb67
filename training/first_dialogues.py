"""Simple synthetic conversations with questions, which the rerankers learn from.

`synthetic_memories.py` makes denser ones, which taught the embedder; rerankers learned less from
them.

All texts are our own, free of others' licenses. A question about a person is answered by one of
that person's turns, in first person. Hard negatives are the conversation's other turns: echoes,
small talk, and other facts about the person. The same event told by the other speaker is rarely
among them: a question with the wrong name should still find the event.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence

from synthetic_memories import (
    CLOSINGS,
    FIRST_NAMES,
    FRAMES,
    OPENINGS,
    SMALL_TALK,
    Frame,
    Row,
    filled,
    slots_of,
    tidy,
)


def dialogues(seed: int, conversations: int) -> tuple[list[str], list[Row]]:
    """Yield conversations of two people, with each fact asked for once."""
    chance = random.Random(seed)
    texts: list[str] = []
    rows: list[Row] = []
    for _ in range(conversations):
        _add(texts, rows, *_conversation(chance), chance)
    return texts, rows


def _add(
    texts: list[str],
    rows: list[Row],
    turns: Sequence[str],
    asked: Sequence[tuple[str, int]],
    chance: random.Random,
) -> None:
    start = len(texts)
    texts.extend(turns)
    for question, at in asked:
        others = [
            start + other
            for other in range(len(turns))
            if other != at and turns[other] != turns[at]
        ]
        # Turns around the answer share its topic: the hardest negatives come first.
        others.sort(key=lambda other: (abs(other - start - at) > 2, chance.random()))
        rows.append((question, [start + at], others[:15]))


def _conversation(chance: random.Random) -> tuple[list[str], list[tuple[str, int]]]:
    speakers = chance.sample(FIRST_NAMES, 2)
    turns: list[str] = []
    asked: list[tuple[str, int]] = []
    for frame in chance.sample(FRAMES, chance.randint(8, 16)):
        teller = chance.randrange(2)
        name, other = speakers[teller], speakers[1 - teller]
        slots = slots_of(chance, name, other)
        if chance.random() < 0.4:
            turns.append(f"{other}: {chance.choice(SMALL_TALK).format(o=name)}")
        statement = filled(chance.choice(frame.statements), slots)
        said = (
            chance.choice(OPENINGS).format(o=other)
            + statement
            + chance.choice(CLOSINGS).format(o=other)
        )
        question = _question(chance, frame, statement, slots)
        asked.append((question, len(turns)))
        turns.append(f"{name}: {tidy(said)}")
        if chance.random() < 0.7:
            echo = filled(chance.choice(frame.echoes), slots)
            turns.append(f"{other}: {tidy(echo + chance.choice(CLOSINGS).format(o=name))}")
    return turns, asked


def _question(chance: random.Random, frame: Frame, statement: str, slots: Mapping[str, str]) -> str:
    """Choose a question whose slots the statement holds, so its answer is unambiguous."""
    questions = list(frame.questions)
    chance.shuffle(questions)
    for question in questions:
        named = [
            slots[slot]
            for slot in re.findall(r"\{(\w+)\}", question)
            if slot not in ("n", "pos", "relative", "object_third")
        ]
        if all(value in statement for value in named):
            return filled(question, slots)
    return filled(
        f"What did {{n}} say about {slots['hobby']}?"
        if slots["hobby"] in statement
        else questions[0],
        slots,
    )
