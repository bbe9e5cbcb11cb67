"""The name of an embedder as one small value: parses from a string and prints back to it.

    bundled                                     the model that comes with Trivet
    none                                        no dense leg
    folder:/path/to/model                       an ONNX or sentence-transformers folder
    openai:MODEL[@BASE_URL][#OPTIONS]           OpenAI, or any server that speaks its API
    voyage:MODEL[@BASE_URL][#OPTIONS]
    cohere:MODEL[@BASE_URL][#OPTIONS]

OPTIONS are `dimensions=N` and `window=N`, joined by `&`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from trivet.errors import InvalidInput
from trivet.models.kinds import HOSTED_FORM, Kind, checked_url, known

_WHOLE_NUMBER = re.compile("[1-9][0-9]{0,5}")

KINDS: Mapping[str, Kind] = {
    "bundled": Kind("bundled", "trivet.models.embed.onnx:bundled"),
    "none": Kind("none"),
    "folder": Kind("folder:/path", "trivet.models.embed.folder:open_folder", "path"),
    "openai": Kind("openai:MODEL[@URL][#dimensions=N&window=N]", "trivet.models.embed.hosted:OpenAIEmbedder", "model"),
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
    def parse(cls, text: str) -> "Spec":
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
    parts = HOSTED_FORM.fullmatch(rest) if kind in KINDS and KINDS[kind].follows == "model" else None
    if parts is None or not parts["url"]:
        return identity
    return f"{kind}:{parts['model']}" + (f"#{parts['options']}" if parts["options"] else "")


def _hosted(kind: str, rest: str) -> Spec:
    parts = HOSTED_FORM.fullmatch(rest)
    if parts is None:
        raise InvalidInput(f"cannot read the embedder {kind}:{rest}; write {kind}:MODEL[@URL][#dimensions=N&window=N]")
    options = _parse_options(parts["options"] or "")
    url = checked_url(parts["url"] or "")
    return Spec(kind, parts["model"], url, options.get("dimensions"), options.get("window"))


def _parse_options(text: str) -> dict[str, int]:
    options: dict[str, int] = {}
    for option in filter(None, text.split("&")):
        key, _, value = option.partition("=")
        if key not in ("dimensions", "window") or not _WHOLE_NUMBER.fullmatch(value):
            raise InvalidInput(f"unknown embedder option {option!r}; known are dimensions=N and window=N, N above 0")
        options[key] = int(value)
    return options
