"""The language of a file, from its name or first line, and its role, from its path."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import IntEnum

# Languages that are split without a grammar.
MARKDOWN, RST, ASCIIDOC, ORG, LATEX = "markdown", "rst", "asciidoc", "org", "latex"
YAML, TOML, INI, JSON = "yaml", "toml", "ini", "json"
NOTEBOOK = "notebook"
TEXT = "text"
# Pages with scripts: the grammars parse the scripts, and lines split the rest.
MARKUP = frozenset({"html", "vue", "svelte", "astro"})


def _table(rows: str) -> Mapping[str, str]:
    pairs = (line.split() for line in rows.strip().splitlines())
    return {extension: language for language, *extensions in pairs for extension in extensions}


_BY_EXTENSION = _table("""
asciidoc adoc asciidoc asc
astro astro
bash sh bash zsh ksh bats
c c h
clojure clj cljs cljc edn bb
cmake cmake
cpp cc cpp cxx c++ hpp hh hxx h++ ipp inl tpp cu cuh ino
csharp cs csx
css css
dart dart
dockerfile dockerfile containerfile
elixir ex exs
erlang erl hrl escript
fortran f90 f95 f03 f08 f for
go go
graphql graphql gql graphqls
groovy groovy gradle gvy
haskell hs hs-boot
hcl tf hcl tfvars nomad
html html htm xhtml
ini ini cfg conf properties editorconfig
java java
javascript js mjs cjs jsx es6
json json jsonc json5 geojson webmanifest
jsonnet jsonnet libsonnet
julia jl
just just
kotlin kt kts
latex tex sty cls
lua lua
make mk mak
markdown md mdx markdown mkd qmd rmd
nix nix
notebook ipynb
objc m mm
ocaml ml mli
org org
perl pl pm t
php php phtml php5
powershell ps1 psm1 psd1
proto proto
python py pyi pyw pyx pxd
r r
racket rkt
rst rst rest
ruby rb rake gemspec ru podspec
rust rs
scala scala sc sbt
scheme scm ss sld
scss scss sass less
solidity sol
sql sql ddl psql
starlark bzl star
svelte svelte
swift swift
toml toml
tsx tsx
typescript ts mts cts
vim vim
vue vue
xml xml xsd xsl xslt plist csproj props targets
yaml yaml yml
zig zig zon
""")

_BY_NAME = _table("""
bash .bashrc .bash_profile .zshrc .profile .envrc
cmake cmakelists.txt
dockerfile dockerfile containerfile
groovy jenkinsfile
ini .gitconfig .npmrc .flake8 .coveragerc .pylintrc
json .babelrc .eslintrc .prettierrc
just justfile .justfile
make makefile gnumakefile
ruby rakefile gemfile vagrantfile podfile brewfile fastfile guardfile
starlark build build.bazel workspace workspace.bazel module.bazel
toml pipfile cargo.lock
vim .vimrc vimrc
yaml .clang-format .clang-tidy
""")

_SCRIPT = re.compile(rb"#![^\n]{0,200}?[/ ](?:env +(?:-S +)?)?([a-z]+)[0-9.]*(?=[\s]|$)")
_BY_INTERPRETER = _table("""
bash sh bash zsh dash ksh ash bats
elixir elixir
erlang escript
groovy groovy
javascript node nodejs bun
julia julia
lua lua luajit
make make
perl perl
php php
python python pypy uv
r rscript
ruby ruby
scala scala
typescript deno tsx
""")

# A `.h` file that matches one of these is C++ or Objective-C.
_CPP_HEADER = re.compile(
    rb"^\s{0,40}(?:class\s|namespace\s|template\s{0,9}<|using\s|public:|private:)", re.MULTILINE
)
_OBJC_HEADER = re.compile(rb"^@(?:interface|protocol|class|end)\b", re.MULTILINE)
_OBJC_SOURCE = re.compile(
    rb"^(?:@(?:interface|implementation|import|end)\b|#import\b)", re.MULTILINE
)
_HEAD = 20_000  # bytes to search


def language_of(path: str, source: bytes) -> str:
    """Return a grammar's name or a constant of this module."""
    language = language_by_name(path)
    if language is None:
        return _by_first_line(source) or TEXT
    extension = path.rpartition(".")[2].lower()
    if extension == "h":
        return _header(source[:_HEAD])
    if extension == "m" and _OBJC_SOURCE.search(source[:_HEAD]) is None:
        return TEXT  # MATLAB, which has no grammar here
    if extension == "t" and not source.startswith((b"#!", b"use ", b"package ")):
        return TEXT
    return language


def language_by_name(path: str) -> str | None:
    name = path.rpartition("/")[2].lower()
    stem, _, extension = name.rpartition(".")
    if stem in ("dockerfile", "containerfile", "makefile"):
        return _BY_NAME[stem]
    return _BY_NAME.get(name) or (_BY_EXTENSION.get(extension) if "." in name else None)


def _header(head: bytes) -> str:
    if _OBJC_HEADER.search(head) is not None:
        return "objc"
    return "cpp" if _CPP_HEADER.search(head) is not None else "c"


def _by_first_line(source: bytes) -> str | None:
    script = _SCRIPT.match(source[:256])
    return None if script is None else _BY_INTERPRETER.get(script[1].decode())


class Role(IntEnum):
    """A file's role, stored as a number; a new role gets the next one."""

    CODE = 0
    TEST = 1
    EXAMPLE = 2
    DOCUMENTATION = 3
    VENDORED = 4
    CONFIGURATION = 5
    DECLARATION = 6


_words = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")

TEST_FOLDERS = frozenset(
    "test tests testing spec specs __tests__ __test__ e2e testdata test-data fixtures fixture "
    "testsuite testsuites "
    "unittest unittests androidtest commontest jvmtest benchmark benchmarks bench benches fuzz "
    "mocks __mocks__".split()
)
EXAMPLE_FOLDERS = frozenset(
    "example examples sample samples demo demos tutorial tutorials playground sandbox cookbook "
    "snippets".split()
)
DOCUMENTATION_FOLDERS = frozenset(
    "doc docs documentation website site guide guides docs_src man".split()
)
VENDORED_FOLDERS = frozenset(
    "vendor vendors vendored third_party third-party thirdparty external extern node_modules deps "
    "dist "
    "bower_components _vendor pods".split()
)
DOCUMENTATION_ENDINGS = (
    ".md",
    ".rst",
    ".adoc",
    ".txt",
    ".mdx",
    ".markdown",
    ".org",
    ".tex",
    ".html",
    ".htm",
)
CONFIGURATION_ENDINGS = (
    ".json .yaml .yml .toml .ini .cfg .conf .xml .properties .lock .gradle .cmake .css .scss .less "
    ".sql .csv "
    ".editorconfig .gitignore .env"
).split()
# Words that mark a test: test_client.py, client_test.go, ClientTests.swift, client.spec.ts.
TEST_WORDS = frozenset(("test", "tests", "spec", "specs", "bench", "conftest"))


def role_of(path: str) -> Role:
    """Return the role by the file's own name, else by the nearest folder that shows one."""
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
