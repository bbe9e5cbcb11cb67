"""What a table of models has for each kind: how a setting writes it, and what opens it. Two tables use this.

A new embedder is a file and a line in `embed/spec.py`, a new reranker a file and a line in `rerank/spec.py`.

The name of an embedder as one small value: parses from a string and prints back to it.

    bundled                                     the model that comes with Trivet
    none                                        no dense leg
    folder:/path/to/model                       an ONNX or sentence-transformers folder
    openai:MODEL[@BASE_URL][#OPTIONS]           OpenAI, or any server that speaks its API
    voyage:MODEL[@BASE_URL][#OPTIONS]
    cohere:MODEL[@BASE_URL][#OPTIONS]

OPTIONS are `dimensions=N` and `window=N`, joined by `&`.

From the name of an embedder to the embedder. Importing this is cheap: each kind is imported when it is asked for.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from trivet.errors import InvalidInput

if TYPE_CHECKING:
    from trivet.models.embed.base import Embedder
    from trivet.models.embed.onnx import OnnxEmbedder


# What follows the name of the kind: nothing, the path of a folder, a model (with an address and options), an address.
Follows = Literal["nothing", "path", "model", "url"]

# A model name may hold an @ of its own, so only one that starts a URL divides.
HOSTED_FORM = re.compile(r"(?P<model>[^#]+?)(@(?P<url>https?://[^#]*))?(#(?P<options>.*))?")


@dataclass(frozen=True, slots=True)
class Kind:
    """`opens` names a module and a function or class in it; it is imported when the first such model is opened."""

    written: str
    opens: str = ""
    follows: Follows = "nothing"

    def opener(self) -> Callable[..., Any]:
        module, _, name = self.opens.partition(":")
        opener: Callable[..., Any] = getattr(import_module(module), name)
        return opener


def known(kinds: Mapping[str, Kind]) -> str:
    return ", ".join(kind.written for kind in kinds.values())


def checked_url(url: str, whose: str = "embedder") -> str:
    if not url:
        return ""
    try:
        parts = urlsplit(url)
        acceptable = bool(parts.hostname) and not (parts.username or parts.password or parts.query)
        _ = parts.port
    except ValueError:
        acceptable = False
    if not acceptable:
        # The value is not repeated: what makes it unacceptable may be a password.
        raise InvalidInput(
            f"the {whose}'s URL must be like http://127.0.0.1:11434/v1: a host, no password, no query"
        )
    return url.rstrip("/")


_WHOLE_NUMBER = re.compile("[1-9][0-9]{0,5}")

KINDS: Mapping[str, Kind] = {
    "bundled": Kind("bundled", "trivet.models.embed.onnx:bundled"),
    "none": Kind("none"),
    "folder": Kind("folder:/path", "trivet.models.embed.folder:open_folder", "path"),
    "openai": Kind(
        "openai:MODEL[@URL][#dimensions=N&window=N]",
        "trivet.models.embed.hosted:OpenAIEmbedder",
        "model",
    ),
    "voyage": Kind("voyage:MODEL", "trivet.models.embed.hosted:VoyageEmbedder", "model"),
    "cohere": Kind("cohere:MODEL", "trivet.models.embed.hosted:CohereEmbedder", "model"),
}
# What earlier releases had beside `bundled`: all-MiniLM-L6-v2.
STOCK = "stock"


@dataclass(frozen=True, slots=True)
class Spec:
    """`name` is the model of a hosted embedder or the path of a folder."""

    kind: str
    name: str = ""
    url: str = ""
    dimensions: int | None = None
    window: int | None = None

    def __str__(self) -> str:
        if not self.name:
            return self.kind
        options = "&".join(f"{key}={value}" for key, value in self._options() if value is not None)
        url, tail = self.url and f"@{self.url}", options and f"#{options}"
        return f"{self.kind}:{self.name}{url}{tail}"

    def _options(self) -> tuple[tuple[str, int | None], ...]:
        return (("dimensions", self.dimensions), ("window", self.window))

    @classmethod
    def parse(cls, text: str) -> Spec:
        kind, _, rest = text.strip().partition(":")
        if kind == STOCK and not rest:
            raise InvalidInput(
                "the embedder stock (all-MiniLM-L6-v2) is no longer shipped. Leave it out: then the bundled one is "
                "used, and a store of its vectors moves. Or name a folder of your own that has a model's model.onnx "
                "beside tokenizer.json: folder:/path/to/model"
            )
        follows = KINDS[kind].follows if kind in KINDS else None
        if follows == "nothing" and not rest:
            return cls(kind)
        if follows == "path" and rest:
            return cls(kind, rest)
        if follows == "model" and rest:
            return _hosted(kind, rest)
        raise InvalidInput(f"unknown embedder {text!r}; known are: {known(KINDS)}")


def without_address(identity: str) -> str:
    """The identity of a model as a store may say it: stores of earlier releases hold the address of hosted ones too."""
    kind, _, rest = identity.partition(":")
    parts = (
        HOSTED_FORM.fullmatch(rest) if kind in KINDS and KINDS[kind].follows == "model" else None
    )
    if parts is None or not parts["url"]:
        return identity
    return f"{kind}:{parts['model']}" + (f"#{parts['options']}" if parts["options"] else "")


def _hosted(kind: str, rest: str) -> Spec:
    parts = HOSTED_FORM.fullmatch(rest)
    if parts is None:
        raise InvalidInput(
            f"cannot read the embedder {kind}:{rest}; write {kind}:MODEL[@URL][#dimensions=N&window=N]"
        )
    options = _parse_options(parts["options"] or "")
    url = checked_url(parts["url"] or "")
    return Spec(kind, parts["model"], url, options.get("dimensions"), options.get("window"))


def _parse_options(text: str) -> dict[str, int]:
    options: dict[str, int] = {}
    for option in filter(None, text.split("&")):
        key, _, value = option.partition("=")
        if key not in ("dimensions", "window") or not _WHOLE_NUMBER.fullmatch(value):
            raise InvalidInput(
                f"unknown embedder option {option!r}; known are dimensions=N and window=N, N above 0"
            )
        options[key] = int(value)
    return options


DEFAULT = "bundled"
# The bundled models of earlier releases, oldest first. A release that brings another bundled model adds the one before.
EARLIER_BUNDLED = ("all-MiniLM-L6-v2/b7510b52f82d", "trivet-embedder/6f757c77ecc9")


def load(spec: str | Spec = DEFAULT) -> Embedder | None:
    """The embedder of that name, or None for `none`. Opens no model and calls no one yet."""
    value = Spec.parse(spec) if isinstance(spec, str) else spec
    kind = KINDS.get(value.kind)
    if kind is None:
        raise InvalidInput(f"unknown embedder {value.kind!r}; known are: {known(KINDS)}")
    if not kind.opens:
        return None
    given = {"nothing": (), "path": (value.name,)}.get(kind.follows, (value,))
    embedder: Embedder = kind.opener()(*given)
    return embedder


def open_soon(spec: str) -> None:
    """Opens the bundled model, if that is meant, in a thread of its own: for a program that is about to ask it.

    Most of it runs outside the interpreter, which meanwhile loads the rest of the program. What has to be imported is
    imported here: where a program is interrupted while it imports, a thread that imports too would wait for ever. The
    process waits for the thread at its end: one that is cut off within the runtime can take the process down with it.
    """
    if spec == DEFAULT:
        with suppress(Exception):  # whoever asks the model meets it too, and tells it
            from trivet.models.embed.onnx import bundled
            from trivet.models.onnx import import_runtime

            import_runtime()
            threading.Thread(target=_open, args=(bundled(),), name="trivet-open").start()


def _open(embedder: OnnxEmbedder) -> None:
    with suppress(Exception):  # whoever asks the model meets it too, and tells it
        embedder.open()


def shipped(identity: str) -> Embedder | None:
    """The model that comes with Trivet, if it makes vectors of that identity: to ask it tells nobody anything."""
    bundled = load(DEFAULT)
    return bundled if bundled is not None and bundled.identity == identity else None


def is_upgrade(spec: str, stored_spec: str, identity: str) -> bool:
    """Whether the embedder named `spec` is what a later release has in the place of the model of that identity.

    Only what came with Trivet has a successor, and only later releases know of it: two releases that share a store move
    it forward once, never to and fro.
    """
    return spec == DEFAULT and stored_spec in (DEFAULT, STOCK) and identity in EARLIER_BUNDLED
