"""JavaScript and TypeScript."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trivet.code.parse.syntax import (
    Grammar,
    Match,
    Node,
    child_at,
    first,
    inside,
    match,
    named,
    text,
)

_FUNCTIONS = frozenset({"function_expression", "arrow_function", "generator_function", "function"})
_CLASSES = frozenset({"class", "class_expression"})
# `exports.parse = ...` defines `parse`; `Foo.prototype.bar = ...` defines `bar` of `Foo`.
_SILENT_OWNERS = frozenset(
    {"exports", "module", "this", "window", "global", "globalThis", "self", "root", "prototype"}
)
# Expressions that only pass on what is defined elsewhere.
_REFERENCES = frozenset(
    {"identifier", "member_expression", "call_expression", "await_expression", "this"}
)
_WRAPPERS = frozenset({
    "parenthesized_expression", "unary_expression", "await_expression", "as_expression",
    "satisfies_expression", "non_null_expression",
})  # fmt: skip


def _value(name: str, node: Node, value: Node | None, source: bytes, owner: str = "") -> Match:
    value = _unwrapped(value)
    kind = "" if value is None else value.type
    if value is not None and kind in _FUNCTIONS:
        body = value.child_by_field_name("body")
        return Match(name=name, kind="function", node=node, owner=owner, body=body)
    if value is not None and kind in _CLASSES:
        body = value.child_by_field_name("body")
        return Match(name=name, kind="class", node=node, owner=owner, body=body, inside=value)
    if value is not None and kind == "object":
        return Match(name=name, kind="variable", node=node, owner=owner, inside=value)
    return Match(name=name, kind="variable", node=node, owner=owner)


def _unwrapped(value: Node | None) -> Node | None:
    """Unwrap `(function () {})`, `!function () {}`, `{...} as Config`."""
    while value is not None and value.type in _WRAPPERS:
        value = child_at(value, 0)
    return value


def _declarator(node: Node, source: bytes) -> Sequence[Match]:
    name = node.child_by_field_name("name")
    if name is None or name.type != "identifier":
        return ()  # `const {a, b} = ...` mostly takes from a module
    value = node.child_by_field_name("value")
    if value is not None and source.startswith((b"require(", b"import("), value.start_byte):
        return ()
    return (_value(text(name, source), node, value, source), *_called_function(value))


def _called_function(value: Node | None) -> Iterator[Match]:
    """Treat `const lodash = (function () { ... })()` as a module."""
    body = _immediately_called(_unwrapped(value))
    if body is not None:
        yield inside(body)


def _pair(node: Node, source: bytes) -> Sequence[Match]:
    key, value = node.child_by_field_name("key"), node.child_by_field_name("value")
    if key is None or value is None:
        return ()
    if value.type in _FUNCTIONS:
        return (_value(text(key, source).strip("'\""), node, value, source),)
    return (inside(value),) if value.type == "object" else ()


def _field(node: Node, source: bytes) -> Sequence[Match]:
    value = node.child_by_field_name("value")
    name = node.child_by_field_name("name") or node.child_by_field_name("property")
    if name is None or value is None or value.type not in _FUNCTIONS:
        return ()
    return (_value(text(name, source), node, value, source),)


def _statement(node: Node, source: bytes) -> Sequence[Match]:
    inner = _unwrapped(child_at(node, 0))
    if inner is None:
        return ()
    if inner.type == "assignment_expression":
        return tuple(_assignment(inner, source))
    if inner.type == "call_expression":
        return tuple(_call(inner, source))
    if inner.type == "sequence_expression":
        return (inside(inner),)
    # `namespace X {}` is an expression to the grammar.
    return _NAMESPACE(inner, source) if inner.type == "internal_module" else ()


def _assignment(node: Node, source: bytes) -> Iterator[Match]:
    """Match `exports.a = exports.b = function () {}` and the like."""
    targets: list[str] = []
    value: Node | None = node
    while value is not None and value.type == "assignment_expression":
        left = value.child_by_field_name("left")
        targets.append("" if left is None else text(left, source))
        value = _unwrapped(value.child_by_field_name("right"))
    if value is None:
        return
    for target in targets:
        yield from _assigned(target, node, value, source)


def _assigned(target: str, node: Node, value: Node, source: bytes) -> Iterator[Match]:
    parts = [part for part in target.split(".") if part not in _SILENT_OWNERS]
    if not all(part.isidentifier() or "$" in part for part in parts):
        return
    if target.endswith("prototype") and value.type == "object":
        yield inside(value, ".".join(parts))
    elif parts and (value.type not in _REFERENCES or _immediately_called(value)):
        if (
            value.type in _FUNCTIONS | _CLASSES
            or target.startswith(("exports.", "module.exports."))
            or len(parts) == 1
        ):
            yield _value(parts[-1], node, value, source, ".".join(parts[:-1]))
        elif value.type == "object":
            yield inside(value, ".".join(parts))
    elif not parts:
        yield from _module(node, value, source)


def _module(node: Node, value: Node, source: bytes) -> Iterator[Match]:
    """Match `module.exports = ...` and `export default ...`."""
    if value.type in _FUNCTIONS | _CLASSES:
        own = value.child_by_field_name("name")
        if own is not None:
            yield _value(text(own, source), node, value, source)
        else:
            yield inside(value)
    elif value.type == "object":
        yield inside(value)
    elif value.type == "call_expression":
        yield from (inside(one) for one in _arguments(value) if one.type == "object")


def _call(node: Node, source: bytes) -> Iterator[Match]:
    body = _immediately_called(node)
    if body is not None:
        yield inside(body)
    arguments = _arguments(node)
    # A bundle passes its factory: `(function (root, factory) {...})(this, function () {...})`.
    for argument in arguments:
        if argument.type in _FUNCTIONS and 2 * (node.end_byte - node.start_byte) > len(source):
            factory = argument.child_by_field_name("body")
            if factory is not None:
                yield inside(factory)
                return
    yield from _defined_by_call(node, arguments, source)


def _defined_by_call(node: Node, arguments: Sequence[Node], source: bytes) -> Iterator[Match]:
    """Match `Object.defineProperty(owner, 'name', ...)` and `defineGetter(owner, 'name', ...)`."""
    if (
        len(arguments) < 3
        or arguments[1].type != "string"
        or b"define" not in source[node.start_byte : node.start_byte + 40]
    ):
        return
    owner = ".".join(
        part for part in text(arguments[0], source).split(".") if part not in _SILENT_OWNERS
    )
    name = text(arguments[1], source).strip("'\"")
    body = arguments[2].child_by_field_name("body")
    yield Match(name=name, kind="function", node=node, owner=owner, body=body)


def _arguments(call: Node) -> Sequence[Node]:
    arguments = call.child_by_field_name("arguments")
    return () if arguments is None else arguments.named_children


def _immediately_called(node: Node | None) -> Node | None:
    if node is None or node.type != "call_expression":
        return None
    function = _unwrapped(node.child_by_field_name("function"))
    if function is not None and function.type == "member_expression":  # (function () {}).call(this)
        function = _unwrapped(function.child_by_field_name("object"))
    return (
        function.child_by_field_name("body")
        if function is not None and function.type in _FUNCTIONS
        else None
    )


def _export(node: Node, source: bytes) -> Sequence[Match]:
    value = _unwrapped(node)
    return () if value is None else tuple(_module(node, value, source))


def _default_name(node: Node, source: bytes) -> Sequence[Match]:
    """Match `export default () => {}`."""
    name = node.child_by_field_name("name")
    return () if name is None else (match("function", node, name, source),)


def _passed_on(node: Node, source: bytes) -> Sequence[Match]:
    """Match `export { name, other as known } from './inner'`."""
    listed = first(node, "export_clause")
    if listed is None or node.child_by_field_name("source") is None:
        return ()
    names = (
        one.child_by_field_name("alias") or one.child_by_field_name("name")
        for one in listed.named_children
    )
    return tuple(
        Match(name=text(name, source), kind="export", node=node)
        for name in names
        if name is not None
    )


_NAMESPACE = named("module", opens=True)

JAVASCRIPT = Grammar(
    rules={
        "function_declaration": named("function"),
        "generator_function_declaration": named("function"),
        "function_signature": named("function"),
        "class_declaration": named("class", opens=True),
        "abstract_class_declaration": named("class", opens=True),
        "interface_declaration": named("interface", opens=True),
        "enum_declaration": named("enum"),
        "type_alias_declaration": named("type", opens=True),
        "internal_module": _NAMESPACE,
        "module": _NAMESPACE,
        "method_definition": named("function"),
        "method_signature": named("function"),
        "abstract_method_signature": named("function"),
        "variable_declarator": _declarator,
        "pair": _pair,
        "field_definition": _field,
        "public_field_definition": _field,
        "expression_statement": _statement,
        "assignment_expression": lambda node, source: tuple(_assignment(node, source)),
        "function_expression": _default_name,
        "object": _export,
        "call_expression": _export,
        "export_statement": _passed_on,
    },
    through=frozenset(
        "class_body interface_body object_type statement_block if_statement else_clause "
        "try_statement "
        "catch_clause".split()
    ),
    wraps=frozenset(
        {"export_statement", "ambient_declaration", "lexical_declaration", "variable_declaration"}
    ),
    attributes=frozenset({"decorator"}),
    nested=True,
)
