"""Python (and Starlark), Lua, Bash, Perl, R, Julia, PowerShell, Vim script and Fortran."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trivet.code.parse.syntax import (
    READ_BYTES,
    Grammar,
    Match,
    Node,
    Rule,
    child_at,
    collapse_whitespace,
    first,
    inside,
    match,
    named,
    named_by,
    split_name,
    text,
)
from trivet.code.types import Kind

_LONG_QUOTES = ('"""', "'''")


def _assignment(node: Node, source: bytes) -> Sequence[Match]:
    target = node.child_by_field_name("left")
    if target is None or target.type != "identifier":
        return ()
    return (match("variable", node, target, source),)


def _imported(node: Node, source: bytes) -> Sequence[Match]:
    """Match `from .inner import name as name`, which marks a re-export."""
    aliases = [one for one in node.children_by_field_name("name") if one.type == "aliased_import"]
    pairs = [(one.child_by_field_name("name"), one.child_by_field_name("alias")) for one in aliases]
    same = (
        name
        for name, alias in pairs
        if name and alias and text(name, source) == text(alias, source)
    )
    return tuple(Match(name=text(name, source), kind="export", node=node) for name in same)


def _listed(value: Node | None, node: Node, source: bytes) -> Iterator[Match]:
    for one in (
        value.named_children if value is not None and value.type in ("list", "tuple") else ()
    ):
        name = text(one, source).strip("'\"") if one.type == "string" else ""
        if name.isidentifier():
            yield Match(name=name, kind="export", node=node)


def _statement(node: Node, source: bytes) -> Sequence[Match]:
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
    return collapse_whitespace(words.removeprefix(quotes).removesuffix(quotes))


PYTHON = Grammar(
    rules={
        "function_definition": named("function"),
        "class_definition": named("class", opens=True),
        "expression_statement": _statement,
        "type_alias_statement": _alias,
        "import_from_statement": _imported,
    },
    through=frozenset(
        "block if_statement elif_clause else_clause try_statement except_clause "
        "except_group_clause finally_clause "
        "with_statement".split()
    ),
    wraps=frozenset({"decorated_definition"}),
    attributes=frozenset({"decorator"}),
    inner_doc=_docstring,
    nested=True,
)


def _lua_function(node: Node, source: bytes) -> Sequence[Match]:
    """Match `function M.find()`, `function M:method()`, `local function helper()`."""
    name = node.child_by_field_name("name")
    if name is None:
        return ()
    owner, last = split_name(text(name, source).replace(":", "."))
    return (Match(name=last, kind="method" if owner else "function", node=node, owner=owner),)


def _lua_assignment(node: Node, source: bytes) -> Sequence[Match]:
    targets, values = first(node, "variable_list"), first(node, "expression_list")
    name = None if targets is None else child_at(targets, 0)
    if name is None:
        return ()
    value = None if values is None else child_at(values, 0)
    if value is not None and source.startswith(b"require", value.start_byte):
        return ()
    return tuple(_lua_value(text(name, source), node, value))


def _lua_value(target: str, node: Node, value: Node | None) -> Iterator[Match]:
    owner, name = split_name(target.replace(":", "."))
    kind = "" if value is None else value.type
    if value is not None and kind == "function_definition":
        body = value.child_by_field_name("body")
        yield Match(name=name, kind="function", node=node, owner=owner, body=body)
    elif value is not None and kind == "table_constructor":
        yield Match(
            name=name, kind="variable", node=node, owner=owner, inside=value, attribute=not owner
        )
    elif not owner:
        yield Match(name=name, kind="variable", node=node)


def _lua_field(node: Node, source: bytes) -> Sequence[Match]:
    """Match `name = function() end` in a table."""
    name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
    if value is None:
        return ()
    if name is not None and value.type == "function_definition":
        body = value.child_by_field_name("body")
        return (
            Match(name=text(name, source).strip("[]'\""), kind="function", node=node, body=body),
        )
    if value.type == "table_constructor":
        return (inside(value),)
    return ()


LUA = Grammar(
    rules={
        "function_declaration": _lua_function,
        "assignment_statement": _lua_assignment,
        "field": _lua_field,
    },
    through=frozenset(
        "return_statement expression_list table_constructor if_statement else_statement "
        "elseif_statement block "
        "do_statement".split()
    ),
    wraps=frozenset({"variable_declaration"}),
    nested=True,
)

BASH = Grammar(
    rules={"function_definition": named("function"), "variable_assignment": named("variable")},
    through=frozenset(
        "if_statement elif_clause else_clause compound_statement list case_statement case_item "
        "subshell".split()
    ),
    wraps=frozenset({"declaration_command"}),
)


def _perl_variable(node: Node, source: bytes) -> Sequence[Match]:
    """Match `our $NAME = 3`."""
    declared = node.child_by_field_name("variable")
    if declared is None or declared.type != "variable_declaration":
        return ()
    name = declared.child_by_field_name("variable_name")
    return (
        ()
        if name is None
        else (Match(name=text(name, source).lstrip("$@%"), kind="variable", node=node),)
    )


def _perl_package(node: Node, source: bytes) -> Sequence[Match]:
    """Scope the rest of the file for `package Store;`."""
    name, body = first(node, "package_name"), node.child_by_field_name("body")
    if name is None:
        return ()
    owner, last = split_name(text(name, source))
    return (Match(name=last, kind="module", node=node, owner=owner, inside=body, scopes_rest=True),)


PERL = Grammar(
    rules={
        "package_statement": _perl_package,
        "function_definition": named("function"),
        "use_constant_statement": named("variable", field="constant"),
        "binary_expression": _perl_variable,
    },
    through=frozenset({"block"}),
    comments=frozenset({"comments", "comment", "pod_statement"}),
)

_R_ASSIGNS = frozenset({"<-", "=", "<<-"})
_R_DEFINERS: dict[str, Kind] = {
    "setClass": "class",
    "setRefClass": "class",
    "setGeneric": "function",
    "setMethod": "function",
}


def _r_assignment(node: Node, source: bytes) -> Sequence[Match]:
    """Match `name <- function(...)` and `Store <- R6Class(...)`."""
    name, value = node.child_by_field_name("lhs"), node.child_by_field_name("rhs")
    operator = node.child_by_field_name("operator")
    if name is None or value is None or name.type not in ("identifier", "string"):
        return ()
    if operator is not None and text(operator, source) not in _R_ASSIGNS:
        return ()
    plain = text(name, source).strip("`'\"")
    if value.type == "function_definition":
        return (
            Match(name=plain, kind="function", node=node, body=value.child_by_field_name("body")),
        )
    if value.type == "call" and text(value, source).startswith(
        ("R6Class", "R6::R6Class", "setRefClass", "ggproto")
    ):
        return (Match(name=plain, kind="class", node=node, inside=value),)
    return (Match(name=plain, kind="variable", node=node),)


def _r_argument(node: Node, source: bytes) -> Sequence[Match]:
    """Match `find = function(id) {}` in a class."""
    name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
    if value is None:
        return ()
    if name is not None and value.type == "function_definition":
        return (
            Match(
                name=text(name, source),
                kind="function",
                node=node,
                body=value.child_by_field_name("body"),
            ),
        )
    return (inside(value),) if value.type == "call" else ()


def _r_call(node: Node, source: bytes) -> Sequence[Match]:
    function, arguments = (
        node.child_by_field_name("function"),
        node.child_by_field_name("arguments"),
    )
    kind = None if function is None else _R_DEFINERS.get(text(function, source))
    argument = None if arguments is None or kind is None else first(arguments, "argument")
    value = None if argument is None else argument.child_by_field_name("value")
    if kind is None or value is None or value.type != "string":
        return ()
    return (Match(name=text(value, source).strip("'\""), kind=kind, node=node),)


R = Grammar(
    rules={"binary_operator": _r_assignment, "argument": _r_argument, "call": _r_call},
    through=frozenset({"arguments", "if_statement", "braced_expression"}),
)


def _julia_called(node: Node | None) -> Node | None:
    """Return the name in `f(a)::T where T`."""
    for _ in range(8):
        if node is None or node.type in ("identifier", "field_expression", "operator"):
            return node
        node = child_at(node, 0)
    return None


def _julia_definition(kind: Kind, head: str) -> Rule:
    def rule(node: Node, source: bytes) -> Sequence[Match]:
        name = _julia_called(first(node, head))
        return () if name is None else (match(kind, node, name, source),)

    return rule


def _julia_assignment(node: Node, source: bytes) -> Sequence[Match]:
    """Match `short(x) = x + 1` and `LIMIT = 3`."""
    target = child_at(node, 0)
    if target is None:
        return ()
    if target.type in ("call_expression", "where_expression", "typed_expression"):
        name = _julia_called(target)
        called = (
            target.type != "typed_expression"
            or first(target, "call_expression", "where_expression") is not None
        )
        return (
            ()
            if name is None
            else (match("function" if called else "variable", node, name, source),)
        )
    return (match("variable", node, target, source),) if target.type == "identifier" else ()


JULIA = Grammar(
    rules={
        "module_definition": named("module", opens=True),
        "function_definition": _julia_definition("function", "signature"),
        "macro_definition": _julia_definition("macro", "signature"),
        "struct_definition": _julia_definition("class", "type_head"),
        "abstract_definition": _julia_definition("type", "type_head"),
        "primitive_definition": _julia_definition("type", "type_head"),
        "assignment": _julia_assignment,
    },
    through=frozenset("block if_statement else_clause begin_statement compound_statement".split()),
    wraps=frozenset(
        {"const_statement", "macrocall_expression", "macro_argument_list", "export_statement"}
    ),
    comments=frozenset({"line_comment", "block_comment", "string_literal"}),
)

POWERSHELL = Grammar(
    rules={
        "function_statement": named_by("function", "function_name"),
        "class_statement": named_by("class", "simple_name", opens=True),
        "class_method_definition": named_by("function", "simple_name"),
        "enum_statement": named_by("enum", "simple_name"),
    },
    through=frozenset("statement_list if_statement statement_block".split()),
)


def _vim_function(node: Node, source: bytes) -> Sequence[Match]:
    head = first(node, "function_declaration")
    name = None if head is None else head.child_by_field_name("name")
    if name is None:
        return ()
    return (
        Match(
            name=text(name, source).rpartition("#")[2],
            kind="function",
            node=node,
            body=first(node, "body"),
        ),
    )


VIM = Grammar(
    rules={
        "function_definition": _vim_function,
        "command_statement": named("function"),
        "let_statement": named_by("variable", "scoped_identifier", "identifier"),
    },
    through=frozenset({"if_statement", "body"}),
)


def _fortran(kind: Kind, head: str, *names: str, opens: bool = False) -> Rule:
    def rule(node: Node, source: bytes) -> Sequence[Match]:
        line = first(node, head)
        name = None if line is None else line.child_by_field_name("name") or first(line, *names)
        return () if name is None else (match(kind, node, name, source, opens=opens),)

    return rule


FORTRAN = Grammar(
    rules={
        "module": _fortran("module", "module_statement", "name", opens=True),
        "submodule": _fortran("module", "submodule_statement", "name", opens=True),
        "program": _fortran("module", "program_statement", "name", opens=True),
        "subroutine": _fortran("function", "subroutine_statement", "name"),
        "function": _fortran("function", "function_statement", "name"),
        "derived_type_definition": _fortran("class", "derived_type_statement", "type_name"),
        "interface": _fortran("interface", "interface_statement", "name"),
    },
    through=frozenset({"internal_procedures"}),
)
