"""C, C++, Objective-C, Rust, Go and Zig."""

from __future__ import annotations

import re
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
    named_by,
    split_name,
    text,
    without_arguments,
)
from trivet.code.types import Kind

_RECORDS = frozenset({"class_specifier", "struct_specifier", "union_specifier", "enum_specifier"})
_RECORD_KINDS: dict[str, Kind] = {"enum_specifier": "enum"}
_COMMENTS = frozenset({"comment", "line_comment", "block_comment"})


def _declared_name(node: Node | None) -> tuple[Node | None, bool]:
    """Return the name in `*name(int)[3] = 1`, and whether it is a function's."""
    function = False
    for _ in range(32):  # deeper ones are not written by people
        if node is None or node.type in _NAMES:
            break
        function = function or node.type == "function_declarator"
        if node.type == "parenthesized_declarator":
            function = False  # a pointer to a function: `int (*callback)(int)`
        node = node.child_by_field_name("declarator") or child_at(node, 0)
    return node, function


_NAMES = frozenset(
    "identifier field_identifier type_identifier qualified_identifier destructor_name "
    "operator_name operator_cast "
    "template_function structured_binding_declarator".split()
)


def _c_function(node: Node, source: bytes) -> Sequence[Match]:
    declarator = node.child_by_field_name("declarator")
    name, function = _declared_name(declarator)
    if name is None or declarator is None:
        return ()
    record = node.child_by_field_name("type")
    # class EXPORT_MACRO Name { ... }
    if not function and record is not None and record.type in _RECORDS:
        return (match("class", node, name, source, opens=True),)
    # The grammar takes it for a class without a semicolon.
    if records := tuple(_record_of(node, source)):
        return (*records, _c_named("function", declarator, name, source))
    return (_c_named("function", node, name, source),)


def _c_named(kind: Kind, node: Node, name: Node, source: bytes) -> Match:
    owner, last = split_name(_without_templates(text(name, source)))
    return Match(name=last, kind=kind, node=node, owner=owner)


def _without_templates(name: str) -> str:
    """Turn `Box<T>::get` into `Box::get`; operators keep their signs."""
    if "<" not in name or "operator" in name:
        return name
    kept, depth = [], 0
    for sign in name:
        depth += (sign == "<") - (sign == ">")
        if depth == 0 and sign != ">":
            kept.append(sign)
    return "".join(kept)


def _c_declaration(node: Node, source: bytes) -> Sequence[Match]:
    return (*_record_of(node, source), *_declarators(node, source))


def _declarators(node: Node, source: bytes) -> Iterator[Match]:
    for declarator in node.children_by_field_name("declarator"):
        name, function = _declared_name(declarator)
        if name is not None and name.type in _NAMES:
            yield _c_named("function" if function else "variable", node, name, source)


def _record_of(node: Node, source: bytes) -> Iterator[Match]:
    record = node.child_by_field_name("type")
    if record is not None and record.type == "placeholder_type_specifier":
        record = child_at(record, 0)
    if record is not None and record.type in _RECORDS:
        yield from _record(record, source)


def _record(node: Node, source: bytes) -> Sequence[Match]:
    name = node.child_by_field_name("name")
    if name is None or node.child_by_field_name("body") is None:
        return ()
    found = _c_named(_RECORD_KINDS.get(node.type, "class"), node, name, source)
    return (Match(name=found.name, kind=found.kind, node=node, owner=found.owner, inside=node),)


def _typedef(node: Node, source: bytes) -> Sequence[Match]:
    if node.has_error:
        return ()  # mostly a macro that looks like a type: `typedef NS_ENUM(Type, Color) {...};`
    names = (
        _declared_name(declarator)[0] for declarator in node.children_by_field_name("declarator")
    )
    types = [
        _c_named("type", node, name, source)
        for name in names
        if name is not None and name.type in _NAMES
    ]
    records = [
        one for one in _record_of(node, source) if all(one.name != other.name for other in types)
    ]
    return (*types, *records)


def _namespace(node: Node, source: bytes) -> Sequence[Match]:
    return (
        (match("module", node, name, source, opens=True),)
        if (name := node.child_by_field_name("name"))
        else (inside(node),)
    )


def _constant_macro(node: Node, source: bytes) -> Sequence[Match]:
    """Skip macros without a value, mostly header guards."""
    return _MACRO(node, source) if node.child_by_field_name("value") is not None else ()


def _function_macro(node: Node, source: bytes) -> Sequence[Match]:
    name = node.child_by_field_name("name")
    value = node.child_by_field_name("value")
    return (
        ()
        if name is None
        else (Match(name=text(name, source), kind="macro", node=node, body=value),)
    )


_MACRO = named("macro")


def _broken_function(node: Node, source: bytes) -> Sequence[Match]:
    """Match a lone declarator: macros in the body broke the node."""
    name, function = _declared_name(node)
    return (_c_named("function", node, name, source),) if function and name is not None else ()


_C_RULES = {
    "function_declarator": _broken_function,
    "function_definition": _c_function,
    "declaration": _c_declaration,
    "field_declaration": lambda node, source: (
        *_record_of(node, source),
        *(one for one in _declarators(node, source) if one.kind == "function"),
    ),
    "struct_specifier": _record,
    "union_specifier": _record,
    "enum_specifier": _record,
    "type_definition": _typedef,
    "preproc_def": _constant_macro,
    "preproc_function_def": _function_macro,
}
_C_THROUGH = frozenset(
    "preproc_ifdef preproc_if preproc_else preproc_elif preproc_elifdef linkage_specification "
    "declaration_list "
    "field_declaration_list compound_statement labeled_statement".split()
)

_C_SWALLOWED = frozenset({"function_definition", "class_specifier", "struct_specifier"})

C = Grammar(rules=_C_RULES, through=_C_THROUGH, swallowed=_C_SWALLOWED)

CPP = Grammar(
    rules={
        **_C_RULES,
        "class_specifier": _record,
        "namespace_definition": _namespace,
        "alias_declaration": named("type"),
        "concept_definition": named("type"),
        "namespace_alias_definition": named("module"),
    },
    through=_C_THROUGH,
    wraps=frozenset({"template_declaration"}),
    swallowed=_C_SWALLOWED,
)


def _objc_method(node: Node, source: bytes) -> Sequence[Match]:
    """Name `- (id)initWithA:(int)a b:(int)b` as `initWithA:b:`."""
    words = [
        child for child in node.named_children if child.type in ("identifier", "method_parameter")
    ]
    names = [text(child, source) for child in words if child.type == "identifier"]
    colon = ":" if any(child.type == "method_parameter" for child in words) else ""
    if not names:
        return ()
    name = "".join(f"{one}:" for one in names) if colon else names[0]
    return (Match(name=name, kind="function", node=node, body=first(node, "compound_statement")),)


OBJC = Grammar(
    rules={
        **_C_RULES,
        "class_interface": named_by("class", "identifier", opens=True),
        "class_implementation": named_by("class", "identifier", opens=True),
        "category_interface": named_by("class", "identifier", opens=True),
        "category_implementation": named_by("class", "identifier", opens=True),
        "protocol_declaration": named_by("interface", "identifier", opens=True),
        "method_declaration": _objc_method,
        "method_definition": _objc_method,
    },
    through=_C_THROUGH | {"implementation_definition", "qualified_protocol_interface_declaration"},
    swallowed=_C_SWALLOWED,
)


def _implementation(node: Node, source: bytes) -> Sequence[Match]:
    target = node.child_by_field_name("type")
    if target is None:
        return ()
    return (inside(node, without_arguments(text(target, source)).replace("::", ".").lstrip("&'")),)


def _rust_module(node: Node, source: bytes) -> Sequence[Match]:
    """Skip `mod name;`, which only refers to a file."""
    return () if node.child_by_field_name("body") is None else _MODULE(node, source)


def _rust_macro_call(node: Node, source: bytes) -> Sequence[Match]:
    """Match items in `define_rejection! { pub struct Missing; }` by words."""
    body = source[node.start_byte : min(node.end_byte, node.start_byte + _MACRO_BYTES)]
    items = ((item[1], item[2].decode("utf-8", "replace")) for item in _RUST_ITEM.finditer(body))
    return tuple(Match(name=name, kind=_RUST_ITEM_KINDS[word], node=node) for word, name in items)


def _rust_use(node: Node, source: bytes) -> Sequence[Match]:
    """Match `pub use inner::{Name, other as Known};`."""
    passed = node.child_by_field_name("argument")
    if passed is None or first(node, "visibility_modifier") is None:
        return ()
    return tuple(Match(name=name, kind="export", node=node) for name in _used_names(passed, source))


def _used_names(passed: Node, source: bytes) -> Iterator[str]:
    waiting = [passed]
    while waiting:
        one = waiting.pop()
        if one.type in ("use_list", "scoped_use_list"):
            listed = one if one.type == "use_list" else one.child_by_field_name("list")
            waiting.extend(reversed(listed.named_children if listed is not None else ()))
        elif one.type in ("identifier", "scoped_identifier", "use_as_clause"):
            name = one.child_by_field_name("alias") or one.child_by_field_name("name") or one
            yield text(name, source)


_MACRO_BYTES = 4000
_RUST_ITEM = re.compile(
    rb"^[ \t]{0,40}(?:pub(?:\(\w+\))? )?(struct|enum|trait|type) (\w+)", re.MULTILINE
)
_RUST_ITEM_KINDS: dict[bytes, Kind] = {
    b"struct": "class",
    b"enum": "enum",
    b"trait": "interface",
    b"type": "type",
}
_MODULE = named("module", opens=True)

RUST = Grammar(
    rules={
        "function_item": named("function"),
        "function_signature_item": named("function"),
        "struct_item": named("class"),
        "union_item": named("class"),
        "enum_item": named("enum"),
        "trait_item": named("interface", opens=True),
        "mod_item": _rust_module,
        "type_item": named("type"),
        "associated_type": named("type"),
        "const_item": named("variable"),
        "static_item": named("variable"),
        "macro_definition": named("macro"),
        "impl_item": _implementation,
        "macro_invocation": _rust_macro_call,
        "use_declaration": _rust_use,
    },
    through=frozenset({"declaration_list", "foreign_mod_item", "block"}),
    comments=_COMMENTS,
    attributes=frozenset({"attribute_item"}),
    nested=True,
)


def _receiver(node: Node, source: bytes) -> Sequence[Match]:
    """Name `func (s *Server) Run()` as `Run` of `Server`."""
    receiver, name = node.child_by_field_name("receiver"), node.child_by_field_name("name")
    if receiver is None or name is None:
        return ()
    words = text(receiver, source).strip("()").partition("[")[0].split()
    owner = words[-1].lstrip("*(") if words else ""
    return (Match(name=text(name, source), kind="method", node=node, owner=owner),)


_GO_KINDS: dict[str, Kind] = {"struct_type": "class", "interface_type": "interface"}


def _go_type(node: Node, source: bytes) -> Sequence[Match]:
    name, body = node.child_by_field_name("name"), node.child_by_field_name("type")
    if name is None:
        return ()
    kind = "type" if body is None else _GO_KINDS.get(body.type, "type")
    return (
        Match(
            name=text(name, source),
            kind=kind,
            node=node,
            inside=body if kind == "interface" else None,
        ),
    )


def _go_values(node: Node, source: bytes) -> Sequence[Match]:
    return tuple(
        match("variable", node, name, source) for name in node.children_by_field_name("name")
    )


GO = Grammar(
    rules={
        "function_declaration": named("function"),
        "method_declaration": _receiver,
        "method_elem": named("function"),
        "type_spec": _go_type,
        "type_alias": named("type"),
        "const_spec": _go_values,
        "var_spec": _go_values,
    },
    through=frozenset({"var_spec_list"}),
    wraps=frozenset({"type_declaration", "const_declaration", "var_declaration"}),
)

_ZIG_KINDS: dict[str, Kind] = {
    "struct_declaration": "class",
    "union_declaration": "class",
    "opaque_declaration": "class",
    "enum_declaration": "enum",
    "error_set_declaration": "enum",
}


def _zig_variable(node: Node, source: bytes) -> Sequence[Match]:
    name = first(node, "identifier")
    value = node.named_child(node.named_child_count - 1)
    if name is None or value is None or source.startswith(b"@import(", value.start_byte):
        return ()
    kind = _ZIG_KINDS.get(value.type)
    if kind is None:
        return (match("variable", node, name, source),)
    return (Match(name=text(name, source), kind=kind, node=node, inside=value),)


def _zig_function(node: Node, source: bytes) -> Sequence[Match]:
    """Enter functions that return a type, as Zig's generic types do."""
    name, result = node.child_by_field_name("name"), node.child_by_field_name("type")
    if name is None:
        return ()
    generic = result is not None and text(result, source) == "type"
    body = node.child_by_field_name("body")
    return (
        Match(
            name=text(name, source), kind="function", node=node, inside=body if generic else None
        ),
    )


ZIG = Grammar(
    rules={"function_declaration": _zig_function, "variable_declaration": _zig_variable},
    through=frozenset(
        "struct_declaration union_declaration enum_declaration opaque_declaration block "
        "expression_statement "
        "return_expression field_expression".split()
    ),
)
