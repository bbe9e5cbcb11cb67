"""From the name of an embedder to the embedder. Importing this is cheap: each kind is imported when it is asked for."""

import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from trivet.errors import InvalidInput
from trivet.models.embed.spec import KINDS, STOCK, Spec
from trivet.models.kinds import known

if TYPE_CHECKING:
    from trivet.models.embed.base import Embedder
    from trivet.models.embed.onnx import OnnxEmbedder

DEFAULT = "bundled"
# The bundled models of earlier releases, oldest first. A release that brings another bundled model adds the one before.
EARLIER = ("all-MiniLM-L6-v2/b7510b52f82d", "trivet-embedder/6f757c77ecc9")


def load(spec: str | Spec = DEFAULT) -> "Embedder | None":
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


def _open(embedder: "OnnxEmbedder") -> None:
    with suppress(Exception):  # whoever asks the model meets it too, and tells it
        embedder.open()


def shipped(identity: str) -> "Embedder | None":
    """The model that comes with Trivet, if it makes vectors of that identity: to ask it tells nobody anything."""
    bundled = load(DEFAULT)
    return bundled if bundled is not None and bundled.identity == identity else None


def succeeds(spec: str, stored_spec: str, identity: str) -> bool:
    """Whether the embedder named `spec` is what a later release has in the place of the model of that identity.

    Only what came with Trivet has a successor, and only later releases know of it: two releases that share a store move
    it forward once, never to and fro.
    """
    return spec == DEFAULT and stored_spec in (DEFAULT, STOCK) and identity in EARLIER
