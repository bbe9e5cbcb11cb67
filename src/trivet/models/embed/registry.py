"""From the name of an embedder to the embedder. Importing this is cheap: each kind is imported when it is asked for."""

from typing import TYPE_CHECKING

from trivet.errors import EmbedderError, InvalidInput
from trivet.models.embed.spec import KINDS, Spec
from trivet.models.kinds import known

if TYPE_CHECKING:
    from trivet.models.embed.base import Embedder

DEFAULT = "bundled"


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
