"""Newest files, commits with changed lines, and license of a bare git directory."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from code_definitions import LANGUAGES

SMALLEST_FILE, MAX_FILE_BYTES = 200, 150_000  # Bytes.
MOST_COMMITS_READ = 1800
MOST_PATHS_CHANGED = 12
MOST_FILES_CHANGED = 4  # Without tests: a message about more files says little about each.

_NOT_OURS = re.compile(
    r"(^|/)(\.?vendor(ed)?|_vendor|third[_-]?party|3rdparty|node_modules|deps|dependencies|externals?|"
    r"extern|dist|build|target|generated|gen|packages-vendored|blib2to3|contrib|Godeps|Pods|Carthage|extlib|bundled|compat/lib)(/|$)"
    r"|\.min\.|\.pb\.|_pb2|\.generated\.|\.g\.|\.d\.ts$|bundle\.js$|jquery[.-]",
    re.IGNORECASE,
)
_TEST = re.compile(
    r"(^|/)(tests?|testing|specs?|__tests__|testdata|test-\w+|fixtures?|benchmarks?|benches|examples?|samples?|"
    r"docs?|regress|[\w.]*(Tests?|Specs))(/|$)"
    r"|(^|/)tests?[_.]|[_.-](tests?|spec)\.\w+$|Tests?\.\w+$|Specs?\.\w+$|conftest\.py$"
)
_COMMANDS = re.compile(r"(^|/)(bin|libexec|scripts|functions)(/[\w-]+)?$|^plugins/.*/[\w-]+$")
_LICENCE = re.compile(
    r"(^|/)(licen[cs]es?/|licen[cs]e|copying|mit-licen|copyright)[^/]*(?<!\.py)(?<!\.sh)$",
    re.IGNORECASE,
)
_BOT = re.compile(
    r"\bbot\b|\[bot\]|dependabot|renovate|greenkeeper|github-actions|semantic-release",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Commit:
    revision: str
    message: str
    files: dict[str, str]  # Path -> blob of the parent commit.


def git(folder: Path, *arguments: str, given: str | None = None) -> str:
    command = ["git", "--git-dir", str(folder), "-c", "core.quotepath=off", *arguments]
    done = subprocess.run(
        command,
        input=given.encode() if given else None,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    return done.stdout.decode(errors="replace")


def language_of(path: str) -> str | None:
    name = path.rpartition("/")[2]
    if (
        "." not in name
    ):  # Commands without an extension are mostly shell scripts; their first line tells.
        return "bash" if _COMMANDS.search(path) else None
    return LANGUAGES.get(name.rpartition(".")[2].lower())


def is_source(path: str) -> bool:
    return language_of(path) is not None and not _NOT_OURS.search(path) and not _TEST.search(path)


def newest_files(folder: Path) -> list[tuple[str, str]]:
    """Return (path, blob) of the newest commit's source files, without tests and vendored code."""
    rows = []
    for line in git(folder, "ls-tree", "-r", "-l", "HEAD").splitlines():
        about, _, path = line.partition("\t")
        mode, _, blob, size = about.split()
        if (
            mode in ("100644", "100755")
            and SMALLEST_FILE <= int(size if size.isdigit() else 0) <= MAX_FILE_BYTES
            and is_source(path)
        ):
            rows.append((path, blob))
    return rows


def blobs(folder: Path, wanted: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield texts of blobs in the given order, skipping absent and binary ones."""
    command = ["git", "--git-dir", str(folder), "cat-file", "--batch"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdin
        assert process.stdout
        for blob in wanted:
            process.stdin.write(f"{blob}\n".encode())
            process.stdin.flush()
            about = process.stdout.readline().split()
            if len(about) != 3:
                continue
            data = process.stdout.read(int(about[2]) + 1)[:-1]
            if len(data) <= MAX_FILE_BYTES and b"\0" not in data[:4000]:
                yield blob, data.decode(errors="replace").replace("\r\n", "\n")
        process.stdin.close()


def commits(folder: Path) -> list[Commit]:
    """Yield people's commits that changed one to four existing source files, newest first."""
    form = "--format=%x00%H%x01%an <%ae>%x01%B%x02"
    log = git(
        folder,
        "log",
        "--no-merges",
        "--raw",
        "--no-abbrev",
        "--no-renames",
        f"-n{MOST_COMMITS_READ}",
        form,
        "HEAD",
    )
    found = []
    for entry in log.split("\0")[1:]:
        about, _, changes = entry.partition("\2")
        revision, author, message = [*about.split("\1"), "", ""][:3]
        files = _changed(changes)
        if files and not _BOT.search(author):
            found.append(Commit(revision, message.strip(), files))
    return found


def _changed(changes: str) -> dict[str, str]:
    files, others = {}, 0
    if changes.count("\n:") > MOST_PATHS_CHANGED:
        return {}
    for line in changes.splitlines():
        if not line.startswith(":"):
            continue
        about, _, path = line.partition("\t")
        if _TEST.search(path):
            continue
        if not is_source(path):
            others += 1
        elif about.endswith(" M"):
            files[path] = about.split()[2]
        else:
            others += 1
    return files if len(files) + others // 2 <= MOST_FILES_CHANGED else {}


def changed_lines(
    folder: Path, wanted: list[Commit]
) -> dict[tuple[str, str], list[tuple[int, int]]]:
    """Return (revision, path) -> changed line ranges in the parent's file, from zero."""
    given = "".join(f"{one.revision}\n" for one in wanted)
    text = git(
        folder, "diff-tree", "--stdin", "-r", "-p", "-U0", "--no-renames", "--no-color", given=given
    )
    ranges: dict[tuple[str, str], list[tuple[int, int]]] = {}
    revision = path = ""
    for line in text.splitlines():
        if line.startswith("@@ "):
            start, _, count = line.split()[1][1:].partition(",")
            size = int(count or 1)
            first = int(start) - (1 if size else 0)
            ranges.setdefault((revision, path), []).append((first, first + max(size, 1)))
        elif line.startswith("--- a/"):
            path = line[6:].rstrip("\t")
        elif len(line) == 40 and re.fullmatch(r"[0-9a-f]{40}", line):
            revision = line
    return ranges


def licence(folder: Path) -> str | None:
    """Return the permissive licenses in the license files, or nothing if there is any other."""
    names = git(folder, "ls-tree", "-r", "--name-only", "HEAD").splitlines()
    # Some repositories have it only in each package's folder.
    for depth in (0, 1):
        found: set[str] = set()
        for name in [
            one
            for one in names
            if one.count("/") == depth and _LICENCE.search(one) and not _NOT_OURS.search(one)
        ]:
            found |= _licences(git(folder, "show", f"HEAD:{name}"))
        if found:
            break
    if not found or any(one.startswith("not ") for one in found):
        return None
    return " and ".join(sorted(found))


def _licences(text: str) -> set[str]:
    plain = re.sub(r"[\s*#/]+", " ", text)
    has = {
        "not GPL": re.match(
            r".{0,300}GNU (LESSER |AFFERO )?GENERAL PUBLIC LICENSE", plain, re.IGNORECASE
        ),
        "not MPL": re.match(r".{0,200}Mozilla Public License", plain),
        "not BUSL": re.match(r".{0,400}Business Source License", plain),
        "Apache-2.0": re.search(
            r"Apache License,? (Version )?2\.0|Apache License Version 2\.0", plain
        ),
        "MIT": re.search(
            r"Permission is hereby granted, free of charge, to any person obtaining a copy|MIT License",
            plain,
        ),
        "BSD": re.search(r"Redistribution and use in source and binary forms", plain),
        "ISC": re.search(
            r"Permission to use, copy, modify,? and(/or)? distribute this software", plain
        ),
    }
    return {name for name, seen in has.items() if seen}
