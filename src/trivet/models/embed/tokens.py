"""How texts are cut into tokens for one embedder."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from trivet.errors import EmbedderError
from trivet.models.brief_tokenizer import is_brief, tokenizer_of
from trivet.models.embed.base import clean
from trivet.models.onnx import open_tokenizer


class Tokens:
    """The first text is cut without opening the whole tokenizer, where that can be: many a process asks only once."""

    def __init__(self, file: Path, most: int) -> None:
        """`most` tokens are a text's at most, the special ones among them."""
        self._file, self._most = file, most
        self._opened: Any = None
        self._opening = threading.Lock()
        self._is_first = is_brief(file.parent)

    def open(self) -> Any:
        with self._opening:
            if self._opened is None:
                self._opened = open_tokenizer(self._file)
            return self._opened

    @property
    def window(self) -> int:
        return _window(self.open(), self._most)

    def count(self, text: str) -> int:
        return len(self.open().encode(clean(text), add_special_tokens=False).ids)

    def ids(self, text: str) -> list[int]:
        text = clean(text)
        tokenizer = self._brief(text) or self.open()
        encoding = tokenizer.encode(text, add_special_tokens=False)
        encoding.truncate(_window(tokenizer, self._most))
        ids: list[int] = tokenizer.post_process(encoding).ids
        return ids

    def _brief(self, text: str) -> Any:
        if self._opened is not None or not self._is_first:
            return None
        self._is_first = False
        try:
            return tokenizer_of(text, self._file.parent)
        except Exception as error:  # the library raises bare Exception
            raise EmbedderError(f"cannot read the tokenizer beside {self._file}: {error}") from error


def _window(tokenizer: Any, most: int) -> int:
    return most - int(tokenizer.num_special_tokens_to_add(False))
