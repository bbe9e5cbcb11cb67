"""What is stored, shown and told of a text that holds secrets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from support.invented_secrets import github, password
from support.opened import Opened
from trivet import InvalidInput, Trivet
from trivet.errors import Conflict, SecretError
from trivet.secrets.masking import fill_placeholders, placeholder, placeholder_names, private_spans

OTHER = "0199c2f4-7d1e-7a3b-9c55-2f6f0f6c1a2c"
ID = "0199c2f4-7d1e-7a3b-9c55-2f6f0f6c1a2b"


def said(value: object) -> str:
    return msgspec.json.encode(value).decode()


def test_every_field_is_looked_through(trivet: Trivet) -> None:
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


def test_it_is_found_by_the_words_around_it_and_by_its_kind(trivet: Trivet) -> None:
    id = trivet.remember(f"The nightly bot uses {github('a')}.").id
    assert trivet.recall("nightly bot").hits[0].id == id
    assert trivet.recall("github token").hits[0].id == id
    assert not trivet.recall(github("a")).hits or github("a") not in said(
        trivet.recall(github("a")).hits
    )


def test_one_value_has_one_name_and_a_retry_says_the_same(trivet: Trivet) -> None:
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


def test_an_edit_keeps_the_names_and_seals_what_is_new(trivet: Trivet) -> None:
    id = trivet.remember(f"key {github('a')}").id
    edited = trivet.edit(id, content=f"{trivet.get(id).content} and {github('b')}")
    assert edited.content == "key [secret:github-token:1] and [secret:github-token:2]"
    assert trivet.reveal(id).content == f"key {github('a')} and {github('b')}"
    same = trivet.edit(id, content=f"key {github('a')} and {github('b')}")
    assert same.revision == edited.revision, "the same words and secrets are no change"
    trivet.edit(id, content="gone")
    assert trivet.restore(id, revision=2).content == edited.content
    assert trivet.reveal(id).content == f"key {github('a')} and {github('b')}"
    assert github("a") not in said(trivet.history(id, reveal=True))


def test_a_typed_placeholder_is_not_mistaken_for_one_of_ours(trivet: Trivet) -> None:
    id = trivet.remember(f"[secret:github-token:1] is how it looks; {github('a')}").id
    assert (
        trivet.get(id).content == "[secret:github-token:1] is how it looks; [secret:github-token:2]"
    )
    assert trivet.reveal(id).content == f"[secret:github-token:1] is how it looks; {github('a')}"


def test_private_parts(trivet: Trivet) -> None:
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
def test_where_private_begins_and_ends(text: str, left: str) -> None:
    for start, stop in reversed(private_spans(text)):
        text = text[:start] + text[stop:]
    assert text == left


def test_refused(open_trivet: Opened) -> None:
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


def test_off_leaves_the_text_but_not_what_is_private(open_trivet: Opened) -> None:
    trivet = open_trivet(secrets="off")
    id = trivet.remember(f"{github('a')} <private>b</private>").id
    assert trivet.get(id).content == f"{github('a')} [private]"


def test_a_scope_is_no_place_for_a_secret(trivet: Trivet) -> None:
    with pytest.raises(InvalidInput, match="scope") as error:
        trivet.remember("fine", scope=f"work/{github('a')}")
    assert github("a") not in str(error.value)


def test_an_import_is_looked_through_with_its_history(
    trivet: Trivet, open_trivet: Opened, tmp_path: Path
) -> None:
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


def test_no_name_in_an_imported_history_is_stored_in_clear(
    trivet: Trivet, open_trivet: Opened, tmp_path: Path
) -> None:
    """The scope of a memory is refused; those of its past, and what else a line may name, are guarded like its text."""
    trivet.close()
    other = Trivet.open(tmp_path / "other.db", embedder="none", background=False, secrets="off")
    id = other.remember("first").id
    other.edit(id, content="second")
    # As an earlier Trivet wrote it, without a checksum: who writes a file by hand can make the sum right, too.
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


def test_no_field_of_a_proposal_holds_a_secret(trivet: Trivet) -> None:
    with pytest.raises(InvalidInput, match="scope"):
        trivet.inbox_propose("The bot deploys at night.", scope=github("scope"))
    with pytest.raises(InvalidInput, match="memory") as refused:
        trivet.inbox_propose("The bot deploys at night.", memory=github("memory"))
    assert github("memory") not in str(refused.value)
    assert trivet.inbox_list().total == 0


def test_plain_lines_that_differ_only_in_their_secret_are_two(trivet: Trivet) -> None:
    lines = [json.dumps({"content": f"key {github(name)}"}) for name in "ab"]
    assert trivet.import_(lines).stored == 2
    assert trivet.import_(lines).unchanged == 2


def test_an_export_carries_placeholders(trivet: Trivet) -> None:
    trivet.remember(f"key {github('a')}", sensitive=True)
    lines = "".join(trivet.export(include_sensitive=True))
    assert "[secret:github-token:1]" in lines
    assert github("a") not in lines


def test_what_was_stored_in_the_clear_is_taken_out_of_the_past(
    open_trivet: Opened, path: Path
) -> None:
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


def test_a_restored_revision_from_before_is_cleaned_with_its_past(open_trivet: Opened) -> None:
    before = open_trivet(secrets="off")
    id = before.remember(f"first {github('a')}").id
    before.edit(id, content="second")
    before.close()
    trivet = open_trivet()
    assert trivet.restore(id, revision=1).content == "first [secret:github-token:1]"
    assert github("a") not in said(trivet.history(id, reveal=True))
    assert trivet.reveal(id).content == f"first {github('a')}"


def test_what_was_stored_in_the_clear_can_be_forgotten_where_secrets_are_refused(
    open_trivet: Opened,
) -> None:
    before = open_trivet(secrets="off")
    id = before.remember(f"first {github('a')}").id
    before.close()
    assert open_trivet(secrets="refuse").forget(id).state == "deleted"


def test_revealing_is_on_the_record_even_if_it_fails(
    trivet: Trivet, configuration: Path, open_trivet: Opened
) -> None:
    id = trivet.remember(f"key {github('a')}").id
    trivet.reveal(id)
    trivet.close()
    (configuration / "secret-keys.json").unlink()
    trivet = open_trivet()
    with pytest.raises(SecretError, match=r"key .* is not in the file"):
        trivet.reveal(id)
    assert [(one.act, one.memory) for one in trivet.audit()] == [("reveal", id), ("reveal", id)]
    assert github("a") not in said(trivet.audit())
    assert trivet.get(id).content == "key [secret:github-token:1]", "everything else goes on"


def test_a_changed_record_shows(trivet: Trivet, path: Path) -> None:
    import sqlite3

    id = trivet.remember(f"key {github('a')}").id
    trivet.reveal(id)
    trivet.reveal(id)
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE audit SET memory = 'another' WHERE sequence = 1")
    connection.close()
    assert [finding.check for finding in trivet.doctor() if not finding.ok] == ["audit record"]


def test_purging_takes_the_sealed_secret_along(trivet: Trivet, path: Path) -> None:
    import sqlite3

    id = trivet.remember(f"key {github('a')}").id
    trivet.reveal(id)
    trivet.purge(id)
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT count(*) FROM secret").fetchone() == (0,)
    assert connection.execute("SELECT count(*) FROM audit").fetchone() == (1,)
    connection.close()


def test_a_sealed_secret_moved_to_another_memory_does_not_open(trivet: Trivet, path: Path) -> None:
    import sqlite3

    trivet.remember(f"key {github('a')}")
    other = trivet.remember("key of somebody else [secret:github-token:1]").id
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE secret SET memory = 2")
    connection.close()
    with pytest.raises(SecretError, match="damaged or moved"):
        trivet.reveal(other)


def test_placeholders_are_no_concepts(trivet: Trivet) -> None:
    trivet.remember(f"Acme keeps {github('a')} in Rostock", tags=[github("b")])
    trivet.drain()
    assert {concept.name for concept in trivet.concepts().concepts} <= {"acme", "rostock"}


def test_names_go_there_and_back() -> None:
    names = [("github-token", 1), ("private", 1), ("private", 2), ("jwt", 12)]
    text = " ".join(placeholder(*name) for name in names)
    assert placeholder_names(text) == names
    assert (
        fill_placeholders(text, {name: f"{name[0]}{name[1]}" for name in names})
        == "github-token1 private1 private2 jwt12"
    )
