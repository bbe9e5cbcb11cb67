"""Secrets are redacted in everything stored or shown, and revealed only on request."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from support.invented_secrets import github, password
from support.store_fixtures import Opened
from trivet import InvalidInput, Trivet
from trivet.errors import Conflict, SecretError
from trivet.secrets.masking import fill_placeholders, placeholder, placeholder_names, private_spans

OTHER = "0199c2f4-7d1e-7a3b-9c55-2f6f0f6c1a2c"
ID = "0199c2f4-7d1e-7a3b-9c55-2f6f0f6c1a2b"


def said(value: object) -> str:
    return msgspec.json.encode(value).decode()


def test_every_field_is_redacted(trivet: Trivet) -> None:
    names = ("content", "title", "tag", "keyword", "source")
    secrets = {name: github(name) for name in names}
    done = trivet.remember(
        f"The bot uses {secrets['content']} at night.",
        title=f"Bot {secrets['title']}",
        tags=[secrets["tag"], "bots"],
        expanded_keywords=[secrets["keyword"]],
        source=f"https://acme.dev/?t={secrets['source']}",
    )
    assert done.redacted == {"github-token": 5}
    shown = trivet.get(done.id)
    assert not [
        name for name, secret in secrets.items() if secret in said(shown) or secret in said(done)
    ]
    assert shown.content == "The bot uses [secret:github-token:1] at night."
    assert shown.tags == ("[secret:github-token:3]", "bots")
    revealed = trivet.reveal(done.id)
    assert [name for name, secret in secrets.items() if secret in said(revealed)] == list(names)


def test_recall_finds_memory_by_context_and_kind(trivet: Trivet) -> None:
    id = trivet.remember(f"The nightly bot uses {github('a')}.").id
    assert trivet.recall("nightly bot").hits[0].id == id
    assert trivet.recall("github token").hits[0].id == id
    assert not trivet.recall(github("a")).hits or github("a") not in said(
        trivet.recall(github("a")).hits
    )


def test_equal_secrets_share_placeholder_and_retry_is_unchanged(trivet: Trivet) -> None:
    text = f"old {github('a')}, old {github('a')}, new {github('b')}"
    first = trivet.remember(text, id=ID)
    assert (
        trivet.get(ID).content
        == "old [secret:github-token:1], old [secret:github-token:1], new [secret:github-token:2]"
    )
    assert (first.status, trivet.remember(text, id=ID).status) == ("stored", "unchanged")
    with pytest.raises(Conflict, match="other content"):
        trivet.remember(text.replace(github("b"), github("c")), id=ID)
    with pytest.raises(Conflict, match="other content"):
        trivet.remember_many([{"content": github(name), "id": OTHER} for name in "ab"])
    assert trivet.stats().memories == {"active": 1}


def test_edit_keeps_placeholders_and_seals_new_secrets(trivet: Trivet) -> None:
    id = trivet.remember(f"key {github('a')}").id
    edited = trivet.edit(id, content=f"{trivet.get(id).content} and {github('b')}")
    assert edited.content == "key [secret:github-token:1] and [secret:github-token:2]"
    assert trivet.reveal(id).content == f"key {github('a')} and {github('b')}"
    same = trivet.edit(id, content=f"key {github('a')} and {github('b')}")
    assert same.revision == edited.revision, "the same text and secrets must not count as a change"
    trivet.edit(id, content="gone")
    assert trivet.restore(id, revision=2).content == edited.content
    assert trivet.reveal(id).content == f"key {github('a')} and {github('b')}"
    assert github("a") not in said(trivet.history(id, reveal=True))


def test_typed_placeholder_is_kept_as_text(trivet: Trivet) -> None:
    id = trivet.remember(f"[secret:github-token:1] is how it looks; {github('a')}").id
    assert (
        trivet.get(id).content == "[secret:github-token:1] is how it looks; [secret:github-token:2]"
    )
    assert trivet.reveal(id).content == f"[secret:github-token:1] is how it looks; {github('a')}"


def test_private_sections_are_hidden(trivet: Trivet) -> None:
    id = trivet.remember(
        "Lunch with Ines. <private>She leaves in May.</private> Bring cake. <PRIVATE>No nuts"
    ).id
    assert trivet.get(id).content == "Lunch with Ines. [private] Bring cake. [private:2]"
    assert trivet.reveal(id).content.endswith(
        "<private>She leaves in May.</private> Bring cake. <PRIVATE>No nuts"
    )
    assert not trivet.recall("leaves in May").hits


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("a <private>b</private> c", "a  c"),
        ("a <private>b <private>c</private> d</private> e", "a  e"),
        ("a < Private reason='x' >b</ private > c", "a  c"),
        ("a <private>b", "a "),
        ("a </private> b", "a </private> b"),
        ("a <privateer>b</privateer>", "a <privateer>b</privateer>"),
    ],
)
def test_private_tag_boundaries(text: str, left: str) -> None:
    for start, stop in reversed(private_spans(text)):
        text = text[:start] + text[stop:]
    assert text == left


def test_refuse_mode_rejects_secrets(open_trivet: Opened) -> None:
    trivet = open_trivet(secrets="refuse")
    wrong: list[dict[str, Any]] = [
        {"content": github("a")},
        {"content": "fine", "title": github("a")},
        {"content": "fine", "source": f"https://x:{password('a')}@y"},
    ]
    for given in wrong:
        with pytest.raises(InvalidInput, match=list(given)[-1]) as error:
            trivet.remember(**given)
        assert github("a") not in str(error.value)
        assert password("a") not in str(error.value)
    id = trivet.remember("fine <private>and this is not refused</private>").id
    with pytest.raises(InvalidInput, match="github-token"):
        trivet.edit(id, content=github("a"))
    imported = trivet.import_(
        [json.dumps({"content": github("a")}), json.dumps({"content": "also fine"})]
    )
    assert (imported.stored, len(imported.errors)) == (1, 1)
    assert github("a") not in said(imported)
    assert trivet.stats().memories == {"active": 2}


def test_off_mode_still_hides_private_sections(open_trivet: Opened) -> None:
    trivet = open_trivet(secrets="off")
    id = trivet.remember(f"{github('a')} <private>b</private>").id
    assert trivet.get(id).content == f"{github('a')} [private]"


def test_secret_in_scope_is_rejected(trivet: Trivet) -> None:
    with pytest.raises(InvalidInput, match="scope") as error:
        trivet.remember("fine", scope=f"work/{github('a')}")
    assert github("a") not in str(error.value)


def test_import_redacts_history(trivet: Trivet, open_trivet: Opened, tmp_path: Path) -> None:
    trivet.close()
    other = Trivet.open(tmp_path / "other.db", embedder="none", background=False, secrets="off")
    id = other.remember(f"first {github('a')}").id
    other.edit(id, content=f"second {github('b')}")
    lines = list(other.export())
    other.close()
    trivet = open_trivet()
    imported = trivet.import_(lines)
    assert (imported.stored, imported.redacted) == (1, {"github-token": 1})
    assert [one.memory.content for one in trivet.history(id)] == [
        "first [secret:github-token:1]",
        "second [secret:github-token:2]",
    ]
    assert trivet.reveal(id).content == f"second {github('b')}"
    assert trivet.import_(lines).unchanged == 1
    trivet.restore(id, revision=1)
    assert trivet.reveal(id).content == f"first {github('a')}"


def test_imported_history_fields_are_redacted(
    trivet: Trivet, open_trivet: Opened, tmp_path: Path
) -> None:
    """A secret in a current scope is rejected; past scopes and other fields are redacted."""
    trivet.close()
    other = Trivet.open(tmp_path / "other.db", embedder="none", background=False, secrets="off")
    id = other.remember("first").id
    other.edit(id, content="second")
    # Use the old format without a checksum; a forged file could also carry a valid one.
    lines = [json.loads(line) for line in other.export()][:-1]
    lines[0]["trivet_export"] = 1
    other.close()
    secrets = {name: github(name) for name in ("scope", "category", "action", "title", "source")}
    first = lines[1]["history"][0]
    first["action"] = secrets["action"]
    first["memory"] |= {name: secrets[name] for name in ("scope", "category", "title")}
    first["memory"]["source"] = {"uri": f"https://acme.dev/?t={secrets['source']}"}
    trivet = open_trivet()
    done = trivet.import_(json.dumps(line) for line in lines)
    assert (done.stored, done.errors) == (1, ())
    path = Path(trivet.settings.path)
    trivet.close()
    stored = path.read_bytes()
    assert b"second" in stored
    assert not [name for name, secret in secrets.items() if secret.encode() in stored]


def test_secret_in_proposal_field_is_rejected(trivet: Trivet) -> None:
    with pytest.raises(InvalidInput, match="scope"):
        trivet.inbox_propose("The bot deploys at night.", scope=github("scope"))
    with pytest.raises(InvalidInput, match="memory") as refused:
        trivet.inbox_propose("The bot deploys at night.", memory=github("memory"))
    assert github("memory") not in str(refused.value)
    assert trivet.inbox_list().total == 0


def test_lines_differing_only_in_secret_stay_separate(trivet: Trivet) -> None:
    lines = [json.dumps({"content": f"key {github(name)}"}) for name in "ab"]
    assert trivet.import_(lines).stored == 2
    assert trivet.import_(lines).unchanged == 2


def test_export_contains_placeholders(trivet: Trivet) -> None:
    trivet.remember(f"key {github('a')}", sensitive=True)
    lines = "".join(trivet.export(include_sensitive=True))
    assert "[secret:github-token:1]" in lines
    assert github("a") not in lines


def test_redact_removes_plain_secrets_from_history(open_trivet: Opened, path: Path) -> None:
    before = open_trivet(secrets="off")
    id = before.remember(f"first {github('a')}", title="T", tags=["t"]).id
    before.edit(id, content="second, clean")
    other = before.remember(f"other {password('a')} password: {password('b')}").id
    before.close()
    trivet = open_trivet()
    redacted = trivet.redact()
    assert (redacted.memories, redacted.secrets) == (2, {"github-token": 1, "password": 1})
    assert trivet.redact().memories == 0
    assert trivet.history(id)[0].memory.content == "first [secret:github-token:1]"
    assert trivet.get(id).revision == 2
    assert password("b") not in said(trivet.history(other))
    assert [finding for finding in trivet.doctor() if not finding.ok] == []
    everything = b"".join(file.read_bytes() for file in path.parent.glob("memory.db*")).lower()
    assert github("a").lower().encode() not in everything
    assert password("b").lower().encode() not in everything


def test_restoring_plain_revision_redacts_history(open_trivet: Opened) -> None:
    before = open_trivet(secrets="off")
    id = before.remember(f"first {github('a')}").id
    before.edit(id, content="second")
    before.close()
    trivet = open_trivet()
    assert trivet.restore(id, revision=1).content == "first [secret:github-token:1]"
    assert github("a") not in said(trivet.history(id, reveal=True))
    assert trivet.reveal(id).content == f"first {github('a')}"


def test_plain_secret_can_be_forgotten_in_refuse_mode(
    open_trivet: Opened,
) -> None:
    before = open_trivet(secrets="off")
    id = before.remember(f"first {github('a')}").id
    before.close()
    assert open_trivet(secrets="refuse").forget(id).state == "deleted"


def test_failed_reveal_is_audited(trivet: Trivet, configuration: Path, open_trivet: Opened) -> None:
    id = trivet.remember(f"key {github('a')}").id
    trivet.reveal(id)
    trivet.close()
    (configuration / "secret-keys.json").unlink()
    trivet = open_trivet()
    with pytest.raises(SecretError, match=r"key .* is not in the file"):
        trivet.reveal(id)
    assert [(one.act, one.memory) for one in trivet.audit()] == [("reveal", id), ("reveal", id)]
    assert github("a") not in said(trivet.audit())
    assert trivet.get(id).content == "key [secret:github-token:1]", (
        "other operations must still work"
    )


def test_doctor_detects_changed_audit_record(trivet: Trivet, path: Path) -> None:
    import sqlite3

    id = trivet.remember(f"key {github('a')}").id
    trivet.reveal(id)
    trivet.reveal(id)
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE audit SET memory = 'another' WHERE sequence = 1")
    connection.close()
    assert [finding.check for finding in trivet.doctor() if not finding.ok] == ["audit record"]


def test_purge_removes_sealed_secret(trivet: Trivet, path: Path) -> None:
    import sqlite3

    id = trivet.remember(f"key {github('a')}").id
    trivet.reveal(id)
    trivet.purge(id)
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT count(*) FROM secret").fetchone() == (0,)
    assert connection.execute("SELECT count(*) FROM audit").fetchone() == (1,)
    connection.close()


def test_moved_sealed_secret_does_not_open(trivet: Trivet, path: Path) -> None:
    import sqlite3

    trivet.remember(f"key {github('a')}")
    other = trivet.remember("key of somebody else [secret:github-token:1]").id
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE secret SET memory = 2")
    connection.close()
    with pytest.raises(SecretError, match="damaged or moved"):
        trivet.reveal(other)


def test_placeholders_are_not_concepts(trivet: Trivet) -> None:
    trivet.remember(f"Acme keeps {github('a')} in Rostock", tags=[github("b")])
    trivet.drain()
    assert {concept.name for concept in trivet.concepts().concepts} <= {"acme", "rostock"}


def test_placeholder_names_round_trip() -> None:
    names = [("github-token", 1), ("private", 1), ("private", 2), ("jwt", 12)]
    text = " ".join(placeholder(*name) for name in names)
    assert placeholder_names(text) == names
    assert (
        fill_placeholders(text, {name: f"{name[0]}{name[1]}" for name in names})
        == "github-token1 private1 private2 jwt12"
    )
