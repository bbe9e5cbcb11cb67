"""Training pairs as text numbers: read, tokenized once, with hard negatives mined on the device."""

from __future__ import annotations

import json
import lzma
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer

from encoder import Encoder, Texts, embedded

# The embedder's window minus two special tokens; questions are far shorter.
LONGEST_PASSAGE, LONGEST_QUERY = 254, 64
CANDIDATES = 24
GIVEN, LEXICAL, DENSE = 10, 8, 10
# BM25 over word pieces, like the product's lexical leg.
K1, B = 0.9, 0.4
# Handwritten and closest to agents' memories, but few.
FAVOURED = {"written": 1.6, "memory_pair": 1.6, "memory_life": 1.6}
# E5's prefixes of passages and queries.
PREFIXES = ("passage: ", "query: ")
HELD_OUT = 50  # One row in this many is never trained on.


@dataclass(slots=True)
class Kind:
    """Rows of one nature as numbers of texts, padded with -1.

    `positives` may answer; `answers`, set by `choose_answers`, are trained on.
    """

    name: str
    mine: bool
    queries: np.ndarray
    positives: list[list[int]]
    given: list[list[int]]
    passages: np.ndarray
    held_out: np.ndarray
    candidates: np.ndarray = field(default_factory=lambda: np.empty((0, 0), dtype=np.int64))
    choose: bool = False
    answers: list[list[int]] = field(default_factory=list)

    def trained(self) -> np.ndarray:
        return np.flatnonzero(~self.held_out)


def read_kinds(
    folder: Path, tokenizer: Path, device: str, most: int | None = None
) -> tuple[list[Kind], Texts]:
    table: list[str] = []
    limits: list[int] = []
    kinds = []
    for path in sorted([*folder.glob("*.json.xz"), *folder.glob("*.json")]):
        if path.name == "manifest.json":
            continue
        raw = path.read_bytes()
        data = json.loads(lzma.decompress(raw) if path.suffix == ".xz" else raw)
        rows, own = data["rows"], data["texts"]
        if most is not None:
            rows, own = _in_use(rows[:: max(1, len(rows) // most)][:most], own)
        start = len(table)
        table.extend(own)
        limits.extend([LONGEST_PASSAGE] * len(own))
        queries = len(table)
        table.extend(row[0] for row in rows)
        limits.extend([LONGEST_QUERY] * len(rows))
        kinds.append(
            Kind(
                name=path.name.partition(".")[0],
                mine=data["mine"],
                queries=np.arange(queries, queries + len(rows)),
                positives=[[start + at for at in row[1]] for row in rows],
                given=[[start + at for at in row[2]] for row in rows],
                passages=np.arange(start, queries),
                held_out=np.array(
                    [zlib.crc32(row[0].encode()) % HELD_OUT == 0 for row in rows], dtype=bool
                ),
                choose=data.get("choose", False),
                answers=[[start + at for at in row[1]] for row in rows],
            )
        )
    return kinds, tokenised(table, limits, tokenizer, device)


def _in_use(rows: list[Any], texts: list[str]) -> tuple[list[Any], list[str]]:
    places: dict[int, int] = {}
    kept = [
        [query, *([places.setdefault(at, len(places)) for at in numbers] for numbers in both)]
        for query, *both in rows
    ]
    return kept, [texts[at] for at in places]


def tokenised(table: Sequence[str], limits: Sequence[int], tokenizer: Path, device: str) -> Texts:
    """Tokenize; a text with a query's limit is a query."""
    reader = Tokenizer.from_file(str(tokenizer))
    reader.no_padding()
    reader.no_truncation()
    special = tuple(
        next(number for name in names if (number := reader.token_to_id(name)) is not None)
        for names in (("[CLS]", "<s>"), ("[SEP]", "</s>"))
    )
    pieces, lengths = [], []
    for start in range(0, len(table), 20_000):
        # Tokens rarely have under two letters: the cut avoids reading what the limit would drop.
        block = [
            text[: limit * 12]
            for text, limit in zip(
                table[start : start + 20_000], limits[start : start + 20_000], strict=True
            )
        ]
        for encoding, limit in zip(
            reader.encode_batch_fast(block, add_special_tokens=False), limits[start:], strict=False
        ):
            ids = encoding.ids[:limit] or [special[1]]
            pieces.append(np.array(ids, dtype=np.int32))
            lengths.append(len(ids))
    sizes = np.array(lengths, dtype=np.int64)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    texts = Texts(np.concatenate(pieces), starts, sizes, device, (special[0], special[1]))
    prefixes = [reader.encode(one, add_special_tokens=False).ids for one in PREFIXES]
    if len(prefixes[0]) == len(prefixes[1]):  # As in BERT's vocabulary, which E5 uses.
        texts.know_prefixes(prefixes, np.array(limits) == LONGEST_QUERY)
    return texts


@torch.no_grad()
def choose_answers(kinds: Sequence[Kind], texts: Texts, encoder: Encoder) -> None:
    """If the answering passage is not known, choose the nearest positive."""
    for kind in kinds:
        if not kind.choose:
            continue
        passages, queries = (
            embedded(encoder, texts, kind.passages),
            embedded(encoder, texts, kind.queries),
        )
        first = int(kind.passages[0])
        for row, own in enumerate(kind.positives):
            if len(own) > 1:
                similar = (
                    passages[torch.as_tensor(own, device=passages.device) - first] @ queries[row]
                )
                kind.answers[row] = [own[int(similar.argmax())]]


def mine(kinds: Sequence[Kind], texts: Texts, vectors: torch.Tensor | None, margin: float) -> None:
    """Add candidates: given ones, then passages of the kind found by words and vectors.

    A passage the embedder scores above the answer minus the margin counts as an answer and is
    dropped. Without vectors only the given candidates are used.
    """
    for kind in kinds:
        rows = len(kind.queries)
        candidates = np.full((rows, CANDIDATES), -1, dtype=np.int64)
        chance = np.random.default_rng(zlib.crc32(kind.name.encode()))
        searched = vectors is not None and kind.mine and len(kind.passages) > 64
        found = _found(kind, texts, vectors, margin) if searched else None
        for row in range(rows):
            answers = set(kind.positives[row])
            given = [one for one in kind.given[row] if one not in answers]
            chosen = given[:4] + list(chance.permutation(given[4:]))[: GIVEN - 4]
            if found is not None:
                chosen += [one for one in found[row] if one >= 0 and one not in answers]
            unique = list(dict.fromkeys(int(one) for one in chosen))[:CANDIDATES]
            candidates[row, : len(unique)] = unique
        kind.candidates = candidates


def save_mined(path: Path, kinds: Sequence[Kind]) -> None:
    """Save candidates and chosen answers for others, atomically."""
    arrays: dict[str, Any] = {
        f"{kind.name}.candidates": kind.candidates.astype(np.int32) for kind in kinds
    }
    for kind in kinds:
        if kind.choose:
            arrays[f"{kind.name}.answers"] = np.array(
                [own[0] for own in kind.answers], dtype=np.int32
            )
    new = path.with_suffix(".new.npz")
    np.savez(new, **arrays)
    new.rename(path)


def load_mined(path: Path, kinds: Sequence[Kind]) -> None:
    with np.load(path) as arrays:
        for kind in kinds:
            kind.candidates = arrays[f"{kind.name}.candidates"].astype(np.int64)
            if kind.choose:
                kind.answers = [[int(own)] for own in arrays[f"{kind.name}.answers"]]


@torch.no_grad()
def _found(kind: Kind, texts: Texts, vectors: torch.Tensor, margin: float) -> np.ndarray:
    device = texts.device
    passages, queries = (
        vectors[torch.as_tensor(which, device=device)].float()
        for which in (kind.passages, kind.queries)
    )
    words = _word_weights(kind.passages, texts, device)
    first = int(kind.passages[0])
    answers = torch.tensor([row[0] - first for row in kind.answers], device=device)
    rows = []
    for start in range(0, len(kind.queries), 256):
        stop = min(start + 256, len(kind.queries))
        similar = queries[start:stop] @ passages.T
        limit = similar.gather(1, answers[start:stop, None]) - margin
        lexical = _word_scores(kind.queries[start:stop], texts, words, device)
        lexical.scatter_(1, answers[start:stop, None], -1.0)
        near = similar.clone().scatter_(1, answers[start:stop, None], -2.0)
        picked = []
        for scores, count in ((lexical, LEXICAL), (near, DENSE)):
            scores = scores.masked_fill(similar > limit, -3.0)
            values, places = scores.topk(min(count, scores.shape[1]), dim=1)
            picked.append(
                torch.where(values > -1.0 if scores is near else values > 0.0, places + first, -1)
            )
        rows.append(torch.cat([picked[0], picked[1]], dim=1).cpu().numpy())
    return _interleaved(np.concatenate(rows), min(LEXICAL, rows[0].shape[1]))


def _interleaved(found: np.ndarray, split: int) -> np.ndarray:
    """Alternate words and vectors, so a cut keeps both."""
    order = []
    for place in range(max(split, found.shape[1] - split)):
        order += [
            at
            for at in (place, split + place)
            if (at == place and place < split) or (at != place and at < found.shape[1])
        ]
    return found[:, order]


def _word_weights(passages: np.ndarray, texts: Texts, device: str) -> torch.Tensor:
    ids, starts = texts.host_ids, texts.host_starts
    lengths = texts.lengths[passages]
    rows = np.repeat(np.arange(len(passages)), lengths)
    columns = np.concatenate(
        [ids[starts[one] : starts[one] + texts.lengths[one]] for one in passages]
    ).astype(np.int64)
    keys, counts = np.unique(rows * texts.vocabulary + columns, return_counts=True)
    rows, columns = keys // texts.vocabulary, keys % texts.vocabulary
    documents = np.bincount(columns, minlength=texts.vocabulary)
    rarity = np.log(1 + (len(passages) - documents + 0.5) / (documents + 0.5))
    norm = K1 * (1 - B + B * lengths[rows] / lengths.mean())
    values = rarity[columns] * counts * (K1 + 1) / (counts + norm)
    places = torch.as_tensor(np.stack([rows, columns]), device=device)
    weights = torch.sparse_coo_tensor(
        places,
        torch.as_tensor(values, dtype=torch.float32, device=device),
        (len(passages), texts.vocabulary),
    )
    return weights.coalesce().to_sparse_csr()


def _word_scores(
    queries: np.ndarray, texts: Texts, words: torch.Tensor, device: str
) -> torch.Tensor:
    own = [texts.host_ids[start : start + size] for start, size in _spans(queries, texts)]
    rows = torch.as_tensor(np.concatenate(own).astype(np.int64), device=device)
    columns = torch.as_tensor(
        np.repeat(np.arange(len(own)), [len(ids) for ids in own]), device=device
    )
    asked = torch.zeros((texts.vocabulary, len(queries)), device=device)
    asked[rows, columns] = 1.0
    return torch.sparse.mm(words, asked).T.contiguous()


def _spans(which: np.ndarray, texts: Texts) -> Iterator[tuple[int, int]]:
    return zip(texts.host_starts[which].tolist(), texts.lengths[which].tolist(), strict=True)


def some_of(kind: Kind, rows: int, candidates: int) -> Kind:
    """Return a random part of a kind's rows with their first candidates."""
    chosen = np.random.default_rng(zlib.crc32(kind.name.encode())).permutation(len(kind.queries))[
        :rows
    ]
    return replace(
        kind,
        queries=kind.queries[chosen],
        positives=[kind.positives[row] for row in chosen],
        given=[kind.given[row] for row in chosen],
        answers=[kind.answers[row] for row in chosen],
        held_out=kind.held_out[chosen],
        candidates=kind.candidates[chosen, :candidates],
    )


def weights_of(kinds: Sequence[Kind]) -> np.ndarray:
    """Weigh kinds by the square root of size, so none dominates and small ones do not overfit."""
    sizes = np.sqrt([len(kind.queries) for kind in kinds]) * [
        FAVOURED.get(kind.name, 1.0) for kind in kinds
    ]
    return sizes / sizes.sum()


class Rows:
    """Draws without repetition until all rows have been drawn."""

    def __init__(self, kind: Kind, seed: int) -> None:
        self.kind = kind
        self._chance = np.random.default_rng(seed)
        self._left: list[int] = []

    def draw(self, count: int) -> list[int]:
        while len(self._left) < count:
            self._left = list(self._chance.permutation(self.kind.trained())) + self._left
        return [int(self._left.pop()) for _ in range(count)]
