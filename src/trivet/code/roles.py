"""What part a file plays in its tree, told by its path: code, tests, examples, documentation, what others wrote."""

from __future__ import annotations

import re
from enum import IntEnum


class Role(IntEnum):
    """Stored as a number: a new role gets the next one."""

    CODE = 0
    TEST = 1
    EXAMPLE = 2
    DOCUMENTATION = 3
    VENDORED = 4
    CONFIGURATION = 5
    DECLARATION = 6


_words = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")

TEST_FOLDERS = frozenset(
    "test tests testing spec specs __tests__ __test__ e2e testdata test-data fixtures fixture testsuite testsuites "
    "unittest unittests androidtest commontest jvmtest benchmark benchmarks bench benches fuzz mocks __mocks__".split()
)
EXAMPLE_FOLDERS = frozenset(
    "example examples sample samples demo demos tutorial tutorials playground sandbox cookbook snippets".split()
)
DOCUMENTATION_FOLDERS = frozenset("doc docs documentation website site guide guides docs_src man".split())
VENDORED_FOLDERS = frozenset(
    "vendor vendors vendored third_party third-party thirdparty external extern node_modules deps dist "
    "bower_components _vendor pods".split()
)
DOCUMENTATION_ENDINGS = (".md", ".rst", ".adoc", ".txt", ".mdx", ".markdown", ".org", ".tex", ".html", ".htm")
CONFIGURATION_ENDINGS = (
    ".json .yaml .yml .toml .ini .cfg .conf .xml .properties .lock .gradle .cmake .css .scss .less .sql .csv "
    ".editorconfig .gitignore .env"
).split()
# A test by the words of its file's name: test_client.py, client_test.go, ClientTests.swift, client.spec.ts.
TEST_WORDS = frozenset(("test", "tests", "spec", "specs", "bench", "conftest"))


def role_of(path: str) -> Role:
    """The role of a file; the nearest folder that says something decides, and its own name before all folders."""
    *folders, name = path.split("/")
    lower = name.lower()
    if _is_test_name(name):
        return Role.TEST
    for written in reversed(folders):
        folder = written.lower()
        if folder in TEST_FOLDERS or _words_of(written)[-1:] in (["test"], ["tests"]):
            return Role.TEST
        if folder in EXAMPLE_FOLDERS:
            return Role.EXAMPLE
        if folder in VENDORED_FOLDERS:
            return Role.VENDORED
        if folder in DOCUMENTATION_FOLDERS:
            return Role.DOCUMENTATION
    if lower.endswith(DOCUMENTATION_ENDINGS):
        return Role.DOCUMENTATION
    if lower.endswith(tuple(CONFIGURATION_ENDINGS)) or name.startswith("."):
        return Role.CONFIGURATION
    return Role.DECLARATION if lower.endswith((".d.ts", ".pyi")) else Role.CODE


def _is_test_name(name: str) -> bool:
    words = _words_of(name.partition(".")[0])
    if words and (words[0] in TEST_WORDS or words[-1] in TEST_WORDS):
        return True
    return any(part.lower() in TEST_WORDS for part in name.split(".")[1:-1])


def _words_of(name: str) -> list[str]:
    return [word.lower() for word in _words.findall(name)]
