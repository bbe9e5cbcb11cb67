"""From the name of an embedder to the embedder. Importing this is cheap: each kind is imported when it is asked for."""

from typing import TYPE_CHECKING

from trivet.embed.spec import Spec

if TYPE_CHECKING:
    from trivet.embed.base import Embedder

DEFAULT = "bundled"


def load(spec: str | Spec = DEFAULT) -> "Embedder | None":
    """The embedder of that name, or None for `none`. Opens no model and calls no one yet."""
    value = Spec.parse(spec) if isinstance(spec, str) else spec
    if value.kind == "none":
        return None
    if value.kind == "bundled":
        from trivet.embed.onnx import bundled

        return bundled()
    if value.kind == "folder":
        from trivet.embed.folder import open_folder

        return open_folder(value.name)
    return _hosted(value)


def _hosted(spec: Spec) -> "Embedder":
    if spec.kind == "voyage":
        from trivet.embed.voyage import VoyageEmbedder

        return VoyageEmbedder(spec)
    if spec.kind == "cohere":
        from trivet.embed.cohere import CohereEmbedder

        return CohereEmbedder(spec)
    from trivet.embed.openai import OpenAIEmbedder

    return OpenAIEmbedder(spec)
