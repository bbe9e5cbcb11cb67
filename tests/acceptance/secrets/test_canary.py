"""Unique secrets go in by every route, and then every place is searched for them.

Pieces count too, in any case, because an index may split words and fold their case.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from support.canaries import Canaries, everything_on_disk, everything_stored
from support.chat_server import ChatServer
from support.command_line import CommandLine, process
from support.invented_secrets import github, password
from support.mcp_agent import agent
from support.store_fixtures import Opened
from support.triples_model import knows, serving
from support.word_embedder import WordEmbedder
from trivet import Trivet, TrivetError


@pytest.fixture
def canaries() -> Canaries:
    return Canaries()


@pytest.fixture
def embedder() -> Iterator[WordEmbedder]:
    server = WordEmbedder()
    yield server
    server.stop()


@pytest.fixture
def model() -> Iterator[ChatServer]:
    with serving(knows({})) as server:
        yield server


def said(value: object) -> str:
    return msgspec.json.encode(value).decode()


Run = Callable[..., str]


def command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Run, Run]:
    """Run the real command, or the same in this process for speed, and record all output."""
    monkeypatch.setenv("TRIVET_PATH", str(tmp_path / "memory.db"))
    monkeypatch.setenv("TRIVET_EMBEDDER", "none")
    within = CommandLine(monkeypatch)

    def run(*arguments: str, stdin: str = "") -> str:
        result = process(*arguments, stdin=stdin.encode())
        return result.out + result.err

    def run_within(*arguments: str, stdin: str = "") -> str:
        result = within(*arguments, stdin=stdin.encode())
        return result.out + result.err

    return run, run_within


def as_options(fields: dict[str, Any]) -> list[str]:
    options = ["--title", fields["title"], "--source", fields["source"]]
    options += [part for tag in fields["tags"] for part in ("--tag", tag)]
    return options + [
        part for word in fields["expanded_keywords"] for part in ("--expanded-keywords", word)
    ]


def test_from_python(
    canaries: Canaries,
    open_trivet: Opened,
    embedder: WordEmbedder,
    model: ChatServer,
    path: Path,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    outputs: list[str] = []
    off = open_trivet(secrets="off")
    old = off.remember(f"An old one with {canaries.token('old')}").id
    off.edit(old, content="An old one, cleaned by hand")
    off.close()

    trivet = open_trivet(embedder=embedder.spec(), graph_llm=model.spec)
    done = trivet.remember(**canaries.fields("remember"))
    outputs.append(said(done))
    outputs.append(
        said(trivet.remember_many([canaries.fields("many one"), canaries.fields("many two")]))
    )
    outputs.append(said(trivet.edit(done.id, **canaries.fields("edit"))))
    outputs.append(said(trivet.restore(done.id, revision=1)))
    outputs.append(said(trivet.restore(old, revision=1)))
    lines = [
        json.dumps(canaries.fields("plain")),
        json.dumps({"content": canaries.token("bad"), "importance": 7}),
    ]
    lines += [
        f'{{"content": "{canaries.token("broken")}',
        json.dumps({"content": "x", "state": canaries.token("state")}),
    ]
    outputs.append(said(trivet.import_(lines)))
    outputs.append(
        said(
            trivet.recall(
                f"who uses {canaries.token('query')} and {canaries.private('query private')}"
            ).hits
        )
    )
    refused: list[dict[str, Any]] = [
        {"category": canaries.token("category")},
        {"scope": canaries.token("scope")},
        {"valid_from": "x"},
    ]
    for wrong in refused:
        with pytest.raises(TrivetError) as error:
            trivet.remember(canaries.token("refused"), **wrong)
        outputs.append(str(error.value))
    trivet.drain()
    trivet.embed()
    outputs += [
        said(trivet.list()),
        said(trivet.get(done.id, reveal=True)),
        said(trivet.history(done.id, reveal=True)),
    ]
    outputs += [
        trivet.diff(done.id, 1, 2, reveal=True),
        said(trivet.stats()),
        said(trivet.concepts()),
        *trivet.export(),
    ]
    outputs += [
        said(trivet.doctor()),
        said(trivet.recall("bot logs in", reveal=True)),
        said(trivet.graph(done.id)),
    ]
    outputs.append(said(trivet.why_not("bot logs in", done.id)))

    assert embedder.texts, "the embedder must have been called"
    assert model.bodies, "the language model must have been called"
    assert canaries.found_in("\n".join(outputs)) == []
    assert canaries.found_in("\n".join(embedder.texts)) == []
    assert canaries.found_in("\n".join(model.bodies)) == []
    assert canaries.found_in(caplog.text) == []
    assert canaries.found_in(everything_stored(path)) == []
    assert canaries.found_in(everything_on_disk(tmp_path)) == [], "including the write-ahead log"
    trivet.backup(tmp_path / "copy.db")
    trivet.close()
    assert canaries.found_in(everything_on_disk(tmp_path)) == []


def test_search_finds_secrets_when_detection_is_off(
    canaries: Canaries, open_trivet: Opened, path: Path
) -> None:
    """Proves that the search works: without detection, the same secrets are everywhere."""
    trivet = open_trivet(secrets="off")
    trivet.remember(f"It is {canaries.token('seen')}", tags=[canaries.token("tag")])
    assert canaries.found_in(everything_stored(path)) == canaries.made


def test_from_the_command_line(
    canaries: Canaries, configuration: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, within = command_line(tmp_path, monkeypatch)
    fields = canaries.fields("arguments")
    outputs = [run("remember", fields["content"], *as_options(fields), "--json")]
    id = json.loads(outputs[0])["id"]
    outputs.append(run("remember", "-", stdin=canaries.fields("standard input")["content"]))
    outputs.append(within("edit", id, "--content", canaries.fields("edit")["content"]))
    outputs.append(
        within("edit", id, "--content", "-", stdin=canaries.fields("edit by input")["content"])
    )
    outputs.append(within("restore", id, "--revision", "1"))
    outputs.append(within("import", "-", stdin=json.dumps(canaries.fields("import"))))
    outputs.append(run("remember", canaries.token("wrong"), "--category", "nonsense"))
    outputs.append(run("recall", f"bot {canaries.private('query')} {canaries.token('query')}"))
    outputs += [within("get", id, "--reveal"), within("history", id, "--reveal")]
    outputs += [within(name) for name in ("list", "export", "doctor")]
    assert canaries.found_in("\n".join(outputs)) == []
    assert canaries.found_in(everything_stored(tmp_path / "memory.db")) == []
    assert canaries.found_in(everything_on_disk(tmp_path)) == []
    assert set(canaries.found_in(within("reveal", id))) >= {
        github("arguments content"),
        password("arguments password"),
    }
    audit = within("audit")
    assert canaries.found_in(audit) == []
    assert id in audit


def test_from_an_agent(
    canaries: Canaries, embedder: WordEmbedder, configuration: Path, path: Path
) -> None:
    settings = {
        "TRIVET_EMBEDDER": embedder.spec(),
        "TRIVET_CONFIG": str(configuration / "trivet.toml"),
    }
    with agent(path, None, **settings) as one:
        stored = one.done("memory_store", **canaries.fields("store"))
        assert stored["redacted"]["github-token"] == 5
        one.done("memory_update", id=stored["id"], **canaries.fields("update"))
        one.done(
            "memory_recall", query=f"bot {canaries.token('query')} {canaries.private('query')}"
        )
        one.done("memory_get", id=stored["id"])
        one.done("memory_list")
        one.refused("memory_store", content=canaries.token("refused"), category="nonsense")
        one.refused(
            "memory_store",
            content=canaries.token("unknown"),
            nonsense=canaries.token("unknown too"),
        )
        one.done("memory_why", query="bot", id=stored["id"])
        outputs = list(one.heard)
    assert canaries.found_in("\n".join(outputs)) == []
    assert canaries.found_in("\n".join(embedder.texts)) == []
    assert canaries.found_in(everything_stored(path)) == []
    assert canaries.found_in(everything_on_disk(path.parent)) == [], (
        "including the server's own log"
    )


def test_private_parts_reach_no_provider(
    canaries: Canaries, open_trivet: Opened, embedder: WordEmbedder, model: ChatServer
) -> None:
    """Under every setting, because the writer marked them explicitly."""
    trivet = open_trivet(embedder=embedder.spec(), graph_llm=model.spec, secrets="off")
    trivet.remember(f"Ines {canaries.private('one')} works at Acme.")
    trivet.drain()
    trivet.embed()
    trivet.recall(f"Ines {canaries.private('two')}")
    assert canaries.found_in("\n".join([*embedder.texts, *model.bodies])) == []
    assert any("works at Acme" in text for text in embedder.texts)


def test_only_reveal_returns_the_secret(canaries: Canaries, trivet: Trivet) -> None:
    id = trivet.remember(**canaries.fields("one")).id
    assert sorted(canaries.found_in(said(trivet.reveal(id)))) == sorted(canaries.made)
