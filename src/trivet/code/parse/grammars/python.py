"""Python, and Starlark, which has its syntax."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trivet.code.parse.comments import READ_BYTES, squeeze
from trivet.code.parse.syntax import Grammar, Match, Node, child_at, match, named, text

_LONG_QUOTES = ('"""', "'''")


def _assignment(node: Node, source: bytes) -> Sequence[Match]:
    target = node.child_by_field_name("left")
    if target is None or target.type != "identifier":
        return ()
    return (match("variable", node, target, source),)


def _imported(node: Node, source: bytes) -> Sequence[Match]:
    """`from .inner import name as name`, by which a package says that it passes a name on."""
    aliases = [one for one in node.children_by_field_name("name") if one.type == "aliased_import"]
    pairs = [(one.child_by_field_name("name"), one.child_by_field_name("alias")) for one in aliases]
    same = (name for name, alias in pairs if name and alias and text(name, source) == text(alias, source))
    return tuple(Match(name=text(name, source), kind="export", node=node) for name in same)


def _listed(value: Node | None, node: Node, source: bytes) -> Iterator[Match]:
    """The names of `__all__ = ["name", ...]`."""
    for one in value.named_children if value is not None and value.type in ("list", "tuple") else ():
        name = text(one, source).strip("'\"") if one.type == "string" else ""
        if name.isidentifier():
            yield Match(name=name, kind="export", node=node)


def _statement(node: Node, source: bytes) -> Sequence[Match]:
    """`NAME = value` at the top of a module."""
    inner = child_at(node, 0)
    if inner is None or inner.type != "assignment":
        return ()
    found = _assignment(inner, source)
    if found and found[0].name == "__all__":
        return (*found, *_listed(inner.child_by_field_name("right"), node, source))
    return found


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
        "import_from_statement": _imported,
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
