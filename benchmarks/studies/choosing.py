"""Choices made on some collections and tested on the others, with paired bootstrap intervals.

Collections made from the same originals are left out together: turns of a conversation reveal the
sessions that hold them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pools import FEATURES

from trivet.lab.measure.comparison import bootstrap_means

Values = NDArray[np.float64]

GROUPS: Mapping[str, str] = {
    "locomo": "dialogue",
    "sessions": "dialogue",
    "mixed-dialogue": "dialogue",
    "musique": "wikipedia",
    "hotpotqa": "wikipedia",
    "mixed-passages": "wikipedia",
    "mixed/dev": "made up",
    "lihua": "chats",
    "scifact": "science",
    "cranfield": "aerodynamics",
    "cosqa": "code",
}
RESAMPLES = 2_000
PARTS = 3
ONE_FOR_ALL = "one weight for all"


@dataclass(frozen=True)
class Measured:
    """Values of one collection: a row per question, a column per setting."""

    labels: Sequence[str]
    values: Values

    @cached_property
    def _places(self) -> dict[str, int]:
        return {label: place for place, label in enumerate(self.labels)}

    def of(self, label: str) -> Values:
        column: Values = self.values[:, self._places[label]]
        return column

    def save(self, file: Path) -> None:
        np.savez_compressed(
            file, labels=np.array(self.labels), values=self.values.astype(np.float32)
        )

    @staticmethod
    def load(file: Path) -> Measured:
        with np.load(file) as kept:
            return Measured(kept["labels"].tolist(), kept["values"].astype(np.float64))


Corpora = Mapping[str, Measured]


def mean_of(corpora: Corpora, label: str, but: str | None = None) -> float:
    """Average over the choosing collections with equal weight, without one group."""
    return float(
        np.mean([corpora[name].of(label).mean() for name, group in GROUPS.items() if group != but])
    )


def row(corpora: Corpora, label: str, base: str) -> dict[str, Any]:
    """Return each collection's mean and difference from the base, and the mean difference."""
    changes = {name: one.of(label) - one.of(base) for name, one in corpora.items()}
    return {
        "mean": round(mean_of(corpora, label), 4),
        "difference": _over({name: changes[name] for name in GROUPS}),
        "corpora": {
            name: {
                "nDCG@10": round(float(one.of(label).mean()), 4),
                "difference": _interval(changes[name]),
            }
            for name, one in corpora.items()
        },
    }


def left_out(corpora: Corpora, labels: Sequence[str], base: str) -> dict[str, Any]:
    """Return what the other groups choose for each collection, and its difference from the base."""
    chosen = {
        group: max(labels, key=lambda one: mean_of(corpora, one, but=group)) for group in _groups()
    }
    changes = {
        name: corpora[name].of(chosen[group]) - corpora[name].of(base)
        for name, group in GROUPS.items()
    }
    return {
        "on all": max(labels, key=lambda one: mean_of(corpora, one)),
        "mean": round(
            float(
                np.mean([corpora[name].of(chosen[group]).mean() for name, group in GROUPS.items()])
            ),
            4,
        ),
        "difference": _over(changes),
        "corpora": {
            name: {"chosen": chosen[group], "difference": _interval(changes[name])}
            for name, group in GROUPS.items()
        },
    }


def by_question(corpora: Corpora, labels: Sequence[str], base: str) -> dict[str, Any]:
    """Choose a setting per third of a feature on the other groups, and in hindsight."""
    found: dict[str, Any] = {ONE_FOR_ALL: left_out(corpora, labels, base)}
    for feature in FEATURES:
        changes = {}
        for name, group in GROUPS.items():
            cuts, rule = _rule(corpora, labels, feature, group)
            here = np.array([corpora[name].of(label) for label in rule])
            thirds = np.searchsorted(cuts, corpora[name].of(feature))
            changes[name] = here[thirds, np.arange(len(thirds))] - corpora[name].of(base)
        cuts, rule = _rule(corpora, labels, feature, None)
        found[feature] = _changes(changes) | {
            "on all": {"cuts": np.round(cuts, 3).tolist(), "chosen": rule}
        }
    best = {
        name: np.max([corpora[name].of(label) for label in labels], axis=0) - corpora[name].of(base)
        for name in GROUPS
    }
    return found | {"the best for each, known afterwards": _changes(best)}


def _changes(changes: Mapping[str, Values]) -> dict[str, Any]:
    return {
        "difference": _over(changes),
        "corpora": {name: {"difference": _interval(one)} for name, one in changes.items()},
    }


def _rule(
    corpora: Corpora, labels: Sequence[str], feature: str, but: str | None
) -> tuple[Values, list[str]]:
    names = [name for name, group in GROUPS.items() if group != but]
    everything = np.concatenate([corpora[name].of(feature) for name in names])
    cuts = np.quantile(everything, [part / PARTS for part in range(1, PARTS)])
    gains = np.zeros((PARTS, len(labels)))
    for name in names:
        table = np.column_stack([corpora[name].of(label) for label in labels])
        np.add.at(gains, np.searchsorted(cuts, corpora[name].of(feature)), table / len(table))
    return cuts, [labels[int(np.argmax(part))] for part in gains]


def _groups() -> list[str]:
    return list(dict.fromkeys(GROUPS.values()))


def _interval(changes: Values) -> list[float]:
    return _bounds(float(changes.mean()), bootstrap_means(changes[:, None], RESAMPLES, 0)[:, 0])


def _over(changes: Mapping[str, Values]) -> list[float]:
    drawn = [
        bootstrap_means(one[:, None], RESAMPLES, place)[:, 0]
        for place, one in enumerate(changes.values())
    ]
    return _bounds(float(np.mean([one.mean() for one in changes.values()])), np.mean(drawn, axis=0))


def _bounds(middle: float, drawn: Values) -> list[float]:
    low, high = np.quantile(drawn, (0.025, 0.975))
    return [round(float(one), 4) for one in (middle, low, high)]
