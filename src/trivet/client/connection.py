"""A server that is asked and waited for. Threads may share one; its connections are kept and used again."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NoReturn, TypeVar

import httpx2
from msgspec import UNSET

from trivet.client import call
from trivet.client.attempts import Attempts, broken_export, broken_import
from trivet.client.call import Call, result_of
from trivet.client.error_response import check_lines, checked
from trivet.client.lines import Lines, chunks
from trivet.client.options import closed, options, own_scope
from trivet.contract import Remember, Request
from trivet.settings import Settings
from trivet.types import Imported, Progress, Remembered

T = TypeVar("T")


class Connection:
    def __init__(self, settings: Settings, wait: Callable[[float], object] = time.sleep) -> None:
        self.settings = settings
        self._http = httpx2.Client(**options(settings))
        self._wait = wait

    @property
    def address(self) -> str:
        return self.settings.path

    def perform(self, request: Request[T]) -> T:
        """Has the server perform a verb."""
        answer: T = self._ask(call.call_of(request, own_scope(self.settings)))
        return answer

    def remember_many(self, memories: Iterable[Mapping[str, Any] | Remember]) -> list[Remembered]:
        stored: list[Remembered] = self._ask(call.remember_many(memories, own_scope(self.settings)))
        return stored

    def diff(self, id: str, older: int, newer: int, reveal: bool) -> str:
        return str(self._ask(call.diff(id, older, newer, reveal)))

    def export(self, include_sensitive: bool) -> Iterator[str]:
        self._check_open()
        return self._receive(call.export(include_sensitive))

    def import_(self, lines: Iterable[str], progress: Progress | None) -> Imported:
        self._check_open()
        imported: Imported = self._carry(call.import_(), lines, progress)
        return imported

    def engine(self) -> NoReturn:
        raise call.not_over_http("engine")

    def close(self) -> None:
        self._http.close()

    def _check_open(self) -> None:
        if self._http.is_closed:
            raise closed(self.settings.path)

    def _ask(self, call: Call) -> Any:
        self._check_open()
        if call.known is not UNSET:
            return call.known
        attempts = Attempts(call, self.settings.path)
        while True:
            try:
                response = self._http.request(call.method, call.path, content=call.body, headers=call.headers)
            except httpx2.RequestError as error:
                self._wait(attempts.after_loss(error))
                continue
            pause = attempts.after_answer(response.status_code, response.headers)
            if pause is None:
                return result_of(call, attempts.checked(response, self.settings))
            self._wait(pause)

    def _carry(self, call: Call, lines: Iterable[str], progress: Progress | None) -> Any:
        """Sends lines as they are read. They are gone then, so there is one attempt."""
        body = chunks(lines, progress)
        try:
            response = self._http.request(call.method, call.path, content=body, headers=call.headers)
        except httpx2.RequestError as error:
            raise broken_import(error, self.settings.path) from None
        return result_of(call, checked(response, self.settings))

    def _receive(self, call: Call) -> Iterator[str]:
        lines = Lines()
        try:
            with self._http.stream(call.method, call.path, headers=call.headers) as response:
                if not response.is_success:
                    response.read()
                check_lines(response, self.settings)
                for piece in response.iter_bytes():
                    yield from lines.of(piece)
        except httpx2.RequestError as error:
            raise broken_export(error, self.settings.path) from None
        yield from lines.last()
