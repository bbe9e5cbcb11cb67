"""From the answer of another system to hits that can be fused. Each is checked alone: a bad one costs only itself."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from trivet.search.fuse.check_ranking import LARGEST_SCORE
from trivet.settings.systems import OtherSystem
from trivet.types import Value

if TYPE_CHECKING:
    from trivet.search.systems.ids import IdMap

# About 500 tokens a hit, as much as of a memory.
TEXT_CHARACTERS = 2_000
TITLE_CHARACTERS = 300
ID_CHARACTERS = 2_000
# A list without scores is scored by place: 10 / (10 + place). The first few differ, the later ones hardly do.
PLACE_CONSTANT = 10.0

_control = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_unprintable = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")

# A hit as it came, by the names of our fields. Nothing in it has been looked at.
Raw = dict[str, Any]


class SystemFailed(Exception):
    """A system gave no answer that can be used. The message is shown in the answer's health.

    It is in our words alone. What the system itself said is in `quoted`, which `trivet doctor` shows to people: an
    agent would read it outside of what is marked as data.
    """

    def __init__(self, message: str, quoted: str = "") -> None:
        super().__init__(message)
        self.quoted = quoted


class SystemQuery(msgspec.Struct, frozen=True):
    """What is sent to a system: the query without secrets, and those of its words that tell documents apart."""

    query: str
    words: tuple[str, ...]


class SystemHit(Value, frozen=True, kw_only=True):
    """One hit of a system, checked and bounded. `common`: its id is a URI or a path that others use as well."""

    id: str
    common: bool
    score: float
    text: str = ""
    title: str | None = None
    line: int | None = None


class Reply(Value, frozen=True, kw_only=True):
    """The hits of one system, best first, and what was wrong with those left out."""

    hits: tuple[SystemHit, ...] = ()
    floor: float = 0.0
    ranks_only: bool = False
    notes: tuple[str, ...] = ()


def decoded(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise SystemFailed("its answer is not JSON" if text.strip() else "it answered nothing", text) from None


def raw_hits(value: Any, system: OtherSystem) -> Iterator[Raw]:
    """The hits in a decoded answer, by our names of their fields."""
    found = value if isinstance(value, list) and system.hits == "hits" else at(value, system.hits)
    if not isinstance(found, list):
        where = f"at {system.hits!r}" if system.hits else "in its answer"
        raise SystemFailed(f"there is no list of hits {where}")
    for hit in found:
        yield (
            {name: at(hit, getattr(system, name)) for name in ("id", "score", "text", "title", "line")}
            if isinstance(hit, dict | list)
            else {"id": hit}
        )


def at(value: Any, path: str) -> Any:
    """What lies at a path such as `result.items` or `chunks.0.text`; None where nothing does."""
    for step in path.split(".") if path else ():
        if isinstance(value, dict):
            value = value.get(step)
        elif isinstance(value, list) and step.isdecimal() and int(step) < len(value):
            value = value[int(step)]
        else:
            return None
    return value


def reply_of(raw: Iterable[Raw], system: OtherSystem, names: IdMap) -> Reply:
    wrong: Counter[str] = Counter()
    hits = [hit for one in raw if (hit := _checked(one, system, names, wrong)) is not None]
    scored = [(score, hit) for score, hit in hits if score is not None]
    ranks_only = len(scored) < len(hits)
    if ranks_only:
        best = [_scored(hit, PLACE_CONSTANT / (PLACE_CONSTANT + place)) for place, (_, hit) in enumerate(hits, 1)]
    else:
        ordered = sorted(scored, key=lambda pair: -pair[0])  # stable: equal scores stay as they came
        best = [_scored(hit, score) for score, hit in ordered]
    kept = _once(best, wrong)[: system.fetch_k]
    own = sum(not hit.common for hit in kept)
    if own and system.map:
        wrong["not in its map, kept under their own names"] = own
    if ranks_only and scored:
        wrong["without a score, so places count instead"] = len(hits) - len(scored)
    floor = 0.0 if ranks_only else _floor(kept, system)
    notes = tuple(f"{count} of its hits {what}" for what, count in wrong.items())
    return Reply(hits=tuple(kept), floor=floor, ranks_only=ranks_only, notes=notes)


def _checked(raw: Raw, system: OtherSystem, names: IdMap, wrong: Counter[str]) -> tuple[float | None, SystemHit] | None:
    id = raw.get("id")
    number = isinstance(id, int) and not isinstance(id, bool)
    common, is_common = names.of(str(id), number) if number or _usable(id) else ("", False)
    if not _usable(common):  # also after it was mapped: a URI may hide what a path must not hold
        wrong["without an id that can be used"] += 1
        return None
    given = raw.get("score")
    score = None if given is None else _number(given)
    if given is not None and score is None:
        wrong["with a score that is no finite number"] += 1
        return None
    if score is not None and system.lower_is_better:
        score = -score
    if score is not None and system.floor is not None and score < system.floor:
        wrong[f"with a score below the floor of {system.floor:g}"] += 1
        return None
    line, title = raw.get("line"), raw.get("title")
    return score, SystemHit(
        id=common,
        common=is_common,
        score=0.0,
        text=_bounded(raw.get("text"), TEXT_CHARACTERS),
        title=_bounded(title, TITLE_CHARACTERS) or None,
        line=line if isinstance(line, int) and not isinstance(line, bool) and line > 0 else None,
    )


def _usable(id: Any) -> bool:
    return isinstance(id, str) and 0 < len(id) <= ID_CHARACTERS and not _control.search(id)


def _number(given: Any) -> float | None:
    if isinstance(given, bool) or not isinstance(given, int | float):
        return None
    try:
        number = float(given)
    except OverflowError:
        return None
    return number if math.isfinite(number) and abs(number) <= LARGEST_SCORE else None


def _bounded(text: Any, most: int) -> str:
    return clean(text[:most]) if isinstance(text, str) else ""


def clean(text: str) -> str:
    """Without what steers a terminal, and without halves of characters."""
    return _unprintable.sub("", text.encode("utf-8", "replace").decode())


def _scored(hit: SystemHit, score: float) -> SystemHit:
    return SystemHit(id=hit.id, common=hit.common, score=score, text=hit.text, title=hit.title, line=hit.line)


def _once(hits: Iterable[SystemHit], wrong: Counter[str]) -> list[SystemHit]:
    """The best of those that name the same place; two lines of a file are two places."""
    kept: dict[tuple[str, int | None], SystemHit] = {}
    for hit in hits:
        if (hit.id, hit.line) in kept:
            wrong["with an id that came before"] += 1
        else:
            kept[hit.id, hit.line] = hit
    return list(kept.values())


def _floor(hits: list[SystemHit], system: OtherSystem) -> float:
    if system.floor is not None:
        return system.floor
    return min(0.0, min((hit.score for hit in hits), default=0.0))
