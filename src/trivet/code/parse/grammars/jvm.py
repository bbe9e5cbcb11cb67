"""Java, Kotlin, Scala and Groovy."""

from __future__ import annotations

from collections.abc import Sequence

from trivet.code.parse.syntax import (
    Grammar,
    Match,
    Node,
    attribute,
    first,
    match,
    named,
    only_inside,
    text,
    without_arguments,
)
from trivet.code.types import Kind

_COMMENTS = frozenset({"comment", "line_comment", "block_comment", "multiline_comment"})


def _java_field(node: Node, source: bytes) -> Sequence[Match]:
    declarators = node.children_by_field_name("declarator")
    names = (one.child_by_field_name("name") for one in declarators)
    return tuple(match("variable", node, name, source) for name in names if name is not None)


JAVA = Grammar(
    rules={
        "class_declaration": named("class", opens=True),
        "record_declaration": named("class", opens=True),
        "interface_declaration": named("interface", opens=True),
        "annotation_type_declaration": named("interface", opens=True),
        "enum_declaration": named("enum", opens=True),
        "method_declaration": named("function"),
        "constructor_declaration": named("function"),
        "compact_constructor_declaration": named("function"),
        "annotation_type_element_declaration": named("function"),
        "field_declaration": _java_field,
        "constant_declaration": _java_field,
    },
    through=frozenset(
        "class_body interface_body enum_body enum_body_declarations annotation_type_body".split()
    ),
    comments=_COMMENTS,
)


def _kotlin_property(node: Node, source: bytes) -> Sequence[Match]:
    variable = first(node, "variable_declaration")
    return attribute(None if variable is None else first(variable, "identifier"), node, source)


def _kotlin_function(node: Node, source: bytes) -> Sequence[Match]:
    """Assign `fun String.shout()` to `String`."""
    name = node.child_by_field_name("name")
    if name is None:
        return ()
    before = (child for child in node.named_children if child.end_byte <= name.start_byte)
    receivers = [
        child
        for child in before
        if child.type in ("user_type", "nullable_type", "parenthesized_type")
    ]
    owner = without_arguments(text(receivers[-1], source)).rstrip("?") if receivers else ""
    return (
        Match(
            name=text(name, source),
            kind="function",
            node=node,
            owner=owner,
            body=first(node, "function_body"),
        ),
    )


def _kotlin_class(node: Node, source: bytes) -> Sequence[Match]:
    name = node.child_by_field_name("name") or first(node, "identifier", "type_identifier")
    if name is None:
        return ()
    head = source[node.start_byte : name.start_byte].split()
    kind: Kind = "interface" if b"interface" in head else "enum" if b"enum" in head else "class"
    return (match(kind, node, name, source, opens=True),)


KOTLIN = Grammar(
    rules={
        "class_declaration": _kotlin_class,
        "object_declaration": _kotlin_class,
        "companion_object": only_inside,
        "function_declaration": _kotlin_function,
        "property_declaration": _kotlin_property,
        "type_alias": named("type", field="type"),
    },
    through=frozenset({"class_body", "enum_class_body", "function_body", "block"}),
    comments=_COMMENTS,
    nested=True,
)


def _scala_value(node: Node, source: bytes) -> Sequence[Match]:
    name = node.child_by_field_name("pattern") or node.child_by_field_name("name")
    return attribute(name, node, source) if name is not None and name.type == "identifier" else ()


SCALA = Grammar(
    rules={
        "class_definition": named("class", opens=True),
        "object_definition": named("class", opens=True),
        "trait_definition": named("interface", opens=True),
        "enum_definition": named("enum", opens=True),
        "package_object": named("module", opens=True),
        "function_definition": named("function"),
        "function_declaration": named("function"),
        "type_definition": named("type"),
        "given_definition": named("variable"),
        "val_definition": _scala_value,
        "var_definition": _scala_value,
        "val_declaration": _scala_value,
        "extension_definition": only_inside,
    },
    through=frozenset({"template_body", "enum_body", "package_clause", "block", "indented_block"}),
    comments=_COMMENTS,
    nested=True,
)

GROOVY = Grammar(
    rules={
        "class_definition": named("class", opens=True),
        "function_definition": named("function", field="function"),
        "function_declaration": named("function", field="function"),
        "declaration": named("variable"),
    },
    through=frozenset({"closure"}),
    comments=_COMMENTS | {"groovy_doc"},
    attributes=frozenset({"annotation"}),
)
