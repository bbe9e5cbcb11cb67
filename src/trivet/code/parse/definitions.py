"""Finds the definitions of a syntax tree, entering only nodes that can hold some."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec

from trivet.code.parse.chunks import Region
from trivet.code.parse.syntax import Grammar, Match, plain_text
from trivet.code.types import Definition, Kind

if TYPE_CHECKING:
    from tree_sitter import Node
else:
    Node = object

SIGNATURE_CHARACTERS = 200
NAME_CHARACTERS = 200
QUALIFIED_CHARACTERS = 400
# Bytes. Longer functions are searched for inner ones: they are split anyway, and are often closures
# that hold what people look for (`dispatch` in `createStore`).
LONG_FUNCTION = 2000

_CALLABLE: frozenset[Kind] = frozenset({"function", "method"})
# A callable that is defined in one of these is a method.
_OWNERS: frozenset[Kind] = frozenset({"class", "interface", "enum", "type", "variable"})


class _Lead:
    """Comments and attributes directly above the next definition."""

    __slots__ = ("comments", "last", "opening", "reach", "start", "top")

    def __init__(self, top: int, last: int) -> None:
        self.top = top
        self.last = last
        self.reach = 1  # maximum lines to the definition
        self.start: int | None = None
        self.opening: Node | None = None  # an `export` or a template around the definition
        self.comments: list[Node] = []


class _Frame:
    __slots__ = (
        "children",
        "container",
        "lead",
        "local",
        "member",
        "only",
        "outer",
        "previous",
        "swallower",
    )

    def __init__(
        self,
        children: Iterator[Node],
        container: str,
        *,
        member: bool,
        local: bool,
        lead: _Lead | None = None,
    ) -> None:
        self.children = children
        self.container = self.outer = container
        self.member = member  # functions here are methods
        self.local = local  # inside a function: variables are skipped
        self.lead = lead
        self.previous: Node | None = None
        self.only: frozenset[str] | None = None  # node types to consider; None for all
        self.swallower: int | None = None  # position of the broken function that swallowed these


def find_definitions(root: Node, source: bytes, grammar: Grammar) -> list[Region]:
    """Return definitions by line, outer before inner."""
    found: list[Region] = []
    stack = [_Frame(iter(root.named_children), "", member=False, local=False)]
    while stack:
        deeper = _walk(stack[-1], source, grammar, found)
        if deeper is None:
            stack.pop()
        else:
            stack.extend(reversed(deeper))
    found.sort(key=lambda one: (one.start, -one.end))
    return _without_own_exports(found)


def _without_own_exports(found: list[Region]) -> list[Region]:
    """Drop exports, as in `__all__`, of names that the file defines."""
    defined = {
        one.definition.name for one in found if one.definition is not None and one.kind != "export"
    }
    return [
        one
        for one in found
        if one.kind != "export" or one.definition is None or one.definition.name not in defined
    ]


def _walk(
    frame: _Frame, source: bytes, grammar: Grammar, found: list[Region]
) -> list[_Frame] | None:
    """Walk until siblings must be entered; return their frames, or None at the end."""
    rules, through, wraps, comments = (
        grammar.rules,
        grammar.through,
        grammar.wraps,
        grammar.comments,
    )
    for node in frame.children:
        kind = node.type
        deeper: list[_Frame] = []
        if frame.only is not None and kind in rules and kind not in frame.only:
            pass
        elif (rule := rules.get(kind)) is not None and (matches := rule(node, source)):
            for match in matches:
                if (inner := _take(match, frame, source, grammar, found)) is not None:
                    deeper.append(inner)
        elif kind in wraps:
            deeper.append(_inner(frame, node, lead=_wrapped(frame, node)))
        elif kind in through:
            deeper.append(_inner(frame, node, lead=frame.lead))
        elif kind == "ERROR":
            # Its variables may be locals of a broken function.
            deeper.append(_inner(frame, node, local=True))
        elif kind in comments:
            _note_comment(frame, node, source)
        elif kind in grammar.attributes and source.startswith(
            grammar.attribute_marks, node.start_byte
        ):
            _note_attribute(frame, node)
        elif kind in grammar.tails and found:
            found[-1] = _extended(found[-1], last_row(node) + 1)
        frame.previous = node
        if deeper:
            return deeper
    return None


def _inner(frame: _Frame, node: Node, *, lead: _Lead | None = None, local: bool = False) -> _Frame:
    children = iter(node.named_children)
    inner = _Frame(
        children, frame.container, member=frame.member, local=local or frame.local, lead=lead
    )
    inner.only, inner.swallower = frame.only, frame.swallower
    return inner


def _take(
    match: Match, frame: _Frame, source: bytes, grammar: Grammar, found: list[Region]
) -> _Frame | None:
    container = _joined(frame.outer if match.scopes_rest else frame.container, match.owner)
    if not match.defines:
        if match.inside is None:
            return None
        if match.owner:
            found.append(_found(match, "class", container, frame, source, grammar))
        member = bool(match.owner) or frame.member
        return _Frame(
            iter(match.inside.named_children), container, member=member, local=frame.local
        )
    if (match.kind == "variable" and _is_minor(match, frame)) or (
        match.kind == "export" and frame.local
    ):
        return None
    kind: Kind = (
        "method" if match.kind == "function" and (frame.member or match.owner) else match.kind
    )
    region = _found(match, kind, container, frame, source, grammar)
    if grammar.clauses and found and _is_clause(found[-1], region):
        found[-1] = _extended(found[-1], region.end)
        return None
    if frame.swallower is not None:
        found[frame.swallower] = _shortened(found[frame.swallower], region.top - 1)
        frame.swallower = None
    found.append(region)
    if match.scopes_rest and match.inside is None:
        frame.container = region.name
    inside, local = match.inside, False
    if grammar.nested and kind in _CALLABLE and inside is None and _is_long(match.node):
        inside, local = match.body or match.node, True
    if inside is None:
        return _swallowed(match, kind, frame, grammar, len(found) - 1)
    children = iter(inside.named_children)
    return _Frame(
        children,
        _joined(container, match.name[:NAME_CHARACTERS]),
        member=kind in _OWNERS,
        local=local or frame.local,
    )


def _swallowed(
    match: Match, kind: Kind, frame: _Frame, grammar: Grammar, place: int
) -> _Frame | None:
    """Search a function with unbalanced braces: the parser puts later definitions in it."""
    if (
        not grammar.swallowed
        or kind not in _CALLABLE
        or not match.node.has_error
        or not _is_long(match.node)
    ):
        return None
    inner = _inner(frame, match.node, local=True)
    inner.only, inner.swallower = grammar.swallowed, place
    return inner


def _shortened(region: Region, end: int) -> Region:
    end = max(end, region.start)
    definition = region.definition
    if definition is not None:
        definition = msgspec.structs.replace(definition, end=min(end, definition.end))
    return msgspec.structs.replace(region, end=min(end, region.end), definition=definition)


def _joined(container: str, name: str) -> str:
    if len(container) > QUALIFIED_CHARACTERS:  # thousands of levels: not written by people
        return container
    return f"{container}.{name}" if container and name else container or name


def _is_clause(previous: Region, region: Region) -> bool:
    return (
        region.kind in _CALLABLE
        and previous.name == region.name
        and previous.definition is not None
    )


def _extended(region: Region, end: int) -> Region:
    definition = region.definition
    if definition is not None:
        definition = msgspec.structs.replace(definition, end=max(end, definition.end))
    return msgspec.structs.replace(region, end=max(end, region.end), definition=definition)


def _is_long(node: Node) -> bool:
    return node.end_byte - node.start_byte > LONG_FUNCTION


def _is_minor(match: Match, frame: _Frame) -> bool:
    return frame.local or (frame.member and not match.attribute and not match.name.isupper())


def _found(
    match: Match, kind: Kind, container: str, frame: _Frame, source: bytes, grammar: Grammar
) -> Region:
    row = match.node.start_point[0]
    top = start = row
    comments: Sequence[Node] = ()
    opening = match.node
    lead = frame.lead
    if lead is not None and row - lead.last <= lead.reach:
        top, comments = lead.top, lead.comments
        start = row if lead.start is None else min(lead.start, row)
        if lead.opening is not None and lead.opening.start_point[0] == row:
            opening = lead.opening  # its signature includes `export`, `template <...>`, `type`
        frame.lead = None
    doc = "" if grammar.inner_doc is None else grammar.inner_doc(match.node, source)
    definition = Definition(
        name=match.name[:NAME_CHARACTERS],
        kind=kind,
        start=start + 1,
        end=last_row(match.node) + 1,
        container=container,
        signature=_signature(match, opening.start_byte, source),
        doc=doc or (plain_text(comments, source) if comments else ""),
    )
    return Region(
        top=min(top, start) + 1,
        start=start + 1,
        end=definition.end,
        kind=kind,
        name=_joined(container, match.name[:NAME_CHARACTERS]),
        signature=definition.signature,
        definition=definition if match.defines else None,
    )


def last_row(node: Node) -> int:
    """Return the last line: some grammars end a node where the next line begins."""
    row, column = node.end_point
    return row - 1 if column == 0 and row > node.start_point[0] else row


def _signature(match: Match, start: int, source: bytes) -> str:
    node = match.node
    body = match.body or _body(node)
    end = node.end_byte if body is None or body.start_byte <= node.start_byte else body.start_byte
    # Whitespace is collapsed below, so more bytes than characters are read.
    raw = source[start : min(end, start + 4 * SIGNATURE_CHARACTERS)].decode("utf-8", "replace")
    if body is None and match.inside is not None:
        raw = raw.partition("{")[0].partition("\n")[0]
    elif body is None and match.kind in _CALLABLE:
        raw = raw.removesuffix("end")
    first, *others = raw.split("\n")
    kept = (line for line in others if not line.lstrip().startswith(_COMMENT_MARKS))
    return " ".join(" ".join((first, *kept)).split())[:SIGNATURE_CHARACTERS].rstrip(" ,{=")


_COMMENT_MARKS = ("#", "//", "/*", "--")  # of comments between a name and its body


_BODIES = frozenset(
    "block body function_body class_body enum_class_body do_block closure compound_statement "
    "message_body enum_body "
    "recipe template_body structure script_block declaration_list".split()
)


def _body(node: Node) -> Node | None:
    body = node.child_by_field_name("body")
    if body is not None:
        return body
    return next((child for child in node.named_children if child.type in _BODIES), None)


def _note_comment(frame: _Frame, node: Node, source: bytes) -> None:
    row = node.start_point[0]
    if (
        frame.previous is not None
        and frame.previous.end_point[0] == row
        and frame.previous.end_point[1] > 0
    ):
        return  # trailing comment of other code
    lead = _lead(frame, node, row)
    lead.comments.append(node)
    # Documentation reaches the next definition over a blank line, unless that has its own.
    lead.reach = 2 if source.startswith(b"/**", node.start_byte) else 1


def _note_attribute(frame: _Frame, node: Node) -> None:
    row = node.start_point[0]
    lead = _lead(frame, node, row)
    lead.start = row if lead.start is None else lead.start
    lead.comments.append(node)


def _lead(frame: _Frame, node: Node, row: int) -> _Lead:
    lead = frame.lead
    if lead is None or row - lead.last > 1:
        lead = frame.lead = _Lead(row, row)
    lead.last = last_row(node)
    return lead


def _wrapped(frame: _Frame, node: Node) -> _Lead:
    """Pass the lead above an `export`, decorator or template on to the definition inside."""
    row = node.start_point[0]
    lead = _Lead(row, row)
    lead.opening = node
    above = frame.lead
    if above is not None and row - above.last <= above.reach:
        lead.top, lead.comments, lead.start = above.top, above.comments, above.start
        if above.opening is not None and above.opening.start_point[0] == row:
            lead.opening = above.opening  # `export const`: two nodes around a name
    lead.start = row if lead.start is None else lead.start
    return lead
