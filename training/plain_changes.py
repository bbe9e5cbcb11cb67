"""Make simple pairs by rule: a changed value, and look-alikes (another thing, or a repetition).

python training/plain_changes.py --output training/changes/plain.jsonl

People state most changes as the same sentence with another value. The written pairs, which are
meant to be hard, have too few of them.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path

PAIRS = 900
PEOPLE = (
    "Anna Ben Chidi Dina Emre Farida Goran Hana Ivan Jonas Keiko Liam Mara Nadia Omar Priya "
    "Quentin Rosa Sven Tariq "
    "Uma Viktor Wen Ximena Yusuf Zoe"
).split()
SURNAMES = "Okafor Lindqvist Moreau Tanaka Haddad Novak Silva Keller Petrov Mensah Rossi Nguyen Costa Weber Kowalska".split()
PLACES = (
    "the town hall;the blue room;room 3.12;the old mill;the library;the cellar;the back office;the "
    "garden shed;hall B;"
    "the second floor;the north entrance;the kitchen drawer;the red folder;the "
    "garage;Lisbon;Graz;Leeds;Osaka"
).split(";")
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
TOOLS = (
    "PostgreSQL;MySQL;Redis;Kafka;RabbitMQ;Terraform;Ansible;Jenkins;GitHub "
    "Actions;pytest;Figma;Notion;Slack;Zoom;Excel;a whiteboard;Docker;Nomad"
).split(";")
# Sentence ({s}: owner, {v}: value), possible owners, and values.
Value = Callable[[random.Random], str]
Kind = tuple[tuple[str, ...], tuple[str, ...], Value]


def _of(values: list[str]) -> Value:
    return lambda chance: chance.choice(values)


def _name(chance: random.Random) -> str:
    return f"{chance.choice(PEOPLE)} {chance.choice(SURNAMES)}"


def _price(chance: random.Random) -> str:
    return f"{chance.choice(['EUR', 'CHF', 'USD', 'GBP'])} {chance.randint(1, 90)}.{chance.choice(['00', '50', '90'])}"


def _hour(chance: random.Random) -> str:
    return f"{chance.randint(6, 22)}:{chance.choice(['00', '15', '30', '45'])}"


KINDS: tuple[Kind, ...] = (
    (("{s} costs {v}.", "The price of {s} is {v}.", "{s}: {v}.", "We charge {v} for {s}."),
     ("a day pass", "the annual membership", "a jar of honey", "one night in the hut", "the starter kit", "a haircut"),
     _price),
    (("The code for {s} is {v}.", "{s} opens with {v}.", "{s}: code {v}."),
     ("the garage door", "the vault", "the cellar", "the bike shed", "the alarm", "the gate"),
     lambda chance: str(chance.randint(1000, 9999))),
    (("{s} listens on port {v}.", "{s} runs on {v}.", "Port of {s}: {v}."),
     ("the staging database", "the production database", "the metrics server", "the API gateway", "the mail relay"),
     lambda chance: str(chance.randint(1024, 65000))),
    (("{s} meets on {v}.", "{s} is on {v}.", "{s}: every {v}."),
     ("the choir", "the book club", "the standup", "the steering group", "yoga", "the chess circle"), _of(DAYS)),
    (("{s} starts at {v}.", "{s} begins at {v}.", "Start of {s}: {v}."),
     ("the night shift", "the early train", "the swimming lesson", "the daily call", "the market", "evensong"), _hour),
    (("{s} is kept in {v}.", "You find {s} in {v}.", "{s}: {v}.", "We keep {s} in {v}."),
     ("the spare key", "the first-aid kit", "the projector", "the contract", "the tent", "the label printer"),
     _of(PLACES)),
    (("{s} is {v}.", "{v} is {s}.", "Our {s}: {v}.", "As {s} we have {v}."),
     ("treasurer", "team lead", "landlord", "family doctor", "tax adviser", "release manager", "goalkeeper"), _name),
    (("For {s} we use {v}.", "{s} is done with {v}.", "We do {s} with {v}.", "{s}: {v}."),
     ("deployments", "queues", "caching", "planning", "tests", "meetings", "drawings", "reporting"), _of(TOOLS)),
    (("{s} wears size {v}.", "{s}'s shoe size is {v}.", "Shoes for {s}: {v}."),
     tuple(PEOPLE[:12]), lambda chance: str(chance.randint(24, 46))),
    (("{s} lives in {v}.", "{s}'s home is in {v}.", "{s} has a flat in {v}."),
     tuple(PEOPLE[8:22]), _of("Linz Porto Leeds Kyoto Accra Lima Oslo Pune Riga Split Turku Utrecht".split())),
    (("The limit for {s} is {v}.", "{s} is limited to {v}.", "At most {v} for {s}."),
     ("uploads", "requests per minute", "guests", "luggage in kilos", "open tickets"),
     lambda chance: str(chance.choice([5, 10, 12, 20, 25, 40, 50, 100, 250, 500]))),
    (("{s} is due on {v}.", "Deadline of {s}: {v}.", "We hand in {s} on {v}."),
     ("the manuscript", "the tax return", "the grant report", "the audit", "the poster"),
     lambda chance: f"{chance.randint(1, 28)} {chance.choice(['March', 'May', 'June', 'October', 'November'])}"),
)  # fmt: skip
# A new value with a word of change; most come without.
CHANGED = (
    "{0} now.",
    "From now on: {0}.",
    "Update: {0}.",
    "Since last week {0}.",
    "{0} from 1 March.",
    "{0}, no longer {1}.",
)


def pairs(chance: random.Random) -> Iterator[dict[str, object]]:
    for _ in range(PAIRS):
        ways, subjects, value = chance.choice(KINDS)
        subject, other = chance.sample(list(subjects), 2)
        old, new = value(chance), value(chance)
        while new == old:
            new = value(chance)
        first = chance.choice(ways)
        second = first if chance.random() < 0.5 else chance.choice(ways)
        said = _said(first, subject, old)
        kind = chance.choice(
            ("update", "update", "update", "another", "another", "same", "attribute")
        )
        if kind == "update":
            yield _pair(said, _anew(chance, second, subject, old, new), True, "plain value")
        elif kind == "another":
            told = _said(second, other, new)
            if chance.random() < 0.3:
                told = _anew(chance, second, other, old, new)
            yield _pair(said, told, False, "another thing")
        elif kind == "same":
            rest = [way for way in ways if way != first]
            yield _pair(said, _said(chance.choice(rest), subject, old), False, "the same again")
        else:
            others = [one for one in KINDS if one[1] != subjects]
            ways, _, value = chance.choice(others)
            yield _pair(
                said, _said(chance.choice(ways), subject, value(chance)), False, "another attribute"
            )


def _said(way: str, subject: str, value: str) -> str:
    text = way.format(s=subject, v=value)
    return text[0].upper() + text[1:]


def _anew(chance: random.Random, way: str, subject: str, old: str, new: str) -> str:
    text = _said(way, subject, new)
    if chance.random() < 0.6:
        return text
    bare = text.rstrip(".")
    changed = chance.choice(CHANGED)
    inner = bare if changed.startswith("{0}") else bare[0].lower() + bare[1:]
    return changed.format(inner, old)


def _pair(old: str, new: str, update: bool, kind: str) -> dict[str, object]:
    return {
        "old": old,
        "new": new,
        "update": update,
        "kind": kind,
        "question": None,
        "past_question": None,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args()
    lines = [json.dumps(pair, ensure_ascii=False) for pair in pairs(random.Random(7))]
    options.output.write_text("\n".join(dict.fromkeys(lines)) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
