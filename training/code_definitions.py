"""Find functions and classes in a source file with tree-sitter, with container and doc comment.

Needs `tree-sitter` and `semble-grammars`. One walker serves all languages, each given by its
defining node types. Doc comments are the lines above a definition, except in Python and Elixir.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from semble_grammars import get_parser
from tree_sitter import Node, Parser

LONGEST = 1000  # Characters of a chunk, as in the product.
SHORTEST = 50

_FUNCTIONS = {
    "python": "function_definition",
    "javascript": "function_declaration generator_function_declaration method_definition",
    "go": "function_declaration method_declaration",
    "rust": "function_item macro_definition",
    "java": "method_declaration constructor_declaration",
    "kotlin": "function_declaration secondary_constructor",
    "c": "function_definition",
    "csharp": "method_declaration constructor_declaration local_function_statement",
    "ruby": "method singleton_method",
    "php": "function_definition method_declaration",
    "swift": "function_declaration init_declaration",
    "scala": "function_definition",
    "lua": "function_declaration function_definition_statement local_function_definition_statement",
    "haskell": "function bind",
    "zig": "function_declaration FnProto test_declaration",
    "bash": "function_definition",
    "julia": "function_definition macro_definition",
    "ocaml": "value_definition",
    "erlang": "fun_decl",
    "solidity": "function_definition modifier_definition",
    "powershell": "function_statement",
    "elixir": "",
}
_CONTAINERS = {
    "python": "class_definition",
    "javascript": "class_declaration abstract_class_declaration interface_declaration type_alias_declaration "
    "enum_declaration",
    "go": "type_declaration",
    "rust": "struct_item enum_item trait_item impl_item",
    "java": "class_declaration interface_declaration enum_declaration record_declaration",
    "kotlin": "class_declaration object_declaration companion_object",
    "c": "class_specifier struct_specifier enum_specifier",
    "csharp": "class_declaration interface_declaration struct_declaration record_declaration enum_declaration",
    "ruby": "class module",
    "php": "class_declaration interface_declaration trait_declaration enum_declaration",
    "swift": "class_declaration protocol_declaration",
    "scala": "class_definition object_definition trait_definition enum_definition",
    "haskell": "data_type newtype class instance",
    "solidity": "contract_declaration library_declaration interface_declaration",
    "ocaml": "module_definition type_definition",
    "julia": "struct_definition",
}
_LIKE = {"typescript": "javascript", "tsx": "javascript", "cpp": "c", "php_only": "php"}
_WRAPPERS = {
    "export_statement",
    "decorated_definition",
    "template_declaration",
    "ambient_declaration",
}
_ASSIGNED = {"arrow_function", "function_expression", "function", "function_definition"}
_ELIXIR = {"def", "defp", "defmacro", "defmacrop", "defmodule", "defprotocol", "defimpl"}
_NAMES = {
    "identifier",
    "property_identifier",
    "type_identifier",
    "field_identifier",
    "simple_identifier",
    "word",
    "name",
}

LANGUAGES = {
    "py": "python", "js": "javascript", "mjs": "javascript", "cjs": "javascript", "jsx": "javascript", "tsx": "tsx",
    "ts": "typescript", "go": "go", "rs": "rust", "java": "java", "kt": "kotlin", "kts": "kotlin", "c": "c", "h": "cpp",
    "cc": "cpp", "cpp": "cpp", "cxx": "cpp", "hpp": "cpp", "hh": "cpp", "cs": "csharp", "rb": "ruby", "php": "php",
    "swift": "swift", "scala": "scala", "ex": "elixir", "exs": "elixir", "lua": "lua", "hs": "haskell", "zig": "zig",
    "sh": "bash", "bash": "bash", "zsh": "bash", "jl": "julia", "ml": "ocaml", "erl": "erlang", "sol": "solidity",
    "ps1": "powershell",
}  # fmt: skip

_COMMENT = re.compile(
    r"\s*(///?!?|//|#+(?!\[|!|include|define|if|end|el|pragma|region)|---?(?!\w)|%+|\*(?!\w)|/\*|\(\*|<#)"
)
_ATTRIBUTE = re.compile(
    r"\s*(@\w|#\[|#!\[|\[\w|export\b|template\s*<|inline\b|static\b|public\b|pub\b|__attribute|\w+ ::)"
)
_BLOCK_END = re.compile(r"(\*/|\*\)|-\}|#>)\s*$")
_BLOCK_START = re.compile(r"\s*(/\*|\(\*|\{-|<#)")


@dataclass(frozen=True)
class Definition:
    """Lines count from zero, `end` is exclusive, and `doc` is the doc comment's range."""

    name: str
    start: int
    end: int
    container: str
    is_function: bool
    doc: tuple[int, int] | None


@cache
def _parser(language: str) -> Parser:
    return get_parser(language)


@cache
def _types(language: str) -> tuple[frozenset[str], frozenset[str]]:
    base = _LIKE.get(language, language)
    return frozenset(_FUNCTIONS.get(base, "").split()), frozenset(_CONTAINERS.get(base, "").split())


def definitions(text: str, language: str) -> list[Definition]:
    """Return a file's definitions by line; those inside a function belong to it."""
    lines = text.split("\n")
    tree = _parser(language).parse(text.encode())
    found = list(_walk(tree.root_node, language, lines))
    return _merged(found) if language in ("haskell", "erlang", "elixir") else found


def _walk(root: Node, language: str, lines: list[str]) -> Iterator[Definition]:
    functions, containers = _types(language)
    stack: list[tuple[Node, Node | None, str]] = [(root, None, "")]
    while stack:
        node, wrapper, container = stack.pop()
        kind = node.type
        is_function = (
            kind in functions
            or _assigned(node)
            or (language == "elixir" and _elixir(node, module=False))
        )
        if (
            language == "haskell"
            and is_function
            and node.parent
            and "declarations" not in node.parent.type
        ):
            is_function = False  # A type such as `a -> b` is also a `function` node.
        is_container = kind in containers or (language == "elixir" and _elixir(node, module=True))
        if (is_function or is_container) and node.is_named:
            outer = wrapper or node
            start, end = outer.start_point[0], outer.end_point[0] + (1 if outer.end_point[1] else 0)
            yield Definition(
                _name(node), start, end, container, is_function, _doc(node, start, lines, language)
            )
            if is_container:
                container = lines[
                    (node.child_by_field_name("name") or node).start_point[0]
                ].strip()[:160]
        if not is_function:
            inner = (wrapper or node) if kind in _WRAPPERS or kind in _DECLARATIONS else None
            # One-line nodes define nothing worth a chunk; this skips most nodes.
            tall = [
                child for child in node.named_children if child.end_point[0] > child.start_point[0]
            ]
            stack.extend((child, inner, container) for child in reversed(tall))


_DECLARATIONS = {
    "lexical_declaration",
    "variable_declaration",
    "expression_statement",
    "assignment_statement",
}


def _assigned(node: Node) -> bool:
    """Handle `const name = () => ...`, `exports.name = function`, `{ name: function }`, Lua."""
    if node.type == "variable_declarator" or node.type == "pair":
        value = node.child_by_field_name("value")
    elif node.type == "assignment_expression":
        value = node.child_by_field_name("right")
    elif node.type == "assignment_statement" and node.named_child_count == 2:
        value = node.named_children[1].named_child(0)
    else:
        return False
    return value is not None and value.type in _ASSIGNED


def _elixir(node: Node, module: bool) -> bool:
    if node.type != "call" or not node.children or node.children[0].type != "identifier":
        return False
    word = (node.children[0].text or b"").decode()
    return word in _ELIXIR and (word in ("defmodule", "defprotocol", "defimpl")) == module


def _name(node: Node) -> str:
    named = (
        node.child_by_field_name("name")
        or node.child_by_field_name("declarator")
        or node.child_by_field_name("left")
    )
    while named and (inner := named.child_by_field_name("declarator")):
        named = inner
    if (
        named is None and node.type == "call" and node.named_child_count > 1
    ):  # Elixir: def name(arguments).
        named = node.named_children[1]
    text = ((named or _first_name(node) or node).text or b"").decode(errors="ignore")
    return re.split(r"[\s(<{=,]", text.strip(), maxsplit=1)[0][:80]


def _first_name(node: Node) -> Node | None:
    return next((child for child in node.named_children if child.type in _NAMES), None)


def _doc(node: Node, start: int, lines: list[str], language: str) -> tuple[int, int] | None:
    if language == "python":
        body = node.child_by_field_name("body")
        first = body.named_child(0) if body else None
        if (
            first
            and first.type == "expression_statement"
            and (inner := first.named_child(0))
            and inner.type == "string"
        ):
            return first.start_point[0], first.end_point[0] + 1
        return None
    return _elixir_doc(start, lines) if language == "elixir" else _comment_above(start, lines)


def _comment_above(start: int, lines: list[str]) -> tuple[int, int] | None:
    end = start
    while (
        end > 0 and start - end < 6 and lines[end - 1].strip() and _ATTRIBUTE.match(lines[end - 1])
    ):
        end -= 1
    first = end
    if first > 0 and _BLOCK_END.search(lines[first - 1]):
        while first > 0 and end - first < 80:
            first -= 1
            if _BLOCK_START.match(lines[first]):
                return first, end
        return None
    while first > 0 and end - first < 40 and _COMMENT.match(lines[first - 1]):
        first -= 1
    return (first, end) if first < end else None


def _elixir_doc(start: int, lines: list[str]) -> tuple[int, int] | None:
    if "defmodule" in lines[start]:
        for at in range(start + 1, min(start + 4, len(lines))):
            if "@moduledoc" in lines[at] and '"""' in lines[at]:
                closing = _find(lines, at + 1, '"""')
                return (at, closing + 1) if closing else None
        return None
    for at in range(start - 1, max(start - 80, -1), -1):
        if re.match(r"\s*@doc\b", lines[at]):
            if '"""' in lines[at]:
                closing = _find(lines, at + 1, '"""')
                return (at, closing + 1) if closing and closing < start else None
            return at, at + 1
        if re.match(r"\s*(end\b|def)", lines[at]):
            return None
    return None


def _find(lines: list[str], start: int, needle: str) -> int | None:
    return next(
        (at for at in range(start, min(start + 120, len(lines))) if needle in lines[at]), None
    )


def _merged(found: list[Definition]) -> list[Definition]:
    out: list[Definition] = []
    for one in found:
        last = out[-1] if out else None
        if (
            last
            and last.is_function
            and one.is_function
            and last.name == one.name
            and one.start - last.end <= 1
        ):
            out[-1] = Definition(last.name, last.start, one.end, last.container, True, last.doc)
        else:
            out.append(one)
    return out


def source(definition: Definition, lines: list[str], keep_doc_from: int | None = None) -> str:
    """Return a dedented definition below its container, with doc lines from `keep_doc_from` on."""
    start, end = definition.start, definition.end
    own = list(range(start, end))
    inside = definition.doc is not None and definition.doc[0] >= start
    if definition.doc:
        first, stop = definition.doc
        kept = range(keep_doc_from, stop) if keep_doc_from is not None else range(0)
        own = [at for at in own if not first <= at < stop or at in kept]
        own = own if inside else [*kept, *range(stop, start), *own]
    texts = [lines[at] for at in own]
    if definition.doc and inside and keep_doc_from and keep_doc_from > definition.doc[0]:
        opening = next((at for at, line in enumerate(own) if line >= keep_doc_from), len(own))
        quotes = lines[definition.doc[0]]
        texts.insert(opening, quotes[: len(quotes) - len(quotes.lstrip())] + '"""')
    return framed(texts, definition.container)


def framed(lines: list[str], container: str) -> str:
    indent = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    kept, size = [container] if container else [], len(container)
    inset = "    " if container else ""
    for line in lines:
        text = (inset + line[indent:]).rstrip()
        size += len(text) + 1
        if size > LONGEST and kept:
            break
        kept.append(text[:LONGEST])
    return "\n".join(kept).strip("\n")


def piece(definition: Definition, lines: list[str], line: int) -> str:
    """Return the part of a long definition around a line, after the definition's first line."""
    whole = source(
        definition,
        lines,
        definition.doc[0] if definition.doc and definition.doc[0] >= definition.start else None,
    )
    size = sum(len(text) + 1 for text in lines[definition.start : definition.end])
    if size <= LONGEST:
        return whole
    start, room = max(line, definition.start + 1), LONGEST * 2 // 3
    back = 0
    while start - 1 > definition.start and back + len(lines[start - 1]) < LONGEST // 3:
        start -= 1
        back += len(lines[start]) + 1
    if start <= definition.start + 2:
        return whole
    stop = start
    while stop < definition.end and room + back > 0:
        room -= len(lines[stop]) + 1
        stop += 1
    head = lines[definition.start].strip()[:160]
    if "(" not in head:  # C often has the return type on its own line.
        head = f"{head} {lines[definition.start + 1].strip()}"[:160]
    return framed(
        lines[start:stop], f"{definition.container}\n    {head}" if definition.container else head
    )
