"""Paths to leave out: by name, by ignore files, and folders that tools made."""

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
    "zip gz tgz bz2 xz zst lz4 7z rar tar jar war ear whl egg deb rpm apk ipa dmg iso nupkg crate "
    "gem "
    # executables and compiler output
    "exe dll so dylib a lib o obj ko bin class pyc pyo pyd wasm elc beam rlib rmeta pdb nib node "
    # binary documents and data
    "pdf doc docx xls xlsx ppt pptx odt ods odp epub djvu "
    "db sqlite sqlite3 mdb dbf parquet arrow feather avro orc h5 hdf5 npy npz pkl pickle joblib "
    "mat rds rdata "
    "onnx pt pth safetensors gguf tflite pb ckpt mo gmo shp shx dta sas7bdat xpt blend fbx glb stl "
    # files that tools write for themselves
    "map lockb".split()
)
# Search shows file content, so files that may hold keys are never read.
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

# Third-party folders, known by their names.
THIRD_PARTY_FOLDERS = frozenset(
    ("node_modules", "bower_components", "jspm_packages", "site-packages", "__pycache__")
)
# Build output, if one of these files is next to it.
BUILD_OUTPUT_FOLDERS = {
    "target": frozenset(("Cargo.toml", "pom.xml", "build.sbt")),
    "_build": frozenset(("mix.exs", "dune-project", "rebar.config")),
    "deps": frozenset(("mix.exs",)),
    "Pods": frozenset(("Podfile",)),
    "dist-newstyle": frozenset(("cabal.project",)),
    "zig-out": frozenset(("build.zig",)),
    "zig-cache": frozenset(("build.zig",)),
}
# Files that mark their folder as made by a tool.
MARKS = {
    "CACHEDIR.TAG": "a cache",
    "pyvenv.cfg": "a Python environment",
    "CMakeCache.txt": "build output",
    "build.ninja": "build output",
    ".ninja_log": "build output",
}
# Hidden folders that hold source code.
_SHOWN = frozenset(
    (".github", ".gitlab", ".circleci", ".buildkite", ".husky", ".cargo", ".storybook")
)


def file_reason(name: str) -> str | None:
    ending = name.rpartition(".")[2].lower()
    if ending in NOT_TEXT and len(ending) < len(name):
        return "not text, by its extension"
    if name in _KEY_FILES or (ending in _KEYS and len(ending) < len(name)):
        return "may hold keys"
    if name.startswith(".env.") and ending not in _ENVIRONMENT_EXAMPLES:
        return "may hold keys"
    return None


def folder_reason(name: str, siblings: Collection[str]) -> str | None:
    """Return why not to enter a folder with these names next to it, or None."""
    if name.startswith(".") and name not in _SHOWN:
        return "hidden"
    if name in THIRD_PARTY_FOLDERS:
        return "third-party code"
    if any(mark in siblings for mark in BUILD_OUTPUT_FOLDERS.get(name, ())):
        return "build output"
    return None


def content_reason(names: Collection[str]) -> str | None:
    return next((reason for mark, reason in MARKS.items() if mark in names), None)


GITIGNORE = ".gitignore"
TRIVET_IGNORE = ".trivetignore"
MAX_IGNORE_BYTES = 64 * 2**10
# A line becomes a regular expression that tries every place for every star. On a name of 255
# letters three stars take 10 ms, four 700 ms, and eight never finish. Genuine ignore files have one
# or two.
MAX_WILDCARDS = 3
_SPECIAL = re.compile(r"[*?\[\]\\]")


class IgnoreFiles:
    """The ignore files of a tree; the deepest that matches a path decides.

    Add a folder's files before asking about its content. `report` receives each file that is not
    fully applied, and why.
    """

    def __init__(self, report: Callable[[str, str], None]) -> None:
        self._report = report
        self._files: dict[str, _IgnoreLines] = {}
        self._above: dict[str, Sequence[tuple[int, _IgnoreLines]]] = {}
        self._ignored: dict[str, bool] = {"": False}

    def __len__(self) -> int:
        return len(self._files)

    def add(self, folder: str, file: Path) -> None:
        """Read an ignore file for `folder`, a path that ends with a slash."""
        try:
            data, _ = read_regular_file(file, MAX_IGNORE_BYTES)
        except InvalidInput as error:
            self._report(f"{folder}{file.name}", f"ignore file not applied: {error}")
            return
        lines = data.decode("utf-8-sig", "surrogateescape").replace("\r\n", "\n").split("\n")
        heeded = [line for line in lines if _is_active_line(line)]
        if (others := len(lines) - len(heeded)) > 0:
            self._report(
                f"{folder}{file.name}",
                f"{others} of its lines not applied: too many stars, or [[",
            )
        self._files[folder] = _IgnoreLines(heeded)

    def ignores(self, path: str) -> bool:
        """Return whether a path or a folder above is ignored; folders end with a slash."""
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
    """The lines of an ignore file; cheap checks skip the patterns for most paths."""

    def __init__(self, lines: Sequence[str]) -> None:
        from pathspec import GitIgnoreSpec  # here: slow to load, and not needed with git

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
        whole = path.rstrip("/")
        if (
            self._names.may_match(whole[whole.rfind("/") + 1 :])
            or self._paths.may_match(whole)
            or any(pattern.match_file(path) for pattern in self._unclear)
        ):
            return self._spec.check_file(path).include
        return None


class _PathSuffixes:
    """Literal starts and ends of patterns, without which no text can match."""

    def __init__(self, patterns: Iterable[str]) -> None:
        split = [(_SPECIAL.split(one), one) for one in patterns]
        self._exact = {one for parts, one in split if len(parts) == 1}
        self._first = tuple(parts[0] for parts, _ in split if len(parts) > 1 and parts[0])
        # A pattern with **/ also matches without a folder, so without the slash.
        self._last = tuple(
            parts[-1].lstrip("/") for parts, _ in split if not parts[0] and parts[-1].lstrip("/")
        )
        self.unclear = [one for parts, one in split if not parts[0] and not parts[-1].lstrip("/")]

    def may_match(self, text: str) -> bool:
        return text in self._exact or text.startswith(self._first) or text.endswith(self._last)


def folders_of(path: str) -> Iterator[str]:
    """Yield the folders of a path, deepest first, down to "", the root."""
    end = len(path) - 1
    while end >= 0:
        end = path.rfind("/", 0, end)
        yield path[: end + 1]


def parent_of(path: str) -> str:
    return path[: path.rfind("/", 0, -1) + 1]


def _is_active_line(line: str) -> bool:
    """Reject many stars, and classes such as [[:digit:]], which pathspec lacks."""
    if line.startswith("#"):
        return True
    few = line.count("**") <= MAX_WILDCARDS and all(
        part.count("*") <= MAX_WILDCARDS for part in line.split("/")
    )
    return few and "[[" not in line


def tool_folders(root: Path, untracked: Collection[str], only: Iterable[str]) -> dict[str, str]:
    """Return the folders of these paths with third-party code or build output, and why."""
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
    above_requested = {above for path in only for above in folders_of(f"{path}/x") if above}
    return {
        above: MARKS[name]
        for above in above_requested
        for name in MARKS
        if (root / above / name).exists()
    }
