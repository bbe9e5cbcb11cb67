"""Each reader parses its file format as the programs write it."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from support.notes import Take, Write, everything
from trivet import Trivet
from trivet.sources.files.parts import Part, pieces
from trivet.sources.files.vault import format_of


def read(name: str, text: str) -> list[Part]:
    return list(format_of(name, text).read(name, text))


def lines(*values: object) -> str:
    return "".join(msgspec.json.encode(value).decode() + "\n" for value in values)


def test_front_matter_headings_and_tags() -> None:
    text = (
        "---\ntitle: On ships\ntags: [sea, no]\naliases: boats\ncreated: 2024-02-03\n---\n"
        "Opening #harbour and `#code` and a#b and #123.\n\n"
        "Sub\n---\n\nText.\n\n```\n# not a heading #nottag [[no]]\n```\n\n> # quoted\n\n## Deep\n\nMore."
    )
    opening, sub, deep = read("x/ships.md", text)
    assert opening.fields["tags"] == ("sea", "no", "harbour")
    assert opening.fields["title"] == "On ships"
    assert opening.fields["created_at"] == "2024-02-03"
    assert opening.fields["expanded_keywords"] == ("boats",)
    assert (sub.place, sub.fields["title"], sub.fields["tags"]) == (
        "Sub",
        "On ships: Sub",
        ("sea", "no"),
    )
    assert "# not a heading" in sub.content
    assert sub.about.wiki == ()
    assert (deep.place, deep.lines) == ("Deep", (20, 22))


def test_headings_nest_and_repeat(memory: Trivet, write: Write, take: Take) -> None:
    write("a.md", "# T\n\n## A\n\n### X\n\none\n\n## B\n\n### X\n\ntwo\n\n### X\n\nthree\n")
    take()
    titles = {text: one.title for text, one in everything(memory).items()}
    assert titles == {"one": "T: A > X", "two": "T: B > X", "three": "T: B > X"}


@pytest.mark.parametrize("text", ["", "# Only a title\n", "---\ntags: a\n---\n", "   \n\n"])
def test_empty_note_has_no_parts(text: str) -> None:
    assert read("a.md", text) == []


def test_horizontal_rule_is_not_front_matter() -> None:
    assert [part.content for part in read("a.md", "---\n\nhello\n")] == ["---\n\nhello"]


def test_wiki_links_and_paths_become_links(memory: Trivet, write: Write, take: Take) -> None:
    write(
        "a.md",
        "see [[Beta#Second part|that]], ![[gamma]], [up](./sub/b.md) and [out](https://x.example/b.md)",
    )
    assert take().links_added == 0  # link targets do not exist yet
    write("sub/b.md", "# Beta\n\nfirst of b\n\n## Second part\n\nsecond of b\n")
    write("sub/gamma.md", "the third letter, back to [[a]]")
    assert take().links_added == 4
    found = everything(memory)
    links = {
        (link.kind, link.target)
        for link in memory.links(found["the third letter, back to [[a]]"].id)
    }
    a = next(one for text, one in found.items() if text.startswith("see"))
    assert links == {("see-also", a.id), ("see-also", found["the third letter, back to [[a]]"].id)}
    targets = {link.target for link in memory.links(a.id) if link.source == a.id}
    assert targets == {
        found[text].id for text in ("second of b", "first of b", "the third letter, back to [[a]]")
    }
    write("a.md", "see nothing")
    assert take().links_removed == 3


def test_manual_links_stay(memory: Trivet, write: Write, take: Take) -> None:
    write("a.md", "one [[b]]")
    write("b.md", "two")
    take()
    found = everything(memory)
    memory.link(found["two"].id, "see-also", found["one [[b]]"].id)
    write("a.md", "one alone")
    assert take().links_removed == 1
    assert len(memory.links(found["two"].id)) == 1


def test_agent_file_bullets_are_separate_memories() -> None:
    text = "# Project\n\nSome prose.\n\n## Rules\n\n- Use pnpm,\n  never npm\n- Tests first\n\n1. Numbered\n"
    found = read("p/CLAUDE.md", text)
    assert [part.content for part in found] == [
        "Some prose.",
        "Use pnpm,\n  never npm",
        "Tests first",
        "Numbered",
    ]
    assert found[1].fields["title"] == "Project: Rules"
    assert found[1].lines == (7, 8)


def test_claude_code_transcript() -> None:
    def event(uuid: str, kind: str, content: object, **more: object) -> dict[str, object]:
        base = {"sessionId": "s", "cwd": "/home/ana/shop", "timestamp": "2026-03-01T10:00:00.000Z"}
        return {**base, "type": kind, "uuid": uuid, "message": {"content": content}, **more}

    def block(text: str) -> list[dict[str, str]]:
        return [{"type": "text", "text": text}]

    text = lines(
        {"type": "summary", "summary": "Choosing a database", "leafUuid": "z"},
        event("u1", "user", "Which database do we use here?"),
        event("m", "user", "Caveat: meta text", isMeta=True),
        event("a1", "assistant", block("Let me look at it.")),
        event("a2", "assistant", [{"type": "tool_use", "name": "Read", "input": {}}]),
        event("r", "user", [{"type": "tool_result", "content": "secret file"}]),
        event("a3", "assistant", block("PostgreSQL 16.")),
        event("u2", "user", "ok<system-reminder>do that</system-reminder>"),
        event("u3", "user", "[Request interrupted by user for tool use]"),
        event(
            "u4",
            "user",
            "<bash-input>make test</bash-input><bash-stdout>all is well here</bash-stdout>",
        ),
        event("side", "assistant", block("A subagent speaks here."), isSidechain=True),
    )
    text += '{"type": "user", "uu'
    found = read("p/session.jsonl", text)
    assert [part.content for part in found] == [
        "User: Which database do we use here?",
        "Claude: Let me look at it.\n\nPostgreSQL 16.",
    ]
    assert [part.place for part in found] == ["u1", "a1"]
    assert found[0].fields == {
        "title": "Choosing a database",
        "tags": ("claude-code", "shop"),
        "created_at": "2026-03-01T10:00:00.000Z",
    }


def test_growing_transcript_updates_and_adds(memory: Trivet, write: Write, take: Take) -> None:
    def said(uuid: str, kind: str, text: str) -> dict[str, object]:
        return {
            "sessionId": "s",
            "type": kind,
            "uuid": uuid,
            "message": {"content": [{"type": "text", "text": text}]},
        }

    first = (
        said("1", "user", "Where is the cache kept?"),
        said("2", "assistant", "In Redis, I think."),
    )
    write("s.jsonl", lines(*first))
    take()
    write(
        "s.jsonl",
        lines(
            *first,
            said("3", "assistant", "No: in memcached."),
            said("4", "user", "Thanks, good to know."),
        ),
    )
    again = take()
    assert (again.updated, again.stored, again.unchanged) == (1, 1, 1)


def test_codex_transcript() -> None:
    at = "2026-03-01T10:00:00.000Z"
    meta = {
        "timestamp": at,
        "type": "session_meta",
        "payload": {"id": "i", "cwd": "/home/ana/shop"},
    }

    def item(role: str, kind: str, text: str) -> dict[str, object]:
        payload = {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}
        return {"timestamp": at, "type": "response_item", "payload": payload}

    def event(kind: str, text: str) -> dict[str, object]:
        return {"timestamp": at, "type": "event_msg", "payload": {"type": kind, "message": text}}

    items = (
        item("user", "input_text", "<environment_context>cwd</environment_context>"),
        item("user", "input_text", "Make the tests faster please"),
        item("assistant", "output_text", "They now run in parallel."),
    )
    events = (
        event("user_message", "Make the tests faster please"),
        event("agent_message", "They now run in parallel."),
    )
    expected = ["User: Make the tests faster please", "Codex: They now run in parallel."]
    for rows in (items, (*items, *events)):
        found = read("2026/03/01/rollout-x.jsonl", lines(meta, *rows))
        assert [part.content for part in found] == expected
        assert found[0].fields["tags"] == ("codex", "shop")


def test_chatgpt_export_follows_current_branch() -> None:
    def node(parent: str | None, role: str, text: str, *children: str) -> dict[str, object]:
        message = {
            "author": {"role": role},
            "content": {"content_type": "text", "parts": [text]},
            "create_time": 1.7e9,
        }
        return {"parent": parent, "children": list(children), "message": message}

    mapping = {
        "root": {"parent": None, "children": ["a"], "message": None},
        "a": node("root", "user", "How old is the universe?", "b", "c"),
        "b": node("a", "assistant", "A discarded answer to this."),
        "c": node("a", "assistant", "About 13.8 billion years."),
    }
    text = msgspec.json.encode(
        [{"id": "q", "title": "Age", "mapping": mapping, "current_node": "c"}]
    ).decode()
    found = read("conversations.json", text)
    assert [part.content for part in found] == [
        "User: How old is the universe?",
        "ChatGPT: About 13.8 billion years.",
    ]
    assert (found[0].place, found[0].fields["title"]) == ("q/a", "Age")
    assert found[0].fields["created_at"].startswith("2023-11-14T22:13:20")


def test_claude_chat_export() -> None:
    messages = [
        {
            "uuid": "1",
            "sender": "human",
            "text": "What is a trivet for?",
            "created_at": "2026-01-02T03:04:05Z",
        },
        {
            "uuid": "2",
            "sender": "assistant",
            "text": "",
            "content": [{"type": "text", "text": "It carries hot pots."}],
        },
        {"uuid": "3", "sender": "human", "text": "ok"},
    ]
    text = msgspec.json.encode(
        [{"uuid": "c", "name": "Kitchen", "chat_messages": messages}]
    ).decode()
    assert [part.content for part in read("conversations.json", text)] == [
        "User: What is a trivet for?",
        "Claude: It carries hot pots.",
    ]


def test_long_text_is_split_without_loss(memory: Trivet, write: Write, take: Take) -> None:
    text = "\n\n".join(f"Paragraph {number}: " + "words and wörds " * 40 for number in range(120))
    write("long.txt", text)
    assert take().stored > 2
    assert sorted(" ".join(everything(memory)).split()) == sorted(text.split())
    assert list(pieces("x" * 100, 30)) == ["x" * 30] * 3 + ["x" * 10]


def test_known_category_in_file_overrides_default(memory: Trivet, write: Write, take: Take) -> None:
    write("a.md", "---\ncategory: people\n---\nana")
    write("b.md", "---\ncategory: no-such\nimportance: high\n---\nbo")
    write("CLAUDE.md", "- rule of ours")
    take()
    found = {text: one.category for text, one in everything(memory).items()}
    assert found == {"ana": "people", "bo": "references", "rule of ours": "procedures"}


def test_text_encodings(memory: Trivet, vault: Path, take: Take) -> None:
    (vault / "a.txt").write_bytes("ünï\r\ncode".encode("utf-16"))
    (vault / "b.txt").write_bytes(b"\xef\xbb\xbfmarked")
    take()
    assert set(everything(memory)) == {"ünï\ncode", "marked"}
