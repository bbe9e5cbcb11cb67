"""SQL, Terraform, Protocol Buffers, GraphQL, Make, CMake, Just, Dockerfiles and SCSS."""

from __future__ import annotations

from collections.abc import Sequence

from trivet.code.parse.syntax import (
    Grammar,
    Match,
    Node,
    Rule,
    child_at,
    first,
    match,
    named,
    named_by,
    text,
)
from trivet.code.types import Kind


def _sql(kind: Kind) -> Rule:
    def rule(node: Node, source: bytes) -> Sequence[Match]:
        name = first(node, "object_reference", "identifier")
        return () if name is None else (match(kind, node, name, source),)

    return rule


SQL = Grammar(
    rules={
        "create_table": _sql("class"),
        "create_view": _sql("class"),
        "create_materialized_view": _sql("class"),
        "create_function": _sql("function"),
        "create_procedure": _sql("function"),
        "create_trigger": _sql("function"),
        "create_index": named("variable", field="column"),
        "create_type": _sql("type"),
        "create_schema": named_by("module", "identifier"),
        "create_sequence": _sql("variable"),
        "create_role": _sql("variable"),
    },
    through=frozenset({"block", "transaction"}),
    wraps=frozenset({"statement"}),
    comments=frozenset({"comment", "marginalia"}),
)


def _hcl_block(node: Node, source: bytes) -> Sequence[Match]:
    """Name `resource "aws_s3_bucket" "main"` as `main` in `aws_s3_bucket`."""
    words = [
        text(child, source).strip('"')
        for child in node.named_children
        if child.type in ("identifier", "string_lit")
    ]
    if not words:
        return ()
    owner = ".".join(words[1:-1]) or (words[0] if len(words) > 1 else "")
    return (
        Match(
            name=words[-1], kind="variable", node=node, owner=owner, body=first(node, "block_start")
        ),
    )


HCL = Grammar(rules={"block": _hcl_block}, through=frozenset({"body"}))

PROTO = Grammar(
    rules={
        "message": named_by("class", "message_name", opens=True),
        "enum": named_by("enum", "enum_name"),
        "service": named_by("interface", "service_name", opens=True),
        "rpc": named_by("function", "rpc_name"),
        "extend": named_by("class", "full_ident", opens=True),
    },
    through=frozenset({"message_body"}),
)

GRAPHQL = Grammar(
    rules={
        "object_type_definition": named_by("class", "name", opens=True),
        "object_type_extension": named_by("class", "name", opens=True),
        "interface_type_definition": named_by("interface", "name"),
        "enum_type_definition": named_by("enum", "name"),
        "input_object_type_definition": named_by("type", "name"),
        "union_type_definition": named_by("type", "name"),
        "scalar_type_definition": named_by("type", "name"),
        "directive_definition": named_by("macro", "name"),
        "operation_definition": named_by("function", "name"),
        "fragment_definition": named_by("function", "fragment_name"),
        "field_definition": lambda node, source: (
            named_by("function", "name")(node, source)
            if first(node, "arguments_definition") is not None
            else ()
        ),
    },
    through=frozenset(
        "document definition type_system_definition type_definition executable_definition "
        "type_system_extension "
        "type_extension fields_definition".split()
    ),
)


def _make_rule(node: Node, source: bytes) -> Sequence[Match]:
    targets = first(node, "targets")
    names = [] if targets is None else [text(child, source) for child in targets.named_children]
    body = first(node, "recipe")
    return tuple(
        Match(name=name, kind="function", node=node, body=body)
        for name in names
        if not name.startswith(".")
    )


MAKE = Grammar(
    rules={
        "rule": _make_rule,
        "variable_assignment": named("variable"),
        "define_directive": named("macro"),
    },
    through=frozenset({"conditional", "else_directive", "elsif_directive"}),
)

_CMAKE_KINDS: dict[bytes, Kind] = {
    b"add_library": "module",
    b"add_executable": "module",
    b"add_custom_target": "function",
    b"set": "variable",
    b"option": "variable",
    b"project": "module",
}


def _cmake_first_argument(node: Node, source: bytes) -> Node | None:
    arguments = first(node, "argument_list")
    return None if arguments is None else child_at(arguments, 0)


def _cmake_definition(kind: Kind, command: str) -> Rule:
    def rule(node: Node, source: bytes) -> Sequence[Match]:
        head = first(node, command)
        name = None if head is None else _cmake_first_argument(head, source)
        return () if name is None else (Match(name=text(name, source), kind=kind, node=node),)

    return rule


def _cmake_command(node: Node, source: bytes) -> Sequence[Match]:
    command = child_at(node, 0)
    kind = (
        None
        if command is None
        else _CMAKE_KINDS.get(source[command.start_byte : command.end_byte].lower())
    )
    name = None if kind is None else _cmake_first_argument(node, source)
    return (
        ()
        if kind is None or name is None
        else (Match(name=text(name, source), kind=kind, node=node),)
    )


CMAKE = Grammar(
    rules={
        "function_def": _cmake_definition("function", "function_command"),
        "macro_def": _cmake_definition("macro", "macro_command"),
        "normal_command": _cmake_command,
    },
    through=frozenset({"if_condition", "body"}),
    comments=frozenset({"line_comment", "bracket_comment"}),
)


def _just_recipe(node: Node, source: bytes) -> Sequence[Match]:
    head = first(node, "recipe_header")
    name = None if head is None else head.child_by_field_name("name")
    return (
        ()
        if name is None
        else (
            Match(
                name=text(name, source), kind="function", node=node, body=first(node, "recipe_body")
            ),
        )
    )


JUST = Grammar(
    rules={
        "recipe": _just_recipe,
        "assignment": named("variable", field="left"),
        "alias": named("function", field="left"),
    },
)

DOCKERFILE = Grammar(rules={"from_instruction": named("module", field="as")})

SCSS = Grammar(
    rules={
        "mixin_statement": named_by("function", "name", "identifier"),
        "function_statement": named_by("function", "name", "identifier"),
        "declaration": named_by("variable", "variable_name"),
    },
)
