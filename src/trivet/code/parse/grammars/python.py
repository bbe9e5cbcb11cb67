"""Python, and Starlark, which has its syntax."""

from __future__ import annotations

from collections.abc import Sequence

from trivet.code.parse.comments import READ_BYTES, squeeze
from trivet.code.parse.syntax import Grammar, Match, Node, child_at, match, named

_LONG_QUOTES = ('"""', "'''")


def _assignment(node: Node, source: bytes) -> Sequence[Match]:
    target = node.child_by_field_name("left")
    if target is None or target.type != "identifier":
        return ()
    return (match("variable", node, target, source),)


def _statement(node: Node, source: bytes) -> Sequence[Match]:
    """`NAME = value` at the top of a module."""
    inner = child_at(node, 0)
    return _assignment(inner, source) if inner is not None and inner.type == "assignment" else ()


def _alias(node: Node, source: bytes) -> Sequence[Match]:
    name = node.child_by_field_name("left")
    if name is None:
        return ()
    found = match("type", node, name, source)
    return (Match(name=found.name.partition("[")[0], kind="type", node=node),)


def _docstring(node: Node, source: bytes) -> str:
    body = node.child_by_field_name("body")
    statement = None if body is None else child_at(body, 0)
    if statement is None or statement.type != "expression_statement":
        return ""
    literal = child_at(statement, 0)
    if literal is None or literal.type != "string":
        return ""
    raw = source[literal.start_byte : min(literal.end_byte, literal.start_byte + READ_BYTES)]
    words = raw.decode("utf-8", "replace").lstrip("rRuUbBfF")
    quotes = words[:3] if words.startswith(_LONG_QUOTES) else words[:1]
    return squeeze(words.removeprefix(quotes).removesuffix(quotes))


PYTHON = Grammar(
    rules={
        "function_definition": named("function"),
        "class_definition": named("class", opens=True),
        "expression_statement": _statement,
        "type_alias_statement": _alias,
    },
    through=frozenset(
        "block if_statement elif_clause else_clause try_statement except_clause except_group_clause finally_clause "
        "with_statement".split()
    ),
    wraps=frozenset({"decorated_definition"}),
    attributes=frozenset({"decorator"}),
    inner_doc=_docstring,
    nested=True,
)
