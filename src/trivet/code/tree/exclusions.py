"""What is left out by its name alone: what is certainly no text, keys, and folders of others' code or build output.

Ignore files in gitignore's syntax: which lines count, and whether a path is ignored by those above it.

Which folders tools have made, among those of untracked files: a new project often has no ignore file yet.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from trivet.common.files import read_regular_file
from trivet.errors import InvalidInput

NOT_TEXT = frozenset(
    # images, sound, film
    "png jpg jpeg gif bmp ico icns tif tiff webp avif heic psd xcf ai eps raw cr2 "
    "mp3 wav ogg flac aac m4a opus mid midi mp4 m4v mov avi mkv webm wmv flv "
    # fonts
    "ttf otf woff woff2 eot pfb pfm "
    # archives and packages
    "zip gz tgz bz2 xz zst lz4 7z rar tar jar war ear whl egg deb rpm apk ipa dmg iso nupkg crate gem "
    # programs and what compilers write
    "exe dll so dylib a lib o obj ko bin class pyc pyo pyd wasm elc beam rlib rmeta pdb nib node "
    # documents and data that are no text
    "pdf doc docx xls xlsx ppt pptx odt ods odp epub djvu "
    "db sqlite sqlite3 mdb dbf parquet arrow feather avro orc h5 hdf5 npy npz pkl pickle joblib mat rds rdata "
    "onnx pt pth safetensors gguf tflite pb ckpt mo gmo shp shx dta sas7bdat xpt blend fbx glb stl "
    # what tools write for themselves
    "map lockb".split()
)
# A search shows what it finds, so what holds keys is not read at all.
_KEYS = frozenset("pem key p12 pfx jks keystore kdbx gpg ppk".split())
_KEY_FILES = frozenset(
    (
        ".env",
        ".netrc",
        ".pgpass",
        ".pypirc",
        ".htpasswd",
        "id_rsa",
        "id_dsa",
        "id_ecdsa",
        "id_ed25519",
    )
)
_ENVIRONMENT_EXAMPLES = ("example", "sample", "template", "dist", "defaults")

# Folders of a plain walk (git's own ignore files say it otherwise): by their name alone,
THIRD_PARTY_FOLDERS = frozenset(
    ("node_modules", "bower_components", "jspm_packages", "site-packages", "__pycache__")
)
# and by their name where one of these stands beside them.
BUILD_OUTPUT_FOLDERS = {
    "target": frozenset(("Cargo.toml", "pom.xml", "build.sbt")),
    "_build": frozenset(("mix.exs", "dune-project", "rebar.config")),
    "deps": frozenset(("mix.exs",)),
    "Pods": frozenset(("Podfile",)),
    "dist-newstyle": frozenset(("cabal.project",)),
    "zig-out": frozenset(("build.zig",)),
    "zig-cache": frozenset(("build.zig",)),
}
# What stands in a folder that some tool made.
MARKS = {
    "CACHEDIR.TAG": "a cache",
    "pyvenv.cfg": "a Python environment",
    "CMakeCache.txt": "build output",
    "build.ninja": "build output",
    ".ninja_log": "build output",
}
# Hidden folders that hold code.
_SHOWN = frozenset(
    (".github", ".gitlab", ".circleci", ".buildkite", ".husky", ".cargo", ".storybook")
)


def file_reason(name: str) -> str | None:
    """Why a file of this name is left out; None if it is not."""
    ending = name.rpartition(".")[2].lower()
    if ending in NOT_TEXT and len(ending) < len(name):
        return "no text, by its ending"
    if name in _KEY_FILES or (ending in _KEYS and len(ending) < len(name)):
        return "may hold keys"
    if name.startswith(".env.") and ending not in _ENVIRONMENT_EXAMPLES:
        return "may hold keys"
    return None


def folder_reason(name: str, beside: Collection[str]) -> str | None:
    """Why a folder of this name, with these names beside it, is not walked into."""
    if name.startswith(".") and name not in _SHOWN:
        return "hidden"
    if name in THIRD_PARTY_FOLDERS:
        return "others' code"
    if any(mark in beside for mark in BUILD_OUTPUT_FOLDERS.get(name, ())):
        return "build output"
    return None


def content_reason(names: Collection[str]) -> str | None:
    """Why a folder with these names in it is not walked into."""
    return next((reason for mark, reason in MARKS.items() if mark in names), None)


GITIGNORE = ".gitignore"
TRIVET_IGNORE = ".trivetignore"
MAX_IGNORE_BYTES = 64 * 2**10
# A line becomes a regular expression that tries every place for every star: on a name of 255 letters three take 10 ms,
# four 700 ms, eight for ever. Ignore files that are meant well have one or two.
MAX_WILDCARDS = 3
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
            data, _ = read_regular_file(file, MAX_IGNORE_BYTES)
        except InvalidInput as error:
            self._tell(f"{folder}{file.name}", f"an ignore file that is not heeded: {error}")
            return
        lines = data.decode("utf-8-sig", "surrogateescape").replace("\r\n", "\n").split("\n")
        heeded = [line for line in lines if _is_active_line(line)]
        if (others := len(lines) - len(heeded)) > 0:
            self._tell(
                f"{folder}{file.name}",
                f"{others} of its lines are not heeded: too many stars, or [[",
            )
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
            self._above[folder] = [
                (len(one), self._files[one]) for one in above if one in self._files
            ]
        return self._above[folder]


class _IgnoreLines:
    """The lines of an ignore file. Most paths match none, which is found out first by how the lines begin and end."""

    def __init__(self, lines: Sequence[str]) -> None:
        from pathspec import (
            GitIgnoreSpec,
        )  # here, because it takes long to load and most roots have git

        self._spec = GitIgnoreSpec.from_lines(lines, backend="simple")
        patterns = [
            line.removeprefix("!").rstrip()
            for line in lines
            if line.strip() and not line.startswith("#")
        ]
        self._names = _PathSuffixes(
            [one.rstrip("/") for one in patterns if "/" not in one.rstrip("/")]
        )
        self._paths = _PathSuffixes([one.strip("/") for one in patterns if "/" in one.rstrip("/")])
        unclear = {*self._names.unclear, *self._paths.unclear}
        self._unclear = GitIgnoreSpec.from_lines(
            [one for one in patterns if one.strip("/") in unclear]
        ).patterns

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


class _PathSuffixes:
    """How patterns begin or end, up to or after what stands for other letters: only such texts can match them."""

    def __init__(self, patterns: Iterable[str]) -> None:
        split = [(_SPECIAL.split(one), one) for one in patterns]
        self._exact = {one for parts, one in split if len(parts) == 1}
        self._first = tuple(parts[0] for parts, _ in split if len(parts) > 1 and parts[0])
        # A pattern with **/ also matches where there is no folder, and so no slash.
        self._last = tuple(
            parts[-1].lstrip("/") for parts, _ in split if not parts[0] and parts[-1].lstrip("/")
        )
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


def _is_active_line(line: str) -> bool:
    """Not a line with too many stars, nor one with a named class such as [[:digit:]], which pathspec does not know."""
    if line.startswith("#"):
        return True
    few = line.count("**") <= MAX_WILDCARDS and all(
        part.count("*") <= MAX_WILDCARDS for part in line.split("/")
    )
    return few and "[[" not in line


def tool_folders(root: Path, untracked: Collection[str], only: Iterable[str]) -> dict[str, str]:
    """The folders of these paths that hold others' code or build output, by their names or by marks in them, and why.

    :param only: the paths that were asked for, if not all were: marks in the folders above them are not listed.
    """
    parents = {parent_of(path) for path in untracked}
    folders = {above for parent in parents for above in folders_of(f"{parent}x") if above}
    marks = _marks(untracked) | _marks_above(root, only)
    reasons = ((folder, _name_reason(folder) or marks.get(folder)) for folder in folders)
    return {folder: reason for folder, reason in reasons if reason is not None}


def outermost(made: Mapping[str, str]) -> dict[str, str]:
    return {
        folder: reason
        for folder, reason in made.items()
        if made.keys().isdisjoint(folders_of(folder))
    }


def _name_reason(folder: str) -> str | None:
    return folder_reason(folder[folder.rfind("/", 0, -1) + 1 : -1], ())


def _marks(paths: Iterable[str]) -> dict[str, str]:
    split = (path.rpartition("/") for path in paths)
    return {f"{above}/": MARKS[name] for above, _, name in split if above and name in MARKS}


def _marks_above(root: Path, only: Iterable[str]) -> dict[str, str]:
    above_asked = {above for path in only for above in folders_of(f"{path}/x") if above}
    return {
        above: MARKS[name]
        for above in above_asked
        for name in MARKS
        if (root / above / name).exists()
    }
