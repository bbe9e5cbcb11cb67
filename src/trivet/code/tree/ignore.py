"""Ignore files in gitignore's syntax: which lines count, and whether a path is ignored by those above it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from trivet.contained_file import read_regular
from trivet.errors import InvalidInput

GITIGNORE = ".gitignore"
OWN = ".trivetignore"
LARGEST = 64 * 2**10
# A line becomes a regular expression that tries every place for every star: on a name of 255 letters three take 10 ms,
# four 700 ms, eight for ever. Ignore files that are meant well have one or two.
MOST_STARS = 3
_SPECIAL = re.compile(r"[*?\[\]\\]")


class IgnoreFiles:
    """The ignore files of a tree by their folders. Of those above a path, the deepest that knows it decides.

    Those of a folder are added before anything in it is asked about.
    """

    def __init__(self, tell: Callable[[str, str], None]) -> None:
        """`tell` is given the path of an ignore file that is not heeded, or not all of it, and why."""
        self._tell = tell
        self._files: dict[str, _IgnoreLines] = {}
        self._above: dict[str, Sequence[tuple[int, _IgnoreLines]]] = {}
        self._ignored: dict[str, bool] = {"": False}

    def __len__(self) -> int:
        return len(self._files)

    def add(self, folder: str, file: Path) -> None:
        """Reads an ignore file. `folder` is the path it counts for, from the root, with a slash at its end."""
        try:
            data, _ = read_regular(file, LARGEST)
        except InvalidInput as error:
            self._tell(f"{folder}{file.name}", f"an ignore file that is not heeded: {error}")
            return
        lines = data.decode("utf-8-sig", "surrogateescape").replace("\r\n", "\n").split("\n")
        heeded = [line for line in lines if _is_heeded(line)]
        if (others := len(lines) - len(heeded)) > 0:
            self._tell(f"{folder}{file.name}", f"{others} of its lines are not heeded: too many stars, or [[")
        self._files[folder] = _IgnoreLines(heeded)

    def ignores(self, path: str) -> bool:
        """Whether a path from the root is ignored, or a folder above it. The path of a folder ends with a slash."""
        if not self._files:
            return False
        if parent_of(path) not in self._ignored:
            for above in reversed(list(folders_of(path))):
                if above not in self._ignored:
                    self._ignored[above] = self._decide(above)
        return self._decide(path)

    def _decide(self, path: str) -> bool:
        folder = parent_of(path)
        if self._ignored[folder]:
            return True
        for begins, lines in self._files_above(folder):
            if (found := lines.decide(path[begins:])) is not None:
                return found
        return False

    def _files_above(self, folder: str) -> Sequence[tuple[int, _IgnoreLines]]:
        if folder not in self._above:
            above = (folder, *folders_of(folder))
            self._above[folder] = [(len(one), self._files[one]) for one in above if one in self._files]
        return self._above[folder]


class _IgnoreLines:
    """The lines of an ignore file. Most paths match none, which is found out first by how the lines begin and end."""

    def __init__(self, lines: Sequence[str]) -> None:
        from pathspec import GitIgnoreSpec  # here, because it takes long to load and most roots have git

        self._spec = GitIgnoreSpec.from_lines(lines, backend="simple")
        patterns = [line.removeprefix("!").rstrip() for line in lines if line.strip() and not line.startswith("#")]
        self._names = _Ends([one.rstrip("/") for one in patterns if "/" not in one.rstrip("/")])
        self._paths = _Ends([one.strip("/") for one in patterns if "/" in one.rstrip("/")])
        unclear = {*self._names.unclear, *self._paths.unclear}
        self._unclear = GitIgnoreSpec.from_lines([one for one in patterns if one.strip("/") in unclear]).patterns

    def decide(self, path: str) -> bool | None:
        """Whether a path from the file's folder is ignored; None if no line knows it."""
        whole = path.rstrip("/")
        if (
            self._names.may_match(whole[whole.rfind("/") + 1 :])
            or self._paths.may_match(whole)
            or any(pattern.match_file(path) for pattern in self._unclear)
        ):
            return self._spec.check_file(path).include
        return None


class _Ends:
    """How patterns begin or end, up to or after what stands for other letters: only such texts can match them."""

    def __init__(self, patterns: Iterable[str]) -> None:
        split = [(_SPECIAL.split(one), one) for one in patterns]
        self._exact = {one for parts, one in split if len(parts) == 1}
        self._first = tuple(parts[0] for parts, _ in split if len(parts) > 1 and parts[0])
        # A pattern with **/ also matches where there is no folder, and so no slash.
        self._last = tuple(parts[-1].lstrip("/") for parts, _ in split if not parts[0] and parts[-1].lstrip("/"))
        self.unclear = [one for parts, one in split if not parts[0] and not parts[-1].lstrip("/")]

    def may_match(self, text: str) -> bool:
        return text in self._exact or text.startswith(self._first) or text.endswith(self._last)


def folders_of(path: str) -> Iterator[str]:
    """The folders that a path lies in, deepest first; the last is the root, which is empty."""
    end = len(path) - 1
    while end >= 0:
        end = path.rfind("/", 0, end)
        yield path[: end + 1]


def parent_of(path: str) -> str:
    return path[: path.rfind("/", 0, -1) + 1]


def _is_heeded(line: str) -> bool:
    """Not a line with too many stars, nor one with a named class such as [[:digit:]], which pathspec does not know."""
    if line.startswith("#"):
        return True
    few = line.count("**") <= MOST_STARS and all(part.count("*") <= MOST_STARS for part in line.split("/"))
    return few and "[[" not in line
