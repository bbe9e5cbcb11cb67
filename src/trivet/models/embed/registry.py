"""Names of embedders as values, and the kinds that open them, imported on first use.

    bundled                                     the bundled model
    none                                        no dense leg
    folder:/path/to/model                       an ONNX or sentence-transformers folder
    openai:MODEL[@BASE_URL][#OPTIONS]           OpenAI, or any server that speaks its API
    voyage:MODEL[@BASE_URL][#OPTIONS]
    cohere:MODEL[@BASE_URL][#OPTIONS]

OPTIONS are `dimensions=N` and `window=N`, joined by `&`.
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


Follows = Literal["nothing", "path", "model", "url"]

# A model name may contain @.
HOSTED_FORM = re.compile(r"(?P<model>[^#]+?)(@(?P<url>https?://[^#]*))?(#(?P<options>.*))?")


@dataclass(frozen=True, slots=True)
class Kind:
    """The spelling of a kind, and the `module:name` that opens it."""

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
        # The value is not shown: it may contain a password.
        raise InvalidInput(
            f"the {whose}'s URL must be like http://127.0.0.1:11434/v1: a host, no password, "
            "no query"
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
# A second bundled embedder of earlier releases, all-MiniLM-L6-v2.
STOCK = "stock"


@dataclass(frozen=True, slots=True)
class Spec:
    """A parsed name; `name` is a model or a folder."""

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
                "the embedder stock (all-MiniLM-L6-v2) is no longer shipped. Remove the setting to "
                "use the bundled embedder; stores with its vectors are moved. Or name a folder "
                "with model.onnx and tokenizer.json: folder:/path/to/model"
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
    """Drop the address that earlier releases stored in an identity."""
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
            f"cannot read the embedder {kind}:{rest}; "
            f"write {kind}:MODEL[@URL][#dimensions=N&window=N]"
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
                f"unknown embedder option {option!r}; known are dimensions=N and window=N, "
                "N above 0"
            )
        options[key] = int(value)
    return options


DEFAULT = "bundled"
# Oldest first. A release with a new bundled model adds the previous one.
EARLIER_BUNDLED = ("all-MiniLM-L6-v2/b7510b52f82d", "trivet-embedder/6f757c77ecc9")


def load(spec: str | Spec = DEFAULT) -> Embedder | None:
    """Return the named embedder, or None for `none`; calls no server."""
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
    """Open the bundled model in a thread if `spec` names it, while the program loads.

    The caller's thread imports: if it is interrupted while importing, another importing thread
    would wait forever. The thread is no daemon: killing it inside the runtime can crash the
    process.
    """
    if spec == DEFAULT:
        with suppress(Exception):  # the first caller of the model reports it
            from trivet.models.embed.onnx import bundled
            from trivet.models.onnx import import_runtime

            import_runtime()
            threading.Thread(target=_open, args=(bundled(),), name="trivet-open").start()


def _open(embedder: OnnxEmbedder) -> None:
    with suppress(Exception):  # the first caller of the model reports it
        embedder.open()


def shipped(identity: str) -> Embedder | None:
    bundled = load(DEFAULT)
    return bundled if bundled is not None and bundled.identity == identity else None


def is_upgrade(spec: str, stored_spec: str, identity: str) -> bool:
    """Return whether `spec` is the successor of the bundled model of that identity.

    Only later releases know it, so two releases never move a store back and forth.
    """
    return spec == DEFAULT and stored_spec in (DEFAULT, STOCK) and identity in EARLIER_BUNDLED
