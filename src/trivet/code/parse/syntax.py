"""Parts of grammars: rules for nodes that define names, and text from comments."""

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
    """A name that a node defines; without `defines`, a place to continue the walk."""

    name: str
    kind: Kind
    node: Node
    inside: Node | None = None  # walked next, with this definition as the container
    body: Node | None = None  # where the signature ends, if not at the node's own body
    owner: str = ""  # the container in the name itself: `Foo` of `Foo::bar`
    defines: bool = True
    scopes_rest: bool = False  # the rest of the file belongs to it: `package Store;`
    attribute: bool = False  # a variable that counts in a class: a property, not a plain field


Rule: TypeAlias = Callable[[Node, bytes], Sequence[Match]]


class Grammar(msgspec.Struct, frozen=True, kw_only=True):
    """Rules that find definitions; nodes in none of the sets are not entered."""

    rules: Mapping[str, Rule]
    # Entered: bodies of classes, conditions around definitions.
    through: frozenset[str] = frozenset()
    # Entered; the definition inside starts where they do.
    wraps: frozenset[str] = frozenset()
    comments: frozenset[str] = frozenset({"comment"})
    # Siblings before a definition that belong to it.
    attributes: frozenset[str] = frozenset()
    attribute_marks: tuple[bytes, ...] = (b"",)  # how the source of an attribute begins
    clauses: bool = False  # neighbors of one name are clauses of one definition
    tails: frozenset[str] = frozenset()  # bodies that follow their definition as siblings
    nested: bool = False  # long functions are searched for functions in them
    # Definitions that a long broken function may have swallowed.
    swallowed: frozenset[str] = frozenset()
    # Finds documentation inside the definition.
    inner_doc: Callable[[Node, bytes], str] | None = None


def text(node: Node, source: bytes) -> str:
    return source[node.start_byte : node.end_byte].decode("utf-8", "replace")


def child_at(node: Node, place: int) -> Node | None:
    """Return None past the end, where tree-sitter raises."""
    return node.named_child(place) if place < node.named_child_count else None


def first(node: Node, *types: str) -> Node | None:
    return next((child for child in node.named_children if child.type in types), None)


def named(kind: Kind, *, opens: bool = False, field: str = "name") -> Rule:
    """Make a rule for nodes with their name in a field; `opens` continues inside."""

    def rule(node: Node, source: bytes) -> Sequence[Match]:
        name = node.child_by_field_name(field)
        return () if name is None else (match(kind, node, name, source, opens=opens),)

    return rule


def named_by(kind: Kind, *types: str, opens: bool = False) -> Rule:
    """Make a rule for nodes whose name is their first child of these types."""

    def rule(node: Node, source: bytes) -> Sequence[Match]:
        name = first(node, *types)
        return () if name is None else (match(kind, node, name, source, opens=opens),)

    return rule


def match(kind: Kind, node: Node, name: Node, source: bytes, *, opens: bool = False) -> Match:
    owner, last = split_name(text(name, source))
    return Match(name=last, kind=kind, node=node, owner=owner, inside=node if opens else None)


def attribute(name: Node | None, node: Node, source: bytes) -> Sequence[Match]:
    if name is None:
        return ()
    return (Match(name=text(name, source), kind="variable", node=node, attribute=True),)


def inside(node: Node, owner: str = "") -> Match:
    return Match(name="", kind="class", node=node, inside=node, owner=owner, defines=False)


def only_inside(node: Node, source: bytes) -> Sequence[Match]:
    """Define nothing and continue the walk inside."""
    return (inside(node),)


def split_name(name: str) -> tuple[str, str]:
    """Split `a::b::c` or `a.b.c` into `a.b` and `c`."""
    if name.isidentifier():
        return "", name
    if name[:1] in "'\"`":  # `declare module "x.y"`
        return "", name.strip("'\"`")
    name = " ".join(name.replace("::", ".").replace("\\", ".").split())
    owner, _, last = name.rpartition(".")
    return (owner.strip("."), last) if last and owner.strip(".") else ("", name)


def without_arguments(name: str) -> str:
    """Drop type parameters, as in `List<T>` and `List[T]`."""
    for bracket in "<[(":
        name = name.partition(bracket)[0]
    return name.strip()


DOC_CHARACTERS = 500
READ_BYTES = 4 * DOC_CHARACTERS  # of a comment, before marks and indentation are removed

_OPENING = re.compile(
    r"(?:/\*[*!]?|//[/!]?|#['!]?|--\[?=*\[?|;+|%+|\{-|\(\*+|@(?:module|type)?doc\b|~[sS])(?:\s\|)?"
)
_MARKS = re.compile(r"[\s*#/;%\-'\"!|<>={}()\[\]~]{1,40}")
_CLOSING = re.compile(r"(?:(?<!\*)\*++[/)]|-\}|\]\]|\"{3}|'{3})$")
# Attributes that are not documentation: `#[derive(Debug)]`, `@spec`, `@decorator`.
_NOT_DOCUMENTATION = ("#[", "@", "[", "-spec", "-dialyzer", "{-#", "#!/")


def plain_text(comments: Sequence[Node], source: bytes) -> str:
    """Join consecutive comments on one line, without their marks."""
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
    return " ".join(words.split())[:DOC_CHARACTERS].rstrip()
