"""C#, Swift, Dart, PHP, Ruby and Solidity."""

from __future__ import annotations

from collections.abc import Sequence

from trivet.code.parse.syntax import (
    Grammar,
    Match,
    Node,
    Rule,
    attribute,
    child_at,
    first,
    inside,
    match,
    named,
    named_by,
    only_inside,
    text,
    without_arguments,
)

_COMMENTS = frozenset({"comment", "line_comment", "block_comment", "multiline_comment"})


def _named_attribute(node: Node, source: bytes) -> Sequence[Match]:
    return attribute(node.child_by_field_name("name"), node, source)


def _csharp_fields(node: Node, source: bytes) -> Sequence[Match]:
    declaration = first(node, "variable_declaration")
    declarators = [] if declaration is None else declaration.named_children
    names = (
        one.child_by_field_name("name") or first(one, "identifier")
        for one in declarators
        if one.type == "variable_declarator"
    )
    constant = (
        b"const" in source[node.start_byte : node.start_byte + 80].split()
        or node.type == "event_field_declaration"
    )
    return tuple(
        Match(name=text(name, source), kind="variable", node=node, attribute=constant)
        for name in names
        if name is not None
    )


CSHARP = Grammar(
    rules={
        "namespace_declaration": named("module", opens=True),
        "class_declaration": named("class", opens=True),
        "struct_declaration": named("class", opens=True),
        "record_declaration": named("class", opens=True),
        "record_struct_declaration": named("class", opens=True),
        "interface_declaration": named("interface", opens=True),
        "enum_declaration": named("enum"),
        "delegate_declaration": named("type"),
        "method_declaration": named("function"),
        "constructor_declaration": named("function"),
        "local_function_statement": named("function"),
        "property_declaration": _named_attribute,
        "event_declaration": _named_attribute,
        "event_field_declaration": _csharp_fields,
        "field_declaration": _csharp_fields,
    },
    through=frozenset(
        "declaration_list file_scoped_namespace_declaration preproc_if preproc_else preproc_elif "
        "preproc_region "
        "global_statement".split()
    ),
    comments=_COMMENTS,
    attributes=frozenset({"attribute_list"}),
)


def _swift_class(node: Node, source: bytes) -> Sequence[Match]:
    name = node.child_by_field_name("name")
    if name is None:
        return ()
    head = source[node.start_byte : name.start_byte].split()
    if b"extension" in head:
        return (inside(node, without_arguments(text(name, source))),)
    return (match("enum" if b"enum" in head else "class", node, name, source, opens=True),)


def _swift_property(node: Node, source: bytes) -> Sequence[Match]:
    pattern = node.child_by_field_name("name")
    return attribute(
        None if pattern is None else pattern.child_by_field_name("bound_identifier"), node, source
    )


def _called(name: str) -> Rule:
    """Name `init`, `deinit` and `subscript`, which have no name of their own."""

    def rule(node: Node, source: bytes) -> Sequence[Match]:
        return (Match(name=name, kind="function", node=node),)

    return rule


SWIFT = Grammar(
    rules={
        "class_declaration": _swift_class,
        "protocol_declaration": named("interface", opens=True),
        "function_declaration": named("function"),
        "protocol_function_declaration": named("function"),
        "init_declaration": _called("init"),
        "deinit_declaration": _called("deinit"),
        "subscript_declaration": _called("subscript"),
        "property_declaration": _swift_property,
        "protocol_property_declaration": _swift_property,
        "typealias_declaration": named("type"),
        "associatedtype_declaration": named("type"),
        "macro_declaration": named("macro"),
    },
    through=frozenset(
        "class_body enum_class_body protocol_body function_body statements directive".split()
    ),
    comments=_COMMENTS,
    nested=True,
)


def _dart_signature(node: Node, source: bytes) -> Sequence[Match]:
    """Join signature and body, which are siblings here."""
    named_part = node
    while named_part.child_by_field_name("name") is None:
        inner = child_at(named_part, 0)
        if inner is None or inner.type not in _DART_SIGNATURES:
            return ()
        named_part = inner
    names = [text(name, source) for name in named_part.children_by_field_name("name")]
    if named_part.type in ("constructor_signature", "factory_constructor_signature"):
        names = [".".join(one for one in names if one != ".")]
    return (Match(name=names[0].rpartition(".")[2], kind="function", node=node),)


_DART_SIGNATURES = frozenset(
    "method_signature function_signature getter_signature setter_signature constructor_signature "
    "factory_constructor_signature constant_constructor_signature operator_signature "
    "redirecting_factory_constructor_signature".split()
)


def _dart_factory(node: Node, source: bytes) -> Sequence[Match]:
    names = [text(child, source) for child in node.named_children if child.type == "identifier"]
    return (Match(name=names[-1], kind="function", node=node),) if names else ()


def _dart_method(node: Node, source: bytes) -> Sequence[Match]:
    inner = child_at(node, 0)
    if inner is not None and "factory" in inner.type:
        return _dart_factory(inner, source)
    return _dart_signature(node, source)


DART = Grammar(
    rules={
        "class_definition": named("class", opens=True),
        "mixin_declaration": named_by("class", "identifier", opens=True),
        "extension_declaration": named("class", opens=True),
        "extension_type_declaration": named("class", opens=True),
        "enum_declaration": named("enum", opens=True),
        "type_alias": named_by("type", "type_identifier"),
        "function_signature": _dart_signature,
        "getter_signature": _dart_signature,
        "setter_signature": _dart_signature,
        "method_signature": _dart_method,
        "constructor_signature": _dart_signature,
        "constant_constructor_signature": _dart_signature,
        "static_final_declaration": named_by("variable", "identifier"),
        "initialized_variable_definition": named("variable"),
    },
    through=frozenset(
        {"class_body", "extension_body", "enum_body", "static_final_declaration_list"}
    ),
    wraps=frozenset({"declaration"}),
    tails=frozenset({"function_body"}),
    comments=_COMMENTS | {"documentation_comment"},
    attributes=frozenset({"annotation"}),
)


def _php_statement(node: Node, source: bytes) -> Sequence[Match]:
    """Match `$name = function () {}` and `define('NAME', 1)`."""
    inner = child_at(node, 0)
    if inner is None:
        return ()
    if inner.type == "function_call_expression" and source.startswith(b"define(", inner.start_byte):
        arguments = inner.child_by_field_name("arguments")
        name = None if arguments is None else child_at(arguments, 0)
        return (
            ()
            if name is None
            else (Match(name=text(name, source).strip("'\""), kind="variable", node=node),)
        )
    left, right = inner.child_by_field_name("left"), inner.child_by_field_name("right")
    if left is None or right is None or right.type not in ("anonymous_function", "arrow_function"):
        return ()
    return (Match(name=text(left, source).lstrip("$"), kind="function", node=node),)


def _php_namespace(node: Node, source: bytes) -> Sequence[Match]:
    """Match `namespace X { ... }`; without braces the node is empty."""
    name = node.child_by_field_name("name")
    if name is None or node.child_by_field_name("body") is None:
        return ()
    return (match("module", node, name, source, opens=True),)


PHP = Grammar(
    rules={
        "namespace_definition": _php_namespace,
        "class_declaration": named("class", opens=True),
        "interface_declaration": named("interface", opens=True),
        "trait_declaration": named("class", opens=True),
        "enum_declaration": named("enum", opens=True),
        "function_definition": named("function"),
        "method_declaration": named("function"),
        "const_element": named_by("variable", "name"),
        "expression_statement": _php_statement,
    },
    through=frozenset(
        "declaration_list enum_declaration_list compound_statement if_statement".split()
    ),
    wraps=frozenset({"const_declaration"}),
    comments=_COMMENTS,
)


def _ruby_singleton(node: Node, source: bytes) -> Sequence[Match]:
    """Name `def self.make` as `make`, and `def Foo.make` as `make` of `Foo`."""
    name, target = node.child_by_field_name("name"), node.child_by_field_name("object")
    if name is None:
        return ()
    owner = "" if target is None or target.type == "self" else text(target, source)
    return (Match(name=text(name, source), kind="method", node=node, owner=owner),)


def _ruby_assignment(node: Node, source: bytes) -> Sequence[Match]:
    """Match `NAME = value` and `Point = Struct.new(:x) do ... end`."""
    name, value = node.child_by_field_name("left"), node.child_by_field_name("right")
    if name is None or name.type != "constant":
        return ()
    block = None if value is None or value.type != "call" else value.child_by_field_name("block")
    if block is None:
        return (Match(name=text(name, source), kind="variable", node=node, attribute=True),)
    return (Match(name=text(name, source), kind="class", node=node, inside=block, body=block),)


def _ruby_call(node: Node, source: bytes) -> Sequence[Match]:
    """Match `private def hidden`, `class_methods do ... end` and `attr_reader :size`."""
    method, arguments = node.child_by_field_name("method"), node.child_by_field_name("arguments")
    verb = b"" if method is None else source[method.start_byte : method.end_byte]
    if verb.startswith(b"attr_") and arguments is not None:
        symbols = (child for child in arguments.named_children if child.type == "simple_symbol")
        return tuple(
            Match(name=text(one, source).lstrip(":"), kind="variable", node=node, attribute=True)
            for one in symbols
        )
    if verb in (b"define_method", b"alias_method", b"scope") and arguments is not None:
        symbol = child_at(arguments, 0)
        return (
            ()
            if symbol is None
            else (Match(name=text(symbol, source).strip(":'\""), kind="function", node=node),)
        )
    if verb in (
        b"private",
        b"protected",
        b"public",
        b"module_function",
        b"private_class_method",
        b"memoize",
    ):
        return () if arguments is None else (inside(arguments),)
    block = node.child_by_field_name("block")  # class_methods do ... end, describe "..." do ... end
    return () if block is None else (inside(block),)


RUBY = Grammar(
    rules={
        "module": named("module", opens=True),
        "class": named("class", opens=True),
        "singleton_class": only_inside,
        "method": named("function"),
        "singleton_method": _ruby_singleton,
        "assignment": _ruby_assignment,
        "alias": named("function"),
        "call": _ruby_call,
    },
    through=frozenset("body_statement if unless then else begin do_block block".split()),
)

SOLIDITY = Grammar(
    rules={
        "contract_declaration": named("class", opens=True),
        "library_declaration": named("class", opens=True),
        "interface_declaration": named("interface", opens=True),
        "struct_declaration": named("class"),
        "enum_declaration": named("enum"),
        "function_definition": named("function"),
        "constructor_definition": _called("constructor"),
        "modifier_definition": named("function"),
        "event_definition": named("type"),
        "error_declaration": named("type"),
        "user_defined_type_definition": named("type"),
        "state_variable_declaration": _named_attribute,
        "constant_variable_declaration": named("variable"),
    },
    through=frozenset({"contract_body"}),
)
