"""From the name of an embedder to the embedder. Importing this is cheap: each kind is imported when it is asked for."""

from typing import TYPE_CHECKING

from trivet.errors import EmbedderError
from trivet.models.embed.spec import Spec

if TYPE_CHECKING:
    from trivet.models.embed.base import Embedder

DEFAULT = "bundled"


def load(spec: str | Spec = DEFAULT) -> "Embedder | None":
    """The embedder of that name, or None for `none`. Opens no model and calls no one yet."""
    value = Spec.parse(spec) if isinstance(spec, str) else spec
    if value.kind == "none":
        return None
    if value.kind == "bundled":
        from trivet.models.embed.onnx import bundled

        return bundled()
    if value.kind == "stock":
        from trivet.models.embed.onnx import stock

        return stock()
    if value.kind == "folder":
        from trivet.models.embed.folder import open_folder

        return open_folder(value.name)
    return _hosted(value)


def load_maker(spec: str, identity: str) -> "Embedder":
    """The embedder that made vectors of this identity, stored under that name.

    What a name stands for may change: the bundled model with a release, a folder with its files. Another model's query
    vector would find nonsense among the old vectors, so where the maker is gone that is an error.
    """
    for name in dict.fromkeys((spec, "stock") if spec == DEFAULT else (spec,)):
        embedder = load(name)
        if embedder is not None and (embedder.identity == identity or not embedder.local):
            return embedder
    raise EmbedderError(
        f"the vectors stored so far are of {identity}, which is not here any more; until all memories are embedded "
        "anew, words find them. `trivet embed` does it now"
    )


def _hosted(spec: Spec) -> "Embedder":
    if spec.kind == "voyage":
        from trivet.models.embed.voyage import VoyageEmbedder

        return VoyageEmbedder(spec)
    if spec.kind == "cohere":
        from trivet.models.embed.cohere import CohereEmbedder

        return CohereEmbedder(spec)
    from trivet.models.embed.openai import OpenAIEmbedder

    return OpenAIEmbedder(spec)
