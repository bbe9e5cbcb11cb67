"""Haskell, OCaml, Elixir, Erlang, Nix, Jsonnet, and the Lisps: Clojure, Racket, Scheme."""

from __future__ import annotations

from collections.abc import Sequence

from trivet.code.parse.syntax import (
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


def _haskell_name(node: Node) -> Node | None:
    name = node.child_by_field_name("name")
    if name is not None and name.type == "prefix_id":  # (<+>) :: ...
        return child_at(name, 0)
    if name is None and (infix := first(node, "infix")) is not None:  # a <+> b = ...
        return infix.child_by_field_name("operator")
    return name


def _haskell_value(node: Node, source: bytes) -> Sequence[Match]:
    name = _haskell_name(node)
    return (
        ()
        if name is None
        else (Match(name=text(name, source).strip("`"), kind="function", node=node),)
    )


def _haskell_class(node: Node, source: bytes) -> Sequence[Match]:
    name = node.child_by_field_name("name")
    body = node.child_by_field_name("declarations")
    return (
        ()
        if name is None
        else (Match(name=text(name, source), kind="interface", node=node, inside=node, body=body),)
    )


def _haskell_instance(node: Node, source: bytes) -> Sequence[Match]:
    name = node.child_by_field_name("name")
    return () if name is None else (inside(node, text(name, source)),)


HASKELL = Grammar(
    rules={
        "function": _haskell_value,
        "bind": _haskell_value,
        "signature": _haskell_value,
        "data_type": named("class"),
        "newtype": named("class"),
        "type_synomym": named("type"),
        "type_family": named("type"),
        "data_family": named("type"),
        "pattern_synonym": named_by("function", "equation"),
        "class": _haskell_class,
        "instance": _haskell_instance,
    },
    through=frozenset({"declarations", "class_declarations", "instance_declarations"}),
    comments=frozenset({"comment", "haddock"}),
    clauses=True,
    attributes=frozenset({"pragma"}),
)


def _let(node: Node, source: bytes) -> Sequence[Match]:
    pattern = node.child_by_field_name("pattern")
    if pattern is None or pattern.type not in ("value_name", "parenthesized_operator"):
        return ()
    body = node.child_by_field_name("body")
    function = first(node, "parameter") is not None or (
        body is not None and body.type in _OCAML_FUNCTIONS
    )
    return (
        Match(name=text(pattern, source), kind="function" if function else "variable", node=node),
    )


_OCAML_FUNCTIONS = frozenset({"fun_expression", "function_expression"})

OCAML = Grammar(
    rules={
        "let_binding": _let,
        "value_specification": named_by("function", "value_name", "parenthesized_operator"),
        "external": named_by("function", "value_name", "parenthesized_operator"),
        "type_binding": named("type"),
        "module_binding": named_by("module", "module_name", opens=True),
        "module_type_definition": named_by("interface", "module_type_name", opens=True),
        "class_binding": named_by("class", "class_name", opens=True),
        "class_type_binding": named_by("interface", "class_type_name", opens=True),
        "method_definition": named_by("function", "method_name"),
        "constructor_declaration": named_by("class", "constructor_name"),
    },
    through=frozenset({"structure", "signature", "object_expression"}),
    wraps=frozenset(
        "value_definition type_definition module_definition class_definition class_type_definition "
        "exception_definition".split()
    ),
)

_ELIXIR_KINDS: dict[bytes, Kind] = {
    b"def": "function",
    b"defp": "function",
    b"defdelegate": "function",
    b"defguard": "function",
    b"defguardp": "function",
    b"defmacro": "macro",
    b"defmacrop": "macro",
    b"defmodule": "module",
    b"defprotocol": "interface",
}


def _elixir_call(node: Node, source: bytes) -> Sequence[Match]:
    target = node.child_by_field_name("target")
    verb = b"" if target is None else source[target.start_byte : target.end_byte]
    arguments = first(node, "arguments")
    head = None if arguments is None else child_at(arguments, 0)
    if head is None or arguments is None:
        return ()
    if verb == b"defimpl":
        return (inside(node, text(head, source)),)
    if verb in (b"describe", b"if", b"unless"):
        return (inside(node),)
    kind = _ELIXIR_KINDS.get(verb)
    if kind is None:
        return ()
    body = first(node, "do_block")
    if kind in ("module", "interface"):
        owner, name = split_name(text(head, source))
        return (Match(name=name, kind=kind, node=node, owner=owner, inside=node, body=body),)
    return (
        Match(
            name=_elixir_name(head, source),
            kind=kind,
            node=node,
            body=body or first(arguments, "keywords"),
        ),
    )


def _elixir_name(head: Node, source: bytes) -> str:
    """Return the name in `find(a, b) when ...`, `noargs` or `a + b`."""
    while head.type == "binary_operator":
        left, operator = head.child_by_field_name("left"), head.child_by_field_name("operator")
        if left is None or operator is None:
            break
        if text(operator, source) != "when":
            return text(operator, source)
        head = left
    target = head.child_by_field_name("target") if head.type == "call" else None
    return text(target or head, source)


def _elixir_moduledoc(node: Node, source: bytes) -> str:
    body = (
        first(node, "do_block")
        if source.startswith((b"defmodule", b"defprotocol"), node.start_byte)
        else None
    )
    note = None if body is None else child_at(body, 0)
    if note is None or not source.startswith(b"@moduledoc", note.start_byte):
        return ""
    words = text(note, source).removeprefix("@moduledoc").strip()
    return "" if words == "false" else collapse_whitespace(words.removeprefix("~S").strip('"'))


def _elixir_attribute(node: Node, source: bytes) -> Sequence[Match]:
    """Match `@callback init(opts) :: opts` and `@type t :: term`."""
    operand = node.child_by_field_name("operand")
    verb = None if operand is None else operand.child_by_field_name("target")
    arguments = None if operand is None else first(operand, "arguments")
    head = None if arguments is None else child_at(arguments, 0)
    kind = None if verb is None else _ELIXIR_ATTRIBUTES.get(source[verb.start_byte : verb.end_byte])
    if kind is None or head is None:
        return ()
    left = head.child_by_field_name("left") if head.type == "binary_operator" else None
    return (Match(name=_elixir_name(left or head, source), kind=kind, node=node),)


_ELIXIR_ATTRIBUTES: dict[bytes, Kind] = {
    b"callback": "function",
    b"macrocallback": "macro",
    b"type": "type",
    b"typep": "type",
    b"opaque": "type",
}

ELIXIR = Grammar(
    rules={"call": _elixir_call, "unary_operator": _elixir_attribute},
    through=frozenset({"do_block"}),
    attributes=frozenset({"unary_operator"}),
    attribute_marks=(b"@doc", b"@spec", b"@impl", b"@deprecated", b"@typedoc", b"@since", b"@tag"),
    clauses=True,
    inner_doc=_elixir_moduledoc,
)


def _erlang_function(node: Node, source: bytes) -> Sequence[Match]:
    clause = node.child_by_field_name("clause")
    name = None if clause is None else clause.child_by_field_name("name")
    if name is None or clause is None:
        return ()
    return (
        Match(
            name=text(name, source),
            kind="function",
            node=node,
            body=clause.child_by_field_name("body"),
        ),
    )


def _erlang_inner(kind: Kind, field: str) -> Rule:
    def rule(node: Node, source: bytes) -> Sequence[Match]:
        head = node.child_by_field_name(field)
        name = None if head is None else head.child_by_field_name("name")
        return () if name is None else (match(kind, node, name, source),)

    return rule


ERLANG = Grammar(
    rules={
        "fun_decl": _erlang_function,
        "record_decl": named("class"),
        "pp_define": _erlang_inner("macro", "lhs"),
        "type_alias": _erlang_inner("type", "name"),
        "opaque": _erlang_inner("type", "name"),
        "module_attribute": named("module"),
        "callback": named("function", field="fun"),
    },
    attributes=frozenset({"spec"}),
    clauses=True,
)

_LISP_KINDS: dict[str, Kind] = {
    "ns": "module",
    "def": "variable",
    "defonce": "variable",
    "define": "variable",
    "defn": "function",
    "defn-": "function",
    "defmulti": "function",
    "defmethod": "function",
    "defmacro": "macro",
    "define-syntax": "macro",
    "define-syntax-rule": "macro",
    "define-macro": "macro",
    "defprotocol": "interface",
    "definterface": "interface",
    "defrecord": "class",
    "deftype": "class",
    "struct": "class",
    "define-struct": "class",
    "define-record-type": "class",
    "module": "module",
    "deftest": "function",
    "define/contract": "function",
}
_LISP_OPEN = frozenset({"defprotocol", "definterface", "defrecord", "deftype", "module"})
_LISP_THROUGH = frozenset({"do", "begin", "let", "module+", "when", "comment", "cond-expand"})


def _lisp_list(node: Node, source: bytes) -> Sequence[Match]:
    children = [child for child in node.named_children[:4] if child.type != "comment"]
    if len(children) < 2:
        return ()
    verb = text(children[0], source)
    kind = _LISP_KINDS.get(verb.rpartition("/")[2] if verb != "define/contract" else verb)
    if kind is None:
        return (inside(node),) if verb in _LISP_THROUGH else ()
    name = children[1]
    if name.type in ("list", "list_lit"):  # (define (name argument) ...)
        kind = "function" if kind == "variable" else kind
        head_name = child_at(name, 0)
        if head_name is None:
            return ()
        name = head_name
    word = name.child_by_field_name("name") or name
    opened = node if verb in _LISP_OPEN else None
    body = children[2] if len(children) > 2 and not opened else None
    # Its arguments are part of the signature.
    if body is not None and body.type in ("vec_lit", "str_lit", "kwd_lit"):
        body = _behind_arguments(node)
    return (Match(name=text(word, source), kind=kind, node=node, inside=opened, body=body),)


def _behind_arguments(node: Node) -> Node | None:
    children = node.named_children[:6]
    places = [place for place, child in enumerate(children) if child.type == "vec_lit"]
    return children[places[0] + 1] if places and places[0] + 1 < len(children) else None


def _clojure_doc(node: Node, source: bytes) -> str:
    child = node.named_children[2:3]
    return (
        collapse_whitespace(text(child[0], source).strip('"'))
        if child and child[0].type == "str_lit"
        else ""
    )


def _clojure_list(node: Node, source: bytes) -> Sequence[Match]:
    found = _lisp_list(node, source)
    if found or node.named_child_count < 2:
        return found
    name = child_at(node, 0)  # (area [this] ...) in a protocol or a record
    second = child_at(node, 1)
    if name is None or second is None or name.type != "sym_lit" or second.type != "vec_lit":
        return ()
    return (Match(name=text(name, source), kind="method", node=node),)


CLOJURE = Grammar(
    rules={"list_lit": _clojure_list},
    inner_doc=_clojure_doc,
)
LISP = Grammar(rules={"list": _lisp_list})


def _nix_binding(node: Node, source: bytes) -> Sequence[Match]:
    name, value = node.child_by_field_name("attrpath"), node.child_by_field_name("expression")
    if name is None or value is None:
        return ()
    kind: Kind = "function" if value.type == "function_expression" else "variable"
    opened = value if value.type in ("attrset_expression", "rec_attrset_expression") else None
    return (
        Match(
            name=text(name, source),
            kind=kind,
            node=node,
            inside=opened,
            attribute=opened is not None,
        ),
    )


NIX = Grammar(
    rules={"binding": _nix_binding},
    through=frozenset(
        "function_expression let_expression attrset_expression rec_attrset_expression binding_set "
        "with_expression "
        "parenthesized_expression".split()
    ),
)


def _jsonnet_bind(node: Node, source: bytes) -> Sequence[Match]:
    function = node.child_by_field_name("function")
    name = function or first(node, "id")
    kind: Kind = "variable" if function is None else "function"
    return () if name is None else (match(kind, node, name, source),)


def _jsonnet_field(node: Node, source: bytes) -> Sequence[Match]:
    name = first(node, "fieldname")
    kind: Kind = "function" if first(node, "params") is not None else "variable"
    return (
        ()
        if name is None
        else (Match(name=text(name, source), kind=kind, node=node, attribute=True),)
    )


JSONNET = Grammar(
    rules={"bind": _jsonnet_bind, "field": _jsonnet_field},
    through=frozenset({"local_bind", "object", "member"}),
)
