"""Measure the secret guard's hits and false alarms on our labeled set.

`python benchmarks/studies/secrets_found.py` uses the half no rule was tuned on and writes
docs/results/secrets.json. Given the folder of test data, it also counts alarms on others' texts.
The library's own scan serves as comparison. Times are medians, as multiples of hashing the text
once.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import math
import re
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from trivet.secrets.detect import find  # noqa: E402
from unit.secrets.labelled import Labelled, load  # noqa: E402

OUT = ROOT / "docs" / "results" / "secrets.json"
# 95 % of the normal distribution.
Z = 1.959964
MOST_CHARACTERS = 32_000
NOTE = (
    "The staging database listens on port 6543; Ines restarts it on Tuesdays after the backup job "
    "finished, see docs/runbook.md for the steps. The key point is that the token budget of the "
    "nightly job stays below 4096 and that nobody edits the guard while the deploy runs."
)
WITH_SECRET = NOTE + " The password is " + "Kestrel" + "4471!"


def wilson(hits: int, of: int) -> list[float]:
    """Return an interval for a share that is sound near 0 and 1 too."""
    if not of:
        return [0.0, 1.0]
    share = hits / of
    middle = (share + Z * Z / (2 * of)) / (1 + Z * Z / of)
    reach = Z * math.sqrt(share * (1 - share) / of + Z * Z / (4 * of * of)) / (1 + Z * Z / of)
    return [round(max(0.0, middle - reach), 4), round(min(1.0, middle + reach), 4)]


def rate(hits: int, of: int) -> dict[str, Any]:
    return {
        "count": hits,
        "of": of,
        "share": round(hits / of, 4) if of else None,
        "interval": wilson(hits, of),
    }


def covered(row: Labelled) -> bool:
    """Return whether no character of the secret would be stored."""
    hidden = {at for found in find(row.text) for at in range(found.start, found.stop)}
    return hidden.issuperset(range(row.start, row.stop))


def named(row: Labelled) -> bool:
    return any(
        found.kind == row.kind and found.start < row.stop and row.start < found.stop
        for found in find(row.text)
    )


def measure(split: str) -> dict[str, Any]:
    secrets, harmless = load("secrets", split), load("harmless", split)
    kinds: dict[str, list[bool]] = defaultdict(list)
    for row in secrets:
        assert row.kind is not None
        kinds[row.kind].append(covered(row))
    alarms = [row.text for row in harmless if find(row.text)]
    found = [hit for hits in kinds.values() for hit in hits]
    return {
        "recall": rate(sum(found), len(found)),
        "kind_named_right": rate(sum(named(row) for row in secrets), len(secrets)),
        "false_positives": rate(len(alarms), len(harmless)),
        "per_kind": {kind: rate(sum(hits), len(hits)) for kind, hits in sorted(kinds.items())},
        "false_positive_texts": [text[:60] for text in alarms],
    }


def library_alone(split: str) -> dict[str, Any]:
    """Return detect-secrets' findings on the texts as files, default plugins, no verification."""
    from detect_secrets.core.secrets_collection import SecretsCollection
    from detect_secrets.settings import default_settings, get_settings

    def found(text: str, folder: Path) -> list[str]:
        file = folder / "text.txt"
        file.write_text(text, encoding="utf-8")
        secrets = SecretsCollection()
        secrets.scan_file(str(file))
        return [str(secret.secret_value) for _, secret in secrets]

    def overlaps(row: Labelled, values: list[str]) -> bool:
        places = [(row.text.find(value), len(value)) for value in values]
        return any(at >= 0 and at < row.stop and row.start < at + length for at, length in places)

    with default_settings(), tempfile.TemporaryDirectory() as folder:
        get_settings().disable_filters(
            "detect_secrets.filters.common.is_ignored_due_to_verification_policies"
        )
        secrets, harmless = load("secrets", split), load("harmless", split)
        return {
            "recall_of_any_part": rate(
                sum(overlaps(row, found(row.text, Path(folder))) for row in secrets), len(secrets)
            ),
            "false_positives": rate(
                sum(bool(found(row.text, Path(folder))) for row in harmless), len(harmless)
            ),
        }


def public_texts(folder: Path) -> Iterator[str]:
    """Return paragraphs of notes, questions, code, chats and encyclopedias from the test sets."""
    with tarfile.open(folder / "til" / "til.tar.gz") as notes:
        for member in notes.getmembers():
            file = notes.extractfile(member) if member.name.endswith(".md") else None
            if file is not None:
                yield from re.split(r"\n\s*\n", file.read().decode(errors="replace"))
    yield from _strings(json.loads((folder / "cosqa" / "cosqa-retrieval-dev-500.json").read_text()))
    yield from _strings(json.loads((folder / "cosqa" / "code_idx_map.txt").read_text()))
    for name in ("locomo/locomo10.json.gz", "multihop/hotpotqa_corpus.json.gz"):
        yield from _strings(json.loads(gzip.decompress((folder / name).read_bytes())))


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value[:MOST_CHARACTERS]
    elif isinstance(value, dict):
        yield from (text for inner in value.values() for text in _strings(inner))
    elif isinstance(value, list):
        yield from (text for inner in value for text in _strings(inner))


def on_public_texts(folder: Path) -> dict[str, Any]:
    """Count alarms on the unlabeled held-out half. Some are right: it contains keys."""
    texts = sorted(
        {
            text
            for text in public_texts(folder)
            if hashlib.sha256(text.encode()).digest()[-1] % 2 == 0
        }
    )
    alarms = [[found.kind for found in find(text)] for text in texts]
    kinds = Counter(kind for one in alarms for kind in set(one))
    return {"alarms": rate(sum(map(bool, alarms)), len(texts)), "kinds": dict(kinds)}


def microseconds(act: Callable[[], object], rounds: int = 300, repeats: int = 9) -> float:
    def once() -> float:
        started = time.perf_counter()
        for _ in range(rounds):
            act()
        return (time.perf_counter() - started) / rounds * 1e6

    return round(statistics.median(once() for _ in range(repeats)), 2)


def speed() -> dict[str, Any]:
    yardstick = microseconds(lambda: hashlib.sha256(NOTE.encode()).digest())
    longest = (NOTE + " ") * (32 * 1024 // (len(NOTE) + 1))
    times = {
        "sha256_of_the_note": yardstick,
        "note_without_secret": microseconds(lambda: find(NOTE)),
        "note_with_password": microseconds(lambda: find(WITH_SECRET)),
        "memory_of_32_kib": microseconds(lambda: find(longest), rounds=3),
    }
    return {"words_of_the_note": len(NOTE.split()), "microseconds": times}


def commit() -> str:
    return subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True
    ).stdout.strip()


def main(arguments: Sequence[str]) -> None:
    result = {
        "commit": commit(),
        "split": "test",
        "labels": "tests/unit/secrets/secrets.jsonl and harmless.jsonl; rules were tuned on the other half only",
        **measure("test"),
        "tune_half": {
            name: value
            for name, value in measure("tune").items()
            if name in ("recall", "false_positives")
        },
        "detect_secrets_alone": library_alone("test"),
        "speed": speed(),
    }
    if arguments:
        result["public_texts"] = on_public_texts(Path(arguments[0]))
    OUT.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(
        json.dumps(
            {
                name: result[name]
                for name in (
                    "recall",
                    "kind_named_right",
                    "false_positives",
                    "tune_half",
                    "detect_secrets_alone",
                    "speed",
                )
            },
            indent=1,
        )
    )


if __name__ == "__main__":
    main(sys.argv[1:])
