"""`open_soon` opens the bundled model in another thread."""

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
    """Records the thread that opens it; raises `wrong` if given."""

    def __init__(self, wrong: Exception | None = None) -> None:
        self.opened = threading.Event()
        self.by: threading.Thread | None = None
        self.wrong = wrong

    def open(self) -> None:
        self.by = threading.current_thread()
        self.opened.set()
        if self.wrong is not None:
            raise self.wrong


def test_model_opens_in_non_daemon_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = Opening()
    monkeypatch.setattr(onnx, "bundled", lambda: model)
    open_soon(DEFAULT)
    happened(model.opened)
    assert model.by is not None
    assert model.by is not threading.current_thread()
    assert not model.by.daemon


def test_background_open_error_is_silent(
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
def test_other_embedders_are_not_opened_early(monkeypatch: pytest.MonkeyPatch, spec: str) -> None:
    monkeypatch.setattr(onnx, "bundled", partial(pytest.fail, "it was opened"))
    before = threading.active_count()
    open_soon(spec)
    assert threading.active_count() == before


def test_model_soon_opens_model_without_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr(connect, "open_soon", opened.append)
    monkeypatch.setattr(connect, "socket_file", lambda: tmp_path / "nobody")
    for soon in (False, True):
        connect.open_memory(str(tmp_path / "memory.db"), model_soon=soon, background=False).close()
    assert opened == [DEFAULT]
