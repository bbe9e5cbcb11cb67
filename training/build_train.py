r"""Gather training pairs into capped, cleaned kinds with variants, without evaluation texts.

python build_train.py --train FOLDER --code code.json.xz --prose prose.json.xz \
    --written FOLDER --pairs training/pairs --lives training/lives \
    --eval FOLDER_OR_FILE --output FOLDER

Each kind is a file {"texts": [...], "rows": [[query, [positive], [negative]], ...], "mine": bool,
"choose": bool}. With `choose`, only one of a row's positives answers it, and the embedder must find
it. More kinds help more than larger ones, so sizes are capped. Gold passages of evaluation corpora
are removed, as positives and as negatives, and so are rows whose query is an evaluation query.
"""

from __future__ import annotations

import argparse
import json
import lzma
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from asked_otherwise import claimed, questioned, searched, surveyed
from first_dialogues import dialogues as first_dialogues
from overlap import EvaluationTexts, normalised, read_evaluation
from synthetic_memories import FIRST_NAMES, Row, chats, dialogues, notes
from written_memories import life_rows, pair_rows, written_rows

SEED = 7
# Negatives kept per row: three where others can be mined, since texts cost space and time.
MOST_NEGATIVES = {True: 3, False: 6}
SENTENCE_END = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[A-Z\"'(])")
WORD = re.compile(r"[a-z0-9]+")
DOCSTRING = re.compile(r"(\"\"\"|\'\'\')(.*?)(?:\1|\Z)", re.S)
SIGNATURE_END = re.compile(r"^(?:async )?def .*?:\s*\n", re.S | re.M)
SUBJECT = re.compile(
    r"^(?:what|who|how|is|are|do|does)\b.*?(?:\b(?:of|for|with|by|cause|prevent)|\(are\)) ", re.I
)
DEFINED = re.compile(r"\bdef (\w+)")


@dataclass(slots=True)
class Kind:
    """Pairs of one nature. `mine`: texts of the kind can serve as mined negatives.

    `choose`: one unknown positive of a row answers it.
    """

    texts: list[str] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    mine: bool = False
    choose: bool = False


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--train", type=Path, required=True)
    parser.add_argument("--code", type=Path, required=True)
    parser.add_argument("--prose", type=Path, required=True)
    parser.add_argument(
        "--written", type=Path, required=True, help="folder of long-*.jsonl and short-*.jsonl"
    )
    parser.add_argument("--pairs", type=Path, required=True)
    parser.add_argument("--lives", type=Path, required=True)
    parser.add_argument("--only", nargs="*", help="make these kinds alone")
    parser.add_argument("--eval", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    evaluation = read_evaluation(arguments.eval)
    manifest_path = arguments.output / "manifest.json"
    manifest: dict[str, object] = (
        json.loads(manifest_path.read_text()) if manifest_path.exists() else {}
    )
    for name, make in makers(arguments, evaluation).items():
        if arguments.only and name not in arguments.only:
            continue
        made = make()
        kind, dropped = compacted(fewer_negatives(made, MOST_NEGATIVES[made.mine]), evaluation)
        path = arguments.output / f"{name}.json.xz"
        data = {"texts": kind.texts, "rows": kind.rows, "mine": kind.mine, "choose": kind.choose}
        path.write_bytes(lzma.compress(json.dumps(data, ensure_ascii=False).encode(), preset=6))
        manifest[name] = {
            "texts": len(kind.texts),
            "rows": len(kind.rows),
            "mine": kind.mine,
            **dropped,
        }
        print(name, manifest[name], path.stat().st_size, flush=True)
    manifest_path.write_text(json.dumps(manifest, indent=1) + "\n")


def makers(
    arguments: argparse.Namespace, evaluation: EvaluationTexts
) -> Mapping[str, Callable[[], Kind]]:
    train, code, prose = arguments.train, arguments.code, arguments.prose

    def plain(
        name: str, most: int, mine: bool, clean: Callable[[str], str] = str
    ) -> Callable[[], Kind]:
        return lambda: capped(read(train / f"{name}.json.xz", mine, clean), most)

    def clear(name: str, mine: bool) -> Kind:
        """Remove gold passages first: texts derived from a passage no longer match it."""
        return compacted(read(train / f"{name}.json.xz", mine), evaluation)[0]

    return {
        "squad": plain("squad_v1.1", 30_000, True),
        "squad_sentence": lambda: sentences(clear("squad_v1.1", True), 15_000),
        "quac": plain("quac", 12_000, False),
        "quac_spoken": lambda: spoken(clear("quac", False), 9_000),
        "hotpot": plain("hotpotqa_dev", 6_500, True),
        "boolq": plain("boolq", 10_000, True),
        "medquad": plain("medquad", 9_000, True),
        "policyqa": plain("policyqa", 3_000, False),
        "selqa": plain("selqa", 2_400, True),
        "timeqa": plain("timeqa", 1_900, True, detokenised),
        "qmsum_window": lambda: windows(read(train / "qmsum.json.xz", False, detokenised), 4, 8),
        "statement": lambda: statements(
            [clear(name, True) for name in ("medquad", "squad_v1.1", "boolq")], 9_000
        ),
        "technical_prose": lambda: capped(read(prose, True), 9_000),
        "code": lambda: capped(read(code, True), 20_000),
        "code_search": lambda: searches(half(read(code, True), 0), 12_000, searched),
        "code_question": lambda: searches(half(read(code, True), 1), 12_000, questioned),
        "claim": lambda: claims(
            [
                (clear("medquad", True), True, 4_500),
                (read(prose, True), True, 3_000),
                (clear("squad_v1.1", True), False, 1_500),
                (clear("boolq", True), False, 1_500),
            ]
        ),
        "survey": lambda: surveys(read(prose, True), 5_000),
        "memory_dialogue": lambda: Kind(*first_dialogues(SEED, 900)),
        "memory_talk": lambda: Kind(*dialogues(SEED, 900)),
        "memory_chat": lambda: Kind(*chats(SEED + 1, 450)),
        "memory_mixed": lambda: Kind(*chats(SEED + 2, 450, apart=0.5)),
        "memory_note": lambda: Kind(*notes(SEED, 350)),
        "written": lambda: Kind(*written_rows(arguments.written), mine=True, choose=True),
        "memory_pair": lambda: Kind(*pair_rows(arguments.pairs), mine=True),
        "memory_life": lambda: Kind(*life_rows(arguments.lives)),
    }


def read(path: Path, mine: bool, clean: Callable[[str], str] = str) -> Kind:
    data = json.loads(lzma.decompress(path.read_bytes()))
    rows = [
        (clean(query), list(positives), list(negatives))
        for query, positives, negatives in data["rows"]
    ]
    return Kind([clean(text) for text in data["texts"]], rows, mine)


def capped(kind: Kind, most: int) -> Kind:
    """Return at most this many rows, spread evenly over their passages."""
    chance = random.Random(SEED)
    rows = list(kind.rows)
    chance.shuffle(rows)
    asked: Counter[int] = Counter()
    turn = []
    for row in rows:
        turn.append(asked[row[1][0]])
        asked[row[1][0]] += 1
    order = sorted(range(len(rows)), key=lambda at: turn[at])
    return Kind(kind.texts, [rows[at] for at in order[:most]], kind.mine)


def half(kind: Kind, which: int) -> Kind:
    """Return the first or second half of the functions with their questions."""
    middle = len(kind.texts) // 2
    start, stop = (0, middle) if which == 0 else (middle, len(kind.texts))
    rows = [
        (query, [positives[0] - start], [at - start for at in negatives if start <= at < stop][:5])
        for query, positives, negatives in kind.rows[start:stop]
    ]
    return Kind(kind.texts[start:stop], rows, kind.mine)


def fewer_negatives(kind: Kind, most: int) -> Kind:
    rows = [(query, positives, negatives[:most]) for query, positives, negatives in kind.rows]
    return Kind(kind.texts, rows, kind.mine, kind.choose)


def sentences(kind: Kind, most: int) -> Kind:
    """Return question -> the one or two sentences sharing most of its rare words."""
    chance = random.Random(SEED)
    weight = _rarity(kind.texts)
    rows = list(kind.rows)
    chance.shuffle(rows)
    made = Kind(mine=True)
    places: dict[str, int] = {}
    for query, positives, negatives in rows:
        parts = SENTENCE_END.split(kind.texts[positives[0]])
        if len(parts) < 3:
            continue
        scores = [_shared(query, part, weight) for part in parts]
        best, second = sorted(scores, reverse=True)[:2]
        if best < 0.35 or second > 0.6 * best:
            continue
        at = scores.index(best)
        others = [part for place, part in enumerate(parts) if place != at]
        for negative in negatives[:2]:
            others += SENTENCE_END.split(kind.texts[negative])[:3]
        chance.shuffle(others)
        made.rows.append(
            (
                query,
                [_place(made, places, parts[at])],
                [_place(made, places, one) for one in others[:10]],
            )
        )
        if len(made.rows) == most:
            break
    return made


def statements(kinds: Sequence[Kind], most: int) -> Kind:
    """Let a sentence ask for the rest of its passage: claims instead of questions."""
    chance = random.Random(SEED)
    made = Kind(mine=True)
    for kind in kinds:
        for text in chance.sample(kind.texts, min(len(kind.texts), most // len(kinds))):
            parts = SENTENCE_END.split(text)
            fitting = [
                at
                for at, part in enumerate(parts)
                if 7 <= len(part.split()) <= 30 and "?" not in part
            ]
            if len(parts) < 4 or not fitting:
                continue
            at = chance.choice(fitting)
            made.rows.append((parts[at].strip(), [len(made.texts)], []))
            made.texts.append(" ".join(parts[:at] + parts[at + 1 :]))
    return made


def searches(kind: Kind, most: int, asked: Callable[[str, str, random.Random], str]) -> Kind:
    """Return searches or questions -> functions, most with some of their docstring."""
    chance = random.Random(SEED)
    made = Kind(mine=True)
    sentence_of: list[str] = []
    for (query, _, _), text in zip(kind.rows, kind.texts, strict=True):
        found = DOCSTRING.search(text)
        said = " ".join(found[2].split()) if found else query.removeprefix("python ")
        sentence = re.split(r"(?<=[.!?])\s", said, maxsplit=1)[0]
        sentence_of.append(re.sub(r"[`*]|:\w+:", "", sentence))
        form = chance.random()
        if found and form < 0.6:
            text = text[: found.start(2)] + sentence + text[found.end(2) :]
        elif not found and form < 0.85 and (end := SIGNATURE_END.search(text)):
            said = f"{sentence[:1].upper()}{sentence[1:].rstrip('.')}."
            text = f'{text[: end.end()]}    """{said}"""\n{text[end.end() :]}'
        made.texts.append(text)
    order = list(range(len(kind.rows)))
    chance.shuffle(order)
    order.sort(key=lambda at: len(kind.texts[at]) > 900)
    for at in order:
        name = DEFINED.search(kind.texts[at])
        query = asked(sentence_of[at], name[1] if name and name[1] != "func" else "", chance)
        if (
            len(set(query.split()) - {"python", "how", "to", "in"}) >= 2
            and len(sentence_of[at].split()) >= 3
        ):
            made.rows.append((query, [at], kind.rows[at][2]))
        if len(made.rows) == most:
            break
    return made


def claims(sources: Sequence[tuple[Kind, bool, int]]) -> Kind:
    """Let a reworded sentence ask for the rest of its passage, under its title if known."""
    chance = random.Random(SEED + 3)
    made = Kind(mine=True)
    for kind, titled, most in sources:
        rows = list(kind.rows)
        chance.shuffle(rows)
        # A sentence of many passages identifies none.
        said = Counter(_letters(part) for text in kind.texts for part in SENTENCE_END.split(text))
        seen: set[int] = set()
        wanted = len(made.rows) + most
        for query, positives, _ in rows:
            if positives[0] in seen or len(made.rows) == wanted:
                continue
            seen.add(positives[0])
            parts = SENTENCE_END.split(kind.texts[positives[0]])
            fitting = [
                at
                for at, part in enumerate(parts)
                if 7 <= len(part.split()) <= 32 and "?" not in part and said[_letters(part)] == 1
            ]
            if len(parts) < 3 or not fitting:
                continue
            at = chance.choice(fitting)
            title = query.rstrip(" ?.") if titled and chance.random() < 0.6 else ""
            subject = SUBJECT.sub("", title)
            made.rows.append((claimed(parts[at], subject, chance), [len(made.texts)], []))
            rest = " ".join(parts[:at] + parts[at + 1 :])
            made.texts.append(f"{title}\n{rest}" if title else rest)
    return made


def surveys(kind: Kind, most: int) -> Kind:
    """Return long questions about a subject -> texts about it, half of them with titles."""
    chance = random.Random(SEED + 4)
    made = Kind(mine=True)
    titles = {row[1][0]: row[0].rstrip(" .") for row in kind.rows}
    for at, text in enumerate(kind.texts):
        made.texts.append(
            f"{titles[at]} .\n{text}" if at in titles and chance.random() < 0.5 else text
        )
    rows = [row for row in kind.rows if len(row[0].split()) >= 4]
    for query, positives, negatives in chance.sample(rows, len(rows))[:most]:
        if asked := surveyed(query, chance):
            made.rows.append((asked, positives, negatives))
    return made


def spoken(kind: Kind, most: int) -> Kind:
    """Retell sections about a person in first person, under an invented name: `Maria: I moved ...`.

    Questions use the name. Grammar suffers in places, but not who speaks of whom.
    """
    chance = random.Random(SEED)
    rows = list(kind.rows)
    chance.shuffle(rows)
    made = Kind()
    places: dict[str, int] = {}
    names: dict[int, str] = {}
    for query, positives, negatives in rows:
        question = query.strip().rsplit("? ", 1)[-1]
        female = bool(re.search(r"\b(she|her|hers)\b", question.lower()))
        if (
            female == bool(re.search(r"\b(he|his|him)\b", question.lower()))
            or len(question.split()) < 4
        ):
            continue
        section = [positives[0], *negatives]
        surname = _surname([kind.texts[at] for at in section])
        if surname is None:
            continue
        name = names.setdefault(min(section), chance.choice(FIRST_NAMES))
        turns = [f"{name}: {_first_person(kind.texts[at], surname, female)}" for at in section]
        numbers = [_place(made, places, turn) for turn in turns]
        made.rows.append(
            (_asked_by_name(question, name, surname, female), numbers[:1], numbers[1:])
        )
        if len(made.rows) == most:
            break
    return made


def windows(kind: Kind, least: int, most: int) -> Kind:
    """Join consecutive turns into passages, as chats are stored; `texts` are in turn order."""
    chance = random.Random(SEED)
    made = Kind()
    places: dict[str, int] = {}
    for query, positives, negatives in kind.rows:
        wanted = set(positives)

        def window(at: int, inside: bool, wanted: set[int] = wanted) -> str:
            start = max(0, at - chance.randint(0, most // 2))
            turns = [
                place
                for place in range(start, min(start + chance.randint(least, most), len(kind.texts)))
                if inside or place not in wanted
            ]
            turns = turns if at in turns or not inside else [at]
            return "\n".join(kind.texts[place] for place in turns)[:1200]

        chosen = chance.sample(positives, min(2, len(positives)))
        others = [text for at in negatives if (text := window(at, inside=False))]
        for at in chosen:
            numbers = [
                _place(made, places, window(at, inside=True)),
                *(_place(made, places, text) for text in others),
            ]
            made.rows.append(
                (
                    query,
                    numbers[:1],
                    [number for number in dict.fromkeys(numbers[1:]) if number != numbers[0]],
                )
            )
    return made


def compacted(kind: Kind, evaluation: EvaluationTexts) -> tuple[Kind, dict[str, int]]:
    """Keep only used texts, without evaluation texts; rows without a positive go."""
    banned = {at for at, text in enumerate(kind.texts) if normalised(text) in evaluation.gold}
    used = {at for _, positives, negatives in kind.rows for at in (*positives, *negatives)} - banned
    places = {at: place for place, at in enumerate(sorted(used))}
    rows: list[Row] = []
    lost_queries = 0
    for query, positives, negatives in kind.rows:
        kept = [places[at] for at in positives if at in places]
        if normalised(query) in evaluation.queries:
            lost_queries += 1
        elif kept:
            rows.append(
                (
                    query,
                    kept,
                    [places[at] for at in negatives if at in places and at not in positives],
                )
            )
    dropped = {
        "texts_dropped_as_evaluation_gold": len(banned),
        "rows_dropped": len(kind.rows) - len(rows),
        "rows_dropped_as_evaluation_query": lost_queries,
    }
    return Kind([kind.texts[at] for at in sorted(used)], rows, kind.mine, kind.choose), dropped


def detokenised(text: str) -> str:
    """Remove transcripts' spaces before punctuation and their noise marks."""
    text = re.sub(r"\{\w+\}", " ", text).replace("``", '"').replace("''", '"')
    text = re.sub(r"\b([Gg]on|[Ww]an) na\b", r"\1na", re.sub(r"\b([Gg]ot) ta\b", r"\1ta", text))
    text = re.sub(r" (n't|'s|'re|'ve|'ll|'m|'d)\b", r"\1", text)
    text = re.sub(r"\s+([.,!?;:)\]%])", r"\1", re.sub(r"([(\[$])\s+", r"\1", text))
    return re.sub(r"\s+", " ", text).replace("#NOTE#:", "Note:").strip()


def _letters(text: str) -> str:
    return re.sub(r"[^a-z]+", "", text.lower())


def _rarity(texts: Sequence[str]) -> dict[str, float]:
    counts = Counter(word for text in texts for word in set(WORD.findall(text.lower())))
    return {word: 1 / (1 + count / 50) for word, count in counts.items()}


def _shared(query: str, text: str, weight: Mapping[str, float]) -> float:
    words = set(WORD.findall(query.lower()))
    total = sum(weight.get(word, 1.0) for word in words)
    return (
        sum(weight.get(word, 1.0) for word in words & set(WORD.findall(text.lower()))) / total
        if total
        else 0.0
    )


def _place(kind: Kind, places: dict[str, int], text: str) -> int:
    if text not in places:
        places[text] = len(kind.texts)
        kind.texts.append(text)
    return places[text]


def _surname(texts: Iterable[str]) -> str | None:
    counts = Counter(
        word for text in texts for word in re.findall(r"(?<=[a-z,] )[A-Z][a-z]{2,}", text)
    )
    common = counts.most_common(1)
    return common[0][0] if common and common[0][1] >= 3 else None


def _first_person(text: str, surname: str, female: bool) -> str:
    text = (
        re.sub(rf"\b(?:[A-Z][a-z]+ )?{surname}'s?\b", "my", text) if f"{surname}'" in text else text
    )
    text = re.sub(rf"\b(?:[A-Z][a-z]+ )?{surname}\b", "I", text)
    subject, possessive, object_ = ("she", "her", "her") if female else ("he", "his", "him")
    for pronoun, ours in (
        (f"{object_}self", "myself"),
        (subject, "I"),
        (possessive, "my"),
        (object_, "me"),
    ):
        text = re.sub(rf"\b{pronoun}\b", ours, text)
        text = re.sub(rf"\b{pronoun.capitalize()}\b", ours[:1].upper() + ours[1:], text)
    for wrong, right in (
        (r"\bI is\b", "I am"),
        (r"\bI has\b", "I have"),
        (r"\bI were\b", "I was"),
        (r"\bI does\b", "I do"),
    ):
        text = re.sub(wrong, right, text)
    return text


def _asked_by_name(question: str, name: str, surname: str, female: bool) -> str:
    subject, possessive = ("she", "her") if female else ("he", "his")
    asked = re.sub(rf"\b(?:[A-Z][a-z]+ )?{surname}\b", name, question)
    asked = (
        re.sub(rf"\b{possessive}\b", f"{name}'s", asked, count=1, flags=re.IGNORECASE)
        if subject not in asked.lower().split()
        else asked
    )
    asked = re.sub(rf"\b{subject}\b", name, asked, count=1, flags=re.IGNORECASE)
    asked = asked if name in asked else re.sub(r"\bhim\b", name, asked, flags=re.IGNORECASE)
    return asked[:1].upper() + asked[1:]


if __name__ == "__main__":
    main()
