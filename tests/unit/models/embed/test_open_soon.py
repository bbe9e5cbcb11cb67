"""The bundled model is opened beside the rest of a program that is about to ask it."""

from __future__ import annotations

import threading
from functools import partial
from pathlib import Path

import pytest

from support.waiting import ended, happened
from trivet.models.embed import onnx
from trivet.models.embed.registry import DEFAULT, open_soon
from trivet.serve.resident import client as connect


class Opening:
    """Tells when it is opened, and by whom; `wrong` is what it then raises."""

    def __init__(self, wrong: Exception | None = None) -> None:
        self.opened = threading.Event()
        self.by: threading.Thread | None = None
        self.wrong = wrong

    def open(self) -> None:
        self.by = threading.current_thread()
        self.opened.set()
        if self.wrong is not None:
            raise self.wrong


def test_it_is_opened_in_another_thread_which_the_process_waits_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = Opening()
    monkeypatch.setattr(onnx, "bundled", lambda: model)
    open_soon(DEFAULT)
    happened(model.opened)
    assert model.by is not None
    assert model.by is not threading.current_thread()
    assert not model.by.daemon


def test_what_is_wrong_is_left_to_whoever_asks_the_model(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    model = Opening(OSError("the disk is gone"))
    monkeypatch.setattr(onnx, "bundled", lambda: model)
    open_soon(DEFAULT)
    happened(model.opened)
    assert model.by is not None
    ended(model.by)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    "spec", ["none", "folder:/models/own", "openai:words@http://127.0.0.1:1/v1"]
)
def test_no_other_embedder_is_opened_before_it_is_asked(
    monkeypatch: pytest.MonkeyPatch, spec: str
) -> None:
    monkeypatch.setattr(onnx, "bundled", partial(pytest.fail, "it was opened"))
    before = threading.active_count()
    open_soon(spec)
    assert threading.active_count() == before


def test_a_program_that_says_so_has_it_opened_where_no_other_process_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr(connect, "open_soon", opened.append)
    monkeypatch.setattr(connect, "socket_file", lambda: tmp_path / "nobody")
    for soon in (False, True):
        connect.open_memory(str(tmp_path / "memory.db"), model_soon=soon, background=False).close()
    assert opened == [DEFAULT]
