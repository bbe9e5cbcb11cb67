"""A server's refusals raise the same errors with the same messages as the embedded object."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp

from support.served_stores import ServedStores, key_of, serving
from trivet import (
    Forbidden,
    InvalidInput,
    NotFound,
    StoreError,
    TooMany,
    Trivet,
    TrivetError,
    Unauthorised,
)
from trivet.client import responses
from trivet.client.call import NOT_A_VERB
from trivet.client.problems import PROBLEMS
from trivet.common.ids import new_id
from trivet.contract import VERBS
from trivet.errors import SecretError
from trivet.serve.failures import SECRET_KEYS_UNAVAILABLE
from trivet.serve.http.errors import ALL_PROBLEMS, problem_response
from trivet.serve.http.tenants import Tenants

KEY = "tvt.default.none.secret"


@contextmanager
def answering(app: ASGIApp) -> Iterator[Trivet]:
    with serving(app, lifespan="off") as address, Trivet.open(address, key=KEY) as trivet:
        yield trivet


@pytest.fixture
def _no_second_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave no pause that the server may ask for."""
    monkeypatch.setattr(responses, "LONGEST_PAUSE", 0.0)


@pytest.mark.usefixtures("_no_second_attempt")
@pytest.mark.parametrize("kind", PROBLEMS, ids=lambda kind: kind.__name__)
def test_every_error_keeps_its_class(kind: type[TrivetError]) -> None:
    message = "What was wrong, and what to do about it."
    with (
        answering(problem_response(kind(message), new_id())) as trivet,
        pytest.raises(kind) as caught,
    ):
        trivet.stats()
    assert type(caught.value) is kind
    assert str(caught.value) == (SECRET_KEYS_UNAVAILABLE if kind is SecretError else message)


@pytest.mark.usefixtures("_no_second_attempt")
@pytest.mark.parametrize(
    "kind",
    [kind for kind in ALL_PROBLEMS if not kind.__subclasses__()],
    ids=lambda kind: kind.__name__,
)
def test_http_only_errors_are_trivet_errors(kind: type[TrivetError]) -> None:
    with (
        answering(problem_response(kind("What was wrong."), new_id())) as trivet,
        pytest.raises(TrivetError, match=r"What was|A secret key"),
    ):
        trivet.stats()


MISSING = new_id()
REFUSED: dict[str, Callable[[Trivet], object]] = {
    "a missing memory": lambda memory: memory.get(MISSING),
    "an unknown category": lambda memory: memory.remember("text", category="nonsense"),
    "an unknown recipe": lambda memory: memory.recall("text", recipe="magic()"),
    "a link to itself": lambda memory: memory.link(MISSING, "see-also", MISSING),
    "a bad time": lambda memory: memory.list(created_after="soon"),
    "a missing revision": lambda memory: memory.diff(memory.remember("text").id, 1, 9),
}


@pytest.mark.parametrize("act", REFUSED.values(), ids=REFUSED)
def test_messages_match_the_embedded_object(
    trivet: Trivet, tmp_path: Path, act: Callable[[Trivet], object]
) -> None:
    with (
        Trivet.open(tmp_path / "embedded.db", embedder="none", background=False) as embedded,
        pytest.raises(TrivetError) as here,
    ):
        act(embedded)
    with pytest.raises(TrivetError) as there:
        act(trivet)
    assert type(there.value) is type(here.value)
    assert str(there.value) == str(here.value)


def test_missing_key(address: str) -> None:
    with Trivet.open(address) as trivet, pytest.raises(Unauthorised, match="TRIVET_KEY"):
        trivet.recall("text")


def test_unknown_key(address: str) -> None:
    with (
        Trivet.open(address, key=KEY) as trivet,
        pytest.raises(Unauthorised, match="not known") as caught,
    ):
        trivet.recall("text")
    assert KEY not in str(caught.value)


def test_reader_cannot_write(served_at: tuple[str, Tenants]) -> None:
    address, tenants = served_at
    with Trivet.open(address, key=tenants.make_key("ben", "reader")) as trivet:
        assert trivet.list().total == 0
        with pytest.raises(Forbidden, match="write"):
            trivet.remember("text")


def test_memory_of_another_user_is_not_found(
    served_at: tuple[str, Tenants], trivet: Trivet
) -> None:
    address, tenants = served_at
    id = trivet.remember("zebra text").id
    with Trivet.open(address, key=tenants.make_key("ben", "writer")) as other:
        with pytest.raises(NotFound):
            other.get(id)
        assert other.recall("zebra").hits == ()
        trivet.share("ben", id=id)
        assert [hit.id for hit in other.recall("zebra").hits] == [id]
        assert [share.id for share in other.shares()] == [id]
        trivet.unshare("ben", id=id)
        assert other.recall("zebra").hits == ()


def test_rate_limited_call_waits_then_fails(running: ServedStores, path: Path) -> None:
    slow = {"server_requests_a_minute": 1, "server_burst": 1}
    with (
        running.at(path, embedder="none", **slow) as (address, tenants),
        Trivet.open(address, key=key_of(tenants)) as it,
    ):
        it.stats()
        with pytest.raises(TooMany, match="too many requests"):
            it.stats()


def test_busy_server_is_asked_again() -> None:
    from trivet.serve.http.errors import Busy

    attempts = 0

    async def busy_at_first(scope: Any, receive: Any, send: Any) -> None:
        nonlocal attempts
        attempts += 1
        answer = (
            problem_response(Busy("No room."), new_id())
            if attempts < 3
            else Response(msgspec.json.encode([]))
        )
        await answer(scope, receive, send)

    with answering(busy_at_first) as trivet:
        assert trivet.shares() == ()
    assert attempts == 3


@pytest.mark.parametrize(
    ("app", "message"),
    [
        (HTMLResponse("<h1>Not Found</h1>", 404), "does not answer like this"),
        (HTMLResponse(f"<h1>No {KEY}</h1>", 403), "does not answer like this"),
        (PlainTextResponse("upstream failed", 500), "upstream failed"),
        (HTMLResponse("<h1>Welcome</h1>"), "cannot be read"),
        (Response(b'{"memories": 7}'), "same version"),
        (Response(b"\xff\xfe"), "cannot be read"),
        (
            Response(b'{"detail": ', 422, media_type="application/problem+json"),
            "does not answer like this",
        ),
    ],
)
def test_answers_of_another_program(app: ASGIApp, message: str) -> None:
    with answering(app) as trivet:
        with pytest.raises(TrivetError, match=message) as caught:
            trivet.list()
        assert KEY not in str(caught.value)


@pytest.mark.parametrize("app", [HTMLResponse("<h1>Welcome</h1>"), Response(b"{}")])
def test_answer_of_another_program_is_not_a_success(app: ASGIApp) -> None:
    with answering(app) as trivet:
        with pytest.raises(StoreError):
            trivet.purge(new_id())
        with pytest.raises(StoreError, match="instead of lines"):
            list(trivet.export())


def test_wrong_path_is_not_a_missing_memory(running: ServedStores, path: Path) -> None:
    with (
        running.at(path, embedder="none") as (address, tenants),
        Trivet.open(f"{address}/elsewhere", key=key_of(tenants)) as trivet,
        pytest.raises(StoreError, match="nothing at this address"),
    ):
        trivet.get(new_id())


ALTERNATIVES = {
    **NOT_A_VERB,
    **{name: verb.instead for name, verb in VERBS.items() if verb.needs == "store"},
}


@pytest.mark.parametrize("verb", sorted(ALTERNATIVES))
def test_verb_that_needs_the_store_says_where_to_run_it(verb: str) -> None:
    given = ["x"] if verb in ("backup", "acting_as") else []
    with Trivet.open("http://127.0.0.1:9", key=KEY) as trivet:
        with pytest.raises(InvalidInput, match="over HTTP") as caught:
            getattr(trivet, verb)(*given)
        assert ALTERNATIVES[verb] in str(caught.value)


def test_wrong_arguments_raise_type_errors() -> None:
    with Trivet.open("http://127.0.0.1:9", key=KEY) as trivet:
        with pytest.raises(TypeError, match="limitt"):
            trivet.recall("text", limitt=3)  # type: ignore[call-arg]
        with pytest.raises(TypeError, match="query"):
            trivet.recall()  # type: ignore[call-arg]


def test_redirect_does_not_receive_the_key() -> None:
    seen: list[Any] = []

    async def elsewhere(scope: Any, receive: Any, send: Any) -> None:
        seen.append(scope)
        await PlainTextResponse("thanks")(scope, receive, send)

    with (
        serving(elsewhere, lifespan="off") as other,
        answering(RedirectResponse(f"{other}/v1/stats?secret=1", 307)) as trivet,
        pytest.raises(StoreError, match=f"redirects to {other}/v1/stats. ") as caught,
    ):
        trivet.stats()
    assert seen == []
    assert "secret" not in str(caught.value)
