"""What a grammar's table is made of: rules that say which nodes of a syntax tree define names.

Turns comments into plain text: without the marks that make them comments.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from trivet.code.types import Kind

if TYPE_CHECKING:
    from tree_sitter import Node as Node
else:
    Node = object  # tree-sitter is imported only where a file is parsed


class Match(msgspec.Struct, frozen=True, kw_only=True):
    """A name that a node defines, or, without `defines`, a place in which the walk goes on."""

    name: str
    kind: Kind
    node: Node
    inside: Node | None = None  # its definitions are found next, with this one as their container
    body: Node | None = None  # where the signature ends, if not at the node's own body
    owner: str = ""  # the container that the name itself states: `Foo` of `Foo::bar`
    defines: bool = True
    scopes_rest: bool = False  # in a file, what follows belongs to it: `package Store;`
    attribute: bool = False  # a variable that counts in a class too: a property, not a plain field


Rule: TypeAlias = Callable[[Node, bytes], Sequence[Match]]


class Grammar(msgspec.Struct, frozen=True, kw_only=True):
    """How definitions are found in a language. Nodes that are in none of the sets are not looked into."""

    rules: Mapping[str, Rule]
    through: frozenset[str] = (
        frozenset()
    )  # walked through: bodies of classes, conditions around definitions
    wraps: frozenset[str] = (
        frozenset()
    )  # walked through; the definition inside begins where they begin
    comments: frozenset[str] = frozenset({"comment"})
    attributes: frozenset[str] = (
        frozenset()
    )  # stand before a definition as its siblings and belong to it
    attribute_marks: tuple[bytes, ...] = (b"",)  # how the source of an attribute begins
    clauses: bool = False  # neighbours of one name are clauses of one definition
    tails: frozenset[str] = frozenset()  # bodies that stand behind their definition as siblings
    nested: bool = False  # long functions are searched for functions in them
    swallowed: frozenset[str] = (
        frozenset()
    )  # definitions that a long broken function may have swallowed
    inner_doc: Callable[[Node, bytes], str] | None = (
        None  # finds a documentation that is inside the definition
    )


def text(node: Node, source: bytes) -> str:
    return source[node.start_byte : node.end_byte].decode("utf-8", "replace")


def child_at(node: Node, place: int) -> Node | None:
    """The named child at a place, if there are so many: tree-sitter raises an error if not."""
    return node.named_child(place) if place < node.named_child_count else None


def first(node: Node, *types: str) -> Node | None:
    """The first named child of one of the types."""
    return next((child for child in node.named_children if child.type in types), None)


def named(kind: Kind, *, opens: bool = False, field: str = "name") -> Rule:
    """A rule for nodes that have their name in a field. With `opens` the walk goes on inside."""

    def rule(node: Node, source: bytes) -> Sequence[Match]:
        name = node.child_by_field_name(field)
        return () if name is None else (match(kind, node, name, source, opens=opens),)

    return rule


def named_by(kind: Kind, *types: str, opens: bool = False) -> Rule:
    """A rule for nodes whose name is their first child of a type, because the grammar gives it no field."""

    def rule(node: Node, source: bytes) -> Sequence[Match]:
        name = first(node, *types)
        return () if name is None else (match(kind, node, name, source, opens=opens),)

    return rule


def match(kind: Kind, node: Node, name: Node, source: bytes, *, opens: bool = False) -> Match:
    owner, last = split_name(text(name, source))
    return Match(name=last, kind=kind, node=node, owner=owner, inside=node if opens else None)


def attribute(name: Node | None, node: Node, source: bytes) -> Sequence[Match]:
    """A property of a class, which counts as the class's functions do; or a variable outside of one."""
    if name is None:
        return ()
    return (Match(name=text(name, source), kind="variable", node=node, attribute=True),)


def inside(node: Node, owner: str = "") -> Match:
    """The walk goes on inside, and what is found there belongs to the owner."""
    return Match(name="", kind="class", node=node, inside=node, owner=owner, defines=False)


def split_name(name: str) -> tuple[str, str]:
    """`a::b::c` and `a.b.c` are `c` in `a.b`."""
    if name.isidentifier():
        return "", name
    if name[:1] in "'\"`":  # `declare module "x.y"`
        return "", name.strip("'\"`")
    name = " ".join(name.replace("::", ".").replace("\\", ".").split())
    owner, _, last = name.rpartition(".")
    return (owner.strip("."), last) if last and owner.strip(".") else ("", name)


def without_arguments(name: str) -> str:
    """The name of a type without its parameters: `List<T>`, `List[T]`."""
    for bracket in "<[(":
        name = name.partition(bracket)[0]
    return name.strip()


DOC_CHARACTERS = 500
READ_BYTES = 4 * DOC_CHARACTERS  # of a comment: marks and indentation are taken off

_OPENING = re.compile(
    r"(?:/\*[*!]?|//[/!]?|#['!]?|--\[?=*\[?|;+|%+|\{-|\(\*+|@(?:module|type)?doc\b|~[sS])(?:\s\|)?"
)
_MARKS = re.compile(r"[\s*#/;%\-'\"!|<>={}()\[\]~]{1,40}")
_CLOSING = re.compile(r"(?:(?<!\*)\*++[/)]|-\}|\]\]|\"{3}|'{3})$")
# Attributes that are not documentation: `#[derive(Debug)]`, `@spec`, `@decorator`.
_NOT_DOCUMENTATION = ("#[", "@", "[", "-spec", "-dialyzer", "{-#", "#!/")


def plain_text(comments: Sequence[Node], source: bytes) -> str:
    """The words of comments that stand one below the other, on one line."""
    lines: list[str] = []
    for comment in comments:
        raw = source[comment.start_byte : min(comment.end_byte, comment.start_byte + READ_BYTES)]
        lines.extend(_lines(raw.decode("utf-8", "replace")))
        if sum(map(len, lines)) > DOC_CHARACTERS:
            break
    return collapse_whitespace(" ".join(lines))


def _lines(comment: str) -> list[str]:
    if comment.startswith(_NOT_DOCUMENTATION) and not comment.startswith(
        ("@doc", "@moduledoc", "@typedoc")
    ):
        return []
    return [_without_marks(line) for line in comment.split("\n")]


def _without_marks(line: str) -> str:
    line = line.strip()
    if (opening := _OPENING.match(line)) is not None:
        line = line[opening.end() :].strip()
    line = _CLOSING.sub("", line).strip()
    if (marks := _MARKS.match(line)) is not None and (
        marks.end() == len(line) or line[0] in "*#/;%-'\"|!"
    ):
        line = line[marks.end() :]
    return line.rstrip("\"'").strip()


def collapse_whitespace(words: str) -> str:
    """On one line, and not too long."""
    return " ".join(words.split())[:DOC_CHARACTERS].rstrip()
