r"""Tune a large language model to write about notes as people did, and let it write about all.

python training/model_written.py packed --tokenizer WORDS/tokenizer.json --output OUT \
    [--seconds 80] [--writing 220] [--times update=3 other=3 sibling=2] [--seed 0]

`packed` is from pack_pairs.py. For each note it writes questions it answers in other words, one it
almost answers, a later note that changes it, one that leaves it true, and another note on the same
matter. These need not be right: large_teacher.py judges them. Writes OUT/pairs.npz, which extends
`packed`'s, and `texts.json.xz`.
"""

from __future__ import annotations

import argparse
import json
import lzma
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer
from tokenizers.decoders import ByteLevel
from torch import Tensor
from torch.nn import functional

from large_model import Kept, LanguageModel, Weights, said_with_time, tuned
from packed import DEVICE, KINDS, Arrays, Material

# Texts of each kind per note.
TIMES = {"asked": 3, "near": 1, "update": 1, "other": 1, "sibling": 1}
BATCH = 96
LONGEST_NOTE, MOST_NOTES, MOST_WRITTEN, READER_TOKENS = 120, 14_000, 56, 300
WRITTEN_AT_ONCE = 768
WARMTH, CHOICES = 0.9, 60


class Frames:
    """Notes and what was written about them, joined into one text each."""

    def __init__(self, material: Material) -> None:
        self._material = material
        arrays = material.arrays
        self.before, self.end = arrays["prompt_write_before"], arrays["prompt_end"]
        self.behind = [arrays[f"prompt_write_{kind}"] for kind in KINDS]

    def begun(self, kind: int, note: int) -> np.ndarray:
        return np.concatenate([self.before, self._material.text(note), self.behind[kind]])

    def said(self, text: int) -> np.ndarray:
        return np.concatenate([self._material.text(text), self.end])


def main() -> None:
    options = _options()
    say = said_with_time()
    with np.load(options.packed / "pairs.npz") as packed:
        arrays = {name: packed[name] for name in packed.files}
    material = Material(arrays)
    frames = Frames(material)
    torch.manual_seed(options.seed)
    model = LanguageModel(Weights(options.packed))
    say("loaded")
    say(*tune(model, frames, arrays, options.seconds))
    rows = _asked_for(material, dict(options.times) or TIMES, options.seed)
    kinds, notes, said = written(model, frames, rows, options.writing)
    say(len(said), "of", len(rows), "written")
    options.output.mkdir(parents=True, exist_ok=True)
    texts = _spelled(arrays, said)
    with lzma.open(options.output / "texts.json.xz", "wt", encoding="utf-8", preset=1) as file:
        json.dump(
            {"kinds": kinds.tolist(), "notes": notes.tolist(), "texts": texts},
            file,
            ensure_ascii=False,
        )
    arrays |= _added(arrays, said, texts, options.tokenizer)
    first = len(arrays["teacher_lengths"]) - len(said)
    arrays |= {
        "written_kind": kinds.astype(np.int8),
        "written_note": notes,
        "written_text": first + np.arange(len(said)),
    }
    np.savez_compressed(options.output / "pairs.npz", **arrays)
    say("kept")


def tune(model: LanguageModel, frames: Frames, arrays: Arrays, seconds: float) -> tuple[int, str]:
    chance, kinds = np.random.default_rng(0), arrays["lesson_kind"]
    by_kind = [np.flatnonzero(kinds == kind) for kind in range(len(KINDS))]

    def loss() -> Tensor:
        rows = np.concatenate([chance.choice(of_kind, BATCH // len(KINDS)) for of_kind in by_kind])
        return _loss(model, frames, arrays, rows)

    losses = tuned(model, loss, seconds)
    first, last = (float(np.mean(part)) for part in (losses[:20], losses[-20:]))
    return len(losses), f"steps, loss {first:.2f} to {last:.2f}"


def _loss(model: LanguageModel, frames: Frames, arrays: Arrays, rows: np.ndarray) -> Tensor:
    begun = [
        frames.begun(int(arrays["lesson_kind"][row]), int(arrays["lesson_note"][row]))
        for row in rows
    ]
    said = [frames.said(int(arrays["lesson_said"][row])) for row in rows]
    whole = [np.concatenate(both) for both in zip(begun, said, strict=True)]
    ids = np.zeros((len(rows), -(-max(map(len, whole)) // 16) * 16), np.int64)
    asked = np.zeros(ids.shape, bool)
    for row, (text, given) in enumerate(zip(whole, begun, strict=True)):
        ids[row, : len(text)] = text
        asked[row, len(given) - 1 : len(text) - 1] = True  # Predicted from the previous token.
    tokens = torch.as_tensor(ids).to(DEVICE)
    states = model.states(tokens)[torch.as_tensor(asked).to(DEVICE)]
    following = torch.roll(tokens, -1, 1)[torch.as_tensor(asked).to(DEVICE)]
    return functional.cross_entropy(_spoken(model, states), following)


def _spoken(model: LanguageModel, states: Tensor) -> Tensor:
    return functional.linear(model.ended(states).to(model.words.dtype), model.words).float()


def _asked_for(material: Material, often: Mapping[str, int], seed: int) -> np.ndarray:
    arrays, chance = material.arrays, np.random.default_rng(2 + seed)
    memories = [material.list_of(int(number))[0] for number in material.own]
    notes = np.unique(np.concatenate([*memories, arrays["train_old"], arrays["train_new"]]))
    notes = chance.permutation(notes[arrays["teacher_lengths"][notes] < LONGEST_NOTE])[:MOST_NOTES]
    rows = [
        (KINDS.index(kind), note)
        for kind, times in often.items()
        for _ in range(times)
        for note in notes
    ]
    return np.array(rows)[chance.permutation(len(rows))]


def written(
    model: LanguageModel, frames: Frames, rows: np.ndarray, seconds: float
) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
    """Return kinds, notes and texts, as far as the time allows."""
    done: list[tuple[int, np.ndarray]] = []
    began = time.monotonic()
    # Large random parts, each sorted by length: unreached ones are of every kind.
    for part in np.array_split(np.arange(len(rows)), max(1, len(rows) // (8 * WRITTEN_AT_ONCE))):
        begun = {int(row): frames.begun(int(rows[row, 0]), int(rows[row, 1])) for row in part}
        order = sorted(begun, key=lambda row: len(begun[row]))
        for start in range(0, len(order), WRITTEN_AT_ONCE):
            if time.monotonic() - began > seconds:
                break
            batch = order[start : start + WRITTEN_AT_ONCE]
            texts = continued(model, [begun[row] for row in batch], int(frames.end[0]))
            done += [
                (row, text)
                for row, text in zip(batch, texts, strict=True)
                if text is not None and len(text) > 1
            ]
    found = np.array([row for row, _ in done])
    return rows[found, 0], rows[found, 1], [text for _, text in done]


@torch.no_grad()
def continued(
    model: LanguageModel, begun: Sequence[np.ndarray], end: int
) -> list[np.ndarray | None]:
    """Return the model's continuation up to a line end; empty without one."""
    longest = max(map(len, begun))
    ids, padding = (
        np.zeros((len(begun), longest), np.int64),
        np.array([longest - len(one) for one in begun]),
    )
    for row, one in enumerate(begun):
        ids[row, longest - len(one) :] = one
    tokens, left = torch.as_tensor(ids).to(DEVICE), torch.as_tensor(padding).to(DEVICE)
    kept = [Kept() for _ in model.layers]
    said, going = [], torch.ones(len(begun), dtype=torch.bool, device=DEVICE)
    for mask, places in _looking(left, longest):
        for layer in kept:
            layer.mask = mask
        states = model.states(tokens, places, kept)[:, -1]
        likely, which = (_spoken(model, states) / WARMTH).topk(CHOICES)
        tokens = which.gather(1, torch.multinomial(functional.softmax(likely, -1), 1))
        said.append(tokens[:, 0])
        going &= tokens[:, 0] != end
        if len(said) == MOST_WRITTEN or (len(said) % 8 == 0 and not going.any()):
            break
    lines = torch.stack(said, 1).cpu().numpy()
    ends = [np.flatnonzero(line == end) for line in lines]
    return [
        line[: place[0]] if len(place) else None for line, place in zip(lines, ends, strict=True)
    ]


def _looking(left: Tensor, longest: int) -> Iterator[tuple[Tensor, Tensor]]:
    columns = torch.arange(longest, device=DEVICE)
    seen = columns[None, None, :] >= left[:, None, None]
    mask = (seen & (columns[None, None, :] <= columns[None, :, None])) | torch.eye(
        longest, dtype=torch.bool
    ).to(DEVICE)
    yield mask[:, None], (columns[None, :] - left[:, None]).clamp(min=0)
    for length in range(longest, longest + MOST_WRITTEN):
        columns = torch.arange(length + 1, device=DEVICE)
        yield (columns[None, :] >= left[:, None])[:, None, None], (length - left)[:, None]


def _spelled(arrays: Arrays, said: Sequence[np.ndarray]) -> list[str]:
    words, decoder = arrays["teacher_words"], ByteLevel()
    return [decoder.decode([str(words[token]) for token in one]).strip() for one in said]


def _added(
    arrays: Arrays, said: Sequence[np.ndarray], texts: Sequence[str], tokenizer: Path
) -> Arrays:
    reader = Tokenizer.from_file(str(tokenizer))
    reader.no_truncation()
    reader.no_padding()
    read = [
        one.ids[:READER_TOKENS] or [0]
        for one in reader.encode_batch(list(texts), add_special_tokens=False)
    ]
    added: dict[str, np.ndarray] = {}
    for name, ids in (("teacher", said), ("reader", read)):
        lengths = np.array([len(one) for one in ids])
        behind = len(arrays[f"{name}_ids"])
        added |= {
            f"{name}_ids": np.concatenate([arrays[f"{name}_ids"], *ids]).astype(np.int32),
            f"{name}_starts": np.concatenate(
                [arrays[f"{name}_starts"], behind + np.cumsum(lengths) - lengths]
            ),
            f"{name}_lengths": np.concatenate([arrays[f"{name}_lengths"], lengths]).astype(
                np.int16
            ),
        }
    return added


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("packed", type=Path)
    parser.add_argument("--tokenizer", type=Path, required=True, help="the readers'")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=80.0, help="of tuning")
    parser.add_argument("--writing", type=float, default=220.0, help="the most seconds")
    parser.add_argument(
        "--times",
        type=_times,
        nargs="+",
        default=[],
        help="how often each kind is written of one note",
    )
    parser.add_argument("--seed", type=int, default=0, help="another one writes other texts")
    return parser.parse_args()


def _times(text: str) -> tuple[str, int]:
    kind, _, times = text.partition("=")
    if kind not in KINDS or not times.isdigit():
        raise argparse.ArgumentTypeError(
            f"{text!r} is not one of {', '.join(KINDS)} with '=' and a number behind it"
        )
    return kind, int(times)


if __name__ == "__main__":
    main()
