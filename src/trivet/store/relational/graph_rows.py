"""How mentions and statements are written into the graph's tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from trivet.graph.canonical import canonical, form
from trivet.graph.mentions import ROLES, Mention, Reader, Triple
from trivet.store.base import Reading
from trivet.store.relational.database import Connection

# The time before all times.
BEGINNING = "0001-01-01T00:00:00.000000Z"


def mention_row(memory: int, concept: int, reader: Reader, mention: Mention) -> dict[str, object]:
    return {
        "memory": memory,
        "concept": concept,
        "reader": reader,
        "role": ROLES.index(mention.role),
        "kind": mention.kind,
        "label": mention.label,
        "form": form(mention.label),
    }


def write_triples(
    connection: Connection,
    reading: Reading,
    triples: Sequence[Triple],
    concepts: Mapping[str, int],
    recorded_at: str,
) -> None:
    """Statements with their memory as evidence, and their ends as mentions. An end that is no name is left out."""
    sql = connection.sql("graph")
    mentions: dict[tuple[int, bool], Mention] = {}
    for triple in triples:
        if not all(canonical(label) for label, _ in triple.ends):
            continue
        source, target = (_end(*end, concepts, mentions) for end in triple.ends)
        values = {
            "source": source,
            "relation": triple.relation,
            "target": target,
            "memory": reading.key,
            "weight": 1.0,
            "single": triple.single,
            "valid_from": _since(triple, reading),
            "valid_to": triple.valid_to,
            "recorded_at": recorded_at,
        }
        connection.execute(sql["insert_statement"], values)
    # A memory keeps one name of a concept a reader: an alias, which nothing else may know, comes last and stays.
    for (concept, _), mention in sorted(mentions.items(), key=lambda item: item[0]):
        connection.execute(sql["insert_mention"], mention_row(reading.key, concept, "triples", mention))


def _end(label: str, means: str | None, concepts: Mapping[str, int], mentions: dict[tuple[int, bool], Mention]) -> int:
    """The concept of a triple's end, noted as mentioned. The concept it means may have gone meanwhile: then its own."""
    alias = means is not None and means in concepts
    name = means if means is not None and alias else canonical(label)
    mentions[concepts[name], alias] = Mention(name=name, label=label, kind="name", role="in")
    return concepts[name]


def _since(triple: Triple, reading: Reading) -> str:
    """What is said to have ended before the memory began ("lived there until 2015") began nobody knows when."""
    if triple.valid_from:
        return triple.valid_from
    return BEGINNING if triple.valid_to and triple.valid_to <= reading.since else reading.since
