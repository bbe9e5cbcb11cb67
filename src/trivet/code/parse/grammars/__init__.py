"""Which node of which language's syntax tree defines a name."""

from __future__ import annotations

from collections.abc import Mapping

from trivet.code.parse.grammars.declarative import CMAKE, DOCKERFILE, GRAPHQL, HCL, JUST, MAKE, PROTO, SCSS, SQL
from trivet.code.parse.grammars.functional import CLOJURE, ELIXIR, ERLANG, HASKELL, JSONNET, LISP, NIX, OCAML
from trivet.code.parse.grammars.javascript import JAVASCRIPT
from trivet.code.parse.grammars.jvm import GROOVY, JAVA, KOTLIN, SCALA
from trivet.code.parse.grammars.objects import CSHARP, DART, PHP, RUBY, SOLIDITY, SWIFT
from trivet.code.parse.grammars.python import PYTHON
from trivet.code.parse.grammars.scripting import BASH, FORTRAN, JULIA, LUA, PERL, POWERSHELL, VIM, R
from trivet.code.parse.grammars.systems import CPP, GO, OBJC, RUST, ZIG, C
from trivet.code.parse.syntax import Grammar

GRAMMARS: Mapping[str, Grammar] = {
    "bash": BASH,
    "c": C,
    "clojure": CLOJURE,
    "cmake": CMAKE,
    "cpp": CPP,
    "csharp": CSHARP,
    "dart": DART,
    "dockerfile": DOCKERFILE,
    "elixir": ELIXIR,
    "erlang": ERLANG,
    "fortran": FORTRAN,
    "go": GO,
    "graphql": GRAPHQL,
    "groovy": GROOVY,
    "haskell": HASKELL,
    "hcl": HCL,
    "java": JAVA,
    "javascript": JAVASCRIPT,
    "jsonnet": JSONNET,
    "julia": JULIA,
    "just": JUST,
    "kotlin": KOTLIN,
    "lua": LUA,
    "make": MAKE,
    "nix": NIX,
    "objc": OBJC,
    "ocaml": OCAML,
    "perl": PERL,
    "php": PHP,
    "powershell": POWERSHELL,
    "proto": PROTO,
    "python": PYTHON,
    "r": R,
    "racket": LISP,
    "ruby": RUBY,
    "rust": RUST,
    "scala": SCALA,
    "scheme": LISP,
    "scss": SCSS,
    "solidity": SOLIDITY,
    "sql": SQL,
    "starlark": PYTHON,
    "swift": SWIFT,
    "tsx": JAVASCRIPT,
    "typescript": JAVASCRIPT,
    "vim": VIM,
    "zig": ZIG,
}
