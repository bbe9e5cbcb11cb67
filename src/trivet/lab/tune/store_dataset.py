"""Makes a dataset from the user's memories: a corpus, questions, and their answers.

Sensitive memories, secrets and private parts stay out, even if the store keeps secrets.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from pathlib import Path
from random import Random
from statistics import median
from typing import Annotated, Any

import msgspec

from trivet.analyse import analyse, analyse_query
from trivet.errors import EmbedderError, InvalidInput
from trivet.lab.datasets.dataset import Dataset, Document, DocumentLink, Judgement, Query
from trivet.lab.datasets.read_files import json_lines
from trivet.lab.measure.hit_analysis import count_words
from trivet.lab.tune.probes import (
    LINKED_BY,
    Paraphrased,
    Probe,
    Relatives,
    all_feedback,
    feedback_probes,
    paraphrase,
    probe_of,
    relatives_of,
    stratified_sample,
    usable_memories,
)
from trivet.lab.tune.query_rules import STRATA, DocumentFrequencies, Stratum, document_frequencies
from trivet.memory.engine import Engine
from trivet.models.chat import Chat
from trivet.secrets.masking import without_placeholders
from trivet.settings import CATEGORIES
from trivet.types import LOCAL, Filter, Memory, Progress

STRATUM = "judged"
ID_CHARACTERS = 12


class JudgedHit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Grades: 0 no help, 1 related, 2 helps, 3 answers."""

    query: Annotated[str, msgspec.Meta(min_length=1, max_length=8_000)]
    id: Annotated[str, msgspec.Meta(min_length=1, max_length=64)]
    grade: Annotated[int, msgspec.Meta(ge=0, le=3)]


class Judged(msgspec.Struct, frozen=True):
    probes: tuple[Probe, ...]
    skipped: dict[str, int]


def read_judged(path: Path) -> dict[str, dict[str, int]]:
    """Return grades by query and memory; the last of two counts."""
    if not path.is_file():
        raise InvalidInput(f"{path} does not exist. Compare, on the page, saves such a file.")
    found: dict[str, dict[str, int]] = {}
    for _, hit in json_lines(path, JudgedHit):
        found.setdefault(hit.query, {})[hit.id] = hit.grade
    if not found:
        raise InvalidInput(f"{path} contains no grades. Nothing was written.")
    return found


def judged_probes(grades: dict[str, dict[str, int]], known: Container[str]) -> Judged:
    skipped: Counter[str] = Counter()
    probes = []
    for query, given in grades.items():
        kept = {id: grade for id, grade in given.items() if id in known}
        skipped["memory gone or excluded"] += len(given) - len(kept)
        best = max(kept, key=lambda id: kept[id], default=None)
        if best is None or not kept[best]:
            skipped["no memory that answers"] += 1
            continue
        id = f"{STRATUM}-{hashlib.sha256(query.encode()).hexdigest()[:ID_CHARACTERS]}"
        probes.append(Probe(id=id, query=query, kind=STRATUM, memory=best, group=best, grades=kept))
    return Judged(tuple(probes), {reason: count for reason, count in skipped.items() if count})


NAME = "own-memories"
FEWEST_MEMORIES = 10
# If more other memories hold all words of a question, expecting one of them would be unfair.
MAX_OTHER_HOLDERS = 2
# How often a rule may try with the same memory.
ATTEMPTS = 3
# Memories to try per wanted question, because not every memory allows every kind.
OVERSAMPLING = 4

CAN_SHOW = (
    "whether another recipe, embedder or version finds more or fewer of your own memories by their "
    "words, in which kinds of question, and whether it favors long or short ones"
)
CANNOT_SHOW = (
    "how well questions in your own words are answered. Rules make questions from words of the "
    "memory, so they favor search by words, and figures are higher than in use; other memories may "
    "answer, too, and are not judged. Use them to compare two arms, and judge a sample yourself: "
    "`trivet lab pool`, `trivet lab judge`"
)


JUDGED_CAN_SHOW = (
    "which of two recipes, embedders or versions better answers the questions that you asked and "
    "judged"
)
JUDGED_CANNOT_SHOW = (
    "what none of the compared recipes found: a memory that you did not grade counts as no answer"
)


class StoreDataset(msgspec.Struct, frozen=True, kw_only=True):
    dataset: Dataset
    skipped: Mapping[str, int]
    left_out: Mapping[str, int]
    model: str | None = None


class SourceMemories(msgspec.Struct, frozen=True, kw_only=True):
    """Memories as they may be written, with statistics of their words."""

    memories: Mapping[str, Memory]
    common: DocumentFrequencies
    holders: Mapping[str, frozenset[str]]

    def others(self, question: str, relatives: Relatives) -> int:
        """Count memories with every word of the question that are no answer."""
        terms = set(analyse_query(question).terms)
        held = [self.holders.get(term, frozenset()) for term in terms]
        return len(frozenset.intersection(*held) - set(relatives.grades)) if held else 0


def make_dataset(
    engine: Engine,
    *,
    most: int,
    seed: int = 0,
    chat: Chat | None = None,
    progress: Progress | None = None,
    asking: Progress | None = None,
    judged: dict[str, dict[str, int]] | None = None,
) -> StoreDataset:
    """Make at most `most` questions per stratum.

    `chat` receives the texts of as many memories. With `judged`, only those queries are used.
    """
    usable, left_out = _writable_memories(engine, progress)
    if len(usable) < FEWEST_MEMORIES:
        raise InvalidInput(
            f"A dataset needs {FEWEST_MEMORIES} of your memories, but there are {len(usable)}. "
            "Sensitive, superseded and archived memories, and those of others, do not count."
        )
    corpus = _source_memories(usable)
    if judged is not None:
        return _judged_dataset(engine, corpus, judged, left_out)
    probes: list[Probe] = []
    skipped: Counter[str] = Counter()
    for name, stratum in STRATA.items():
        probes += _probes_of_stratum(engine, name, stratum, corpus, most, seed, skipped)
    given = feedback_probes(all_feedback(engine), corpus.memories)
    probes += [
        msgspec.structs.replace(probe, query=without_secrets(engine, probe.query))
        for probe in given.probes
    ]
    skipped.update({f"feedback: {reason}": count for reason, count in given.skipped.items()})
    if chat is not None:
        written = _paraphrased_probes(engine, chat, corpus, most, seed, asking)
        probes += written.probes
        skipped.update(
            {f"paraphrase: {reason}": count for reason, count in written.skipped.items()}
        )
    return StoreDataset(
        dataset=_dataset(engine, corpus, _distinct(probes, skipped)),
        skipped=dict(skipped),
        left_out=left_out,
        model=chat.model if chat else None,
    )


def _judged_dataset(
    engine: Engine,
    corpus: SourceMemories,
    grades: dict[str, dict[str, int]],
    left_out: Mapping[str, int],
) -> StoreDataset:
    found = judged_probes(grades, corpus.memories)
    probes = [
        msgspec.structs.replace(one, query=without_secrets(engine, one.query))
        for one in found.probes
    ]
    if not probes:
        raise InvalidInput(
            "No query in the file has a memory that answers it and may be written. "
            "Nothing was written."
        )
    dataset = _dataset(engine, corpus, [probe for probe in probes if probe.query])
    return StoreDataset(
        dataset=dataset,
        skipped={f"judged: {why}": n for why, n in found.skipped.items()},
        left_out=left_out,
    )


def without_secrets(engine: Engine, text: str) -> str:
    """Remove secrets and private parts, whatever the settings say."""
    return without_placeholders(engine.guard.masked(text)[0]).strip()


def _writable_memories(
    engine: Engine, progress: Progress | None
) -> tuple[list[Memory], dict[str, int]]:
    owner = engine.viewer or LOCAL
    found: list[Memory] = []
    usable = usable_memories(engine)
    for memory in usable:
        if memory.owner == owner and (clean := _safe_memory(engine, memory)).content:
            found.append(clean)
        if progress is not None:
            progress(1)
    total = engine.store.memories.page(Filter(states=("active",)), "recency", 1, 0).total
    left_out = {
        "sensitive": total - len(usable),
        "owned by others, or only secrets": len(usable) - len(found),
    }
    return found, {reason: count for reason, count in left_out.items() if count}


def _safe_memory(engine: Engine, memory: Memory) -> Memory:
    return msgspec.structs.replace(
        memory,
        content=without_secrets(engine, memory.content),
        title=(without_secrets(engine, memory.title) or None) if memory.title else None,
        tags=tuple(tag for tag in memory.tags if without_secrets(engine, tag) == tag),
        expanded_keywords=tuple(
            word for word in memory.expanded_keywords if without_secrets(engine, word) == word
        ),
        scope=memory.scope if without_secrets(engine, memory.scope) == memory.scope else "default",
        source=None,
    )


def _source_memories(memories: Sequence[Memory]) -> SourceMemories:
    holders: dict[str, set[str]] = {}
    for memory in memories:
        for term in {*analyse(memory.content), *analyse(memory.title or "")}:
            holders.setdefault(term, set()).add(memory.id)
    return SourceMemories(
        memories={memory.id: memory for memory in memories},
        common=document_frequencies(memories),
        holders={term: frozenset(ids) for term, ids in holders.items()},
    )


def _probes_of_stratum(
    engine: Engine,
    name: str,
    stratum: Stratum,
    corpus: SourceMemories,
    most: int,
    seed: int,
    skipped: Counter[str],
) -> list[Probe]:
    able = list(stratum.chosen(list(corpus.memories.values())))
    random = Random(f"{seed}:{name}")
    tried = stratified_sample(able, OVERSAMPLING * most, random) if able else []
    random.shuffle(tried)
    probes: list[Probe] = []
    for memory in tried:
        if len(probes) == most:
            break
        relatives = relatives_of(engine, [memory], corpus.memories)[memory.id]
        question, reason = _question(
            memory, stratum, corpus, relatives, Random(f"{seed}:{name}:{memory.id}")
        )
        if question is None:
            skipped[f"{name}: {reason}"] += 1
        else:
            probes.append(probe_of(memory.id, name, question, relatives))
    if not able:
        skipped[f"{name}: no such memory"] += 1
    return probes


def _question(
    memory: Memory, stratum: Stratum, corpus: SourceMemories, relatives: Relatives, random: Random
) -> tuple[str | None, str]:
    """Return a question that few other memories match, or why there is none."""
    reason = "too little text"
    for _ in range(ATTEMPTS):
        question = stratum.rule(memory, corpus.common, random)
        if question is None:
            return None, reason
        if corpus.others(question, relatives) <= MAX_OTHER_HOLDERS:
            return question, ""
        reason = "too many memories hold all its words"
    return None, reason


def _paraphrased_probes(
    engine: Engine,
    chat: Chat,
    corpus: SourceMemories,
    most: int,
    seed: int,
    progress: Progress | None,
) -> Paraphrased:
    chosen = stratified_sample(list(corpus.memories.values()), most, Random(f"{seed}:paraphrase"))
    written = paraphrase(chat, chosen, relatives_of(engine, chosen, corpus.memories), progress)
    if not written.probes:
        reasons = "; ".join(f"{reason} ({count})" for reason, count in written.skipped.items())
        raise EmbedderError(
            f"{chat.model} wrote no question: {reasons}. Nothing was written. "
            "Fix the model, or use --rules-only."
        )
    probes = tuple(
        msgspec.structs.replace(one, query=without_secrets(engine, one.query))
        for one in written.probes
    )
    return Paraphrased(tuple(one for one in probes if one.query), written.skipped)


def _distinct(probes: Sequence[Probe], skipped: Counter[str]) -> list[Probe]:
    """Drop questions with the same words, which would need different answers."""
    known: set[str] = set()
    kept = []
    for probe in probes:
        words = " ".join(sorted(probe.query.casefold().split()))
        if words in known:
            skipped[f"{probe.kind}: duplicate"] += 1
        else:
            known.add(words)
            kept.append(probe)
    return kept


def _dataset(engine: Engine, corpus: SourceMemories, probes: Sequence[Probe]) -> Dataset:
    links: dict[str, list[DocumentLink]] = {}
    for link in engine.store.links.touching(list(corpus.memories)):
        if (
            link.kind in LINKED_BY
            and link.source in corpus.memories
            and link.target in corpus.memories
        ):
            links.setdefault(link.source, []).append(DocumentLink(kind=link.kind, to=link.target))
    return Dataset(
        name=NAME,
        documents=tuple(
            _document(memory, links.get(memory.id, ())) for memory in corpus.memories.values()
        ),
        queries=tuple(Query(id=probe.id, text=probe.query, stratum=probe.kind) for probe in probes),
        judgements=tuple(
            Judgement(query=probe.id, document=id, grade=grade)
            for probe in probes
            for id, grade in probe.grades.items()
            if id in corpus.memories
        ),
    )


def _document(memory: Memory, links: Sequence[DocumentLink]) -> Document:
    return Document(
        id=memory.id,
        text=memory.content,
        title=memory.title,
        scope=memory.scope,
        created_at=msgspec.to_builtins(memory.created_at),
        importance=memory.importance,
        tags=memory.tags,
        # The lab's stores have the default categories, and no search depends on others.
        category=memory.category if memory.category in CATEGORIES else None,
        expanded_keywords=memory.expanded_keywords,
        links=tuple(links),
    )


def strata_of(dataset: Dataset) -> dict[str, dict[str, Any]]:
    words = {document.id: count_words(document.text) for document in dataset.documents}
    best = {
        query: max(grades, key=lambda id: grades[id])
        for query, grades in dataset.grades.items()
        if grades
    }
    return {
        name: {
            "questions": len(queries),
            "median_words": float(median(words[best[query]] for query in queries)),
        }
        for name, queries in dataset.strata.items()
    }
